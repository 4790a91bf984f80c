//! Why a folder cannot be opened.

use std::{io, path::PathBuf};

/// Why a folder cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It does not exist.
    #[error("there is no folder {folder}")]
    Missing {
        /// The path asked for.
        folder: PathBuf,
    },
    /// The path names something else.
    #[error("{folder} is not a folder")]
    NotAFolder {
        /// The path asked for.
        folder: PathBuf,
    },
    /// It cannot be read.
    #[error("the folder {folder} cannot be read: {source}")]
    Unreadable {
        /// The path asked for.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel cannot confine paths to a folder.
    #[error(
        "this kernel lacks openat2 (Linux 5.6), or a sandbox forbids it, and without it files cannot be confined to \
         their folder; use a newer kernel or allow the call"
    )]
    NoOpenat2,
}
