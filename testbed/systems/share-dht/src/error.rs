//! Why a peer could not take part in the index.

use std::{io, net::SocketAddr};

/// Why a peer could not take part in the index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DhtError {
    /// The address cannot be listened on.
    #[error("the index cannot listen on {listen}: {reason}; choose another with --dht-listen")]
    Listen {
        /// Which.
        listen: SocketAddr,
        /// What the system said.
        reason: String,
    },
    /// It was told to join itself.
    #[error("--bootstrap {0} is this peer's own address; name another peer's")]
    Itself(SocketAddr),
    /// The group's secret cannot be had.
    #[error(transparent)]
    Secret(#[from] store::SecretError),
    /// The peer's key cannot be had.
    #[error(transparent)]
    Own(#[from] share::KeyError),
    /// The system refuses something.
    #[error("the index cannot start {what}: {source}")]
    System {
        /// What it needs.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The encryption cannot be set up.
    #[error("the peer's key cannot be used: {0}")]
    Key(String),
}
