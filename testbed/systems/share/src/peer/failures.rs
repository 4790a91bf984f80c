//! Files that could not be hashed as they were, and when each is tried again: at once when it changed, else ever more
//! seldom.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use folder::FileState;

use super::walk::Seen;

/// How long after the first failure a file is tried again; each time twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// How long it is left at most, unless trying it takes long.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(600);
/// How many times as long as it was tried for it is left alone.
const PAUSE_PER_TRY: u32 = 20;

/// Why a file could not be hashed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotHashed {
    /// It is looked at again at once.
    #[error("it changed meanwhile")]
    Changed,
    #[error("it cannot be read ({0})")]
    Unreadable(#[source] io::Error),
    /// There is no room for its hashes, as a rule.
    #[error("its hashes cannot be kept ({0})")]
    Unkept(#[source] io::Error),
}

/// Those that failed, by path.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<String, Failure>>);

#[derive(Debug)]
struct Failure {
    identity: FileState,
    times: u32,
    until: Instant,
    why: NotHashed,
}

impl Failures {
    /// That a file failed, `now`, after it had been tried for so long.
    pub(crate) fn note(&self, seen: &Seen, why: NotHashed, took: Duration, now: Instant) {
        let mut all = self.lock();
        let before = all.get(&seen.path).filter(|failure| failure.identity == seen.identity);
        let times = before.map_or(0, |failure| failure.times) + 1;
        let growing = PAUSE_MIN.saturating_mul(1_u32.checked_shl(times - 1).unwrap_or(u32::MAX));
        let pause = growing.min(PAUSE_MAX).max(took.saturating_mul(PAUSE_PER_TRY));
        let until = now.checked_add(pause).unwrap_or(now);
        all.insert(seen.path.clone(), Failure { identity: seen.identity, times, until, why });
    }

    /// Whether a file failed as it is now, and is to be left alone for longer.
    pub(crate) fn is_left_alone(&self, seen: &Seen, now: Instant) -> bool {
        let all = self.lock();
        all.get(&seen.path).is_some_and(|failure| failure.identity == seen.identity && now < failure.until)
    }

    /// A file did not fail this time.
    pub(crate) fn forget(&self, path: &str) {
        self.lock().remove(path);
    }

    /// Forgets those that are no longer there.
    pub(crate) fn forget_all_but(&self, there: &HashSet<String>) {
        self.lock().retain(|path, _| there.contains(path));
    }

    /// How many files' hashes could not be kept, and why one of them.
    pub(crate) fn unkept(&self) -> Option<(usize, String)> {
        let all = self.lock();
        let mut unkept = all.values().filter_map(|failure| match &failure.why {
            NotHashed::Unkept(error) => Some(error.to_string()),
            _ => None,
        });
        let first = unkept.next()?;
        Some((1 + unkept.count(), first))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Failure>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn seen(file: &std::path::Path) -> Seen {
        let identity = FileState::of(&fs::metadata(file).unwrap());
        Seen { path: "a".into(), name: "a".parse().unwrap(), identity }
    }

    fn fail(failures: &Failures, seen: &Seen, took: Duration, now: Instant) {
        failures.note(seen, NotHashed::Unkept(io::ErrorKind::StorageFull.into()), took, now);
    }

    #[test]
    fn what_fails_again_and_again_is_tried_ever_more_seldom_and_at_once_when_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "1").unwrap();
        let (failures, before, start) = (Failures::default(), seen(&file), Instant::now());
        let mut now = start;
        let mut tries = 0;
        while now < start + Duration::from_secs(24 * 3600) {
            if !failures.is_left_alone(&before, now) {
                tries += 1;
                fail(&failures, &before, Duration::ZERO, now);
            }
            now += Duration::from_secs(1);
        }
        assert_eq!(
            tries,
            10 + (24 * 3600 - 1023) / 600 + 1,
            "1 + 2 + .. + 512 seconds, then every ten minutes"
        );

        fs::write(&file, "12").unwrap();
        assert!(failures.is_left_alone(&before, now) && !failures.is_left_alone(&seen(&file), now));
        fail(&failures, &seen(&file), Duration::ZERO, now);
        assert!(!failures.is_left_alone(&seen(&file), now + PAUSE_MIN), "another state begins anew");
        assert_eq!(failures.unkept().map(|(count, _)| count), Some(1));
        failures.forget_all_but(&HashSet::new());
        assert!(failures.unkept().is_none());
    }

    #[test]
    fn what_takes_long_to_try_is_left_alone_for_many_times_as_long() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "1").unwrap();
        let (failures, seen, now) = (Failures::default(), seen(&file), Instant::now());
        fail(&failures, &seen, Duration::from_secs(60), now);
        assert!(failures.is_left_alone(&seen, now + Duration::from_secs(19 * 60)));
        assert!(!failures.is_left_alone(&seen, now + Duration::from_secs(20 * 60)));
    }
}
