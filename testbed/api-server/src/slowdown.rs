//! Slows down failed logins, without revealing which accounts exist, and what else a client does too often.
//!
//! Failures are counted by name, by address, and by both together. They are forgotten one by one, one a minute. After
//! [`NAME_FREE`] failures with a name, an address that has failed with that name must wait before each further attempt: 1 s,
//! then twice as long each time, 30 s at most. Other addresses need not wait, so that an attacker cannot lock out the owner
//! of an account; an attacker with many addresses gets one attempt from each. After [`ADDRESS_FREE`] failures an address
//! must wait in the same way, whatever the name.
//!
//! Actions that succeed, such as new accounts, are counted by address in the same way: after as many as are free, the address
//! must wait.
//!
//! Names and addresses are counted as hashes with a key that is new at each start, whether the name exists or not. The
//! counts are in a count-min sketch (Cormode and Muthukrishnan, 2005) that all processes of a server share. It takes 384 KiB
//! however many names are tried; if hashes collide in all of its rows, someone waits too long, but never too short. Servers
//! that share a database count separately. (A rate limiter such as `governor` keeps a map in one process and counts
//! successes too.)

use std::{
    net::IpAddr,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use engine::shared::Atomics;

/// Failures with one name before its attempts are slowed down.
const NAME_FREE: u16 = 5;
/// Failures from one address before it is slowed down. People may share an address.
const ADDRESS_FREE: u16 = 20;
/// The first wait.
const WAIT_MS: u64 = 1_000;
/// The longest wait.
const WAIT_MS_MAX: u64 = 30_000;
/// The time after which one failure is forgotten. It is longer than the longest wait, so that continued attempts are never
/// forgotten.
const FORGET_MS: u64 = 60_000;
/// Failures counted beyond the free ones: enough for the longest wait.
const COUNT_BEYOND_MAX: u16 = 6;

const ROWS: usize = 3;
/// Counters in a row; a power of two.
const COLUMNS: usize = 1 << 14;

/// The failures of a server in all its processes. Create it before the process forks.
pub struct Slowdown {
    cells: Atomics,
    key: [u8; 32],
    began: Instant,
}

/// An attempt to log in, as it is counted.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    name: Places,
    address: Places,
    pair: Places,
}

/// The consequences of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// From now on attempts with this name must wait.
    pub name_slowed: bool,
    /// From now on this address must wait.
    pub address_slowed: bool,
}

/// The place of a counter in each row.
type Places = [usize; ROWS];

impl Slowdown {
    /// Counts nothing yet.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self { cells: Atomics::new(ROWS * COLUMNS), key, began: Instant::now() })
    }

    /// An attempt to log in with a name, from an address.
    pub fn attempt(&self, name: &[u8], from: IpAddr) -> Attempt {
        let address = network(from);
        Attempt {
            name: self.places(b'n', name),
            address: self.places(b'a', &address),
            pair: self.places(b'p', &[&address[..], name].concat()),
        }
    }

    /// How long an attempt must wait. `None` if it need not.
    pub fn wait(&self, attempt: &Attempt) -> Option<Duration> {
        let wait_ms = self.wait_ms(attempt, self.now_ms());
        (wait_ms > 0).then(|| Duration::from_millis(wait_ms))
    }

    /// Counts a failure.
    pub fn failed(&self, attempt: &Attempt) -> Noted {
        self.failed_at(attempt, self.now_ms())
    }

    /// Counts a failure by address only. Attempts that cost no hash could be so many that they fill the sketch.
    pub fn failed_cheaply(&self, attempt: &Attempt) {
        self.add(&attempt.address, self.now_ms(), ADDRESS_FREE);
    }

    /// Counts an action of an address, of which so many are `free`. Returns how long the address must wait instead, if it must.
    pub fn act(&self, from: IpAddr, free: u16) -> Option<Duration> {
        let wait_ms = self.act_at(from, free, self.now_ms());
        (wait_ms > 0).then(|| Duration::from_millis(wait_ms))
    }

    fn act_at(&self, from: IpAddr, free: u16, now_ms: u64) -> u64 {
        let made = self.places(b'r', &network(from));
        let wait_ms = self.least(&made, now_ms).wait_ms(now_ms, free);
        if wait_ms == 0 {
            self.add(&made, now_ms, free);
        }
        wait_ms
    }

    fn wait_ms(&self, attempt: &Attempt, now_ms: u64) -> u64 {
        let of_address = self.least(&attempt.address, now_ms).wait_ms(now_ms, ADDRESS_FREE);
        let has_failed = self.least(&attempt.pair, now_ms).count_at(now_ms) > 0;
        let of_name =
            if has_failed { self.least(&attempt.name, now_ms).wait_ms(now_ms, NAME_FREE) } else { 0 };
        of_address.max(of_name)
    }

    fn failed_at(&self, attempt: &Attempt, now_ms: u64) -> Noted {
        self.add(&attempt.pair, now_ms, 1);
        Noted {
            name_slowed: self.add(&attempt.name, now_ms, NAME_FREE) == NAME_FREE,
            address_slowed: self.add(&attempt.address, now_ms, ADDRESS_FREE) == ADDRESS_FREE,
        }
    }

    /// Adds a failure and returns how many there are.
    fn add(&self, places: &Places, now_ms: u64, free: u16) -> u16 {
        for &place in places {
            let Some(cell) = self.cells.get(place) else { continue };
            let more = |bits| Some(Failures::from_bits(bits).and_one(now_ms, free).to_bits());
            let _always_changed = cell.fetch_update(Relaxed, Relaxed, more);
        }
        self.least(places, now_ms).count
    }

    /// The count of a key: that of the row with the fewest collisions.
    fn least(&self, places: &Places, now_ms: u64) -> Failures {
        let rows = places.iter().filter_map(|&place| self.cells.get(place));
        let rows = rows.map(|cell| Failures::from_bits(cell.load(Relaxed)));
        rows.min_by_key(|failures| (failures.count_at(now_ms), failures.last_ms)).unwrap_or_default()
    }

    fn places(&self, kind: u8, key: &[u8]) -> Places {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        let hash = hasher.update(&[kind]).update(key).finalize();
        let (words, _) = hash.as_bytes().as_chunks::<4>();
        std::array::from_fn(|row| {
            let word = words.get(row).map_or(0, |word| u32::from_le_bytes(*word));
            row * COLUMNS + word as usize % COLUMNS
        })
    }

    /// Milliseconds since the server started, the same in processes forked later.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl std::fmt::Debug for Slowdown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Slowdown")
    }
}

