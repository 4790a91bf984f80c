//! Which peers hold a key: the only difference between the kinds of this index.
//!
//! Another kind takes one line in each of these functions.

mod rendezvous;

use std::num::NonZeroUsize;

use libp2p_identity::PeerId;
use libp2p_kad::{K_VALUE, KBucketKey};
use libp2p_swarm::StreamProtocol;

use crate::key::Key;

/// A peer's position in Kademlia's space.
pub(crate) type Position = KBucketKey<PeerId>;

/// Which of the peers hold a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// The eight nearest to it, as in Kademlia: a distributed hash table. A peer need not know all others; it looks up the
    /// ones near a key.
    #[default]
    Nearest,
    /// The three with the highest weight for it among all peers: rendezvous hashing. Every peer knows all others, so that a
    /// search needs no lookup and a single request.
    Rendezvous,
}

/// How to ask the holders of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryStrategy {
    /// Ask this many at once and merge their results: one of them may have joined just now and not know everything yet.
    Parallel(usize),
    /// Ask one after the other until one finds something, starting with this peer if it is one of them.
    Sequential,
}

/// Number of peers that hold a key, as in Kademlia (Maymounkov and Mazieres, Kademlia, 2002).
const NEAREST_REPLICAS: usize = 8;
/// Most peers in a network in which each has to know all others.
pub(crate) const MEMBERS_MAX: usize = 1_000;

/// Longest part of another peer's protocol name to show, characters.
const SPOKEN_SHOWN: usize = 60;

const MEMBERS_BUCKET: NonZeroUsize = match NonZeroUsize::new(MEMBERS_MAX) {
    Some(size) => size,
    None => K_VALUE,
};

impl Placement {
    /// All kinds.
    const ALL: [Self; 2] = [Self::Nearest, Self::Rendezvous];

    /// Name and version of the protocol between peers of this kind.
    pub(crate) const fn protocol(self) -> &'static str {
        match self {
            Self::Nearest => "/nstar/share/1",
            Self::Rendezvous => "/nstar/share/partitioned/1",
        }
    }

    /// Name and version of Kademlia's protocol between them.
    pub(crate) const fn routing_protocol(self) -> StreamProtocol {
        StreamProtocol::new(match self {
            Self::Nearest => "/nstar/share/kad/1",
            Self::Rendezvous => "/nstar/share/partitioned/kad/1",
        })
    }

    /// The flag that selects it.
    const fn flag(self) -> &'static str {
        match self {
            Self::Nearest => "--dht",
            Self::Rendezvous => "--partitioned",
        }
    }

    /// Explains why a peer with another protocol is incompatible, and what to do.
    pub(crate) fn explain(self, speaks: &str) -> String {
        match Self::ALL.into_iter().find(|kind| kind.protocol() == speaks) {
            Some(other) => format!(
                "it was started with {}, and this one with {}: start both with the same",
                other.flag(),
                self.flag()
            ),
            None => format!(
                "it speaks {:?} and not {}: it is of another version; run the same version of nstar at both",
                speaks.chars().take(SPOKEN_SHOWN).collect::<String>(),
                self.protocol()
            ),
        }
    }

    /// Number of peers that hold a key.
    pub(crate) const fn replicas(self) -> usize {
        match self {
            Self::Nearest => NEAREST_REPLICAS,
            Self::Rendezvous => rendezvous::REPLICAS,
        }
    }

    /// Most peers to remember at each distance, within a power of two.
    pub(crate) const fn bucket_size(self) -> NonZeroUsize {
        match self {
            Self::Nearest => K_VALUE,
            Self::Rendezvous => MEMBERS_BUCKET,
        }
    }

    /// Most peers, including this one, if each of them has to know all others.
    pub(crate) const fn members_max(self) -> Option<usize> {
        match self {
            Self::Nearest => None,
            Self::Rendezvous => Some(MEMBERS_MAX),
        }
    }

    /// How to ask the holders of a key.
    pub(crate) const fn query_strategy(self) -> QueryStrategy {
        match self {
            Self::Nearest => QueryStrategy::Parallel(3),
            Self::Rendezvous => QueryStrategy::Sequential,
        }
    }

    /// The holders of a key among this peer and `others`, the first to ask first.
    pub(crate) fn holders(
        self,
        key: &Key,
        me: Position,
        others: impl Iterator<Item = Position>,
    ) -> Vec<PeerId> {
        let all = others.chain([me]);
        match self {
            Self::Nearest => nearest(key, all),
            Self::Rendezvous => rendezvous::in_turn(key, me, rendezvous::holders(key, all)),
        }
    }

    /// Whether a peer that knows this many others can be sure that `reckoned` are a key's holders.
    pub(crate) fn is_known(self, me: &PeerId, others: usize, reckoned: &[PeerId]) -> bool {
        match self {
            Self::Nearest => nearest_are_known(me, others, reckoned),
            Self::Rendezvous => true,
        }
    }
}

/// The peers nearest to a key, the nearest first.
fn nearest(key: &Key, all: impl Iterator<Item = Position>) -> Vec<PeerId> {
    let key = KBucketKey::new(key.as_bytes().to_vec());
    let mut places: Vec<_> = all.collect();
    places.sort_by_cached_key(|place| key.distance(place));
    places.iter().take(NEAREST_REPLICAS).map(|place| *place.preimage()).collect()
}

/// Whether a peer can tell the holders by itself: it knows all others while they are fewer than a bucket holds, and always
/// those that are as near to it as to each other (section 2.4).
fn nearest_are_known(me: &PeerId, others: usize, reckoned: &[PeerId]) -> bool {
    others < K_VALUE.get() || reckoned.contains(me)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_of_the_other_kind_is_told_from_one_of_another_version() {
        let other = Placement::Rendezvous.explain(Placement::Nearest.protocol());
        assert!(other.contains("started with --dht, and this one with --partitioned"), "{other}");
        let stranger = Placement::Nearest.explain(&"x".repeat(1_000));
        assert!(stranger.contains("another version") && stranger.len() < 200, "{stranger}");
    }

    #[test]
    fn the_kinds_have_nothing_to_say_to_each_other() {
        let [one, other] = Placement::ALL;
        assert_ne!(one.protocol(), other.protocol());
        assert_ne!(one.routing_protocol(), other.routing_protocol());
    }
}
