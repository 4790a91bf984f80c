//! The database behind the server: asked, while the load runs, which sessions wait for locks.
//!
//! Its own command-line client asks, over a pipe: whoever has a database has one, and it knows every way to log in and
//! to encrypt.

mod client;
mod locks;
mod url;
mod watch;

pub(crate) use self::watch::DatabaseWatch;
pub use self::{
    locks::{LockCounts, LockProbe},
    url::{DatabaseUrl, InvalidDatabaseUrl},
};
