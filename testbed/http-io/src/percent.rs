//! Percent-encoded paths (RFC 3986 section 2.1).

use std::borrow::Cow;

/// Why a path cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// `%` without two hexadecimal digits after it.
    #[error("a % in the path is not followed by two hexadecimal digits")]
    Escape,
    /// `%00`: no file name holds it.
    #[error("the path holds an encoded NUL")]
    Nul,
    /// `%2F`: a slash that does not separate could name a file elsewhere.
    #[error("the path holds an encoded slash")]
    Slash,
    /// Not UTF-8 once decoded.
    #[error("the path is not UTF-8 once decoded")]
    Utf8,
}

/// Decodes a path or a part of one, once. `+` stands for itself; dots are left for the file system's guard to judge.
///
/// # Errors
/// When an escape is malformed, or hides a NUL or a slash, or the result is not UTF-8.
pub fn decode_path(path: &str) -> Result<Cow<'_, str>, DecodeError> {
    if !path.contains('%') {
        return Ok(Cow::Borrowed(path));
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' { escaped(&mut bytes)? } else { byte });
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| DecodeError::Utf8)
}

fn escaped(bytes: &mut impl Iterator<Item = u8>) -> Result<u8, DecodeError> {
    let mut digit = || char::from(bytes.next()?).to_digit(16);
    let (Some(high), Some(low)) = (digit(), digit()) else { return Err(DecodeError::Escape) };
    match (high << 4 | low) as u8 {
        0 => Err(DecodeError::Nul),
        b'/' => Err(DecodeError::Slash),
        byte => Ok(byte),
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
