//! TLS over an engine's connection: a connection like any other, whose bytes go encrypted.
//!
//! The protocol is rustls, which does no I/O; the engine's connection carries its records. So TLS runs on every
//! concurrency model, and neither engine nor service knows of it. [`Identity`] is what a server shows, read from
//! files with every mistake named; [`Trust`] is whom a client believes. Where no authority vouches for either end, both may
//! prove a [`Key`] instead, and are known by its [`PublicKey`]. [`accept`] and [`connect`] shake hands.
//!
//! A connection that ends without the peer's word (close_notify) has been cut short: where more was due,
//! [`fill`](engine::service::Connection::fill) fails with [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof).

mod connection;
mod handshake;
mod identity;
mod keyed;
mod keys;
mod pem;
mod renewal;
mod session;
mod trust;

pub use connection::Connection;
pub use handshake::{Failure, Unsecured, accept, connect};
pub use identity::{Caution, Identity, IdentityError};
pub use keys::{InvalidKey, Key, Keys, PublicKey, UnusableKey};
pub use trust::{Peer, Trust, TrustError};
