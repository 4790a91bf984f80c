//! What is no longer to be taken for right, though it was found right before: passwords changed, accounts disabled,
//! sessions ended, rights altered.
//!
//! The accounts keep a revision, and mark with it the bucket of each account of which something was revoked
//! ([`accounts::Revocations`]). Before a remembered credential is used, the accounts are asked what was marked since,
//! if that was last asked more than [`EVERY`] ago. One request asks for all others, unless it has been longer than
//! [`STALE`]: then each asks before it trusts its memory. While the accounts cannot say, a credential is remembered for
//! [`AWAY`] at the most, counted from when they last could or it was itself checked.
//!
//! It all lies in memory that forked processes share: what one of them hears holds in all.

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    time::{Duration, Instant},
};

use accounts::BUCKETS;
use engine::shared::Atomics;

/// How often the accounts are asked while there are requests.
pub(crate) const EVERY: Duration = Duration::from_millis(250);
/// After how long nobody trusts their memory before the accounts were asked again.
pub(crate) const STALE: Duration = Duration::from_secs(1);
/// How often they are asked that did not answer.
const RETRY: Duration = Duration::from_secs(1);
/// How long a credential is remembered while the accounts do not say what was revoked.
pub(crate) const AWAY: Duration = Duration::from_secs(10);

/// Where each number lies. Moments are milliseconds since the start, and one; 0: never.
const ASKED_AT: usize = 0;
/// When somebody last began to ask.
const TRIED_AT: usize = 1;
/// 1 if that came to nothing.
const FAILING: usize = 2;
/// The accounts' revision, as last heard; 0: not yet.
const REVISION: usize = 3;
/// Rises with each answer that marked something.
const GENERATION: usize = 4;
/// When something was last changed through this server: nothing heard before counts.
const CHANGED_AT: usize = 5;
/// Of each bucket the generation that marked it last, on cache lines of their own.
const MARKS: usize = 16;

/// What was revoked, as far as this server has heard.
#[derive(Debug)]
pub(crate) struct Revocations {
    cells: Atomics,
    began: Instant,
}

/// What to hold something remembered against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    bucket: u16,
    generation: u64,
    checked_ms: u64,
}

/// What was known when a check began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    generation: u64,
    checked_ms: u64,
}

impl Known {
    /// The mark of what was found out about an account since.
    pub(crate) fn mark(self, name: &str) -> Mark {
        Mark { bucket: accounts::bucket(name), generation: self.generation, checked_ms: self.checked_ms }
    }
}

impl Revocations {
    pub(crate) fn new() -> Self {
        Self { cells: Atomics::new(MARKS + usize::from(BUCKETS)), began: Instant::now() }
    }

    /// What is known before a check begins.
    pub(crate) fn known(&self, now: Instant) -> Known {
        Known { generation: self.get(GENERATION), checked_ms: self.ms(now) }
    }

    /// Whether something remembered may still be taken for right.
    pub(crate) fn leaves(&self, mark: &Mark, now: Instant) -> bool {
        let marked = self.get(MARKS + usize::from(mark.bucket));
        let heard_ms = self.get(ASKED_AT).max(mark.checked_ms);
        marked <= mark.generation && self.ms(now).saturating_sub(heard_ms) <= ms_of(AWAY)
    }

    /// Whether whoever asks this is to ask the accounts now, before anything remembered is used.
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

    /// Whether nobody has tried for so long; whoever hears so is the one who does.
    fn is_first_since(&self, now_ms: u64, pause: Duration) -> bool {
        let Some(cell) = self.cell(TRIED_AT) else { return false };
        let tried_at = cell.load(Relaxed);
        let is_over = now_ms.saturating_sub(tried_at) >= ms_of(pause);
        is_over && cell.compare_exchange(tried_at, now_ms, Relaxed, Relaxed).is_ok()
    }

    /// The revision to ask from; none where none was heard.
    pub(crate) fn revision(&self) -> Option<u64> {
        Some(self.get(REVISION)).filter(|&revision| revision > 0)
    }

    /// Takes in what the accounts said to somebody who began to ask at `asked`, from revision `after`.
    pub(crate) fn take_in(&self, told: &accounts::Revocations, after: Option<u64>, asked: Instant) {
        match (&told.buckets, after) {
            (_, None) => self.begin(told.revision),
            (Some(buckets), _) if buckets.is_empty() => self.set(REVISION, told.revision),
            (Some(buckets), _) => self.mark(buckets.iter().copied(), told.revision),
            (None, _) => self.mark(0..BUCKETS, told.revision),
        }
        self.set(FAILING, 0);
        if let Some(cell) = self.cell(ASKED_AT) {
            cell.fetch_max(self.ms(asked), Release);
        }
    }

