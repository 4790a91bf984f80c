//! Credentials that were found valid, and for how long they count as valid.
//!
//! There is one cache for the whole server, and a small one in front of it for each worker, which needs no lock and
//! decides most requests. Only valid credentials are cached, and only as keyed hashes.

use std::{
    cell::RefCell,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use accounts::User;
use moka::{future::Cache, policy::EvictionPolicy};

use crate::access::{
    fingerprint::{Fingerprint, Key},
    identity::CredentialCheck,
    revocations::{Mark, Revocations},
};

/// Maximum number of credentials in the cache of one worker.
const WORKER_ENTRIES_MAX: usize = 1024;

/// A credential that was found valid.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    user: Arc<User>,
    until: Instant,
    mark: Mark,
}

/// The cache of the whole server.
pub(crate) struct CredentialCache {
    /// The key of the fingerprints.
    pub(crate) key: Key,
    entries: Cache<Fingerprint, Entry, BuildHasherDefault<FirstBytes>>,
    ttl: Duration,
    /// What to forget before its time.
    pub(crate) revocations: Revocations,
}

impl CredentialCache {
    /// Caches at most `entries` credentials, each for `ttl`.
    pub(crate) fn new(key: Key, ttl: Duration, entries: u64) -> Self {
        let entries = Cache::builder()
            .max_capacity(entries)
            .time_to_live(ttl)
            .eviction_policy(EvictionPolicy::lru())
            .build_with_hasher(BuildHasherDefault::default());
        Self { key, entries, ttl, revocations: Revocations::new() }
    }

    /// Whether anything is cached at all.
    pub(crate) fn is_on(&self) -> bool {
        !self.ttl.is_zero()
    }

    /// The entry of a credential that counts as valid at `now`.
    async fn get(&self, of: &Fingerprint, now: Instant) -> Option<Entry> {
        self.entries.get(of).await.filter(|entry| self.is_current(entry, now))
    }

    /// Checks a credential that is not cached. Concurrent calls for the same credential share one check, and if the caller
    /// that runs it goes away, another one starts it again. Only valid credentials are cached.
    ///
    /// An entry's life and revocations count from the start of its check: what was revoked during the check is forgotten
    /// no later than what is revoked after it.
    pub(crate) async fn get_or_check(
        &self,
        of: Fingerprint,
        check: impl Future<Output = CredentialCheck>,
    ) -> CredentialCheck {
        let mut check = std::pin::pin!(check);
        loop {
            let now = Instant::now();
            let snapshot = self.revocations.snapshot(now);
            let checked = async {
                match check.as_mut().await {
                    CredentialCheck::Valid { user, expires_in } => {
                        let life = expires_in.map_or(self.ttl, |left| left.min(self.ttl));
                        let mark = snapshot.mark(&user.name);
                        Ok(Entry { user, until: now + life, mark })
                    }
                    other => Err(other),
                }
            };
            let entry = match self.entries.entry(of).or_try_insert_with(checked).await {
                Ok(entry) => entry,
                Err(other) => return CredentialCheck::clone(&other),
            };
            if entry.is_fresh() || self.is_current(entry.value(), now) {
                return CredentialCheck::Valid { user: entry.into_value().user, expires_in: None };
            }
            // It has expired or was revoked since it was cached.
            self.entries.invalidate(&of).await;
        }
    }

    fn is_current(&self, entry: &Entry, now: Instant) -> bool {
        entry.until > now && self.revocations.is_valid(&entry.mark, now)
    }
}

/// The cache of one worker.
#[derive(Default)]
pub(crate) struct WorkerCache {
    entries: RefCell<HashMap<Fingerprint, WorkerEntry, BuildHasherDefault<FirstBytes>>>,
}

/// A worker's own copy of an entry, so that workers do not contend for its reference count.
struct WorkerEntry {
    user: Rc<User>,
    until: Instant,
    mark: Mark,
}

impl WorkerCache {
    /// The user of a credential that counts as valid at `now`.
    pub(crate) fn get(&self, of: &Fingerprint, shared: &CredentialCache, now: Instant) -> Option<Rc<User>> {
        let is_current =
            |entry: &&WorkerEntry| entry.until > now && shared.revocations.is_valid(&entry.mark, now);
        let entries = self.entries.borrow();
        entries.get(of).filter(is_current).map(|entry| Rc::clone(&entry.user))
    }

    /// Copies an entry from the server's cache and returns its user.
    pub(crate) async fn load(
        &self,
        of: &Fingerprint,
        shared: &CredentialCache,
        now: Instant,
    ) -> Option<Rc<User>> {
        let Entry { user, until, mark } = shared.get(of, now).await?;
        let user = Rc::new(User::clone(&user));
        let mut entries = self.entries.borrow_mut();
        if entries.len() >= WORKER_ENTRIES_MAX {
            entries.retain(|_, entry| entry.until > now);
        }
        if entries.len() >= WORKER_ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(*of, WorkerEntry { user: Rc::clone(&user), until, mark });
        Some(user)
    }
}

