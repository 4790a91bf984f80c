//! The header fields of a resumable upload (draft-ietf-httpbis-resumable-upload), which are structured fields (RFC 9651).

use engine::service::Connection;
use http_io::server::Exchange;

use crate::writing::refusal::Refusal;

/// Most digits of an integer (RFC 9651 section 3.3.1).
const DIGITS_MAX: usize = 15;

/// What a request says of the upload it belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// `Upload-Complete`: whether the upload ends with this request. Only who sends it can resume.
    pub(crate) complete: Option<bool>,
    /// `Upload-Offset`: where the body belongs.
    pub(crate) offset: Option<u64>,
    /// `Upload-Length`: length of the whole.
    pub(crate) length: Option<u64>,
}

impl Fields {
    /// What the request says.
    ///
    /// # Errors
    /// When a field stands twice or cannot be read; when the request has a part of a file without saying so by them.
    pub(crate) fn of<C: Connection>(exchange: &Exchange<'_, C>) -> Result<Self, Refusal> {
        if exchange.header("content-range").is_some() {
            return Err(Refusal::Request(
                "Content-Range is not taken in uploads; to resume use Upload-Complete and Upload-Offset",
            ));
        }
        let mut fields = Self::default();
        for (name, value) in exchange.headers() {
            fields.read(name, value)?;
        }
        Ok(fields)
    }

    fn read(&mut self, name: &str, value: &[u8]) -> Result<(), Refusal> {
        let twice = if name.eq_ignore_ascii_case("upload-complete") {
            let complete = boolean(value).ok_or(Refusal::Request("Upload-Complete is not ?0 or ?1"))?;
            self.complete.replace(complete).is_some()
        } else if name.eq_ignore_ascii_case("upload-offset") {
            let offset = integer(value).ok_or(Refusal::Request("Upload-Offset is not a number of bytes"))?;
            self.offset.replace(offset).is_some()
        } else if name.eq_ignore_ascii_case("upload-length") {
            let length = integer(value).ok_or(Refusal::Request("Upload-Length is not a number of bytes"))?;
            self.length.replace(length).is_some()
        } else {
            false
        };
        if twice { Err(Refusal::Request("a field of the upload stands twice")) } else { Ok(()) }
    }

    /// The length of the whole, as far as it is known from this request, whose body begins at `offset`.
    pub(crate) fn whole(&self, offset: u64, body: Option<u64>) -> Result<Option<u64>, Refusal> {
        let end = body.and_then(|body| offset.checked_add(body));
        let by_body = if self.complete == Some(false) { None } else { end };
        match (self.length, by_body) {
            (Some(length), Some(end)) if length != end => {
                Err(Refusal::Request("Upload-Length and the length of the body do not fit together"))
            }
            (Some(length), None) if end.is_some_and(|end| end > length) => {
                Err(Refusal::Request("the body is longer than Upload-Length says"))
            }
            (length, by_body) => Ok(length.or(by_body)),
        }
    }
}

fn boolean(value: &[u8]) -> Option<bool> {
    match bare(value) {
        b"?1" => Some(true),
        b"?0" => Some(false),
        _ => None,
    }
}

fn integer(value: &[u8]) -> Option<u64> {
    let digits = bare(value);
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The item without its parameters, none of which is known.
fn bare(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(fields: &[(&str, &str)]) -> Result<Fields, Refusal> {
        let mut read = Fields::default();
        fields.iter().try_for_each(|(name, value)| read.read(name, value.as_bytes()))?;
        Ok(read)
    }

    #[test]
    fn the_fields_are_read_in_any_case_and_once() {
        let fields = read(&[
            ("upload-complete", "?0"),
            ("Upload-OFFSET", " 7"),
            ("Upload-Length", "9;a=1"),
            ("X", ""),
        ]);
        let expected = Fields { complete: Some(false), offset: Some(7), length: Some(9) };
        assert_eq!(fields.unwrap(), expected);
        assert!(read(&[("Upload-Offset", "1"), ("upload-offset", "1")]).is_err());
        for wrong in ["", "1", "?2", "true", "?1?0", "\"?1\""] {
            assert!(read(&[("Upload-Complete", wrong)]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_length_of_the_whole_is_what_is_said_if_it_fits() {
        let whole =
            |complete, length, offset, body| Fields { complete, offset: None, length }.whole(offset, body);
        assert_eq!(whole(None, None, 0, Some(5)).unwrap(), Some(5));
        assert_eq!(whole(None, None, 0, None).unwrap(), None);
        assert_eq!(whole(Some(false), None, 0, Some(5)).unwrap(), None);
        assert_eq!(whole(Some(false), Some(9), 3, Some(5)).unwrap(), Some(9));
        assert_eq!(whole(Some(true), Some(8), 3, Some(5)).unwrap(), Some(8));
        assert!(whole(Some(true), Some(9), 3, Some(5)).is_err());
        assert!(whole(Some(false), Some(7), 3, Some(5)).is_err());
    }

    proptest! {
        #[test]
        fn a_number_is_read_as_it_is_written(number in 0..1_000_000_000_000_000u64) {
            prop_assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }

        #[test]
        fn nothing_else_is_a_number(value in proptest::collection::vec(any::<u8>(), 0..20)) {
            let digits = bare(&value);
            let number = !digits.is_empty() && digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit);
            prop_assert_eq!(integer(&value).is_some(), number);
        }

        #[test]
        fn the_whole_never_ends_before_the_body(
            complete in any::<Option<bool>>(), length in any::<Option<u64>>(), offset in any::<u64>(), body in any::<Option<u64>>()
        ) {
            if let (Ok(Some(whole)), Some(body)) = (Fields { complete, offset: None, length }.whole(offset, body), body) {
                prop_assert!(offset.checked_add(body).is_none_or(|end| end <= whole));
            }
        }
    }
}
