//! The errors that keep a load from starting or from going on.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::limits::LimitError;

/// Why a load cannot start or go on. Failed requests are not errors in this sense: the ticks count them.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Neither the scenario nor the command line names a server.
    #[error(
        "the scenario `{scenario}` names no server: add `base = \"http://HOST:PORT\"` to it or give a URL"
    )]
    NoBase {
        /// Name of the scenario.
        scenario: String,
    },
    /// The host name has no address.
    #[error("`{host}` does not resolve to an address ({reason}): check the name, or give an address")]
    Resolve {
        /// The host name.
        host: String,
        /// The resolver's reason.
        reason: String,
    },
    /// The plan contradicts itself or this host.
    #[error("the plan cannot be run: {0}")]
    Plan(&'static str),
    /// The process may not open enough files for the users asked for.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The target gave no response to the probe.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// TLS could not be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// The operating system refused something that a generator cannot do without.
    #[error("cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A generator thread ended before it was told to.
    #[error("a generator thread ended unexpectedly, so the measurement cannot go on")]
    ThreadLost,
}

impl LoadError {
    /// Wraps the error with which the operating system refused `action`.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(rustix::io::Errno) -> LoadError {
        move |errno| LoadError::System { action, source: errno.into() }
    }
}

/// Why the target gave no response to the probe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// No server listens there.
    #[error("{target}: connection refused: no server listens on {address}; start it, or check the port")]
    Refused {
        /// The URL.
        target: String,
        /// The address that refused.
        address: SocketAddr,
    },
    /// The host cannot be reached.
    #[error("{target}: {address} cannot be reached ({reason}): check the address and the network")]
    Unreachable {
        /// The URL.
        target: String,
        /// The address that could not be reached.
        address: SocketAddr,
        /// The operating system's reason.
        reason: String,
    },
    /// The TLS handshake failed because the server does not speak TLS.
    #[error("{target}: the server does not speak TLS on this port: try http:// instead of https://")]
    NotTls {
        /// The URL.
        target: String,
    },
    /// The server answered plain HTTP with a TLS record.
    #[error("{target}: the server speaks TLS on this port: try https:// instead of http://")]
    NeedsTls {
        /// The URL.
        target: String,
    },
    /// The TLS handshake failed for another reason, usually an untrusted certificate.
    #[error("{target}: TLS failed: {reason}; to accept any certificate, use -k")]
    Tls {
        /// The URL.
        target: String,
        /// The TLS library's reason.
        reason: String,
    },
    /// The server sent something other than HTTP.
    #[error("{target}: the server answered, but not in HTTP/1.1: is this the right port?")]
    NotHttp {
        /// The URL.
        target: String,
    },
    /// The server closed the connection without a whole response.
    #[error("{target}: the server closed the connection before its response was complete")]
    Closed {
        /// The URL.
        target: String,
    },
    /// The server accepted the connection and sent nothing.
    #[error("{target}: no response within {} s: the server accepts connections but does not answer", after.as_secs_f64())]
    NoAnswer {
        /// The URL.
        target: String,
        /// How long the probe waited.
        after: Duration,
    },
}
