//! The password of a database, in a file.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A longer file holds no password.
const LEN_MAX: u64 = 4096;

/// A file that holds no password. Its contents are not repeated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PasswordFileError {
    /// It cannot be read.
    #[error("the password in {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is too long.
    #[error("{} holds no password: it has {len} bytes", path.display())]
    Long {
        /// The file.
        path: PathBuf,
        /// Its length, bytes.
        len: u64,
    },
    /// Its first line is empty.
    #[error("{} holds no password: its first line is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads a password: the first line of a file.
///
/// # Errors
/// When there is none.
pub fn read_password(path: &Path) -> Result<String, PasswordFileError> {
    let unreadable = |source| PasswordFileError::Unreadable { path: path.to_owned(), source };
    let len = fs::metadata(path).map_err(unreadable)?.len();
    if len > LEN_MAX {
        return Err(PasswordFileError::Long { path: path.to_owned(), len });
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    match text.lines().next() {
        Some(password) if !password.is_empty() => Ok(password.to_owned()),
        _ => Err(PasswordFileError::Empty { path: path.to_owned() }),
    }
}
