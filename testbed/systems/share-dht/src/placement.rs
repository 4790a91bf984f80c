//! Which of the peers keep what is found under a key: the one thing in which the kinds of this index differ.
//!
//! Everything else is the same for all of them: what is kept and told, how peers meet, and how they are asked. To have one
//! more kind is a line in each of these functions.

mod nearest;
mod rendezvous;

use std::num::NonZeroUsize;

use libp2p_identity::PeerId;
use libp2p_kad::{K_VALUE, KBucketKey};
use libp2p_swarm::StreamProtocol;

use crate::key::Key;

/// A peer, and where it stands in Kademlia's space.
pub(crate) type Place = KBucketKey<PeerId>;

/// Which of the peers keep what is found under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// The eight nearest to it, as Kademlia has it: a distributed hash table. A peer need not know all others; who is near
    /// to a key is looked up.
    #[default]
    Nearest,
    /// The three that weigh most for it, of all peers: rendezvous hashing. Every peer knows all others, so nothing is
    /// looked up, and a search is one question.
    Rendezvous,
}

/// How those that keep what is found under a key are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// So many at once, and what all of them have found counts: one of them may have come just now and not know all yet.
    Several(usize),
    /// One after the other, this peer first where it is one of them, until one has found something.
    OneByOne,
}

/// Most peers of which each knows all others.
pub(crate) const MEMBERS_MAX: usize = 1_000;

/// Characters shown of what a peer says that it speaks.
const SPOKEN_SHOWN: usize = 60;

const MEMBERS_BUCKET: NonZeroUsize = match NonZeroUsize::new(MEMBERS_MAX) {
    Some(size) => size,
    None => K_VALUE,
};

impl Placement {
    /// All there are.
    const ALL: [Self; 2] = [Self::Nearest, Self::Rendezvous];

    /// The name and version of what peers of this kind speak with each other.
    pub(crate) const fn protocol(self) -> &'static str {
        match self {
            Self::Nearest => "/nstar/share/1",
            Self::Rendezvous => "/nstar/share/partitioned/1",
        }
    }

    /// The name and version of Kademlia's own messages between them.
    pub(crate) const fn routing_protocol(self) -> StreamProtocol {
        StreamProtocol::new(match self {
            Self::Nearest => "/nstar/share/kad/1",
            Self::Rendezvous => "/nstar/share/partitioned/kad/1",
        })
    }

    /// What a person starts it by.
    const fn flag(self) -> &'static str {
        match self {
            Self::Nearest => "--dht",
            Self::Rendezvous => "--partitioned",
        }
    }

    /// What is wrong with a peer that speaks something else, and what to do.
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

    /// How many peers keep what is found under a key.
    pub(crate) const fn replicas(self) -> usize {
        match self {
            Self::Nearest => nearest::REPLICAS,
            Self::Rendezvous => rendezvous::REPLICAS,
        }
    }

    /// How many peers are remembered of those that are as far away as each other, within a power of two.
    pub(crate) const fn bucket_size(self) -> NonZeroUsize {
        match self {
            Self::Nearest => K_VALUE,
            Self::Rendezvous => MEMBERS_BUCKET,
        }
    }

    /// Most peers, this one among them, of which each has to know all others; none where it need not.
    pub(crate) const fn members_max(self) -> Option<usize> {
        match self {
            Self::Nearest => None,
            Self::Rendezvous => Some(MEMBERS_MAX),
        }
    }

    /// How those that keep what is found under a key are asked.
    pub(crate) const fn asks(self) -> Asks {
        match self {
            Self::Nearest => Asks::Several(3),
            Self::Rendezvous => Asks::OneByOne,
        }
    }

    /// Those of these peers that keep what is found under a key, the first to ask first.
    pub(crate) fn keepers(self, key: &Key, me: Place, others: impl Iterator<Item = Place>) -> Vec<PeerId> {
        let all = others.chain([me]);
        match self {
            Self::Nearest => nearest::keepers(key, all),
            Self::Rendezvous => rendezvous::in_turn(key, me, rendezvous::keepers(key, all)),
        }
    }

    /// Whether a peer that knows so many others can tell who keeps what is found under a key, of which it reckons these.
    pub(crate) fn is_known(self, me: &PeerId, others: usize, reckoned: &[PeerId]) -> bool {
        match self {
            Self::Nearest => nearest::is_known(me, others, reckoned),
            Self::Rendezvous => true,
        }
    }
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
