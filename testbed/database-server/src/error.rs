//! Why there is no database server.

use std::io;

/// Why there is no database server.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Its programs are not installed.
    #[error(
        "{kind} is not installed: no program {program} was found; on Debian, as root: apt-get install {package}"
    )]
    NotInstalled {
        /// Which server.
        kind: &'static str,
        /// Its program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program or a folder that it needs could not be had.
    #[error("cannot {what} for {kind}: {source}")]
    Io {
        /// Which server.
        kind: &'static str,
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// One of its programs failed.
    #[error("{kind} cannot {what}: {said}")]
    Failed {
        /// Which server.
        kind: &'static str,
        /// What was being done.
        what: &'static str,
        /// The last it said.
        said: String,
    },
}
