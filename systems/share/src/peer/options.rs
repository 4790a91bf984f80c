//! What a peer is started with.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use http_io::client::{Server, Trust};

use crate::seam::OpenIndex;

/// The index of a peer.
#[derive(Debug, Clone)]
pub enum Which {
    /// This server.
    Central(Server),
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
    /// Over TLS, who vouches for other peers: each has to show a certificate for its address. Default none: other peers
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
            trust: None,
            connections: Arc::default(),
        }
    }
}
