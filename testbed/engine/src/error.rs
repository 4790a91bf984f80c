//! Why a server could not start.

use std::{io, net::SocketAddr};

use crate::model::Model;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Another socket holds the port.
    #[error(
        "cannot listen on {address}: the port is in use by another program; \
         stop it (`ss -ltnp` names it) or choose another port"
    )]
    AddressInUse {
        /// Where the server was to listen.
        address: SocketAddr,
    },
    /// The port is reserved, and this user may not take it.
    #[error(
        "cannot listen on {address}: the port is reserved for privileged programs; \
         choose a port of 1024 or above, or grant CAP_NET_BIND_SERVICE"
    )]
    AddressReserved {
        /// Where the server was to listen.
        address: SocketAddr,
    },
    /// No interface of this host has the address.
    #[error(
        "cannot listen on {address}: no interface of this host has that address; \
         choose one that `ip address` lists, or 0.0.0.0 for all"
    )]
    AddressNotOurs {
        /// Where the server was to listen.
        address: SocketAddr,
    },
    /// Listening failed for another reason.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where the server was to listen.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused a thread, a poller or another thing the model is made of.
    #[error("cannot start the server: {what}: {source}")]
    System {
        /// What was refused.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// This system does not have, or does not let this program use, what the model is made of.
    /// Another model may run.
    #[error("the model `{model}` cannot run here: {reason}; {remedy}, or choose another model ({source})")]
    ModelUnavailable {
        /// The model asked for.
        model: Model,
        /// Why it cannot run.
        reason: &'static str,
        /// What would let it run.
        remedy: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The factory could not make its service.
    #[error("cannot start the service: {source}")]
    Service {
        /// What the factory said.
        source: io::Error,
    },
}

impl EngineError {
    /// Sorts a failure to listen by what can be done about it.
    pub(crate) fn listen(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::AddressInUse { address },
            io::ErrorKind::PermissionDenied => Self::AddressReserved { address },
            io::ErrorKind::AddrNotAvailable => Self::AddressNotOurs { address },
            _ => Self::Listen { address, source },
        }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_told_apart_and_names_the_address() {
        let address: SocketAddr = "127.0.0.1:25".parse().unwrap();
        let said = |errno| EngineError::listen(address, io::Error::from(errno)).to_string();
        assert!(said(rustix::io::Errno::ADDRINUSE).contains("127.0.0.1:25: the port is in use"));
        assert!(said(rustix::io::Errno::ACCESS).contains("port is reserved"));
        assert!(said(rustix::io::Errno::ADDRNOTAVAIL).contains("no interface of this host"));
        assert!(said(rustix::io::Errno::MFILE).starts_with("cannot listen on 127.0.0.1:25: Too many"));
    }
}
