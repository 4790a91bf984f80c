//! The seams of a peer: who has what, and how to have it from them.
//!
//! A peer registers what it shares in an [`Index`] and asks it; it does not know whether that is one server or spread
//! over the peers. What it wants it has through [`Obtain`], and does not know by which protocol; it believes nothing of
//! what comes. Calls block and are made from threads of the peer's own, so that either may be reached in whatever way
//! suits it.

use std::{error::Error, fmt, net::SocketAddr, ops::Range, path::Path, sync::Arc, time::Duration};

use http_io::FieldsError;
use prometheus_client::encoding::DescriptorEncoder;
use serde::{Deserialize, Serialize};

use crate::{content::Content, name::Name, query};

/// A file that somebody shares.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// What it is called.
    pub name: Name,
    /// What is in it.
    #[serde(rename = "hash")]
    pub content: Content,
    /// Its length, bytes.
    pub size: u64,
}

impl Entry {
    /// Longest file that peers take from each other, bytes: 64 GiB.
    pub const SIZE_MAX: u64 = 64 * 1024 * 1024 * 1024;

    /// Whether a peer could have it at all: it is not too long, and empty only if that is what it is named. What others say
    /// of a file may be anything.
    pub fn is_obtainable(&self) -> bool {
        self.size <= Self::SIZE_MAX && (self.size > 0 || self.content == Content::of(b""))
    }
}

/// A file that was found, and the peers that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The file.
    #[serde(flatten)]
    pub entry: Entry,
    /// Where it can be had, in no order that means anything.
    pub peers: Vec<SocketAddr>,
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Query {
    /// Files of exactly this name.
    Name(Name),
    /// Files whose name holds all of these words, in lower case.
    Words(Vec<String>),
    /// Files with this in them, whatever they are called.
    Content(Content),
}

impl Query {
    /// For names with all the words of a text in them.
    ///
    /// # Errors
    /// When there are none, or more than 4.
    pub fn words(text: &str) -> Result<Self, FieldsError> {
        query::words(text).map(Self::Words)
    }
}

/// Who has what, as one peer sees it: what it registers is registered as its own.
pub trait Index: fmt::Debug + Send + Sync {
    /// Says, once and before anything is registered, where this peer's files can be had.
    fn begin(&self, me: SocketAddr);

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

    /// How often to renew.
    fn renew_every(&self) -> Duration;

    /// Finds files, each with everyone known to have it.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn search(&self, query: &Query) -> Result<Vec<Found>, IndexError>;

    /// The answer to a search where it is at hand and nobody need be waited for.
    fn search_now(&self, _query: &Query) -> Option<Vec<Found>> {
        None
    }

    /// Where peers ask it, or this peer's part of it, where that is an address.
    fn asked_at(&self) -> Option<SocketAddr> {
        None
    }

    /// Sees whether it answers, where that is not known; may take a few seconds.
    fn look(&self) {}

    /// What is wrong with it, as far as is known, for people.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Shows what it counts.
    ///
    /// # Errors
    /// When the encoder's text cannot be written to.
    fn show(&self, _encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        Ok(())
    }
}

/// An index that is opened once the peer has its own folder for itself.
pub trait OpenIndex: fmt::Debug + Send + Sync {
    /// Opens it; what it remembers is in the peer's own folder.
    ///
    /// # Errors
    /// When it cannot be had, for people.
    fn open(&self, state: &Path) -> Result<Arc<dyn Index>, Box<dyn Error + Send + Sync>>;
}

/// Having content from a peer that says it has it. What comes may be anything: whoever asked tells whether it is right.
pub trait Obtain: Send + Sync {
    /// The hashes between the content's and those of its 16 KiB groups: an outboard as Bao has it, in post-order.
    ///
    /// # Errors
    /// See [`ObtainError`].
    fn outboard(&self, from: SocketAddr, content: &Content, length: u64) -> Result<Vec<u8>, ObtainError>;

    /// Bytes of the content, which is said to have this length. Somebody may have made that up: a peer that has it and
    /// says another length is no liar, but [`ObtainError::Refused`].
    ///
    /// # Errors
    /// See [`ObtainError`].
    fn bytes(
        &self,
        from: SocketAddr,
        content: &Content,
        length: u64,
        range: Range<u64>,
    ) -> Result<Vec<u8>, ObtainError>;
}

/// Why a peer does not give content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObtainError {
    /// It is gone.
    #[error("{0}")]
    Away(String),
    /// It took too long.
    #[error("it is too slow")]
    Slow,
    /// It answers, but does not have it, or is not the kind of peer that was expected.
    #[error("{0}")]
    Refused(String),
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
