//! Revoked credentials: changed passwords, disabled accounts, ended sessions, changed roles.
//!
//! The accounts have a revision, and mark the bucket of an account with it when something of the account is revoked
//! ([`accounts::Revocations`]). Before a cached credential is used, the accounts are asked for the buckets marked since,
//! if the last answer is older than [`EVERY`]. One request asks on behalf of all, unless the answer is older than
//! [`STALE`]: then each request asks before it uses the cache. While the accounts do not answer, a cached credential is
//! valid for at most [`AWAY`] since the last answer or its own check.
//!
//! All of this lies in memory that forked processes share, so that an answer to one of them holds for all.

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    time::{Duration, Instant},
};

use accounts::BUCKETS;
use engine::shared::Atomics;

/// How often to ask the accounts while requests arrive.
pub(crate) const EVERY: Duration = Duration::from_millis(250);
/// The age of the last answer from which each request asks again before it uses the cache.
pub(crate) const STALE: Duration = Duration::from_secs(1);
/// How often to ask accounts that did not answer.
const RETRY: Duration = Duration::from_secs(1);
/// How long a cached credential stays valid while the accounts do not answer.
pub(crate) const AWAY: Duration = Duration::from_secs(10);

/// The places of the numbers. Times are milliseconds since the start plus one; 0 means never. This one: when the accounts
/// were last asked successfully.
const ASKED_AT: usize = 0;
/// When a request last started to ask.
const TRIED_AT: usize = 1;
/// 1 if that failed.
const FAILING: usize = 2;
/// The last known revision of the accounts; 0 means none.
const REVISION: usize = 3;
/// Increases with each answer that marks buckets.
const GENERATION: usize = 4;
/// When something was last changed through this server. Answers from before do not count.
const CHANGED_AT: usize = 5;
/// For each bucket the generation that last marked it, on cache lines of their own.
const MARKS: usize = 16;

/// What was revoked, as far as this server knows.
#[derive(Debug)]
pub(crate) struct Revocations {
    cells: Atomics,
    began: Instant,
}

/// What a cache entry is compared with to see whether it was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    bucket: u16,
    generation: u64,
    checked_ms: u64,
}

/// The state at the start of a check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot {
    generation: u64,
    checked_ms: u64,
}

impl Snapshot {
    /// The mark for what a check found out about an account since then.
    pub(crate) fn mark(self, name: &str) -> Mark {
        Mark { bucket: accounts::bucket(name), generation: self.generation, checked_ms: self.checked_ms }
    }
}

impl Revocations {
    pub(crate) fn new() -> Self {
        Self { cells: Atomics::new(MARKS + usize::from(BUCKETS)), began: Instant::now() }
    }

    /// The state before a check starts.
    pub(crate) fn snapshot(&self, now: Instant) -> Snapshot {
        Snapshot { generation: self.get(GENERATION), checked_ms: self.ms(now) }
    }

    /// Whether a cache entry with this mark is still valid.
    pub(crate) fn is_valid(&self, mark: &Mark, now: Instant) -> bool {
        let marked = self.get(MARKS + usize::from(mark.bucket));
        let heard_ms = self.get(ASKED_AT).max(mark.checked_ms);
        marked <= mark.generation && self.ms(now).saturating_sub(heard_ms) <= ms_of(AWAY)
    }

    /// Whether the caller must ask the accounts now, before it uses the cache.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let (now_ms, asked_at) = (self.ms(now), self.get(ASKED_AT));
        let since_ms = now_ms.saturating_sub(asked_at);
        let counts = asked_at > self.get(CHANGED_AT);
        if counts && since_ms <= ms_of(EVERY) {
            return false;
        }
        if self.get(FAILING) != 0 {
            return self.is_first_since(now_ms, RETRY);
        }
        !counts || since_ms > ms_of(STALE) || self.is_first_since(now_ms, EVERY)
    }

    /// Whether no request has asked for this long. Returns true to one caller only.
    fn is_first_since(&self, now_ms: u64, pause: Duration) -> bool {
        let Some(cell) = self.cell(TRIED_AT) else { return false };
        let tried_at = cell.load(Relaxed);
        let is_over = now_ms.saturating_sub(tried_at) >= ms_of(pause);
        is_over && cell.compare_exchange(tried_at, now_ms, Relaxed, Relaxed).is_ok()
    }

    /// The last known revision, if any.
    pub(crate) fn revision(&self) -> Option<u64> {
        Some(self.get(REVISION)).filter(|&revision| revision > 0)
    }

    /// Applies an answer to a request that started at `asked` for what came after revision `after`.
    pub(crate) fn apply(&self, update: &accounts::Revocations, after: Option<u64>, asked: Instant) {
        match (&update.buckets, after) {
            (_, None) => self.begin(update.revision),
            (Some(buckets), _) if buckets.is_empty() => self.set(REVISION, update.revision),
            (Some(buckets), _) => self.mark(buckets.iter().copied(), update.revision),
            (None, _) => self.mark(0..BUCKETS, update.revision),
        }
        self.set(FAILING, 0);
        if let Some(cell) = self.cell(ASKED_AT) {
            cell.fetch_max(self.ms(asked), Release);
        }
    }

    /// Applies the first answer: entries from before may be older than its revision. If several requests asked at once, the
    /// first answer sets the revision, and all of them lead to the same generation.
    fn begin(&self, revision: u64) {
        if let (Some(cell), Some(generation)) = (self.cell(REVISION), self.cell(GENERATION)) {
            let _another_was_first = cell.compare_exchange(0, revision, Release, Relaxed);
            generation.fetch_max(1, Relaxed);
            self.mark_with(1, 0..BUCKETS);
        }
    }

    /// Starts a generation and marks buckets with it. Entries from earlier generations may have been revoked.
    fn mark(&self, buckets: impl Iterator<Item = u16>, revision: u64) {
        let generation = self.cell(GENERATION).map_or(0, |cell| cell.fetch_add(1, Relaxed) + 1);
        self.mark_with(generation, buckets);
        self.set(REVISION, revision);
    }

    fn mark_with(&self, generation: u64, buckets: impl Iterator<Item = u16>) {
        for bucket in buckets {
            if let Some(cell) = self.cell(MARKS + usize::from(bucket % BUCKETS)) {
                cell.fetch_max(generation, Relaxed);
            }
        }
    }

    /// Notes that the accounts did not answer.
    pub(crate) fn failed(&self, now: Instant) {
        self.set(TRIED_AT, self.ms(now));
        self.set(FAILING, 1);
    }

    /// Notes a change through this server: every request asks before it uses the cache.
    pub(crate) fn distrust(&self, now: Instant) {
        self.set(FAILING, 0);
        self.set(CHANGED_AT, self.ms(now));
    }

    fn ms(&self, now: Instant) -> u64 {
        ms_of(now.saturating_duration_since(self.began)) + 1
    }

    fn get(&self, what: usize) -> u64 {
        self.cell(what).map_or(0, |cell| cell.load(Acquire))
    }

    fn set(&self, what: usize, to: u64) {
        if let Some(cell) = self.cell(what) {
            cell.store(to, Release);
        }
    }

    fn cell(&self, what: usize) -> Option<&AtomicU64> {
        self.cells.get(what)
    }
}

