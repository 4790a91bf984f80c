//! Peer-to-peer file sharing (S4): every node is client and server, and an index says who has what.
//!
//! - [`index`] is the central index server: peers register what they share, and ask who has what.
//! - [`client`] asks a peer to search and to obtain, as `nstar share` does.
//! - [`peer`] is a node: it shares a folder, and takes from others what it is asked to.
//!
//! Content is named by its BLAKE3 hash ([`Content`]); a [`Name`] is one part of a path and never a way to somewhere
//! else. [`seam`] is where a peer does not know what kind of index it asks.

pub mod client;
mod confined;
mod content;
mod group;
pub mod index;
mod insecure;
mod key;
mod members;
mod name;
pub mod peer;
mod query;
mod refusal;
pub mod seam;

pub use self::{
    content::{Content, InvalidContent},
    group::{Exposed, check_exposure},
    key::{IDENTITY, Key, KeyError},
    members::{ListError, Members},
    name::{InvalidName, NAME_LEN_MAX, NAME_WORDS_MAX, Name},
};
