//! Decides who gets a connection, if the members of the group are known by their keys.

use std::net::SocketAddr;

use libp2p_core::{ConnectedPoint, Multiaddr};
use libp2p_identity::PeerId;
use share::Members;
use tls::PublicKey;

use super::addresses::of_multi;
use crate::metrics::Metrics;

/// The bytes of an Ed25519 peer's id before its 32-byte key: an identity multihash of a key in Protocol Buffers (libp2p's
/// peer id specification).
const BEFORE_KEY: [u8; 6] = [0x00, 0x24, 0x08, 0x01, 0x12, 0x20];

/// The members, unless everybody is one.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    pub(crate) members: Option<Members>,
    pub(crate) metrics: Metrics,
}

/// A peer is not a member. The reason is the source of this error, because libp2p shows only the sources of nested errors.
#[derive(Debug, thiserror::Error)]
#[error("no connection")]
pub(crate) struct Denied(#[source] NotListed);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[error("the peer there has the key {0}, which is not on the list here (--allow)")]
pub(crate) struct NotListed(String);

impl Admission {
    /// Whether a peer that has proved its key may stay. Logs a rejected peer that connected to this one.
    pub(crate) fn check(&self, peer: PeerId, endpoint: &ConnectedPoint) -> Result<(), Denied> {
        let key = key_of(&peer);
        let Some(members) =
            self.members.as_ref().filter(|members| !key.is_some_and(|key| members.contains(&key)))
        else {
            return Ok(());
        };
        if let (ConnectedPoint::Listener { send_back_addr, .. }, Some(key)) = (endpoint, key) {
            self.metrics.turned_away();
            members.log_rejected(key, from(send_back_addr));
        }
        Err(Denied(NotListed(name(&peer))))
    }
}

fn from(address: &Multiaddr) -> SocketAddr {
    of_multi(address).unwrap_or_else(|| ([0, 0, 0, 0], 0).into())
}

/// The key of a peer. `None` if it is not an Ed25519 key.
fn key_of(peer: &PeerId) -> Option<PublicKey> {
    PublicKey::try_from(peer.to_bytes().strip_prefix(&BEFORE_KEY)?).ok()
}

/// The name of a peer for people: its key, as `nstar share key` prints it.
pub(crate) fn name(peer: &PeerId) -> String {
    key_of(peer).map_or_else(|| peer.to_string(), |key| key.to_string())
}

#[cfg(test)]
mod tests {
    use libp2p_identity::Keypair;

    use super::*;

    #[test]
    fn the_key_of_a_peer_is_the_one_that_tls_has_of_the_same_seed() {
        let seed = [7; 32];
        let peer = Keypair::ed25519_from_bytes(seed).unwrap().public().to_peer_id();
        let key = tls::Key::from_seed(&seed).unwrap().public();
        assert_eq!((key_of(&peer), name(&peer)), (Some(key), key.to_string()));
        assert_eq!(key_of(&PeerId::random()), None);
    }
}
