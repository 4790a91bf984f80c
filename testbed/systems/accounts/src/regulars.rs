//! Who logged in lately, by name and network, so that a flood of strangers does not keep them out.
//!
//! Only hashes are kept, with a key that is new at each start, in 384 KiB that all processes of a server share. Of more pairs
//! than fit, those that logged in longest ago are forgotten.

use std::{
    net::IpAddr,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use api_server::network;
use engine::shared::Atomics;

/// How long a login counts.
const LATELY: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Places where a pair may be noted.
const WAYS: usize = 4;
/// Groups of places; a power of two.
const SETS: usize = 12 * 1024;
/// A place holds the time in its upper half, and in the lower one a part of the hash.
const TAG_BITS: u32 = 32;

/// The pairs of a name and a network that logged in lately.
pub(crate) struct Regulars {
    cells: Atomics,
    key: [u8; 32],
    began: Instant,
}

impl Regulars {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self { cells: Atomics::new(SETS * WAYS), key, began: Instant::now() })
    }

    /// Whether the name logged in lately from the network of this address.
    pub(crate) fn knows(&self, name: &str, from: IpAddr) -> bool {
        self.knows_at(name, from, self.now_s())
    }

    /// Notes a login.
    pub(crate) fn note(&self, name: &str, from: IpAddr) {
        self.note_at(name, from, self.now_s());
    }

    fn knows_at(&self, name: &str, from: IpAddr, now_s: u64) -> bool {
        let (set, tag) = self.place(name, from);
        let mut bits = self.set(set).map(|place| self.bits(place));
        bits.any(|bits| {
            bits != 0 && tag_of(bits) == tag && now_s - time_of(bits).min(now_s) <= LATELY.as_secs()
        })
    }

    fn note_at(&self, name: &str, from: IpAddr, now_s: u64) {
        let (set, tag) = self.place(name, from);
        let own = |place: &usize| self.bits(*place) != 0 && tag_of(self.bits(*place)) == tag;
        let oldest = || self.set(set).min_by_key(|&place| time_of(self.bits(place)));
        let Some(place) = self.set(set).find(own).or_else(oldest) else { return };
        if let Some(cell) = self.cells.get(place) {
            cell.store(now_s << TAG_BITS | tag, Relaxed);
        }
    }

    fn set(&self, set: usize) -> impl Iterator<Item = usize> + use<> {
        (0..WAYS).map(move |way| set * WAYS + way)
    }

    fn bits(&self, place: usize) -> u64 {
        self.cells.get(place).map_or(0, |cell| cell.load(Relaxed))
    }

    /// The set of a pair, and its part of the hash.
    fn place(&self, name: &str, from: IpAddr) -> (usize, u64) {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        let hash = hasher.update(&network(from)).update(b"/").update(name.as_bytes()).finalize();
        let (words, _) = hash.as_bytes().as_chunks::<4>();
        let word = |n: usize| words.get(n).map_or(0, |word| u32::from_le_bytes(*word));
        (word(0) as usize % SETS, u64::from(word(1)))
    }

    /// Seconds since the server started, the same in processes forked later. The first is 1, as 0 stands for an empty place.
    fn now_s(&self) -> u64 {
        self.began.elapsed().as_secs() + 1
    }
}

fn tag_of(bits: u64) -> u64 {
    bits & ((1 << TAG_BITS) - 1)
}

fn time_of(bits: u64) -> u64 {
    bits >> TAG_BITS
}

impl std::fmt::Debug for Regulars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Regulars")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_logged_in_is_known_in_that_network_for_a_week() {
        let regulars = Regulars::new().unwrap();
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(!regulars.knows("ann", at("192.0.2.1")));
        regulars.note_at("ann", at("192.0.2.1"), 1_000);
        regulars.note_at("bob", at("2001:db8::1"), 1_000);
        let week = LATELY.as_secs();
        assert!(regulars.knows_at("ann", at("192.0.2.1"), 1_000 + week));
        assert!(!regulars.knows_at("ann", at("192.0.2.1"), 1_001 + week));
        assert!(regulars.knows_at("bob", at("2001:db8::ffff:1"), 2_000), "an IPv6 client has a /64");
        for (name, from) in [("ann", "192.0.2.2"), ("bob", "192.0.2.1"), ("bob", "2001:db8:0:1::1")] {
            assert!(!regulars.knows_at(name, at(from), 2_000), "{name} {from}");
        }
    }

    #[test]
    fn of_too_many_the_oldest_are_forgotten() {
        let regulars = Regulars::new().unwrap();
        let from = IpAddr::from([192, 0, 2, 1]);
        let many = SETS as u64 * WAYS as u64 * 2;
        (1..=many).for_each(|n| regulars.note_at(&n.to_string(), from, n));
        let known = |n: u64| regulars.knows_at(&n.to_string(), from, many);
        assert!((many - 10..=many).all(known));
        assert!((1..=1_000).filter(|&n| known(n)).count() < 500);
    }
}
