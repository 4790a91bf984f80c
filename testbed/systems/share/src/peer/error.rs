//! Why a peer could not be started.

use std::{
    io,
    path::{Path, PathBuf},
};

use folder::FolderError;

/// Why a peer could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The folder does not exist.
    #[error("there is no folder {share} to share; make it, or name another with --share")]
    Missing {
        /// The folder to share.
        share: PathBuf,
    },
    /// The path is not a folder, or it cannot be read.
    #[error(
        "{share} cannot be shared: {reason}; name a folder that this user may read and write with --share"
    )]
    Unusable {
        /// The path to share.
        share: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The state folder cannot be used.
    #[error(
        "the peer's own folder {path} cannot be used: {source}; check that this user may write there, or name another \
         on the same file system with --state"
    )]
    State {
        /// The state folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Downloads could not be moved into the shared folder in one step.
    #[error(
        "the peer's own folder {state} must be on the same file system as {share}; name another with --state"
    )]
    Apart {
        /// The state folder.
        state: PathBuf,
        /// The shared folder.
        share: PathBuf,
    },
    /// Another peer uses the state folder.
    #[error("another peer uses {state} already; stop it, or name another folder with --state")]
    Taken {
        /// The state folder.
        state: PathBuf,
    },
    /// The index cannot be opened.
    #[error("{0}")]
    Index(Box<dyn std::error::Error + Send + Sync>),
    /// The group's secret cannot be read.
    #[error("{0} (--secret-file says which)")]
    Secret(#[from] store::SecretError),
    /// The peer's key cannot be opened.
    #[error(transparent)]
    Key(#[from] crate::group::KeyError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Trust(#[from] http_io::client::TrustError),
    /// The folder cannot be watched, or a thread cannot be started.
    #[error("the peer cannot start {what}: {source}")]
    System {
        /// What the peer needs.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl PeerError {
    /// Why the folder at `share` cannot be shared.
    pub(crate) fn share(share: &Path, error: FolderError) -> Self {
        let share = share.to_owned();
        match error {
            FolderError::Missing { .. } => Self::Missing { share },
            FolderError::NotAFolder { .. } => Self::Unusable { share, reason: "it is not a folder".into() },
            FolderError::Unreadable { source, .. } => Self::Unusable { share, reason: source.to_string() },
            other => Self::Unusable { share, reason: other.to_string() },
        }
    }
}
