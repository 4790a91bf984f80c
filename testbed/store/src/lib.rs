//! Where the systems keep what they must not lose: statements in, replies out, on one of several databases.
//!
//! A system declares its tables as a [`Schema`], opens a [`Store`] on a [`Database`] and awaits replies. It knows neither
//! which database that is nor its driver. A change is durable once there is a reply. Every statement is a transaction of its
//! own, together with those that belong to it ([`Statement::then`]). The database enforces uniqueness: an insert that a
//! unique index refuses changes nothing and says so.
//!
//! SQLite has one writer, a thread that commits together whatever waits and only then replies, and readers beside it.
//! A database server has a bounded number of connections that take statements from one queue; it commits together what they
//! send at once. A lost connection is replaced. A statement that may have taken effect is repeated only if that is harmless;
//! otherwise [`StoreError::Uncertain`] says so.
//!
//! A database may be several servers: connections go to the first in its URL that takes changes, and to the next when that
//! one is lost.
//! No thread is started before [`Store::open`]. [`Store::prepare`] brings the tables up to date without one, so that a
//! process may fork after it.

mod database;
mod database_url;
mod encryption;
mod error;
mod hosts;
mod network;
mod options;
mod queue;
mod rate_limited_log;
mod schema;
mod secret;
mod sqlite;
mod statement;
mod store;

pub use self::{
    database::{Database, Dialect, ServerDatabase},
    database_url::InvalidDatabase,
    encryption::InvalidEncryption,
    error::{OpenError, StoreError, Trouble},
    hosts::InvalidHosts,
    options::{Commits, Options},
    schema::{Migration, Schema},
    secret::{Secret, SecretError},
    statement::{Row, Statement, Value},
    store::{Setup, Store},
};
