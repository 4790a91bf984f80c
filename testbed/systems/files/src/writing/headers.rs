//! The header fields of uploads: those of resumable uploads (draft-ietf-httpbis-resumable-upload), which are structured
//! fields (RFC 9651), and conditions (RFC 9110 section 13).

use engine::service::Connection;
use http_io::{conditional, server::Exchange};
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// Maximum number of digits of an integer (RFC 9651 section 3.3.1).
const DIGITS_MAX: usize = 15;

/// What a request says about its upload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UploadHeaders {
    /// `Upload-Complete`: whether the upload ends with this request. Only uploads with this field can be resumed.
    pub complete: Option<bool>,
    /// `Upload-Offset`: where the body belongs, bytes.
    pub offset: Option<u64>,
    /// `Upload-Length`: length of the complete upload, bytes.
    pub length: Option<u64>,
}

impl UploadHeaders {
    /// Reads the fields of a request.
    ///
    /// # Errors
    /// When a field is repeated or invalid, and when the request has `Content-Range`.
    pub(crate) fn of<C: Connection>(exchange: &Exchange<'_, C>) -> Result<Self, Refusal> {
        if exchange.header("content-range").is_some() {
            return Err(Refusal::Request(
                "Content-Range is not supported in uploads; resume with Upload-Complete and Upload-Offset",
            ));
        }
        Self::parse(exchange.headers()).map_err(Refusal::Request)
    }

    /// Parses those of these fields, names and values, that are about uploads.
    ///
    /// # Errors
    /// What is wrong, when one of them is repeated or invalid.
    pub fn parse<'h>(fields: impl Iterator<Item = (&'h str, &'h [u8])>) -> Result<Self, &'static str> {
        let mut parsed = Self::default();
        for (name, value) in fields {
            parsed.read(name, value)?;
        }
        Ok(parsed)
    }

