//! Why a server could not start.

use std::{io, net::SocketAddr};

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Another socket is bound to the port.
    #[error(
        "cannot listen on {address}: the port is in use by another program; \
         stop it (`ss -ltnp` names it) or choose another port"
    )]
    AddressInUse {
        /// Where the server was to listen.
        address: SocketAddr,
    },
    /// The port is reserved, and this user may not bind it.
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
        /// The system's error.
        source: io::Error,
    },
    /// The system refused a thread, a poller or something else that the model needs.
    #[error("cannot start the server: {what}: {source}")]
    System {
        /// What was refused.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// This system lacks what the model needs, or does not let this program use it. Another model may run.
    #[error("the model `{model}` cannot run here: {reason}; {remedy}, or choose another model ({source})")]
    ModelUnavailable {
        /// The name of the model.
        model: &'static str,
        /// Why it cannot run.
        reason: &'static str,
        /// What would let it run.
        remedy: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The factory could not make its service.
    #[error("cannot start the service: {source}")]
    Service {
        /// The factory's error.
        source: io::Error,
    },
}

impl EngineError {
    /// Classifies a failure to listen by what can be done about it.
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
    fn each_cause_has_its_own_message_which_names_the_address() {
        let address: SocketAddr = "127.0.0.1:25".parse().unwrap();
        let said = |errno| EngineError::listen(address, io::Error::from(errno)).to_string();
        assert!(said(rustix::io::Errno::ADDRINUSE).contains("127.0.0.1:25: the port is in use"));
        assert!(said(rustix::io::Errno::ACCESS).contains("port is reserved"));
        assert!(said(rustix::io::Errno::ADDRNOTAVAIL).contains("no interface of this host"));
        assert!(said(rustix::io::Errno::MFILE).starts_with("cannot listen on 127.0.0.1:25: Too many"));
    }
}
