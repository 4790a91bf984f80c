//! Meets all peers by walking over Kademlia's space, again and again.
//!
//! A lookup asks the twenty peers nearest to a position, and so meets them. The space is divided into equal parts with few
//! peers in each. A round of the walk makes one lookup in each part; the next round uses other positions.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use libp2p_kad::KBucketKey;

use crate::placement::Position;

/// Most peers in one part on average: less than half of those that a lookup meets, so that hardly one is missed.
const TOGETHER: usize = 8;
/// Duration of a round.
const ROUND: Duration = Duration::from_secs(60);
/// Shortest time between two lookups. With very many peers it makes rounds longer.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// If a round meets more than this fraction of the known peers for the first time, the next starts without a pause: this
/// peer has just joined, or two parts of the network have found each other again.
const MANY_NEW: usize = 16;

/// The bytes whose position a lookup aims at.
pub(super) type Near = [u8; 8];

/// The progress of the walk.
#[derive(Debug)]
pub(super) struct Walk {
    /// The remaining targets of this round.
    left: Vec<Near>,
    /// Number of known peers when the round began.
    known: usize,
    hurries: bool,
    pause: Duration,
    stepped: Instant,
    /// The next bytes to try as a target.
    next: u64,
}

impl Walk {
    /// Starts a walk; different peers use different targets.
    pub(super) fn new(me: &Position, now: Instant) -> Self {
        let next = me.hashed_bytes().iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        Self { left: Vec::new(), known: 0, hurries: true, pause: Duration::ZERO, stepped: now, next }
    }

    /// The target of the next lookup, if it is due. Call it when the last lookup has ended. `known` is the number of other
    /// known peers.
    pub(super) fn next(&mut self, now: Instant, known: usize) -> Option<Near> {
        let waits = !self.hurries && now.saturating_duration_since(self.stepped) < self.pause;
        if waits || known == 0 {
            return None;
        }
        if self.left.is_empty() {
            self.begin(known);
        }
        self.stepped = now;
        self.left.pop()
    }

    fn begin(&mut self, known: usize) {
        self.hurries = known.saturating_sub(self.known) * MANY_NEW > self.known;
        self.known = known;
        let bits = known.div_ceil(TOGETHER).next_power_of_two().trailing_zeros();
        self.left = self.one_in_each(bits);
        let lookups = u32::try_from(self.left.len()).unwrap_or(u32::MAX).max(1);
        self.pause = (ROUND / lookups).max(PAUSE_MIN);
    }

    /// One target in each part of the space, where the positions in a part share their first `bits` bits. Positions are hashes,
    /// so the targets are found by trying.
    fn one_in_each(&mut self, bits: u32) -> Vec<Near> {
        let parts = 1_usize << bits;
        let mut found = BTreeMap::new();
        // Many times the average number of tries.
        for _ in 0..64 * parts {
            let near = self.next.to_be_bytes();
            self.next = self.next.wrapping_add(1);
            found.entry(part(near, bits)).or_insert(near);
            if found.len() == parts {
                break;
            }
        }
        found.into_values().collect()
    }
}

/// The first bits of the position of these bytes.
fn part(near: Near, bits: u32) -> u32 {
    let place = KBucketKey::new(near.to_vec());
    let first = place.hashed_bytes().iter().take(4).fold(0, |bits, byte| bits << 8 | u32::from(*byte));
    first.checked_shr(u32::BITS - bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use libp2p_identity::PeerId;
    use libp2p_kad::K_VALUE;

    use super::*;
    use crate::testing::peers;

    /// Peers that all know each other, and one that walks among them.
    struct World {
        there: Vec<Position>,
        known: BTreeSet<PeerId>,
        lookups: usize,
    }

    impl World {
        fn new(count: u16) -> Self {
            let there: Vec<Position> = peers(count).into_iter().map(Position::from).collect();
            let known = there.iter().take(1).map(|place| *place.preimage()).collect();
            Self { there, known, lookups: 0 }
        }

        /// Walks at this time for as long as lookups are due.
        fn walk(&mut self, walk: &mut Walk, now: Instant) {
            while let Some(near) = walk.next(now, self.known.len()) {
                let near = KBucketKey::new(near.to_vec());
                self.there.sort_by_cached_key(|place| near.distance(place));
                self.known.extend(self.there.iter().take(K_VALUE.get()).map(|place| *place.preimage()));
                self.lookups += 1;
            }
        }
    }

    #[test]
    fn who_comes_meets_all_at_once() {
        for count in [1, 2, 20, 21, 100, 400] {
            let (mut world, now) = (World::new(count), Instant::now());
            let mut walk = Walk::new(&world.there[0], now);
            world.walk(&mut walk, now);
            assert_eq!(world.known.len(), usize::from(count));
            assert!(world.lookups <= usize::from(count) + 1, "{} for {count}", world.lookups);
        }
    }

    #[test]
    fn who_knows_all_looks_for_others_now_and_then_and_meets_a_crowd_at_once() {
        let (mut world, start) = (World::new(300), Instant::now());
        let all = world.there.clone();
        world.there.truncate(100);
        let mut walk = Walk::new(&world.there[0], start);
        world.walk(&mut walk, start);
        let before = world.lookups;
        for second in 1..=120 {
            world.walk(&mut walk, start + Duration::from_secs(second));
        }
        assert!((20..=40).contains(&(world.lookups - before)), "{}", world.lookups - before);
        world.there = all;
        for second in 121..=200 {
            world.walk(&mut walk, start + Duration::from_secs(second));
        }
        assert_eq!(world.known.len(), 300);
    }

    #[test]
    fn who_knows_nobody_begins_as_soon_as_it_does() {
        let (mut world, start) = (World::new(30), Instant::now());
        let known = std::mem::take(&mut world.known);
        let mut walk = Walk::new(&world.there[0], start);
        world.walk(&mut walk, start);
        assert_eq!(world.lookups, 0);
        world.known = known;
        world.walk(&mut walk, start);
        assert_eq!(world.known.len(), 30);
    }
}
