//! What a request target encodes: the path (RFC 3986 section 2.1) and the parameters of the query (URL Standard,
//! `application/x-www-form-urlencoded`).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::{FieldsError, fields::shown};

/// Why a path cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// `%` without two hexadecimal digits after it.
    #[error("a % in the path is not followed by two hexadecimal digits")]
    Escape,
    /// `%00`: no file name contains it.
    #[error("the path has an encoded NUL")]
    Nul,
    /// `%2F`: an encoded slash could name a file elsewhere.
    #[error("the path has an encoded slash")]
    Slash,
    /// Not UTF-8 once decoded.
    #[error("the path is not UTF-8 once decoded")]
    Utf8,
}

/// Decodes a path or a part of one, once. `+` stands for itself. Dots are not checked: that is left to the file system's
/// guard.
///
/// # Errors
/// When an escape is malformed or stands for a NUL or a slash, or the result is not UTF-8.
pub fn decode_path(path: &str) -> Result<Cow<'_, str>, DecodeError> {
    path.split('%').skip(1).try_for_each(check_escape)?;
    percent_decode_str(path).decode_utf8().map_err(|_| DecodeError::Utf8)
}

/// Checks what follows a `%`.
fn check_escape(rest: &str) -> Result<(), DecodeError> {
    match rest.as_bytes() {
        [b'0', b'0', ..] => Err(DecodeError::Nul),
        [b'2', b'f' | b'F', ..] => Err(DecodeError::Slash),
        [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => Ok(()),
        _ => Err(DecodeError::Escape),
    }
}

/// The parameters of a query that have not been taken yet.
#[derive(Debug)]
pub struct Query<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

impl<'q> Query<'q> {
    /// Parses `name=value&name=value`.
    ///
    /// # Errors
    /// When it is not UTF-8 once decoded.
    pub fn read(query: Option<&'q str>) -> Result<Self, FieldsError> {
        let query = query.unwrap_or_default();
        // The parser would replace what is not UTF-8.
        if percent_decode_str(query).decode_utf8().is_err() {
            return Err(FieldsError::field("the query", "is not UTF-8 once decoded"));
        }
        Ok(Self(form_urlencoded::parse(query.as_bytes()).collect()))
    }

    /// Takes the parameter `name`. If it was sent several times, the last value counts.
    pub fn take(&mut self, name: &str) -> Option<Cow<'q, str>> {
        let last = self.0.iter().rposition(|(known, _)| known == name)?;
        let (_, value) = self.0.swap_remove(last);
        self.0.retain(|(known, _)| known != name);
        Some(value)
    }

    /// Checks that no parameter is left, so that mistyped ones are not ignored. `known` lists the valid ones.
    ///
    /// # Errors
    /// When a parameter is left.
    pub fn finish(self, known: &'static str) -> Result<(), FieldsError> {
        let Some((name, _)) = self.0.first() else { return Ok(()) };
        let reason = format!("has {}, which is not known here; the known ones are {known}", shown(name));
        Err(FieldsError::field("the query", reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_once() {
        assert_eq!(decode_path("/a%20b+c").unwrap(), "/a b+c");
        assert_eq!(decode_path("/%2525").unwrap(), "/%25");
        assert_eq!(decode_path("/%c3%A9").unwrap(), "/\u{e9}");
        assert!(matches!(decode_path("/plain"), Ok(Cow::Borrowed("/plain"))));
    }

    #[test]
    fn refuses_what_could_mislead() {
        for (path, why) in [
            ("/%", DecodeError::Escape),
            ("/%2", DecodeError::Escape),
            ("/%zz", DecodeError::Escape),
            ("/%+1", DecodeError::Escape),
            ("/a%00b", DecodeError::Nul),
            ("/..%2fetc", DecodeError::Slash),
            ("/%ff", DecodeError::Utf8),
        ] {
            assert_eq!(decode_path(path), Err(why), "{path}");
        }
    }

    #[test]
    fn parameters_are_decoded_as_browsers_encode_them() {
        let mut query = Query::read(Some("name=a+b%20c%26d&limit=5&&empty=&bare&name=%C3%A9")).unwrap();
        assert_eq!(query.take("name").as_deref(), Some("\u{e9}"), "the last counts");
        assert_eq!(query.take("name"), None, "and it is taken once");
        assert_eq!(query.take("limit").as_deref(), Some("5"));
        assert_eq!((query.take("empty").as_deref(), query.take("bare").as_deref()), (Some(""), Some("")));
        assert_eq!(query.finish("name, limit, empty and bare"), Ok(()));
        assert_eq!(Query::read(None).unwrap().finish(""), Ok(()));
    }

    #[test]
    fn what_is_left_or_cannot_be_decoded_is_an_error() {
        let left = Query::read(Some("form=x")).unwrap().finish("from and to").unwrap_err();
        assert_eq!(
            (left.status(), left.to_string().as_str()),
            (422, "the query has form, which is not known here; the known ones are from and to")
        );
        let odd = Query::read(Some("hush%2Chush=x")).unwrap().finish("from").unwrap_err();
        assert!(!odd.to_string().contains("hush"), "{odd}");
        assert!(Query::read(Some("name=%ff")).is_err());
    }
}
