//! Credentials that were found right, and until when they are taken for right.
//!
//! One memory for the whole server, and a small one in front of it for each worker, which needs no lock: the commonest
//! requests are decided there. Only successes are kept, only as keyed hashes.

use std::{
    cell::RefCell,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use accounts::User;
use moka::{policy::EvictionPolicy, sync::Cache};

use crate::fingerprint::Fingerprint;

/// How many credentials each worker remembers on its own.
const FRONT_ENTRIES: usize = 1024;

/// A credential that was found right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// Whose it is.
    pub(crate) user: Arc<User>,
    until: Instant,
}

/// The memory of the whole server.
pub(crate) struct Verified {
    known: Cache<Fingerprint, Known, BuildHasherDefault<FirstBytes>>,
    ttl: Duration,
}

impl Verified {
    /// Remembers at most `entries` credentials, each for `ttl`.
    pub(crate) fn new(ttl: Duration, entries: u64) -> Self {
        let known = Cache::builder()
            .max_capacity(entries)
            .time_to_live(ttl)
            .eviction_policy(EvictionPolicy::lru())
            .build_with_hasher(BuildHasherDefault::default());
        Self { known, ttl }
    }

    /// Whether anything is remembered at all.
    pub(crate) fn is_on(&self) -> bool {
        !self.ttl.is_zero()
    }

    /// What is known of a credential, if it is taken for right at `now`.
    pub(crate) fn get(&self, of: &Fingerprint, now: Instant) -> Option<Known> {
        self.known.get(of).filter(|known| known.until > now)
    }

    /// Remembers a credential found right. Its time counts from when the check began: what was changed during the
    /// check is forgotten no later than what was changed after it.
    pub(crate) fn remember(
        &self,
        of: Fingerprint,
        user: &Arc<User>,
        check_began: Instant,
        expires_in: Option<Duration>,
    ) {
        let life = expires_in.map_or(self.ttl, |left| left.min(self.ttl));
        self.known.insert(of, Known { user: Arc::clone(user), until: check_began + life });
    }
}

/// The memory of one worker.
#[derive(Default)]
pub(crate) struct Front {
    known: RefCell<HashMap<Fingerprint, Own, BuildHasherDefault<FirstBytes>>>,
}

/// A worker's own copy of what is known: none of the others counts its uses.
struct Own {
    user: Rc<User>,
    until: Instant,
}

impl Front {
    /// Whose credential it is, if it is taken for right at `now`: as this worker remembers, or else the server.
    pub(crate) fn user(&self, of: &Fingerprint, behind: &Verified, now: Instant) -> Option<Rc<User>> {
        if let Some(own) = self.known.borrow().get(of).filter(|own| own.until > now) {
            return Some(Rc::clone(&own.user));
        }
        let Known { user, until } = behind.get(of, now)?;
        let user = Rc::new(User::clone(&user));
        let mut own = self.known.borrow_mut();
        if own.len() >= FRONT_ENTRIES {
            own.retain(|_, own| own.until > now);
        }
        if own.len() >= FRONT_ENTRIES {
            own.clear();
        }
        own.insert(*of, Own { user: Rc::clone(&user), until });
        Some(user)
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

    fn ann() -> Arc<User> {
        Arc::new(User { name: "ann".into(), role: accounts::Role::Admin, quota_bytes: Some(7) })
    }

    #[test]
    fn what_was_right_is_right_until_its_time_is_over() {
        let (verified, front, now) = (Verified::new(TTL, 10), Front::default(), Instant::now());
        let user = |now| front.user(&OF, &verified, now);
        assert_eq!(user(now), None);
        verified.remember(OF, &ann(), now, None);
        assert_eq!(user(now).as_deref(), Some(&*ann()), "as the server remembers");
        assert_eq!(user(now + TTL - Duration::from_nanos(1)).as_deref(), Some(&*ann()), "as the worker does");
        assert_eq!(user(now + TTL), None);
    }

    #[test]
    fn a_session_is_forgotten_when_it_ends() {
        let (verified, front, now) = (Verified::new(TTL, 10), Front::default(), Instant::now());
        verified.remember(OF, &ann(), now, Some(Duration::from_secs(5)));
        assert!(front.user(&OF, &verified, now + Duration::from_secs(4)).is_some());
        assert!(front.user(&OF, &verified, now + Duration::from_secs(5)).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let (verified, front, now) = (Verified::new(TTL, 100), Front::default(), Instant::now());
        for n in 0..5000_u64 {
            let mut of = OF;
            of[..8].copy_from_slice(&n.to_le_bytes());
            verified.remember(of, &ann(), now, None);
            front.user(&of, &verified, now);
        }
        verified.known.run_pending_tasks();
        assert!(verified.known.entry_count() <= 100);
        assert!(front.known.borrow().len() <= FRONT_ENTRIES);
    }
}
