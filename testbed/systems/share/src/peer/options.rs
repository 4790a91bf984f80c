//! Settings of a peer.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use folder::Folder;
use http_io::client::{Trust, Upstream};

use super::error::PeerError;
use crate::{
    group::{IDENTITY, Key, Members},
    interfaces::OpenIndex,
};

/// The index of a peer.
#[derive(Debug, Clone)]
pub enum IndexChoice {
    /// The central index server.
    Central(Upstream),
    /// Another kind of index.
    Other(Arc<dyn OpenIndex>),
}

/// A server without TLS.
impl From<SocketAddr> for IndexChoice {
    fn from(server: SocketAddr) -> Self {
        Self::Central(server.into())
    }
}

/// The settings of a peer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The folder whose files are shared, and where downloads go.
    pub share: PathBuf,
    /// The state folder, on the same file system as the shared folder. Default `.nstar` in the shared folder: hidden files
    /// are not shared.
    pub state: PathBuf,
    /// The index to use.
    pub index: IndexChoice,
    /// The file with the group's secret; created if it does not exist. Default none.
    pub secret: Option<PathBuf>,
    /// The members that may use this peer by proving their keys instead of the secret, and the only peers to fetch files
    /// from. Default none.
    pub members: Option<Members>,
    /// Without `members`: the authorities that sign other peers' certificates, one for the address of each peer. Default
    /// none: connections to other peers are not encrypted.
    pub trust: Option<Trust>,
    /// The engine's counters of the server's connections, for `GET /metrics`.
    pub connections: Arc<engine::Counters>,
    /// Whether clients on other machines may see the metrics. Default no.
    pub open_metrics: bool,
}

impl Options {
    /// The defaults, for this folder and this index.
    pub fn new(share: impl AsRef<Path>, index: impl Into<IndexChoice>) -> Self {
        let share = share.as_ref().to_owned();
        Self {
            state: share.join(".nstar"),
            share,
            index: index.into(),
            secret: None,
            members: None,
            trust: None,
            connections: Arc::default(),
            open_metrics: false,
        }
    }
}

/// Opens the key of the peer that shares a folder; creates it, and the folder `state`, if they do not exist.
///
/// # Errors
/// When there is no folder to share, or the key cannot be opened.
pub fn own_key(share: &Path, state: &Path) -> Result<Key, PeerError> {
    Folder::open(share).map_err(|error| PeerError::share(share, error))?;
    std::fs::create_dir_all(state).map_err(|source| PeerError::State { path: state.to_owned(), source })?;
    Ok(Key::open(&state.join(IDENTITY))?)
}