    /// The first answer: what was remembered before may be older than its revision. Several may have asked at once; the
    /// first of them says from where to go on, and each sees to it that what it finds out next is remembered.
    fn begin(&self, revision: u64) {
        if let (Some(cell), Some(generation)) = (self.cell(REVISION), self.cell(GENERATION)) {
            let _another_was_first = cell.compare_exchange(0, revision, Release, Relaxed);
            generation.fetch_max(1, Relaxed);
            self.mark_with(1, 0..BUCKETS);
        }
    }

    /// Whoever remembered something before this generation began may have done so before it was revoked.
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

    /// The accounts did not say.
    pub(crate) fn failed(&self, now: Instant) {
        self.set(TRIED_AT, self.ms(now));
        self.set(FAILING, 1);
    }

    /// Something was changed through this server: nobody trusts their memory before they asked.
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

    /// Has heard of revision 7 at its start.
    fn begun() -> (Revocations, Instant) {
        let revocations = Revocations::new();
        let now = revocations.began;
        assert!(revocations.is_due(now) && revocations.is_due(now), "whoever comes first asks");
        assert_eq!(revocations.revision(), None);
        revocations.take_in(&told(7, Some(&[])), None, now);
        (revocations, now)
    }

    #[test]
    fn what_was_marked_is_forgotten_and_nothing_else() {
        let (revocations, now) = begun();
        let known = revocations.known(now);
        let (ann, bob) = (known.mark("ann"), known.mark("bob"));
        assert!(revocations.leaves(&ann, now));
        revocations.take_in(&told(7, Some(&[])), Some(7), now);
        assert!(revocations.leaves(&ann, now));
        revocations.take_in(&told(8, Some(&[accounts::bucket("ann")])), Some(7), now);
        assert!(!revocations.leaves(&ann, now) && revocations.leaves(&bob, now));
        assert!(!revocations.leaves(&known.mark("ann"), now), "found out before, remembered after");
        assert!(revocations.leaves(&revocations.known(now).mark("ann"), now), "found out since");
        assert_eq!(revocations.revision(), Some(8));
    }

    #[test]
    fn another_history_and_the_first_answer_forget_everything() {
        let revocations = Revocations::new();
        let now = revocations.began;
        let mark = revocations.known(now).mark("ann");
        revocations.take_in(&told(7, Some(&[])), None, now);
        assert!(!revocations.leaves(&mark, now), "may have been revoked by revision 7");
        let mark = revocations.known(now).mark("ann");
        revocations.take_in(&told(9, Some(&[])), None, now);
        assert!(revocations.leaves(&mark, now), "another who asked at the same time is told nothing new");
        assert_eq!(revocations.revision(), Some(7));
        revocations.take_in(&told(3, None), Some(7), now);
        assert!(!revocations.leaves(&mark, now), "a database from before");
        assert_eq!(revocations.revision(), Some(3));
    }

    #[test]
    fn one_asks_for_all_until_it_is_long_ago() {
        let (revocations, now) = begun();
        assert!(!revocations.is_due(now + EVERY));
        let later = now + EVERY + Duration::from_millis(1);
        assert!(revocations.is_due(later) && !revocations.is_due(later), "one is on their way");
        let late = now + STALE + Duration::from_millis(1);
        assert!(revocations.is_due(late) && revocations.is_due(late), "nobody may wait for others");
        revocations.take_in(&told(7, Some(&[])), Some(7), late);
        assert!(!revocations.is_due(late));
        revocations.distrust(late);
        assert!(revocations.is_due(late) && revocations.is_due(late));
        revocations.take_in(&told(7, Some(&[])), Some(7), late);
        assert!(revocations.is_due(late), "asked before the change, perhaps");
        let after = late + Duration::from_millis(1);
        revocations.take_in(&told(8, Some(&[])), Some(7), after);
        assert!(!revocations.is_due(after));
    }

    #[test]
    fn while_nobody_says_memory_is_short() {
        let (revocations, now) = begun();
        let mark = revocations.known(now).mark("ann");
        let late = now + STALE + Duration::from_millis(1);
        revocations.failed(late);
        assert!(!revocations.is_due(late), "not at once again");
        assert!(revocations.is_due(late + RETRY) && !revocations.is_due(late + RETRY));
        assert!(revocations.leaves(&mark, now + AWAY));
        let over = now + AWAY + Duration::from_millis(1);
        assert!(!revocations.leaves(&mark, over));
        assert!(revocations.leaves(&revocations.known(over).mark("ann"), over), "it was checked itself");
        revocations.take_in(&told(7, Some(&[])), Some(7), over);
        assert!(revocations.leaves(&mark, over), "nothing was revoked meanwhile");
    }
}
