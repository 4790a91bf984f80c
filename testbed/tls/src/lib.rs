//! TLS over an engine's connection: a connection like any other, whose bytes are encrypted.
//!
//! The protocol is rustls, which does no I/O; the engine's connection carries its records. So TLS works with every
//! concurrency model, and neither engines nor services know of it. An [`Identity`] is the certificate that a server presents,
//! [`Trust`] the authorities that a client accepts. Without an authority, both ends may prove a [`Key`] instead, and are
//! identified by its [`PublicKey`]. [`accept`] and [`connect`] carry out handshakes.
//!
//! A connection that ends without the peer's close_notify was interrupted: if more was due,
//! [`fill`](engine::service::Connection::fill) fails with [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof).

mod connection;
mod handshake;
mod identity;
mod keyed;
mod keys;
mod pem;
mod published;
mod renewable;
mod tls_session;
mod trust;
mod validity;

pub use connection::Connection;
pub use handshake::{Failure, Unsecured, accept, connect};
pub use identity::{Certificate, Identity};
pub use keys::{InvalidKey, Key, Keys, PublicKey, UnusableKey};
pub use pem::{Caution, IdentityError};
pub use trust::{Peer, Trust, TrustError};
pub use validity::Validity;
