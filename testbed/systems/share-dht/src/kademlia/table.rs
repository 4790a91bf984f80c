//! The peers in the routing table, and which of them hold a key.

use std::{
    sync::{
        Mutex, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use libp2p_identity::PeerId;
use tokio::sync::Notify;

use crate::{
    key::Key,
    placement::{Placement, Position, QueryStrategy},
};

/// How long to report that a peer was rejected.
pub(crate) const INCOMPATIBLE_REPORTED: Duration = Duration::from_secs(600);

/// This peer and the others that it knows. Read by all threads, written by the driver.
#[derive(Debug)]
pub(crate) struct Table {
    me: Position,
    placement: Placement,
    others: RwLock<Vec<Position>>,
    /// Whether bootstrap peers were given and none is connected.
    alone: AtomicBool,
    /// Why a peer was last rejected as incompatible, and when.
    incompatible: Mutex<Option<(String, Instant)>>,
    /// Notified when other peers come or go.
    pub(crate) changed: Notify,
}

impl Table {
    pub(crate) fn new(me: PeerId, placement: Placement) -> Self {
        let (others, alone) = (RwLock::default(), AtomicBool::new(false));
        Self {
            me: me.into(),
            placement,
            others,
            alone,
            incompatible: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(crate) fn me(&self) -> PeerId {
        *self.me.preimage()
    }

    /// Which of the peers hold a key.
    pub(crate) fn placement(&self) -> Placement {
        self.placement
    }

    /// How to ask the holders of a key.
    pub(crate) fn query_strategy(&self) -> QueryStrategy {
        self.placement.query_strategy()
    }

    /// Number of other known peers.
    pub(crate) fn len(&self) -> usize {
        self.others().len()
    }

    /// Replaces the known peers.
    pub(crate) fn set(&self, others: Vec<Position>) {
        let mut known = self.others.write().unwrap_or_else(PoisonError::into_inner);
        let same = known.len() == others.len() && others.iter().all(|other| known.contains(other));
        *known = others;
        drop(known);
        if !same {
            self.changed.notify_one();
        }
    }

    /// Records why a peer was rejected as incompatible.
    pub(crate) fn set_incompatible(&self, why: String, now: Instant) {
        *self.incompatible.lock().unwrap_or_else(PoisonError::into_inner) = Some((why, now));
    }

    /// Why a peer was rejected within the last [`INCOMPATIBLE_REPORTED`].
    pub(crate) fn incompatible(&self, now: Instant) -> Option<String> {
        let met = self.incompatible.lock().unwrap_or_else(PoisonError::into_inner);
        let lately =
            met.as_ref().filter(|(_, at)| now.saturating_duration_since(*at) < INCOMPATIBLE_REPORTED);
        lately.map(|(why, _)| why.clone())
    }

    pub(crate) fn set_alone(&self, alone: bool) {
        self.alone.store(alone, Relaxed);
    }

    /// Whether bootstrap peers were given, none is connected, and no other peer is known.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Relaxed) && self.len() == 0
    }

    /// The holders of a key, if they can be told without asking other peers.
    pub(crate) fn known(&self, key: &Key) -> Option<Vec<PeerId>> {
        let (reckoned, others) = {
            let others = self.others();
            (self.placement.holders(key, self.me, others.iter().copied()), others.len())
        };
        self.placement.is_known(&self.me(), others, &reckoned).then_some(reckoned)
    }

    /// The holders of a key among this peer and `found`.
    pub(crate) fn holders(&self, key: &Key, found: Vec<PeerId>) -> Vec<PeerId> {
        let others = found.into_iter().filter(|peer| *peer != self.me()).map(Position::from);
        self.placement.holders(key, self.me, others)
    }

    /// Whether a known peer should hold the key in place of one in `found`.
    pub(crate) fn outdated(&self, key: &Key, found: &[PeerId]) -> bool {
        let known = self.others().clone().into_iter().filter(|place| !found.contains(place.preimage()));
        let before = found.iter().copied().filter(|peer| *peer != self.me()).map(Position::from);
        let now = self.placement.holders(key, self.me, before.chain(known));
        now.iter().any(|peer| !found.contains(peer))
    }

    /// All other peers, if each of them holds every key.
    pub(crate) fn everyone(&self) -> Option<Vec<PeerId>> {
        let others = self.others();
        let few = others.len() < self.placement.replicas();
        few.then(|| others.iter().map(|place| *place.preimage()).collect())
    }

    /// The most peers that there may be, if there are more. Then not every peer knows all others.
    pub(crate) fn crowded(&self) -> Option<usize> {
        self.placement.members_max().filter(|most| self.len() >= *most)
    }

    /// The other known peers.
    pub(super) fn others(&self) -> RwLockReadGuard<'_, Vec<Position>> {
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
        placement::MEMBERS_MAX,
        testing::{entry, peer},
    };

    fn table(me: u8, others: impl Iterator<Item = u8>) -> Table {
        table_of(Placement::Nearest, me, others)
    }

    fn table_of(placement: Placement, me: u8, others: impl Iterator<Item = u8>) -> Table {
        let table = Table::new(peer(me), placement);
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
        assert!(mine.iter().all(|holders| holders.contains(&peer(0)) && holders.len() == 8));
    }

    #[test]
    fn where_all_are_known_anyone_tells_who_answers_and_it_is_told_when_they_are_too_many() {
        let key = keys(&entry("a", "x"))[0];
        let many = table_of(Placement::Rendezvous, 0, 1..100);
        assert_eq!(many.known(&key).map(|holders| holders.len()), Some(3));
        assert_eq!(many.everyone(), None);
        assert_eq!(table_of(Placement::Rendezvous, 0, 1..3).everyone().map(|all| all.len()), Some(2));
        assert_eq!(many.crowded(), None);
        many.set(vec![peer(1).into(); MEMBERS_MAX]);
        assert_eq!(many.crowded(), Some(MEMBERS_MAX));
    }

    #[test]
    fn who_was_found_is_outdated_once_a_nearer_one_is_known() {
        let key = keys(&entry("a", "x"))[0];
        let all = table(0, 1..100);
        let nearest = all.holders(&key, (1..100).map(peer).collect());
        assert!(!all.outdated(&key, &nearest) && !table(0, 0..0).outdated(&key, &nearest));
        let before = table(0, 1..30).holders(&key, (1..30).map(peer).collect());
        assert!(all.outdated(&key, &before) && !table(0, 1..30).outdated(&key, &before));
    }

    #[test]
    fn a_peer_of_another_version_is_told_of_for_a_while() {
        let (table, now) = (table(0, 0..0), Instant::now());
        assert_eq!(table.incompatible(now), None);
        table.set_incompatible("it is old".into(), now);
        assert_eq!(table.incompatible(now).as_deref(), Some("it is old"));
        assert_eq!(table.incompatible(now + INCOMPATIBLE_REPORTED), None);
    }

    proptest! {
        #[test]
        fn all_peers_agree_who_answers(name in "[a-z]{1,8}", peers in 2..19u8) {
            let key = keys(&entry(&name, "x"))[0];
            for placement in [Placement::Nearest, Placement::Rendezvous] {
                let told: BTreeSet<_> = (0..peers)
                    .map(|me| table_of(placement, me, (0..peers).filter(|other| *other != me)).known(&key))
                    .map(|known| known.map(BTreeSet::from_iter))
                    .collect();
                prop_assert_eq!(told.len(), 1);
            }
        }
    }
}