/// Hashes a fingerprint by its first bytes, as it is evenly distributed already.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    /// Ignores the length that is written before the bytes of an array, as it is always the same.
    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use engine::block_on;

    use super::*;

    const TTL: Duration = Duration::from_secs(60);
    const OF: Fingerprint = [3; 32];

    fn cache(entries: u64) -> CredentialCache {
        CredentialCache::new(Key::random().unwrap(), TTL, entries)
    }

    fn ann() -> Arc<User> {
        Arc::new(User { name: "ann".into(), role: accounts::Role::Admin, quota_bytes: Some(7) })
    }

    fn valid(expires_in: Option<Duration>) -> CredentialCheck {
        CredentialCheck::Valid { user: ann(), expires_in }
    }

    /// Tells the cache that nothing was revoked until `now`.
    fn nothing_revoked(cache: &CredentialCache, now: Instant) {
        let nothing = accounts::Revocations { revision: 1, buckets: Some(Vec::new()) };
        cache.revocations.apply(&nothing, Some(1), now);
    }

    fn insert(cache: &CredentialCache, of: Fingerprint, expires_in: Option<Duration>) {
        block_on(cache.get_or_check(of, async { valid(expires_in) }));
    }

    fn user(own: &WorkerCache, cache: &CredentialCache, now: Instant) -> Option<Rc<User>> {
        own.get(&OF, cache, now).or_else(|| block_on(own.load(&OF, cache, now)))
    }

    #[test]
    fn a_valid_credential_stays_valid_until_its_time_is_over() {
        let (cache, own, begin) = (cache(10), WorkerCache::default(), Instant::now());
        assert_eq!(user(&own, &cache, begin), None);
        insert(&cache, OF, None);
        let end = Instant::now();
        assert_eq!(user(&own, &cache, begin).as_deref(), Some(&*ann()), "from the server's cache");
        nothing_revoked(&cache, begin + TTL);
        let late = begin + TTL - Duration::from_nanos(1);
        assert_eq!(user(&own, &cache, late).as_deref(), Some(&*ann()), "from the worker's cache");
        assert_eq!(user(&own, &cache, end + TTL), None);
    }

    #[test]
    fn what_is_revoked_is_forgotten_by_the_server_and_by_its_workers() {
        let (cache, own, now) = (cache(10), WorkerCache::default(), Instant::now());
        nothing_revoked(&cache, now);
        insert(&cache, OF, None);
        assert!(user(&own, &cache, now).is_some());
        let anns = accounts::Revocations { revision: 2, buckets: Some(vec![accounts::bucket("ann")]) };
        cache.revocations.apply(&anns, Some(1), now);
        assert_eq!(user(&own, &cache, now), None);
        assert!(block_on(cache.get(&OF, now)).is_none());
        let checked = block_on(cache.get_or_check(OF, async { CredentialCheck::Invalid }));
        assert_eq!(checked, CredentialCheck::Invalid, "the revoked entry is checked again");
    }

    #[test]
    fn a_session_is_forgotten_when_it_ends() {
        let (cache, own, begin) = (cache(10), WorkerCache::default(), Instant::now());
        insert(&cache, OF, Some(Duration::from_secs(5)));
        let end = Instant::now();
        assert!(user(&own, &cache, begin + Duration::from_secs(4)).is_some());
        assert!(user(&own, &cache, end + Duration::from_secs(5)).is_none());
        insert(&cache, [4; 32], Some(Duration::ZERO));
        insert(&cache, [4; 32], Some(Duration::ZERO));
    }

    #[test]
    fn memory_is_bounded() {
        let (cache, own, now) = (cache(100), WorkerCache::default(), Instant::now());
        for n in 0..5000_u64 {
            let mut of = OF;
            of[..8].copy_from_slice(&n.to_le_bytes());
            insert(&cache, of, None);
            block_on(own.load(&of, &cache, now));
        }
        block_on(cache.entries.run_pending_tasks());
        assert!(cache.entries.entry_count() <= 100);
        assert!(own.entries.borrow().len() <= WORKER_ENTRIES_MAX);
    }

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// A check that never ends.
    fn endless() -> impl Future<Output = CredentialCheck> {
        std::future::pending()
    }

    /// A check that must not be started.
    async fn unneeded() -> CredentialCheck {
        panic!("a second check was started")
    }

    #[test]
    fn concurrent_checks_of_one_credential_share_a_result() {
        let cache = cache(10);
        let (finish, finished) = futures_channel::oneshot::channel();
        let mut leader =
            pin!(cache.get_or_check(OF, async { finished.await.unwrap_or(CredentialCheck::Unavailable) }));
        let mut follower = pin!(cache.get_or_check(OF, unneeded()));
        assert!(poll(leader.as_mut()).is_pending() && poll(follower.as_mut()).is_pending());
        let mut other = pin!(cache.get_or_check([2; 32], async { CredentialCheck::Invalid }));
        assert_eq!(poll(other.as_mut()), Poll::Ready(CredentialCheck::Invalid), "another credential");
        let throttled = CredentialCheck::Throttled { retry_after_s: 7 };
        finish.send(throttled.clone()).unwrap();
        assert_eq!(poll(leader.as_mut()), Poll::Ready(throttled.clone()));
        assert_eq!(poll(follower.as_mut()), Poll::Ready(throttled));
        let again = block_on(cache.get_or_check(OF, async { valid(None) }));
        assert_eq!(again, valid(None), "only valid credentials are cached");
    }

    #[test]
    fn if_the_leader_goes_away_a_follower_checks() {
        let cache = cache(10);
        let mut leader = Box::pin(cache.get_or_check(OF, endless()));
        let mut follower = pin!(cache.get_or_check(OF, async { valid(None) }));
        assert!(poll(leader.as_mut()).is_pending() && poll(follower.as_mut()).is_pending());
        drop(leader);
        assert_eq!(poll(follower.as_mut()), Poll::Ready(valid(None)));
    }

    #[test]
    fn a_cached_credential_is_not_checked_again() {
        let cache = cache(10);
        insert(&cache, OF, None);
        assert_eq!(block_on(cache.get_or_check(OF, unneeded())), valid(None));
    }
}
