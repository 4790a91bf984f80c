//! Credentials that were found right, and until when they are taken for right.
//!
//! One memory for the whole server, and a small one in front of it for each worker, which needs no lock: the commonest
//! requests are decided there. Only successes are kept, only as keyed hashes.

use std::{
    cell::RefCell,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    time::{Duration, Instant},
};

use moka::{policy::EvictionPolicy, sync::Cache};

use crate::fingerprint::Fingerprint;

/// How many credentials each worker remembers on its own.
const FRONT_ENTRIES: usize = 1024;

/// The memory of the whole server.
pub(crate) struct Verified {
    until: Cache<Fingerprint, Instant, BuildHasherDefault<FirstBytes>>,
    ttl: Duration,
}

impl Verified {
    /// Remembers at most `entries` credentials, each for `ttl`.
    pub(crate) fn new(ttl: Duration, entries: u64) -> Self {
        let until = Cache::builder()
            .max_capacity(entries)
            .time_to_live(ttl)
            .eviction_policy(EvictionPolicy::lru())
            .build_with_hasher(BuildHasherDefault::default());
        Self { until, ttl }
    }

    /// Whether anything is remembered at all.
    pub(crate) fn is_on(&self) -> bool {
        !self.ttl.is_zero()
    }

    /// Until when a credential is taken for right, if it is at `now`.
    pub(crate) fn until(&self, of: &Fingerprint, now: Instant) -> Option<Instant> {
        self.until.get(of).filter(|until| *until > now)
    }

    /// Remembers a credential found right. Its time counts from when the check began: what was changed during the
    /// check is forgotten no later than what was changed after it.
    pub(crate) fn remember(&self, of: Fingerprint, check_began: Instant, expires_in: Option<Duration>) {
        let life = expires_in.map_or(self.ttl, |left| left.min(self.ttl));
        self.until.insert(of, check_began + life);
    }
}

/// The memory of one worker.
#[derive(Default)]
pub(crate) struct Front {
    until: RefCell<HashMap<Fingerprint, Instant, BuildHasherDefault<FirstBytes>>>,
}

impl Front {
    /// Whether a credential is taken for right at `now`: as this worker remembers, or else the server.
    pub(crate) fn is_right(&self, of: &Fingerprint, behind: &Verified, now: Instant) -> bool {
        if self.until.borrow().get(of).is_some_and(|until| *until > now) {
            return true;
        }
        let Some(until) = behind.until(of, now) else { return false };
        let mut fronts = self.until.borrow_mut();
        if fronts.len() >= FRONT_ENTRIES {
            fronts.retain(|_, until| *until > now);
        }
        if fronts.len() >= FRONT_ENTRIES {
            fronts.clear();
        }
        fronts.insert(*of, until);
        true
    }
}

/// A fingerprint is evenly spread already: its first bytes are its hash.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    /// Written before the bytes of an array: its length, the same for all.
    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);
    const OF: Fingerprint = [3; 32];

    #[test]
    fn what_was_right_is_right_until_its_time_is_over() {
        let (verified, front, now) = (Verified::new(TTL, 10), Front::default(), Instant::now());
        assert!(!front.is_right(&OF, &verified, now));
        verified.remember(OF, now, None);
        assert!(front.is_right(&OF, &verified, now));
        assert!(front.is_right(&OF, &verified, now + TTL - Duration::from_nanos(1)));
        assert!(!front.is_right(&OF, &verified, now + TTL));
    }

    #[test]
    fn a_session_is_forgotten_when_it_ends() {
        let (verified, front, now) = (Verified::new(TTL, 10), Front::default(), Instant::now());
        verified.remember(OF, now, Some(Duration::from_secs(5)));
        assert!(front.is_right(&OF, &verified, now + Duration::from_secs(4)));
        assert!(!front.is_right(&OF, &verified, now + Duration::from_secs(5)));
    }

    #[test]
    fn memory_is_bounded() {
        let (verified, front, now) = (Verified::new(TTL, 100), Front::default(), Instant::now());
        for n in 0..5000_u64 {
            let mut of = OF;
            of[..8].copy_from_slice(&n.to_le_bytes());
            verified.remember(of, now, None);
            front.is_right(&of, &verified, now);
        }
        verified.until.run_pending_tasks();
        assert!(verified.until.entry_count() <= 100);
        assert!(front.until.borrow().len() <= FRONT_ENTRIES);
    }
}
