//! The seam between a peer and what tells it who has what.
//!
//! A peer registers what it shares in an [`Index`] and asks it; it does not know whether that is one server or spread
//! over the peers. Calls block and are made from threads of the peer's own, so that an index may be reached in
//! whatever way suits it.

use std::net::SocketAddr;

use serde::Serialize;

use crate::{content::Content, name::Name};

/// A file that somebody shares.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Entry {
    /// What it is called.
    pub name: Name,
    /// What is in it.
    #[serde(rename = "hash")]
    pub content: Content,
    /// Its length, bytes.
    pub size: u64,
}

/// A file that was found, and the peers that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The file.
    #[serde(flatten)]
    pub entry: Entry,
    /// Where it can be had, in no order that means anything.
    pub peers: Vec<SocketAddr>,
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// Files of exactly this name.
    Name(Name),
    /// Files whose name holds all of these words, in lower case.
    Words(Vec<String>),
    /// Files with this in them, whatever they are called.
    Content(Content),
}

/// Who has what, as one peer sees it: what it registers is registered as its own.
pub trait Index: Send + Sync {
    /// Tells that these files can be had from this peer. Telling it twice changes nothing.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn register(&self, entries: &[Entry]) -> Result<(), IndexError>;

    /// Tells that these files can no longer be had from this peer.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn deregister(&self, entries: &[Entry]) -> Result<(), IndexError>;

    /// Takes back everything: the peer comes or goes.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn leave(&self) -> Result<(), IndexError>;

    /// Keeps what is registered from expiring; [`IndexError::Forgotten`] when it did already.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn renew(&self) -> Result<(), IndexError>;

    /// Finds files, each with everyone known to have it.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn search(&self, query: &Query) -> Result<Vec<Found>, IndexError>;
}

/// Why an index does not do what it is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// It cannot be reached, or is overloaded; asking again later may do.
    #[error("the index at {index} cannot be asked now: {reason}")]
    Away {
        /// Which.
        index: String,
        /// Why.
        reason: String,
    },
    /// It refuses, and will again.
    #[error("the index at {index} refuses: {reason}")]
    Refused {
        /// Which.
        index: String,
        /// Why, in its words.
        reason: String,
    },
    /// It no longer knows this peer: everything is to be registered again.
    #[error("the index at {index} has forgotten this peer")]
    Forgotten {
        /// Which.
        index: String,
    },
}
