//! Helpers of several test modules.

use std::net::SocketAddr;

use libp2p_identity::{Keypair, PeerId};
use share::{Content, entry::Entry};

use crate::key::{self, KeySet};

/// A file with this name and content.
pub(crate) fn entry(name: &str, bytes: &str) -> Entry {
    let content = Content::of(bytes.as_bytes());
    Entry { name: name.parse().expect("a name"), content, size: bytes.len() as u64 }
}

/// All keys of a file.
pub(crate) fn all_keys(entry: &Entry) -> KeySet {
    (0..key::keys(entry).len()).fold(KeySet::default(), KeySet::with)
}

/// The same peer for the same number, always.
pub(crate) fn peer(number: u8) -> PeerId {
    let keys = Keypair::ed25519_from_bytes([number; 32]).expect("32 bytes");
    keys.public().to_peer_id()
}

/// The same peers, always, for more than 256.
pub(crate) fn peers(count: u16) -> Vec<PeerId> {
    let seed = |number: u16| {
        let mut seed = [0; 32];
        seed[..2].copy_from_slice(&number.to_be_bytes());
        seed
    };
    let keys = (0..count).map(|number| Keypair::ed25519_from_bytes(seed(number)).expect("32 bytes"));
    keys.map(|keys| keys.public().to_peer_id()).collect()
}

/// The address of a peer from [`peer`].
pub(crate) fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9000 + u16::from(number)))
}
