//! Why a server cannot be observed.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Reasons why a server's processes cannot be seen.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The address is not one of this host's.
    #[error("{0} is not an address of this host")]
    NotLocal(SocketAddr),
    /// The address is local, but no process listens there.
    #[error("no process listens on {0}")]
    NotListening(SocketAddr),
    /// No process listens there. Address translation may lead on from it, and connection tracking, which tells where to, may
    /// not be read.
    #[error(
        "no process listens on {0}; if address translation leads on from there, connection tracking tells where to, but \
         only root may read it (CAP_NET_ADMIN)"
    )]
    TranslationUnread(SocketAddr),
    /// A process listens, but this user may not see which.
    #[error("the process that listens on {0} belongs to another user")]
    PermissionDenied(SocketAddr),
    /// A socket listens, but of all processes none holds it.
    #[error("something listens on {0}, but no process of this host holds the socket")]
    NoOwner(SocketAddr),
    /// Only this process holds the socket, so generator and server cannot be told apart.
    #[error("{0} is served by the generator's own process")]
    OwnProcess(SocketAddr),
    /// A necessary directory cannot be listed.
    #[error("cannot list {path}: {source}; nstar watches through /proc, which has to be mounted")]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The background thread could not be started.
    #[error("cannot start the watching thread: {0}; raise the limit on processes (ulimit -u)")]
    Thread(std::io::Error),
}
