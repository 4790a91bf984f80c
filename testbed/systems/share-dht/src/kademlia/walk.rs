//! Meeting all peers there are: a walk over Kademlia's space, again and again.
//!
//! A lookup asks the twenty peers nearest to a place, so it meets them. The space is cut into equal parts, so many that
//! few peers are in each, and a round of the walk looks once near a place in each of them; the next round near another.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use libp2p_kad::KBucketKey;

use crate::placement::Place;

/// Most peers in one part on average: less than half of those that a lookup meets, so that hardly one is left out.
const TOGETHER: usize = 8;
/// How long a round takes.
const ROUND: Duration = Duration::from_secs(60);
/// Shortest time between two lookups, and so a longer round where there are very many peers.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// A round that meets more than this part of those who were known is followed by another without a pause: this peer has
/// come just now, or the network is one again that was two.
const MANY_NEW: usize = 16;

/// What a lookup looks near to: the place of these bytes.
pub(super) type Near = [u8; 8];

/// How far the walk is.
#[derive(Debug)]
pub(super) struct Walk {
    /// Where lookups of this round go yet.
    left: Vec<Near>,
    /// How many peers were known when it began.
    known: usize,
    hurries: bool,
    pause: Duration,
    stepped: Instant,
    /// The bytes to try next.
    next: u64,
}

impl Walk {
    /// A walk of its own for each peer.
    pub(super) fn new(me: &Place, now: Instant) -> Self {
        let next = me.hashed_bytes().iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        Self { left: Vec::new(), known: 0, hurries: true, pause: Duration::ZERO, stepped: now, next }
    }

    /// What to look near to now, if it is time to; the lookup before it has ended. So many other peers are known.
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

    /// One place in each of the parts of the space that begin with the same so many bits. Places are hashes: what has one
    /// in a certain part is found by trying.
    fn one_in_each(&mut self, bits: u32) -> Vec<Near> {
        let parts = 1_usize << bits;
        let mut found = BTreeMap::new();
        // Many times what it takes on average.
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

/// The first bits of the place of these bytes.
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

    /// Peers that all know all others, and one that walks among them.
    struct World {
        there: Vec<Place>,
        known: BTreeSet<PeerId>,
        lookups: usize,
    }

    impl World {
        fn new(count: u16) -> Self {
            let there: Vec<Place> = peers(count).into_iter().map(Place::from).collect();
            let known = there.iter().take(1).map(|place| *place.preimage()).collect();
            Self { there, known, lookups: 0 }
        }

        /// Walks at this time for as long as there is something to do.
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