    fn read(&mut self, name: &str, value: &[u8]) -> Result<(), &'static str> {
        let repeated = if name.eq_ignore_ascii_case("upload-complete") {
            let complete = boolean(value).ok_or("Upload-Complete must be ?0 or ?1")?;
            self.complete.replace(complete).is_some()
        } else if name.eq_ignore_ascii_case("upload-offset") {
            let offset = integer(value).ok_or("Upload-Offset must be a number of bytes")?;
            self.offset.replace(offset).is_some()
        } else if name.eq_ignore_ascii_case("upload-length") {
            let length = integer(value).ok_or("Upload-Length must be a number of bytes")?;
            self.length.replace(length).is_some()
        } else {
            false
        };
        if repeated { Err("a field of the upload is repeated") } else { Ok(()) }
    }

    /// The length of the complete upload as far as this request says, whose body starts at `offset`.
    pub(crate) fn total_length(&self, offset: u64, body: Option<u64>) -> Result<Option<u64>, Refusal> {
        let end = body.and_then(|body| offset.checked_add(body));
        let by_body = if self.complete == Some(false) { None } else { end };
        match (self.length, by_body) {
            (Some(length), Some(end)) if length != end => {
                Err(Refusal::Request("Upload-Length and the length of the body contradict each other"))
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

/// The item without its parameters, which have no meaning here.
fn bare(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}

/// The condition under which a file may be replaced or removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Condition {
    /// `If-Match`: the file has one of these tags, or exists for `*`.
    if_match: Option<String>,
    /// `If-None-Match`: the file has none of these tags, or does not exist for `*`.
    if_none_match: Option<String>,
}

impl Condition {
    /// Reads the condition of a request.
    pub(crate) fn of<C: Connection>(exchange: &Exchange<'_, C>) -> Self {
        let all = |name| {
            let values: Vec<_> = exchange.header_all(name).map(String::from_utf8_lossy).collect();
            (!values.is_empty()).then(|| values.join(", "))
        };
        Self { if_match: all("if-match"), if_none_match: all("if-none-match") }
    }

    /// Checks the condition against the tag of the file, or `None` if there is no file.
    pub(crate) fn check(&self, etag: Option<&str>) -> Result<(), Refusal> {
        let names = |list: &String, of: fn(&[u8], &[u8]) -> bool| {
            etag.is_some_and(|etag| of(list.as_bytes(), etag.as_bytes()))
        };
        let matches = self.if_match.as_ref().is_none_or(|list| names(list, conditional::match_names));
        let differs =
            self.if_none_match.as_ref().is_none_or(|list| !names(list, conditional::none_match_names));
        if matches && differs { Ok(()) } else { Err(Refusal::Precondition) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(fields: &[(&str, &str)]) -> Result<UploadHeaders, &'static str> {
        UploadHeaders::parse(fields.iter().map(|(name, value)| (*name, value.as_bytes())))
    }

    #[test]
    fn fields_are_read_in_any_case_and_only_once() {
        let fields = read(&[
            ("upload-complete", "?0"),
            ("Upload-OFFSET", " 7"),
            ("Upload-Length", "9;a=1"),
            ("X", ""),
        ]);
        let expected = UploadHeaders { complete: Some(false), offset: Some(7), length: Some(9) };
        assert_eq!(fields.unwrap(), expected);
        assert!(read(&[("Upload-Offset", "1"), ("upload-offset", "1")]).is_err());
        for wrong in ["", "1", "?2", "true", "?1?0", "\"?1\""] {
            assert!(read(&[("Upload-Complete", wrong)]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_total_length_is_the_announced_one_if_consistent() {
        let whole = |complete, length, offset, body| {
            UploadHeaders { complete, offset: None, length }.total_length(offset, body)
        };
        assert_eq!(whole(None, None, 0, Some(5)).unwrap(), Some(5));
        assert_eq!(whole(None, None, 0, None).unwrap(), None);
        assert_eq!(whole(Some(false), None, 0, Some(5)).unwrap(), None);
        assert_eq!(whole(Some(false), Some(9), 3, Some(5)).unwrap(), Some(9));
        assert_eq!(whole(Some(true), Some(8), 3, Some(5)).unwrap(), Some(8));
        assert!(whole(Some(true), Some(9), 3, Some(5)).is_err());
        assert!(whole(Some(false), Some(7), 3, Some(5)).is_err());
    }

    fn holds(if_match: Option<&str>, if_none_match: Option<&str>, etag: Option<&str>) -> bool {
        let condition = Condition {
            if_match: if_match.map(str::to_owned),
            if_none_match: if_none_match.map(str::to_owned),
        };
        condition.check(etag).is_ok()
    }

    #[test]
    fn conditions_are_checked_against_the_existing_file() {
        let (here, gone) = (Some("\"a\""), None);
        assert!(holds(None, None, here) && holds(None, None, gone));
        assert!(holds(Some("*"), None, here) && !holds(Some("*"), None, gone));
        assert!(!holds(None, Some("*"), here) && holds(None, Some("*"), gone));
        assert!(holds(Some("\"b\", \"a\""), None, here) && !holds(Some("\"b\""), None, here));
        assert!(!holds(Some("W/\"a\""), None, here), "a weak tag never matches");
        assert!(!holds(None, Some("W/\"a\""), here) && holds(None, Some("\"b\""), here));
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_written(number in 0..1_000_000_000_000_000u64) {
            prop_assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }

        #[test]
        fn other_text_is_not_a_number(value in proptest::collection::vec(any::<u8>(), 0..20)) {
            let digits = bare(&value);
            let number = !digits.is_empty() && digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit);
            prop_assert_eq!(integer(&value).is_some(), number);
        }

        #[test]
        fn the_upload_never_ends_before_the_body(
            complete in any::<Option<bool>>(), length in any::<Option<u64>>(), offset in any::<u64>(), body in any::<Option<u64>>()
        ) {
            if let (Ok(Some(whole)), Some(body)) = (UploadHeaders { complete, offset: None, length }.total_length(offset, body), body) {
                prop_assert!(offset.checked_add(body).is_none_or(|end| end <= whole));
            }
        }
    }
}
