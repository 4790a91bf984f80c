//! What a peer is started with.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use folder::Folder;
use http_io::client::{Trust, Upstream};

use super::error::PeerError;
use crate::{
    key::{IDENTITY, Key},
    members::Members,
    seam::OpenIndex,
};

/// The index of a peer.
#[derive(Debug, Clone)]
pub enum Which {
    /// This server.
    Central(Upstream),
    /// Another.
    Other(Arc<dyn OpenIndex>),
}

/// A server that is spoken with unencrypted.
impl From<SocketAddr> for Which {
    fn from(server: SocketAddr) -> Self {
        Self::Central(server.into())
    }
}

/// The settings of a peer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The folder whose files are shared, and where those go that are obtained.
    pub share: PathBuf,
    /// Where the peer keeps what it remembers, on the same file system as the folder. Default `.nstar` in the folder:
    /// hidden files are not shared.
    pub state: PathBuf,
    /// Which index is told and asked.
    pub index: Which,
    /// The file of the group's secret; made when it is not there. Default none.
    pub secret: Option<PathBuf>,
    /// The members whose keys are enough, beside the secret, and the only peers that are asked for files. Default none.
    pub members: Option<Members>,
    /// Without them, and over TLS, who vouches for other peers: each has to show a certificate for its address. Default none: other peers
    /// are spoken with unencrypted.
    pub trust: Option<Trust>,
    /// What the engine counts of the server's connections, to be shown by `GET /metrics`.
    pub connections: Arc<engine::Counters>,
}

impl Options {
    /// The defaults, for this folder and this index.
    pub fn new(share: impl AsRef<Path>, index: impl Into<Which>) -> Self {
        let share = share.as_ref().to_owned();
        Self {
            state: share.join(".nstar"),
            share,
            index: index.into(),
            secret: None,
            members: None,
            trust: None,
            connections: Arc::default(),
        }
    }
}

/// The own key of the peer that shares a folder; made, with the peer's own folder `state`, when it is not there.
///
/// # Errors
/// When there is no folder to share, or the key cannot be had.
pub fn own_key(share: &Path, state: &Path) -> Result<Key, PeerError> {
    Folder::open(share).map_err(|error| PeerError::share(share, error))?;
    std::fs::create_dir_all(state).map_err(|source| PeerError::State { path: state.to_owned(), source })?;
    Ok(Key::open(&state.join(IDENTITY))?)
}
