//! The peers that are known, as the routing table has them: who of them answers for a key.

use std::{
    sync::{
        Mutex, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use libp2p_identity::PeerId;
use libp2p_kad::{K_VALUE, KBucketKey};
use tokio::sync::Notify;

use crate::key::Key;

/// How many peers keep what is found under a key.
pub(crate) const REPLICAS: usize = 8;

/// Characters shown of what a peer says that it speaks.
const SPOKEN_SHOWN: usize = 60;
/// For so long it is told that a peer of another version was met.
pub(crate) const STRANGE_TOLD: Duration = Duration::from_secs(600);

type Place = KBucketKey<PeerId>;

/// This peer and the others that it knows. Read by all threads, written by the driver.
#[derive(Debug)]
pub(crate) struct Table {
    me: Place,
    others: RwLock<Vec<Place>>,
    /// Whether peers were to be joined and none of them could be.
    alone: AtomicBool,
    /// What a peer of another version speaks, and when one was met last.
    strange: Mutex<Option<(String, Instant)>>,
    /// Told when others came or went.
    pub(crate) changed: Notify,
}

impl Table {
    pub(crate) fn new(me: PeerId) -> Self {
        let (others, alone) = (RwLock::default(), AtomicBool::new(false));
        Self { me: me.into(), others, alone, strange: Mutex::default(), changed: Notify::new() }
    }

    pub(crate) fn me(&self) -> PeerId {
        *self.me.preimage()
    }

    /// How many others are known.
    pub(crate) fn len(&self) -> usize {
        self.others().len()
    }

    /// Knows these others from now on.
    pub(crate) fn set(&self, others: Vec<Place>) {
        let mut known = self.others.write().unwrap_or_else(PoisonError::into_inner);
        let same = known.len() == others.len() && others.iter().all(|other| known.contains(other));
        *known = others;
        drop(known);
        if !same {
            self.changed.notify_one();
        }
    }

    /// Remembers that a peer speaks something else.
    pub(crate) fn set_strange(&self, speaks: &str, now: Instant) {
        let speaks = speaks.chars().take(SPOKEN_SHOWN).collect();
        *self.strange.lock().unwrap_or_else(PoisonError::into_inner) = Some((speaks, now));
    }

    /// What a peer of another version speaks, where one was met in the last [`STRANGE_TOLD`].
    pub(crate) fn strange(&self, now: Instant) -> Option<String> {
        let met = self.strange.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = met.as_ref().filter(|(_, at)| now.saturating_duration_since(*at) < STRANGE_TOLD);
        lately.map(|(speaks, _)| speaks.clone())
    }

    pub(crate) fn set_alone(&self, alone: bool) {
        self.alone.store(alone, Relaxed);
    }

    /// Whether peers were to be joined, none of them could be, and no other is known.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Relaxed) && self.len() == 0
    }

    /// Those that answer for a key, where that can be told without asking: a peer knows all others while they are fewer
    /// than a bucket holds, and always those that are as near to it as to each other (Maymounkov and Mazieres, Kademlia,
    /// 2002, section 2.4).
    pub(crate) fn known(&self, key: &Key) -> Option<Vec<PeerId>> {
        let (nearest, all) = {
            let others = self.others();
            (self.sort(key, others.iter().copied()), others.len() < K_VALUE.get())
        };
        (all || nearest.contains(&self.me())).then_some(nearest)
    }

    /// Those of these, and of this peer, that are nearest to a key.
    pub(crate) fn nearest(&self, key: &Key, found: Vec<PeerId>) -> Vec<PeerId> {
        self.sort(key, found.into_iter().filter(|peer| *peer != self.me()).map(Place::from))
    }

    /// All others, where all of them answer for every key.
    pub(crate) fn everyone(&self) -> Option<Vec<PeerId>> {
        let others = self.others();
        (others.len() < REPLICAS).then(|| others.iter().map(|place| *place.preimage()).collect())
    }

    fn sort(&self, key: &Key, others: impl Iterator<Item = Place>) -> Vec<PeerId> {
        let key = KBucketKey::new(key.as_bytes().to_vec());
        let mut places: Vec<_> = others.chain([self.me]).collect();
        places.sort_by_cached_key(|place| key.distance(place));
        places.iter().take(REPLICAS).map(|place| *place.preimage()).collect()
    }

    fn others(&self) -> RwLockReadGuard<'_, Vec<Place>> {
        // Nothing panics while it is held.
        self.others.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        key::keys,
        testing::{entry, peer},
    };

    fn table(me: u8, others: impl Iterator<Item = u8>) -> Table {
        let table = Table::new(peer(me));
        table.set(others.map(|other| peer(other).into()).collect());
        table
    }

    #[test]
    fn few_peers_answer_for_everything() {
        let few = table(0, 1..8);
        assert_eq!(few.everyone().map(|all| all.len()), Some(7));
        let key = keys(&entry("a", "x"))[0];
        assert_eq!(few.known(&key).map(|all| all.len()), Some(8));
        assert_eq!(table(0, 1..9).everyone(), None);
        assert_eq!(table(0, 0..0).known(&key), Some(vec![peer(0)]));
    }

    #[test]
    fn among_many_a_peer_tells_by_itself_only_for_what_is_near() {
        let many = table(0, 1..100);
        let keys: Vec<_> = (0..200).flat_map(|number| keys(&entry(&format!("{number}"), "x"))).collect();
        let known = keys.iter().filter_map(|key| many.known(key));
        let mine: Vec<_> = known.collect();
        assert!(!mine.is_empty() && mine.len() < keys.len() / 2, "{} of {}", mine.len(), keys.len());
        assert!(mine.iter().all(|holders| holders.contains(&peer(0)) && holders.len() == REPLICAS));
    }

    #[test]
    fn a_peer_of_another_version_is_told_of_for_a_while() {
        let (table, now) = (table(0, 0..0), Instant::now());
        assert_eq!(table.strange(now), None);
        table.set_strange(&"x".repeat(1_000), now);
        assert_eq!(table.strange(now), Some("x".repeat(SPOKEN_SHOWN)));
        assert_eq!(table.strange(now + STRANGE_TOLD), None);
    }

    proptest! {
        #[test]
        fn all_peers_agree_who_answers(name in "[a-z]{1,8}", peers in 2..19u8) {
            let key = keys(&entry(&name, "x"))[0];
            let told: BTreeSet<_> = (0..peers)
                .map(|me| table(me, (0..peers).filter(|other| *other != me)).known(&key))
                .collect();
            prop_assert_eq!(told.len(), 1);
        }
    }
}
