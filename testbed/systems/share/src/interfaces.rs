//! Interfaces between a peer, the index and other peers.
//!
//! A peer registers its files in an [`Index`] and searches it, without knowing whether the index is one server or spread
//! over the peers. It fetches content through a [`ContentSource`], without knowing the protocol, and verifies everything
//! it receives. Calls block; they come from the peer's own threads, so that an implementation is free in how it does I/O.

use std::{error::Error, fmt, net::SocketAddr, ops::Range, path::Path, sync::Arc, thread, time::Duration};

use prometheus_client::encoding::DescriptorEncoder;

use crate::entry::{Content, Entry, Query, SearchResult};

/// An index of who shares which file, as seen by one peer: it registers only its own files.
pub trait Index: fmt::Debug + Send + Sync {
    /// Tells the index where this peer's files can be fetched. Called once, before anything is registered.
    fn start(&self, own_address: SocketAddr);

    /// Registers files of this peer. Registering a file again changes nothing.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn register(&self, entries: &[Entry]) -> Result<(), IndexError>;

    /// Deregisters files of this peer.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn deregister(&self, entries: &[Entry]) -> Result<(), IndexError>;

    /// Deregisters all files of this peer, when it starts and when it stops.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn leave(&self) -> Result<(), IndexError>;

    /// Keeps this peer's registrations from expiring. Fails with [`IndexError::Forgotten`] if they have expired.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn renew(&self) -> Result<(), IndexError>;

    /// How often to call [`Self::renew`].
    fn renew_interval(&self) -> Duration;

    /// Finds files, each with all peers known to have it.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn search(&self, query: &Query) -> Result<Vec<SearchResult>, IndexError>;

    /// The result of a search, if it is available without waiting for another peer or server.
    fn search_local(&self, _query: &Query) -> Option<Vec<SearchResult>> {
        None
    }

    /// The address at which peers reach the index, or this peer's part of it, if it has one.
    fn address(&self) -> Option<SocketAddr> {
        None
    }

    /// Checks whether the index answers, if that is not known. May take a few seconds.
    fn check(&self) {}

    /// A message for people about what is wrong with the index, if anything is known to be.
    fn warning(&self) -> Option<String> {
        None
    }

    /// Encodes the metrics of the index.
    ///
    /// # Errors
    /// When the encoder's output cannot be written.
    fn encode_metrics(&self, _encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        Ok(())
    }
}

/// An index that is opened only after the peer has locked its state folder.
pub trait OpenIndex: fmt::Debug + Send + Sync {
    /// Opens the index, which keeps its state in the peer's state folder.
    ///
    /// # Errors
    /// When the index cannot be opened; the message is for people.
    fn open(&self, state: &Path) -> Result<Arc<dyn Index>, Box<dyn Error + Send + Sync>>;
}

/// Fetches content from other peers. Implementations do not verify it: the caller does.
pub trait ContentSource: Send + Sync {
    /// Fetches the outboard of some content: the hashes between its root and its 16 KiB groups, in Bao's post-order.
    ///
    /// # Errors
    /// See [`FetchError`].
    fn outboard(&self, from: SocketAddr, content: &Content, length: u64) -> Result<Vec<u8>, FetchError>;

    /// Fetches a range of some content, whose total length is said to be `length`. The length may be made up: a peer that
    /// has the content but with another length answers [`FetchError::Refused`], and is not at fault.
    ///
    /// # Errors
    /// See [`FetchError`].
    fn bytes(
        &self,
        from: SocketAddr,
        content: &Content,
        length: u64,
        range: Range<u64>,
    ) -> Result<Vec<u8>, FetchError>;

    /// Tells a peer that it sent wrong bytes for some content, so that it checks its own copy. Whether it listens is its own
    /// business.
    fn tell_wrong(&self, _whom: SocketAddr, _content: &Content) {}
}

/// Tells a peer that it sent wrong bytes for some content, without waiting for it.
pub(crate) fn tell_wrong(source: &Arc<dyn ContentSource>, whom: SocketAddr, content: Content) {
    let source = Arc::clone(source);
    // If there is no thread for it, the next one who gets wrong bytes tells it.
    let _ =
        thread::Builder::new().name("share-doubt".into()).spawn(move || source.tell_wrong(whom, &content));
}

/// Why a peer did not send content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// It cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// It took too long.
    #[error("it is too slow")]
    TooSlow,
    /// It answers, but does not have the content, or is not the expected kind of peer.
    #[error("{0}")]
    Refused(String),
}

/// Why the index did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// It cannot be reached or is overloaded; a later try may succeed.
    #[error("the index at {index} cannot be asked now: {reason}")]
    Unavailable {
        /// The index.
        index: String,
        /// The reason.
        reason: String,
    },
    /// It refuses, and will refuse again.
    #[error("the index at {index} refuses: {reason}")]
    Refused {
        /// The index.
        index: String,
        /// The reason it gave.
        reason: String,
    },
    /// It no longer knows this peer, which has to register its files again.
    #[error("the index at {index} has forgotten this peer")]
    Forgotten {
        /// The index.
        index: String,
    },
}
