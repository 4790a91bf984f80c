//! Names that may be given to files, and those kept for the server itself.

use folder::is_reserved;

use crate::writing::refusal::Refusal;

/// Longest name of one file or folder, bytes: what Linux's file systems hold.
const SEGMENT_LEN_MAX: usize = 255;
/// Longest path, bytes.
const PATH_LEN_MAX: usize = 2048;
/// Most folders above a file.
const DEPTH_MAX: usize = 64;

/// Refuses a decoded path that no file may be given.
pub(crate) fn check_new(path: &str) -> Result<(), Refusal> {
    let wrong = |reason| Err(Refusal::Name { reason });
    if path.is_empty() {
        return wrong("is missing");
    }
    if path.len() > PATH_LEN_MAX || path.split('/').any(|name| name.len() > SEGMENT_LEN_MAX) {
        return wrong("is too long: 255 bytes a name, 2048 in all, are the most");
    }
    if path.split('/').count() > DEPTH_MAX {
        return wrong("lies too deep: 64 folders are the most");
    }
    if path.chars().any(char::is_control) {
        return wrong("holds a control character");
    }
    if is_reserved(path) {
        return wrong("begins with .nstar, which the server keeps for itself");
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
            let Err(Refusal::Name { reason: told }) = check_new(path) else { panic!("{path:?} was taken") };
            assert!(told.contains(reason), "{path:?}: {told}");
        }
        for path in ["a", ".hidden", "ä/ö b", "nstar", ".nsta", &"n".repeat(255), "-rf", "CON", "a."] {
            assert!(check_new(path).is_ok(), "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_is_never_the_servers_own(path in "(\\.[nN][sS][tT][aA][rR]|[a-z./]){0,12}") {
            if check_new(&path).is_ok() {
                prop_assert!(!path.split('/').any(|name| name.to_ascii_lowercase().starts_with(".nstar")));
            }
        }
    }
}
