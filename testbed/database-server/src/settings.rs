//! The settings of a database server, and why it could not be started.

use std::io;

/// The settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The most connections at once.
    pub connections: usize,
    /// The size of its cache, MiB.
    pub memory_mib: u32,
    /// The port to listen on; `None` means any that is free.
    pub port: Option<u16>,
    /// The processors that it may use; `None` means all.
    pub processors: Option<Vec<usize>>,
    /// What it presents to clients that want TLS; `None` means no TLS.
    pub identity: Option<Identity>,
    /// Statements that MariaDB executes when it starts, one per line, after creating the user `nstar`.
    pub first_statements: String,
}

impl Default for Settings {
    /// 64 connections, 256 MiB, all processors.
    fn default() -> Self {
        let (port, processors, identity) = (None, None, None);
        Self { connections: 64, memory_mib: 256, port, processors, identity, first_statements: String::new() }
    }
}

/// A certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// Why a database server could not be started.
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
