//! Percent-encoded paths (RFC 3986 section 2.1).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

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
}
