//! Reads files, and notes for which checks a right was missing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use analysis::doctor::{Check, Unmade};

use crate::kernel_files::{KernelPaths, read};

/// Reads files for checks.
pub(super) struct Reader<'a> {
    pub(super) paths: &'a KernelPaths,
    denied: RefCell<BTreeMap<Check, Option<i32>>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(paths: &'a KernelPaths) -> Self {
        Self { paths, denied: RefCell::default() }
    }

    /// The text of a file; empty where it cannot be read.
    pub(super) fn text(&self, check: Check, path: &Path) -> String {
        self.noted(check, read(path)).unwrap_or_default()
    }

    /// The text of a file that holds a word; `None` where it is missing or empty.
    pub(super) fn word(&self, check: Check, path: &Path) -> Option<String> {
        let word = self.text(check, path).trim().to_owned();
        (!word.is_empty()).then_some(word)
    }

    /// The number in a file that holds one.
    pub(super) fn number(&self, check: Check, path: &Path) -> Option<u64> {
        self.word(check, path)?.parse().ok()
    }

    /// What was read; `None` where that failed. What a file lacks is no fault, as kernels differ: only a missing right is noted.
    pub(super) fn noted<T>(&self, check: Check, read: io::Result<T>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(error) => {
                if error.kind() == io::ErrorKind::PermissionDenied {
                    self.deny(check, error.raw_os_error());
                }
                None
            }
        }
    }

    /// Notes that a check cannot be made, with the number of the kernel's error. The first reason for each counts.
    pub(super) fn deny(&self, check: Check, os_error: Option<i32>) {
        self.denied.borrow_mut().entry(check).or_insert(os_error);
    }

    /// The checks for which a right was missing.
    pub(super) fn unmade(&self) -> Vec<Unmade> {
        let denied = self.denied.borrow();
        denied.iter().map(|(check, os_error)| Unmade { check: *check, os_error: *os_error }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_noted_once_for_each_check_and_a_missing_file_is_not() {
        let paths = KernelPaths::default();
        let reader = Reader::new(&paths);
        let denied = |number| Err::<(), _>(io::Error::from_raw_os_error(number));
        assert_eq!(reader.noted(Check::Clock, denied(libc::ENOENT)), None);
        assert_eq!(reader.unmade(), []);
        assert_eq!(reader.noted(Check::Quota, denied(libc::EACCES)), None);
        assert_eq!(reader.noted(Check::Quota, denied(libc::EPERM)), None);
        assert_eq!(reader.noted(Check::Quota, Ok(7)), Some(7));
        assert_eq!(reader.unmade(), [Unmade { check: Check::Quota, os_error: Some(libc::EACCES) }]);
    }

    #[test]
    fn words_and_numbers_are_trimmed() {
        let folder = tempfile::tempdir().unwrap();
        let (paths, file) = (KernelPaths::default(), folder.path().join("file"));
        let reader = Reader::new(&paths);
        for (text, word, number) in
            [("tsc\n", Some("tsc"), None), ("64\n", Some("64"), Some(64)), (" \n", None, None)]
        {
            std::fs::write(&file, text).unwrap();
            assert_eq!(reader.word(Check::Clock, &file).as_deref(), word);
            assert_eq!(reader.number(Check::Clock, &file), number);
        }
    }
}
