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
    /// There is no such folder.
    #[error("there is no folder {share} to share; make it, or name another with --share")]
    Missing {
        /// The folder asked for.
        share: PathBuf,
    },
    /// What is to be shared is no folder, or cannot be read.
    #[error(
        "{share} cannot be shared: {reason}; name a folder that this user may read and write with --share"
    )]
    Unusable {
        /// What was asked for.
        share: PathBuf,
        /// Why not.
        reason: String,
    },
    /// There is no place to remember anything.
    #[error(
        "the peer's own folder {path} cannot be used: {source}; check that this user may write there, or name another \
         on the same file system with --state"
    )]
    State {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What was obtained could not be put into the shared folder in one step.
    #[error(
        "the peer's own folder {state} must be on the same file system as {share}; name another with --state"
    )]
    Apart {
        /// The peer's own folder.
        state: PathBuf,
        /// The shared one.
        share: PathBuf,
    },
    /// Another peer is at work there.
    #[error("another peer uses {state} already; stop it, or name another folder with --state")]
    Taken {
        /// The peer's own folder.
        state: PathBuf,
    },
    /// The index cannot be had.
    #[error("{0}")]
    Index(Box<dyn std::error::Error + Send + Sync>),
    /// The group's secret cannot be had.
    #[error("{0} (--secret-file says which)")]
    Secret(#[from] store::SecretError),
    /// The peer's own key cannot be had.
    #[error(transparent)]
    Key(#[from] crate::key::KeyError),
    /// The encryption cannot be set up.
    #[error(transparent)]
    Trust(#[from] http_io::client::TrustError),
    /// Changes cannot be watched for, or a thread not be started.
    #[error("the peer cannot start {what}: {source}")]
    System {
        /// What it needs.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl PeerError {
    /// Why the folder at `share` is not shared.
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