/// What counts as one address. For IPv6 it is the /64 network, as one client has all of it.
pub fn network(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().into_iter().take(8).collect(),
    }
}

/// The number of failures and the time of the last one. Packed into 16 bits for the count and 48 for the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Failures {
    count: u16,
    last_ms: u64,
}

const TIME_BITS: u32 = 48;

impl Failures {
    fn from_bits(bits: u64) -> Self {
        let count = u16::try_from(bits >> TIME_BITS).unwrap_or(u16::MAX);
        Self { count, last_ms: bits & ((1 << TIME_BITS) - 1) }
    }

    fn to_bits(self) -> u64 {
        u64::from(self.count) << TIME_BITS | self.last_ms & ((1 << TIME_BITS) - 1)
    }

    /// Failures that are not forgotten.
    fn count_at(self, now_ms: u64) -> u16 {
        let forgotten = now_ms.saturating_sub(self.last_ms) / FORGET_MS;
        self.count.saturating_sub(u16::try_from(forgotten).unwrap_or(u16::MAX))
    }

    /// With one more, up to what makes the longest wait. Keys of several kinds share counters: a key whose limit is lower takes
    /// nothing from another.
    fn and_one(self, now_ms: u64, free: u16) -> Self {
        let counted = self.count_at(now_ms);
        let count = counted.saturating_add(1).min(free.saturating_add(COUNT_BEYOND_MAX)).max(counted);
        Self { count, last_ms: now_ms.max(self.last_ms) }
    }

