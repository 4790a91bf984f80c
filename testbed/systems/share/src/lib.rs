//! Peer-to-peer file sharing (S4): every peer is client and server, and an index says who has what.
//!
//! - [`index`] is the central index server: peers register what they share and search it.
//! - [`client`] is a client of a peer's own API, as `nstar share` uses it.
//! - [`peer`] is a peer: it shares the files of a folder, and downloads files from other peers.
//!
//! Content is identified by its BLAKE3 hash ([`Content`]); a [`Name`] is a single part of a path. A peer uses its index and
//! other peers through the traits in [`interfaces`].

pub mod client;
pub mod command;
pub mod entry;
mod group;
pub mod index;
pub mod interfaces;
pub mod peer;
mod query;
mod refusal;

pub use self::{
    entry::{Content, InvalidContent, InvalidName, NAME_LEN_MAX, NAME_WORDS_MAX, Name},
    group::{Exposed, IDENTITY, Key, KeyError, ListError, Members, check_exposure},
    query::parse_results,
};
