//! Sockets, readiness and TLS.

pub(crate) mod address;
pub(crate) mod poller;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod tls;
