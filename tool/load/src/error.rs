//! Why a load could not be made.

use std::io;

use crate::limits::LimitError;
use crate::probe::ProbeError;

/// Why a load could not be made. Failing requests are not an error here: they are counted in the ticks.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Neither the scenario nor the command line says where to go.
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
        /// What the resolver said.
        reason: String,
    },
    /// The plan contradicts itself.
    #[error("the plan cannot be run: {0}")]
    Plan(&'static str),
    /// Too few file descriptors for the users asked for.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The target gave no response to one request.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// TLS could not be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// The operating system refused something a generator cannot do without.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// A generator thread ended before it was told to.
    #[error("a generator thread ended unexpectedly; the measurement cannot go on")]
    ThreadLost,
}

impl LoadError {
    /// Wraps what the operating system said to `action`.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(rustix::io::Errno) -> LoadError {
        move |errno| LoadError::System { action, source: errno.into() }
    }
}
