//! What goes wrong with a database server, in the words of whoever must mend it.

use crate::error::StoreError;

/// Why a connection could not be had, or broke.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Nobody answers there.
    #[error("it cannot be reached: {0}; check that it runs and listens at that address")]
    Unreachable(String),
    /// It answers, and takes no connections: it is starting up, or shutting down.
    #[error("it takes no connections just now: {0}; try again in some seconds")]
    NotReady(String),
    /// It closed the connection, or the connection broke.
    #[error("the connection was lost (the server has gone away): {0}")]
    Lost(String),
    /// It has as many connections as it allows.
    #[error(
        "it allows no more connections (too many connections); raise its max_connections, or close others"
    )]
    TooMany,
    /// Name or password are wrong.
    #[error("it refuses this user or password: {0}")]
    Login(String),
    /// There is no such database.
    #[error("it has no database of that name; make it with CREATE DATABASE: {0}")]
    NoDatabase(String),
    /// The user may not do what is needed.
    #[error("this user may not do what is needed there; GRANT it all rights on that database: {0}")]
    NoRights(String),
    /// The same on PostgreSQL, where rights on a database are none on what is in it.
    #[error(
        "this user may not do what is needed there; in that database `GRANT CREATE, USAGE ON SCHEMA public TO USER` \
         lets it make its tables (since PostgreSQL 15 nobody else may), or make it the database's owner: {0}"
    )]
    NoSchemaRights(String),
    /// It is too old.
    #[error("it is version {found}, and {wanted} or newer is needed")]
    Version {
        /// Its version.
        found: String,
        /// The oldest that will do.
        wanted: &'static str,
    },
    /// The way to it cannot be encrypted as its URL asks for.
    #[error("the connection to it cannot be encrypted: {0}")]
    Encryption(String),
    /// It is something else than it should be.
    #[error("what answers there is {0}")]
    Foreign(&'static str),
    /// It said something else.
    #[error("{0}")]
    Other(String),
}

impl Trouble {
    /// What clients are told of it: no more than they can use.
    pub(crate) fn as_refusal(&self) -> StoreError {
        StoreError::Unavailable(match self {
            Self::Unreachable(_) | Self::Lost(_) => "it cannot be reached",
            Self::NotReady(_) => "it takes no connections just now",
            Self::TooMany => "it allows no more connections",
            _ => "it refuses this server; the log has the reason",
        })
    }
}