fn ms_of(duration: Duration) -> u64 {
    duration.as_secs() * 1000 + u64::from(duration.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(revision: u64, buckets: Option<&[u16]>) -> accounts::Revocations {
        accounts::Revocations { revision, buckets: buckets.map(<[u16]>::to_vec) }
    }

    /// Knows revision 7 from the start.
    fn begun() -> (Revocations, Instant) {
        let revocations = Revocations::new();
        let now = revocations.began;
        assert!(revocations.is_due(now) && revocations.is_due(now), "the first request asks");
        assert_eq!(revocations.revision(), None);
        revocations.apply(&told(7, Some(&[])), None, now);
        (revocations, now)
    }

    #[test]
    fn only_marked_accounts_are_revoked() {
        let (revocations, now) = begun();
        let snapshot = revocations.snapshot(now);
        let (ann, bob) = (snapshot.mark("ann"), snapshot.mark("bob"));
        assert!(revocations.is_valid(&ann, now));
        revocations.apply(&told(7, Some(&[])), Some(7), now);
        assert!(revocations.is_valid(&ann, now));
        revocations.apply(&told(8, Some(&[accounts::bucket("ann")])), Some(7), now);
        assert!(!revocations.is_valid(&ann, now) && revocations.is_valid(&bob, now));
        assert!(!revocations.is_valid(&snapshot.mark("ann"), now), "checked before the mark");
        assert!(revocations.is_valid(&revocations.snapshot(now).mark("ann"), now), "checked after the mark");
        assert_eq!(revocations.revision(), Some(8));
    }

    #[test]
    fn another_history_and_the_first_answer_revoke_everything() {
        let revocations = Revocations::new();
        let now = revocations.began;
        let mark = revocations.snapshot(now).mark("ann");
        revocations.apply(&told(7, Some(&[])), None, now);
        assert!(!revocations.is_valid(&mark, now), "may have been revoked by revision 7");
        let mark = revocations.snapshot(now).mark("ann");
        revocations.apply(&told(9, Some(&[])), None, now);
        assert!(revocations.is_valid(&mark, now), "a concurrent first answer changes nothing");
        assert_eq!(revocations.revision(), Some(7));
        revocations.apply(&told(3, None), Some(7), now);
        assert!(!revocations.is_valid(&mark, now), "a database restored from a backup");
        assert_eq!(revocations.revision(), Some(3));
    }

    #[test]
    fn one_request_asks_for_all_until_the_answer_is_stale() {
        let (revocations, now) = begun();
        assert!(!revocations.is_due(now + EVERY));
        let later = now + EVERY + Duration::from_millis(1);
        assert!(revocations.is_due(later) && !revocations.is_due(later), "a request is under way");
        let late = now + STALE + Duration::from_millis(1);
        assert!(revocations.is_due(late) && revocations.is_due(late), "none may rely on another");
        revocations.apply(&told(7, Some(&[])), Some(7), late);
        assert!(!revocations.is_due(late));
        revocations.distrust(late);
        assert!(revocations.is_due(late) && revocations.is_due(late));
        revocations.apply(&told(7, Some(&[])), Some(7), late);
        assert!(revocations.is_due(late), "may have been asked before the change");
        let after = late + Duration::from_millis(1);
        revocations.apply(&told(8, Some(&[])), Some(7), after);
        assert!(!revocations.is_due(after));
    }

    #[test]
    fn without_answers_entries_expire_early() {
        let (revocations, now) = begun();
        let mark = revocations.snapshot(now).mark("ann");
        let late = now + STALE + Duration::from_millis(1);
        revocations.failed(late);
        assert!(!revocations.is_due(late), "not again at once");
        assert!(revocations.is_due(late + RETRY) && !revocations.is_due(late + RETRY));
        assert!(revocations.is_valid(&mark, now + AWAY));
        let over = now + AWAY + Duration::from_millis(1);
        assert!(!revocations.is_valid(&mark, over));
        assert!(revocations.is_valid(&revocations.snapshot(over).mark("ann"), over), "just checked");
        revocations.apply(&told(7, Some(&[])), Some(7), over);
        assert!(revocations.is_valid(&mark, over), "nothing was revoked meanwhile");
    }
}
