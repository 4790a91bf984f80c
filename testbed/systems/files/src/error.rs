//! Why a file server could not be started.

use std::{io, net::SocketAddr, path::PathBuf};

use folder::FolderError;

/// Why a file server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The folder to serve is not there.
    #[error("there is no folder {root} to serve; make it, or name another with --root")]
    RootMissing {
        /// The folder asked for.
        root: PathBuf,
    },
    /// What should be served is no folder.
    #[error("{root} is not a folder; name the folder that holds the files with --root")]
    RootNotADirectory {
        /// What was asked for.
        root: PathBuf,
    },
    /// The folder cannot be read.
    #[error("the folder {root} cannot be read: {source}; check who may read it")]
    RootUnreadable {
        /// The folder asked for.
        root: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel cannot confine paths to the root.
    #[error(transparent)]
    Unconfined(FolderError),
    /// What was given as the accounts server is none.
    #[error(
        "{given:?} is no accounts server: {reason}; give http://HOST:PORT or https://HOST:PORT, sqlite:PATH for accounts in this \
         process, or none for files open to everyone"
    )]
    Accounts {
        /// What was given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody could say who the accounts server is.
    #[error("the accounts server cannot be recognised: {0}")]
    Trust(#[from] http_io::client::TrustError),
    /// The token for the accounts server cannot be read.
    #[error(
        "the accounts server's token {path} cannot be read: {source}; name the file that the accounts server made at \
         its first start, or a copy of it"
    )]
    Token {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The accounts of this process could not be opened.
    #[error(transparent)]
    LocalAccounts(#[from] accounts::AccountsError),
    /// Files without accounts would be open to other machines.
    #[error(
        "without accounts everyone who reaches {listen} may read every file; listen on 127.0.0.1, name an accounts \
         server, or insist with --open-to-all"
    )]
    Exposed {
        /// Where the server was to listen.
        listen: SocketAddr,
    },
    /// The audit file cannot be written.
    #[error("the audit file {path} cannot be opened: {source}; name another with --audit")]
    Audit {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Without accounts nobody is known to whom a rule could apply.
    #[error("--permissions says what users may do, and --accounts none knows none; name an accounts server")]
    RulesWithoutUsers,
    /// No randomness was to be had for the key of the credential cache.
    #[error("the system gives no random bytes: {0}")]
    Randomness(String),
}

impl From<FolderError> for FilesError {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::Missing { folder: root } => Self::RootMissing { root },
            FolderError::NotAFolder { folder: root } => Self::RootNotADirectory { root },
            FolderError::Unreadable { folder: root, source } => Self::RootUnreadable { root, source },
            error @ FolderError::NoOpenat2 => Self::Unconfined(error),
        }
    }
}
