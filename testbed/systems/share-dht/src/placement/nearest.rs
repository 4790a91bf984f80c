//! The peers nearest to a key, as Kademlia has it (Maymounkov and Mazieres, Kademlia, 2002).

use libp2p_identity::PeerId;
use libp2p_kad::{K_VALUE, KBucketKey};

use super::Place;
use crate::key::Key;

/// How many peers keep what is found under a key.
pub(super) const REPLICAS: usize = 8;

/// Those of these that are nearest to a key, the nearest first.
pub(super) fn keepers(key: &Key, all: impl Iterator<Item = Place>) -> Vec<PeerId> {
    let key = KBucketKey::new(key.as_bytes().to_vec());
    let mut places: Vec<_> = all.collect();
    places.sort_by_cached_key(|place| key.distance(place));
    places.iter().take(REPLICAS).map(|place| *place.preimage()).collect()
}

/// A peer knows all others while they are fewer than a bucket holds, and always those that are as near to it as to each
/// other (section 2.4).
pub(super) fn is_known(me: &PeerId, others: usize, reckoned: &[PeerId]) -> bool {
    others < K_VALUE.get() || reckoned.contains(me)
}
