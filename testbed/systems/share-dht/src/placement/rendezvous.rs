//! Rendezvous hashing, or highest random weight (Thaler and Ravishankar, Using name-based mappings to increase hit rates,
//! IEEE/ACM Transactions on Networking 6(1), 1998). Each peer has a weight for each key that all peers compute alike, and
//! the peers with the highest weights hold the key. A peer that joins takes an equal part from each of the others, and when
//! it leaves, that part returns to them: nothing else moves.

use std::cmp::Reverse;

use libp2p_identity::PeerId;

use super::Position;
use crate::key::Key;

/// Number of peers that hold a key.
pub(super) const REPLICAS: usize = 3;

/// The peers with the highest weights for a key, the highest first.
pub(super) fn holders(key: &Key, all: impl Iterator<Item = Position>) -> Vec<PeerId> {
    // Between equal weights the peer's id decides.
    let mut weighed: Vec<_> = all.map(|place| Reverse((weight(key, &place), *place.preimage()))).collect();
    if weighed.len() > REPLICAS {
        weighed.select_nth_unstable(REPLICAS);
        weighed.truncate(REPLICAS);
    }
    weighed.sort_unstable();
    weighed.into_iter().map(|Reverse((_, peer))| peer).collect()
}

/// The holders in the order in which this peer asks them: itself first, and otherwise a different one first for each peer.
pub(super) fn in_turn(key: &Key, me: Position, mut holders: Vec<PeerId>) -> Vec<PeerId> {
    let first = match holders.iter().position(|holder| holder == me.preimage()) {
        Some(own) => own,
        // The remainder is smaller than the number of holders.
        None => (weight(key, &me) % holders.len().max(1) as u64) as usize,
    };
    holders.rotate_left(first);
    holders
}

/// A peer's weight for a key. Both are hashes already (BLAKE3 for the key, SHA-256 for the position), so 64 well-mixed bits
/// of each suffice: finding a peer with a high weight takes as many tries as with any hash.
fn weight(key: &Key, place: &Position) -> u64 {
    mixed(first_bits(key.as_bytes()) ^ first_bits(place.hashed_bytes()))
}

fn first_bits(hash: &[u8]) -> u64 {
    hash.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// SplitMix64's mixing of 64 bits, in which each bit changes half of the others (Steele, Lea and Flood, Fast splittable
/// pseudorandom number generators, 2014; the constants are Stafford's variant 13).
const fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::{key, testing};

    fn some_keys(count: usize) -> Vec<Key> {
        (0..count).map(|number| key::keys(&testing::entry(&format!("x{number}"), "x"))[0]).collect()
    }

    fn places(count: u16) -> Vec<Position> {
        testing::peers(count).into_iter().map(Position::from).collect()
    }

    fn holders_of(keys: &[Key], places: &[Position]) -> Vec<Vec<PeerId>> {
        keys.iter().map(|key| holders(key, places.iter().copied())).collect()
    }

    /// The first two outputs of SplitMix64 for seed 0, as its authors published them.
    #[test]
    fn the_mixing_is_that_of_splitmix64() {
        let step: u64 = 0x9e37_79b9_7f4a_7c15;
        assert_eq!(mixed(step), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mixed(step.wrapping_mul(2)), 0x6e78_9e6a_a1b9_65f4);
    }

    /// All versions of this program have to agree on this.
    #[test]
    fn a_key_is_kept_by_the_three_that_weigh_most() {
        let (keys, places) = (some_keys(2), places(5));
        let numbers = |key: &Key| {
            let of = |peer: &PeerId| places.iter().position(|place| place.preimage() == peer);
            holders(key, places.iter().copied()).iter().filter_map(of).collect::<Vec<_>>()
        };
        let weights = places.iter().map(|place| weight(&keys[0], place) >> 56).collect::<Vec<_>>();
        assert_eq!(weights, [77, 252, 153, 190, 27]);
        assert_eq!([numbers(&keys[0]), numbers(&keys[1])], [[1, 3, 2], [1, 2, 0]]);
        assert_eq!(holders(&keys[0], places[..2].iter().copied()).len(), 2);
    }

    /// Of 2 000 keys and 20 peers each peer holds 300 on average, with a standard deviation of 16: the bounds are five of those.
    #[test]
    fn each_peer_keeps_about_as_much_as_any_other_and_is_as_often_the_first() {
        let (keys, places) = (some_keys(2_000), places(20));
        let mut kept: BTreeMap<PeerId, (usize, usize)> = BTreeMap::new();
        for holders in holders_of(&keys, &places) {
            assert_eq!(holders.iter().collect::<BTreeSet<_>>().len(), REPLICAS);
            kept.entry(holders[0]).or_default().1 += 1;
            holders.iter().for_each(|holder| kept.entry(*holder).or_default().0 += 1);
        }
        assert_eq!(kept.len(), 20);
        for (all, first) in kept.values() {
            assert!((220..380).contains(all) && (50..150).contains(first), "{kept:?}");
        }
    }

    #[test]
    fn those_who_ask_do_not_all_ask_the_same_first_and_who_keeps_it_asks_itself() {
        let places = places(60);
        let key = some_keys(1)[0];
        let all = holders(&key, places.iter().copied());
        let mut firsts: BTreeMap<PeerId, usize> = BTreeMap::new();
        for me in &places {
            let asked = in_turn(&key, *me, all.clone());
            assert_eq!(asked.iter().collect::<BTreeSet<_>>(), all.iter().collect());
            assert!(!all.contains(me.preimage()) || asked[0] == *me.preimage());
            *firsts.entry(asked[0]).or_default() += 1;
        }
        assert!(firsts.len() == REPLICAS && firsts.values().all(|asked| *asked >= 8), "{firsts:?}");
        assert_eq!(in_turn(&key, places[0], Vec::new()), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn who_comes_takes_its_own_keys_only(peers in 1..40u16, names in prop::collection::vec("[a-z]{1,8}", 1..50)) {
            let keys: Vec<_> = names.iter().map(|name| key::keys(&testing::entry(name, "x"))[0]).collect();
            let places = places(peers + 1);
            let (newcomer, before) = places.split_last().unwrap();
            let newcomer = *newcomer.preimage();
            let moves = holders_of(&keys, before).into_iter().zip(holders_of(&keys, &places));
            for (before, mut after) in moves {
                if let Some(at) = after.iter().position(|peer| *peer == newcomer) {
                    after.remove(at);
                }
                prop_assert_eq!(&before[..after.len()], &after[..], "others keep their order, and one at most is relieved");
                prop_assert!(before.len() - after.len() <= 1);
            }
        }

        #[test]
        fn about_three_in_so_many_keys_move(peers in 10..40u16) {
            let (keys, places) = (some_keys(1_000), places(peers));
            let (before, after) = (holders_of(&keys, &places[1..]), holders_of(&keys, &places));
            let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count() as f64;
            let expected = 1_000.0 * REPLICAS as f64 / f64::from(peers);
            // A binomial count: within six standard deviations.
            prop_assert!((moved - expected).abs() < 6.0 * expected.sqrt(), "{} for {}", moved, expected);
        }
    }
}
