//! What a peer's part of the index is started with.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use share::Members;

use crate::placement::Placement;

/// The settings of a peer's part of the index.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where other peers reach it. Port 0: any.
    pub listen: SocketAddr,
    /// Which of the peers keep what is found under a key. Default [`Placement::Nearest`].
    pub placement: Placement,
    /// Peers to join. Default none: others join this one, or are found by multicast.
    pub bootstrap: Vec<SocketAddr>,
    /// The file of the group's secret; made when it is not there. Not used with [`members`](Self::members). Default none.
    pub secret: Option<PathBuf>,
    /// The members of the group by key: no other peer gets a connection. Default none.
    pub members: Option<Members>,
    /// How long others believe this peer without hearing from it. Default 2 minutes: for so long the files of a peer that
    /// died are still found.
    pub life: Duration,
    /// Is told where it listens, once it does.
    pub listening: Arc<std::sync::OnceLock<SocketAddr>>,
}

impl Options {
    /// The defaults, listening there.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            placement: Placement::default(),
            bootstrap: Vec::new(),
            secret: None,
            members: None,
            life: Duration::from_secs(120),
            listening: Arc::default(),
        }
    }
}
