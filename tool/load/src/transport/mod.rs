//! How bytes travel: sockets, readiness, TLS. The users above know `Stream` and `Readiness` only.

pub(crate) mod poller;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod tls;
