//! Why a file server could not be started.

use std::{io, net::SocketAddr, path::PathBuf};

use folder::FolderError;

/// Why a file server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The folder to serve does not exist.
    #[error("there is no folder {root} to serve; create it, or name another with --root")]
    RootMissing {
        /// The folder.
        root: PathBuf,
    },
    /// The path to serve is not a folder.
    #[error("{root} is not a folder; name the folder that contains the files with --root")]
    RootNotADirectory {
        /// The path.
        root: PathBuf,
    },
    /// The folder cannot be read.
    #[error("the folder {root} cannot be read: {source}; check its permissions")]
    RootUnreadable {
        /// The folder.
        root: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The kernel cannot confine paths to the root.
    #[error(transparent)]
    Unconfined(FolderError),
    /// The value of `--accounts` is invalid.
    #[error(
        "{given:?} is not an accounts server: {reason}; give http://HOST:PORT or https://HOST:PORT, sqlite:PATH for accounts in \
         this process, or none for files open to everyone"
    )]
    Accounts {
        /// The value.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The trusted certificates cannot be loaded.
    #[error("the accounts server cannot be verified: {0}")]
    Trust(#[from] http_io::client::TrustError),
    /// The token for the accounts server cannot be read.
    #[error(
        "the accounts server's token {path} cannot be read: {source}; name the file that the accounts server created \
         at its first start, or a copy of it"
    )]
    Token {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Others may read or change the token for the accounts server.
    #[error("{0} (--accounts-token-file names the file)")]
    SharedToken(#[source] store::SecretError),
    /// The accounts in this process could not be opened.
    #[error(transparent)]
    LocalAccounts(#[from] accounts::AccountsError),
    /// Without accounts, other machines could read the files.
    #[error(
        "without accounts everyone who reaches {listen} can read every file; listen on 127.0.0.1, name an accounts \
         server, or allow it with --open-to-all"
    )]
    Exposed {
        /// The address to listen on.
        listen: SocketAddr,
    },
    /// The audit file cannot be written.
    #[error("the audit file {path} cannot be opened: {source}; name another with --audit")]
    Audit {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// There are rules for users, but no accounts.
    #[error(
        "--permissions says what users may do, but with --accounts none there are no users; name an accounts server"
    )]
    RulesWithoutUsers,
    /// The system provided no random bytes.
    #[error("the system provides no random bytes: {0}")]
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
