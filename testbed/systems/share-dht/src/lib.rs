//! The index of file sharing spread over the peers: no server, every peer keeps a part.
//!
//! A file is found under several keys: its name, its content, and each word of its name ([`key`]). Under each key it is
//! kept by a few of the peers ([`placement`] says which, of those that Kademlia on libp2p knows, in [`kademlia`]).
//! Each publisher tells them itself, in batches, and renews all by one message ([`node`]); nobody is believed about
//! another's files, and who does not renew is forgotten ([`records`]).

mod error;
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

pub use self::{error::DhtError, index::Dht, options::Options, placement::Placement};
