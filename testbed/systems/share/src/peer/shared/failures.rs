//! Files that could not be hashed, and when to try each again: at once when it has changed, otherwise after growing pauses.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use folder::FileState;

use super::walk::WalkedFile;

/// Pause after a file's first failure; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest pause, unless trying takes long.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(600);
/// The pause is at least this many times as long as the last try.
const PAUSE_PER_TRY: u32 = 20;

/// Why a file could not be hashed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotHashed {
    /// It is tried again at once.
    #[error("it changed meanwhile")]
    Changed,
    #[error("it cannot be read ({0})")]
    Unreadable(#[source] io::Error),
    /// Usually the disk is full.
    #[error("its hashes cannot be saved ({0})")]
    Unstored(#[source] io::Error),
}

/// The failed files, by path.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<String, Failure>>);

#[derive(Debug)]
struct Failure {
    state: FileState,
    times: u32,
    until: Instant,
    why: NotHashed,
}

impl Failures {
    /// Records that a file failed at `now`, after it was tried for `took`.
    pub(crate) fn note(&self, file: &WalkedFile, why: NotHashed, took: Duration, now: Instant) {
        let mut all = self.lock();
        let before = all.get(&file.path).filter(|failure| failure.state == file.state);
        let times = before.map_or(0, |failure| failure.times) + 1;
        let growing = PAUSE_MIN.saturating_mul(1_u32.checked_shl(times - 1).unwrap_or(u32::MAX));
        let pause = growing.min(PAUSE_MAX).max(took.saturating_mul(PAUSE_PER_TRY));
        let until = now.checked_add(pause).unwrap_or(now);
        all.insert(file.path.clone(), Failure { state: file.state, times, until, why });
    }

    /// Whether a file failed in its current state, and its pause is not over.
    pub(crate) fn is_paused(&self, file: &WalkedFile, now: Instant) -> bool {
        let all = self.lock();
        all.get(&file.path).is_some_and(|failure| failure.state == file.state && now < failure.until)
    }

    /// Forgets a file that did not fail this time.
    pub(crate) fn forget(&self, path: &str) {
        self.lock().remove(path);
    }

    /// Forgets files that no longer exist.
    pub(crate) fn forget_all_but(&self, there: &HashSet<String>) {
        self.lock().retain(|path, _| there.contains(path));
    }

    /// How many files have hashes that could not be stored, and the reason for one of them.
    pub(crate) fn unstored(&self) -> Option<(usize, String)> {
        let all = self.lock();
        let mut unstored = all.values().filter_map(|failure| match &failure.why {
            NotHashed::Unstored(error) => Some(error.to_string()),
            _ => None,
        });
        let first = unstored.next()?;
        Some((1 + unstored.count(), first))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Failure>> {
        // No code panics while holding the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn walked(path: &std::path::Path) -> WalkedFile {
        let state = FileState::of(&fs::metadata(path).unwrap());
        WalkedFile { path: "a".into(), name: "a".parse().unwrap(), state }
    }

    fn fail(failures: &Failures, file: &WalkedFile, took: Duration, now: Instant) {
        failures.note(file, NotHashed::Unstored(io::ErrorKind::StorageFull.into()), took, now);
    }

    #[test]
    fn what_fails_again_and_again_is_tried_ever_more_seldom_and_at_once_when_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "1").unwrap();
        let (failures, before, start) = (Failures::default(), walked(&path), Instant::now());
        let mut now = start;
        let mut tries = 0;
        while now < start + Duration::from_secs(24 * 3600) {
            if !failures.is_paused(&before, now) {
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

        fs::write(&path, "12").unwrap();
        assert!(failures.is_paused(&before, now) && !failures.is_paused(&walked(&path), now));
        fail(&failures, &walked(&path), Duration::ZERO, now);
        assert!(!failures.is_paused(&walked(&path), now + PAUSE_MIN), "another state begins anew");
        assert_eq!(failures.unstored().map(|(count, _)| count), Some(1));
        failures.forget_all_but(&HashSet::new());
        assert!(failures.unstored().is_none());
    }

    #[test]
    fn what_takes_long_to_try_is_paused_for_many_times_as_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "1").unwrap();
        let (failures, file, now) = (Failures::default(), walked(&path), Instant::now());
        fail(&failures, &file, Duration::from_secs(60), now);
        assert!(failures.is_paused(&file, now + Duration::from_secs(19 * 60)));
        assert!(!failures.is_paused(&file, now + Duration::from_secs(20 * 60)));
    }
}
