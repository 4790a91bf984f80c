//! Why a peer could not be started.

use std::{io, path::PathBuf};

/// Why a peer could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The folder cannot be shared.
    #[error("cannot share: {0}")]
    Share(files::FilesError),
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
    #[error("the peer's own folder {state} must be on the same file system as {share}; name another with --state")]
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
    /// The group's secret cannot be had.
    #[error("{0} (--secret-file says which)")]
    Secret(#[from] store::SecretError),
    /// Changes cannot be watched for, or a thread not be started.
    #[error("the peer cannot start {what}: {source}")]
    System {
        /// What it needs.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
