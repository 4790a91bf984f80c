//! What a peer is started with.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The settings of a peer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The folder whose files are shared, and where those go that are obtained.
    pub share: PathBuf,
    /// Where the peer keeps what it remembers, on the same file system as the folder. Default `.nstar` in the folder:
    /// hidden files are not shared.
    pub state: PathBuf,
    /// The central index.
    pub index: SocketAddr,
    /// The file of the group's secret; made when it is not there. Default none.
    pub secret: Option<PathBuf>,
    /// What the engine counts of the server's connections, to be shown by `GET /metrics`.
    pub connections: Arc<engine::Counters>,
}

impl Options {
    /// The defaults, for this folder and this index.
    pub fn new(share: impl AsRef<Path>, index: SocketAddr) -> Self {
        let share = share.as_ref().to_owned();
        Self { state: share.join(".nstar"), share, index, secret: None, connections: Arc::default() }
    }
}
