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

use crate::access::{
    fingerprint::Fingerprint,
    revocations::{Known, Mark, Revocations},
};

/// How many credentials each worker remembers on its own.
const FRONT_ENTRIES: usize = 1024;

/// A credential that was found right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Right {
    /// Whose it is.
    pub(crate) user: Arc<User>,
    until: Instant,
    mark: Mark,
}

/// The memory of the whole server.
pub(crate) struct Verified {
    right: Cache<Fingerprint, Right, BuildHasherDefault<FirstBytes>>,
    ttl: Duration,
    /// What is to be forgotten of it before its time.
    pub(crate) revocations: Revocations,
}

impl Verified {
    /// Remembers at most `entries` credentials, each for `ttl`.
    pub(crate) fn new(ttl: Duration, entries: u64) -> Self {
        let right = Cache::builder()
            .max_capacity(entries)
            .time_to_live(ttl)
            .eviction_policy(EvictionPolicy::lru())
            .build_with_hasher(BuildHasherDefault::default());
        Self { right, ttl, revocations: Revocations::new() }
    }

    /// Whether anything is remembered at all.
    pub(crate) fn is_on(&self) -> bool {
        !self.ttl.is_zero()
    }

    /// What is known of a credential, if it is taken for right at `now`.
    pub(crate) fn get(&self, of: &Fingerprint, now: Instant) -> Option<Right> {
        self.right.get(of).filter(|right| right.until > now && self.revocations.leaves(&right.mark, now))
    }

    /// Remembers a credential found right by a check. Its time counts from when that began, as does what was revoked:
    /// what was changed during the check is forgotten no later than what was changed after it.
    pub(crate) fn remember(
        &self,
        of: Fingerprint,
        user: &Arc<User>,
        began: (Instant, Known),
        expires_in: Option<Duration>,
    ) {
        let (began, known) = began;
        let life = expires_in.map_or(self.ttl, |left| left.min(self.ttl));
        let right = Right { user: Arc::clone(user), until: began + life, mark: known.mark(&user.name) };
        self.right.insert(of, right);
    }
}

/// The memory of one worker.
#[derive(Default)]
pub(crate) struct Front {
    right: RefCell<HashMap<Fingerprint, Own, BuildHasherDefault<FirstBytes>>>,
}

/// A worker's own copy of what is known: none of the others counts its uses.
struct Own {
    user: Rc<User>,
    until: Instant,
    mark: Mark,
}

impl Front {
    /// Whose credential it is, if it is taken for right at `now`: as this worker remembers, or else the server.
    pub(crate) fn user(&self, of: &Fingerprint, behind: &Verified, now: Instant) -> Option<Rc<User>> {
        let is_right = |own: &&Own| own.until > now && behind.revocations.leaves(&own.mark, now);
        if let Some(own) = self.right.borrow().get(of).filter(is_right) {
            return Some(Rc::clone(&own.user));
        }
        let Right { user, until, mark } = behind.get(of, now)?;
        let user = Rc::new(User::clone(&user));
        let mut own = self.right.borrow_mut();
        if own.len() >= FRONT_ENTRIES {
            own.retain(|_, own| own.until > now);
        }
        if own.len() >= FRONT_ENTRIES {
            own.clear();
        }
        own.insert(*of, Own { user: Rc::clone(&user), until, mark });
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

    /// The longest that credentials are remembered, with accounts that say every second that nothing was revoked.
    fn keep_up(verified: &Verified, now: Instant) {
        let nothing = accounts::Revocations { revision: 1, buckets: Some(Vec::new()) };
        verified.revocations.take_in(&nothing, Some(1), now);
    }

    fn remember(verified: &Verified, of: Fingerprint, now: Instant, expires_in: Option<Duration>) {
        verified.remember(of, &ann(), (now, verified.revocations.known(now)), expires_in);
    }

    #[test]
    fn what_was_right_is_right_until_its_time_is_over() {
        let (verified, front, now) = (Verified::new(TTL, 10), Front::default(), Instant::now());
        let user = |now| front.user(&OF, &verified, now);
        assert_eq!(user(now), None);
        remember(&verified, OF, now, None);
        assert_eq!(user(now).as_deref(), Some(&*ann()), "as the server remembers");
        keep_up(&verified, now + TTL);
        assert_eq!(user(now + TTL - Duration::from_nanos(1)).as_deref(), Some(&*ann()), "as the worker does");
        assert_eq!(user(now + TTL), None);
    }

    #[test]
    fn what_was_revoked_is_forgotten_by_the_server_and_by_its_workers() {
        let (verified, front, now) = (Verified::new(TTL, 10), Front::default(), Instant::now());
        keep_up(&verified, now);
        remember(&verified, OF, now, None);
        assert!(front.user(&OF, &verified, now).is_some());
        let anns = accounts::Revocations { revision: 2, buckets: Some(vec![accounts::bucket("ann")]) };
        verified.revocations.take_in(&anns, Some(1), now);
        assert_eq!(front.user(&OF, &verified, now), None);
        assert_eq!(verified.get(&OF, now), None);
    }

    #[test]
    fn a_session_is_forgotten_when_it_ends() {
        let (verified, front, now) = (Verified::new(TTL, 10), Front::default(), Instant::now());
        remember(&verified, OF, now, Some(Duration::from_secs(5)));
        assert!(front.user(&OF, &verified, now + Duration::from_secs(4)).is_some());
        assert!(front.user(&OF, &verified, now + Duration::from_secs(5)).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let (verified, front, now) = (Verified::new(TTL, 100), Front::default(), Instant::now());
        for n in 0..5000_u64 {
            let mut of = OF;
            of[..8].copy_from_slice(&n.to_le_bytes());
            remember(&verified, of, now, None);
            front.user(&of, &verified, now);
        }
        verified.right.run_pending_tasks();
        assert!(verified.right.entry_count() <= 100);
        assert!(front.right.borrow().len() <= FRONT_ENTRIES);
    }
}
