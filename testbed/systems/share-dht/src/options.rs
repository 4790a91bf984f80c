//! Settings of a peer's part of the index, and why it cannot start.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use share::Members;

use crate::placement::Placement;

/// Settings of a peer's part of the index.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The address to listen on for other peers. Port 0 stands for any.
    pub listen: SocketAddr,
    /// Which of the peers hold a key. Default [`Placement::Nearest`].
    pub placement: Placement,
    /// Peers to join. Default none: others join this one, or are found by multicast.
    pub bootstrap: Vec<SocketAddr>,
    /// The file with the group's secret; created if it does not exist. Ignored if [`members`](Self::members) is set. Default
    /// none.
    pub secret: Option<PathBuf>,
    /// The members of the group by key: no other peer gets a connection. Default none.
    pub members: Option<Members>,
    /// How long other peers believe this one without hearing from it. Default 2 minutes. The files of a peer that died are
    /// still found for that long.
    pub life: Duration,
    /// Set to the actual address once it listens.
    pub listening: Arc<std::sync::OnceLock<SocketAddr>>,
}

impl Options {
    /// The defaults, with this address.
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

/// Why a peer could not join the index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DhtError {
    /// The address cannot be listened on.
    #[error("the index cannot listen on {listen}: {reason}; choose another with --dht-listen")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The system's error.
        reason: String,
    },
    /// It was told to join itself.
    #[error("--bootstrap {0} is this peer's own address; name another peer's")]
    Itself(SocketAddr),
    /// The group's secret cannot be read.
    #[error(transparent)]
    Secret(#[from] store::SecretError),
    /// The peer's key cannot be opened.
    #[error(transparent)]
    Own(#[from] share::KeyError),
    /// The system refuses something.
    #[error("the index cannot start {what}: {source}")]
    System {
        /// What is needed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// TLS cannot use the key.
    #[error("the peer's key cannot be used: {0}")]
    Key(String),
}
