//! Which names new files may have.

use folder::is_reserved;

use crate::refusal::Refusal;

/// Maximum length of one name, bytes: that of Linux's file systems.
const SEGMENT_LEN_MAX: usize = 255;
/// Maximum length of a path, bytes.
const PATH_LEN_MAX: usize = 2048;
/// Maximum number of names in a path.
const DEPTH_MAX: usize = 64;

/// Checks that a new file may have this decoded path.
pub(crate) fn check_new(path: &str) -> Result<(), Refusal> {
    let wrong = |reason| Err(Refusal::Name { reason });
    if path.is_empty() {
        return wrong("is missing");
    }
    if path.len() > PATH_LEN_MAX || path.split('/').any(|name| name.len() > SEGMENT_LEN_MAX) {
        return wrong("is too long: the limits are 255 bytes for a name and 2048 for a path");
    }
    if path.split('/').count() > DEPTH_MAX {
        return wrong("is too deep: the limit is 64 folders");
    }
    if path.chars().any(char::is_control) {
        return wrong("contains a control character");
    }
    if is_reserved(path) {
        return wrong("starts with .nstar, which is reserved for the server");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn odd_names_are_refused_with_the_reason() {
        for (path, reason) in [
            ("", "missing"),
            ("a/.nstar-uploads/x", ".nstar"),
            (".NSTAR", ".nstar"),
            ("a\nb", "control"),
            ("a/\u{85}", "control"),
            (&"n".repeat(256), "too long"),
            (&"nn/".repeat(700), "too long"),
            (&"a/".repeat(64), "deep"),
        ] {
            let Err(Refusal::Name { reason: given }) = check_new(path) else {
                panic!("{path:?} was accepted")
            };
            assert!(given.contains(reason), "{path:?}: {given}");
        }
        for path in ["a", ".hidden", "ä/ö b", "nstar", ".nsta", &"n".repeat(255), "-rf", "CON", "a."] {
            assert!(check_new(path).is_ok(), "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn accepted_names_are_never_reserved(path in "(\\.[nN][sS][tT][aA][rR]|[a-z./]){0,12}") {
            if check_new(&path).is_ok() {
                prop_assert!(!path.split('/').any(|name| name.to_ascii_lowercase().starts_with(".nstar")));
            }
        }
    }
}
