//! Why a database server cannot be had.

use std::io;

/// Why a database server cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The server's programs are not installed.
    #[error(
        "{kind} is not installed: no program {program} was found; on Debian, as root: apt-get install {package}"
    )]
    NotInstalled {
        /// Which server.
        kind: &'static str,
        /// The missing program.
        program: &'static str,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// A program could not be run, or a file or folder not made.
    #[error("cannot {what} for {kind}: {source}")]
    Io {
        /// Which server.
        kind: &'static str,
        /// What was being done.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// One of the server's programs failed.
    #[error("{kind} cannot {what}: {said}")]
    Failed {
        /// Which server.
        kind: &'static str,
        /// What was being done.
        what: &'static str,
        /// The last line that the program printed.
        said: String,
    },
}
