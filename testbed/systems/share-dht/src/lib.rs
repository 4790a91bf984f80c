//! The index of file sharing spread over the peers: no server, every peer stores a part.
//!
//! A file is found under several keys: its name, its content, and each word of its name ([`key`]). A few of the peers hold
//! each key: [`placement`] decides which, among the peers that Kademlia on libp2p knows ([`kademlia`]). Each publisher
//! announces its files to the holders in batches, and renews them all with one message ([`node`]). Peers only publish
//! their own files, and what is not renewed expires ([`records`]).

pub mod command;
mod index;
mod kademlia;
mod key;
mod message;
mod metrics;
mod network;
mod node;
mod options;
mod placement;
mod records;
#[cfg(test)]
mod testing;

pub use self::{
    index::Dht,
    options::{DhtError, Options},
    placement::Placement,
};
