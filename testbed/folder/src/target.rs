//! Turns the path of a request into a path beneath the root.
//!
//! The kernel confines the path to the root when it is opened (see [`crate::Root`]); this module decodes it and rejects
//! early what cannot name a file.

use std::borrow::Cow;

use http_io::{DecodeError, decode_path};

/// What a request names, relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target<'a> {
    /// The decoded path, without a slash at either end; empty for the root itself.
    pub path: Cow<'a, str>,
    /// Whether the request ended in a slash, and so asks for a directory.
    pub directory: bool,
}

/// Why a path names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadTarget {
    /// It cannot be decoded.
    Malformed(DecodeError),
    /// It is well-formed, but no file can have it: it contains `.`, `..` or an empty segment.
    Nothing,
}

/// Decodes a percent-encoded path.
///
/// # Errors
/// See [`BadTarget`].
pub fn decode(encoded: &str) -> Result<Target<'_>, BadTarget> {
    let (encoded, directory) = match encoded.strip_suffix('/') {
        Some("") => return Err(BadTarget::Nothing),
        Some(rest) => (rest, true),
        None => (encoded, encoded.is_empty()),
    };
    let path = decode_path(encoded).map_err(BadTarget::Malformed)?;
    let nothing = |segment: &str| matches!(segment, "" | "." | "..");
    if !path.is_empty() && path.split('/').any(nothing) {
        return Err(BadTarget::Nothing);
    }
    Ok(Target { path, directory })
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    use super::*;

    fn path(encoded: &str) -> Result<(String, bool), BadTarget> {
        decode(encoded).map(|target| (target.path.into_owned(), target.directory))
    }

    #[test]
    fn names_directories_and_the_root() {
        assert_eq!(path(""), Ok((String::new(), true)));
        assert_eq!(path("a.txt"), Ok(("a.txt".into(), false)));
        assert_eq!(path("a/b%20c.txt"), Ok(("a/b c.txt".into(), false)));
        assert_eq!(path("a/b/"), Ok(("a/b".into(), true)));
        assert_eq!(path("%e2%9c%93"), Ok(("✓".into(), false)));
    }

    #[test]
    fn a_plain_path_is_not_copied() {
        assert!(matches!(decode("a/b.txt").unwrap().path, Cow::Borrowed(_)));
    }

    #[test]
    fn nothing_climbs() {
        let climbing = [
            "..",
            "../x",
            "a/../../x",
            "%2e%2e/x",
            "a/%2E%2e",
            "/etc/passwd",
            "/",
            "//",
            ".",
            "a//b",
            "a/./b",
            "%2e/",
        ];
        for encoded in climbing {
            assert_eq!(path(encoded), Err(BadTarget::Nothing), "{encoded}");
        }
    }

    #[test]
    fn what_cannot_be_decoded_is_told_apart() {
        for encoded in ["%", "a%2", "%zz", "a%00b", "%00", "..%2fx", "%2fetc", "%ff"] {
            assert!(matches!(path(encoded), Err(BadTarget::Malformed(_))), "{encoded}");
        }
    }

    proptest! {
        #[test]
        fn any_name_comes_back(name in ".{1,60}") {
            let usable = !name.contains(['\0', '/']) && name != "." && name != "..";
            let encoded = utf8_percent_encode(&name, NON_ALPHANUMERIC).to_string();
            let decoded = decode(&encoded).map(|target| target.path.into_owned());
            prop_assert_eq!(decoded.ok(), usable.then_some(name));
        }

        #[test]
        fn what_is_decoded_stays_beneath(encoded in "[a-z./%0-9eEfF]{0,24}") {
            if let Ok(target) = decode(&encoded) {
                let beneath = !target.path.split('/').any(|part| ["", ".", ".."].contains(&part));
                prop_assert!(target.path.is_empty() || beneath);
                prop_assert!(!target.path.contains('\0'));
            }
        }
    }
}
