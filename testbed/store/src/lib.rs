//! Where the systems keep what they must not lose: statements in, answers out, on one of several databases.
//!
//! A system states its tables as a [`Schema`], opens a [`Store`] on a [`Database`] and awaits answers; it knows neither
//! which database that is nor its driver. What is answered as done is durable. Every statement is a transaction of its
//! own, with those it brings along ([`Statement::then`]), and uniqueness is the database's to keep: an insert that a unique index refuses changes nothing and says so.
//!
//! SQLite has one writer, a thread that commits together whatever waits and only then answers, and readers beside it.
//! A database server has a bounded number of connections that take statements from one queue; it commits together what
//! they send at once. A lost connection is made again. A statement that may have been done is done again only where that
//! is harmless; otherwise [`StoreError::Uncertain`] says so.
//! No thread is started before [`Store::open`]; [`Store::prepare`] brings the tables up to date without one, so that a
//! process may fork after it.

mod database;
mod encryption;
mod error;
mod network;
mod order;
mod schema;
mod secret;
mod seldom;
mod sqlite;
mod statement;
mod store;

pub use self::{
    database::{Database, Dialect, InvalidDatabase, ServerDatabase},
    error::{OpenError, StoreError},
    network::Trouble,
    schema::{Migration, Schema},
    secret::{Secret, SecretError},
    statement::{Row, Statement, Value},
    store::{Commits, Options, Setup, Store},
};