    /// Time until the next attempt, ms.
    fn wait_ms(self, now_ms: u64, free: u16) -> u64 {
        let Some(beyond) = self.count_at(now_ms).checked_sub(free) else { return 0 };
        let wait_ms = (WAIT_MS << beyond.min(COUNT_BEYOND_MAX)).min(WAIT_MS_MAX);
        (self.last_ms + wait_ms).saturating_sub(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn stranger(number: u8) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, number))
    }

    /// Fails until it must wait. Returns the number of attempts and the wait.
    fn fail(slowdown: &Slowdown, attempt: &Attempt, now_ms: u64) -> (u32, u64) {
        let mut tries = 0;
        while slowdown.wait_ms(attempt, now_ms) == 0 {
            slowdown.failed_at(attempt, now_ms);
            tries += 1;
        }
        (tries, slowdown.wait_ms(attempt, now_ms))
    }

    #[test]
    fn waits_double_up_to_a_limit_and_are_forgotten_one_by_one() {
        let slowdown = Slowdown::new().unwrap();
        let attempt = slowdown.attempt(b"ann", HOME);
        let mut now_ms = 10_000;
        let mut waits = Vec::new();
        for _ in 0..8 {
            let (_, wait_ms) = fail(&slowdown, &attempt, now_ms);
            waits.push(wait_ms);
            now_ms += wait_ms;
        }
        assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(slowdown.wait_ms(&attempt, now_ms - 1), 1);
        let beyond = u64::from(COUNT_BEYOND_MAX) + 1;
        assert_eq!(
            fail(&slowdown, &attempt, now_ms + beyond * FORGET_MS),
            (1, 1_000),
            "one failure is forgotten"
        );
        let all = u64::from(NAME_FREE + COUNT_BEYOND_MAX) + 1;
        let later_ms = now_ms + (beyond + all) * FORGET_MS;
        assert_eq!(
            fail(&slowdown, &attempt, later_ms),
            (u32::from(NAME_FREE), 1_000),
            "all failures are forgotten"
        );
    }

    #[test]
    fn an_attack_does_not_lock_the_owner_out() {
        let slowdown = Slowdown::new().unwrap();
        let mut tries = 0;
        for number in 1..=100 {
            tries += fail(&slowdown, &slowdown.attempt(b"ann", stranger(number)), 0).0;
        }
        assert_eq!(tries, u32::from(NAME_FREE) + 99, "one try from each further address");
        let owner = slowdown.attempt(b"ann", HOME);
        assert_eq!(slowdown.wait_ms(&owner, 0), 0);
        slowdown.failed_at(&owner, 0);
        assert!(slowdown.wait_ms(&owner, 0) > 0, "an owner who fails must wait too");
        assert_eq!(slowdown.wait_ms(&owner, FORGET_MS), 0, "but not forever");
    }

    #[test]
    fn an_address_that_tries_many_names_is_slowed_for_all() {
        let slowdown = Slowdown::new().unwrap();
        let name = |number: u16| slowdown.attempt(format!("name-{number}").as_bytes(), HOME);
        let noted: Vec<_> = (1..=ADDRESS_FREE).map(|number| slowdown.failed_at(&name(number), 0)).collect();
        assert!(noted.iter().all(|noted| !noted.name_slowed));
        assert_eq!(noted.iter().position(|noted| noted.address_slowed), Some(usize::from(ADDRESS_FREE) - 1));
        assert_eq!(slowdown.wait_ms(&name(1000), 0), 1_000);
        assert_eq!(slowdown.wait_ms(&slowdown.attempt(b"name-1000", stranger(1)), 0), 0);
    }

    /// Failures of an address were taken back where a name that it tried shared one of its counters: then it need not wait.
    #[test]
    fn a_name_that_shares_a_counter_takes_no_failures_back() {
        let of_address = Failures { count: 18, last_ms: 0 };
        assert_eq!(of_address.and_one(0, NAME_FREE).count, 18);
        assert_eq!(of_address.and_one(0, 1).count, 18);
        assert_eq!(of_address.and_one(0, ADDRESS_FREE).count, 19);
        assert_eq!(of_address.and_one(FORGET_MS, 1).count, 17, "one is forgotten");
    }

    #[test]
    fn an_address_that_acts_too_often_must_wait_and_others_need_not() {
        let slowdown = Slowdown::new().unwrap();
        assert!((0..3).all(|_| slowdown.act_at(HOME, 3, 0) == 0));
        assert_eq!(slowdown.act_at(HOME, 3, 0), 1_000);
        assert_eq!(slowdown.act_at(stranger(1), 3, 0), 0);
        assert_eq!(slowdown.act_at(HOME, 3, 1_000), 0);
        assert_eq!(slowdown.act_at(HOME, 3, 1_000), 2_000, "twice as long each time");
    }

    #[test]
    fn one_client_of_ipv6_is_its_network() {
        let slowdown = Slowdown::new().unwrap();
        let from = |text: &str| slowdown.attempt(b"ann", text.parse().unwrap()).address;
        assert_eq!(from("2001:db8::1"), from("2001:db8::ffff:1"));
        assert_ne!(from("2001:db8::1"), from("2001:db8:0:1::1"));
        assert_eq!(from("::ffff:192.0.2.1"), slowdown.attempt(b"bob", HOME).address);
    }

    #[test]
    fn many_names_do_not_slow_another() {
        let slowdown = Slowdown::new().unwrap();
        // The failures that 100 hashes a second allow before they are forgotten.
        for number in 0..6_000_u32 {
            let from = IpAddr::V4(std::net::Ipv4Addr::from(number));
            slowdown.failed_at(&slowdown.attempt(format!("name-{number}").as_bytes(), from), 0);
        }
        // Each name counted three keys, itself, its address and both together: 1.1 in every counter of a row. So two or more
        // are in the counter of another name with a chance of 0.30, and in all three rows with one of 0.027, whatever the key
        // of this run: 27 names of 1000, and a standard deviation of 5.
        let collides = |number: &u32| {
            let other = slowdown.attempt(format!("other-{number}").as_bytes(), HOME);
            slowdown.least(&other.name, 0).count > 1
        };
        let colliding = (0..1_000_u32).filter(collides).count();
        assert!(colliding <= 60, "{colliding} of 1000 names");
    }

    proptest! {
        #[test]
        fn a_wait_never_exceeds_the_limit_and_always_ends(
            times in proptest::collection::vec(0..200_000_u64, 0..60)
        ) {
            let slowdown = Slowdown::new().unwrap();
            let attempt = slowdown.attempt(b"ann", HOME);
            let mut now_ms = 0;
            for time in times {
                now_ms += time;
                slowdown.failed_at(&attempt, now_ms);
                let wait_ms = slowdown.wait_ms(&attempt, now_ms);
                prop_assert!(wait_ms <= WAIT_MS_MAX);
                prop_assert_eq!(slowdown.wait_ms(&attempt, now_ms + wait_ms), 0);
            }
        }

        #[test]
        fn bits_hold_what_they_are_given(count: u16, last_ms in 0..1_u64 << TIME_BITS) {
            let failures = Failures { count, last_ms };
            prop_assert_eq!(Failures::from_bits(failures.to_bits()), failures);
        }
    }
}
