//! Keeps two runs of nstar from lowering one limit at once: the second would take the lower value for what it has to put back.

use std::{fs::File, path::Path};

use analysis::run::LeftAloneReason;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// A lock (flock(2)) on the file of a limit. It lasts until this is dropped, and whoever shares it has ended.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Locks this file, without waiting.
    ///
    /// # Errors
    /// The reason to leave the limit alone: somebody else holds the lock, or the file cannot be opened.
    pub(super) fn on(file: &Path) -> Result<Self, LeftAloneReason> {
        let file = File::open(file).map_err(|_| LeftAloneReason::NotAllowed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self(file)),
            Err(Errno::WOULDBLOCK) => Err(LeftAloneReason::ChangedByOthers),
            Err(_) => Err(LeftAloneReason::NotAllowed),
        }
    }

    /// A file by which another process shares the lock.
    ///
    /// # Errors
    /// That no more files may be opened.
    pub(super) fn shared(&self) -> Result<File, LeftAloneReason> {
        self.0.try_clone().map_err(|_| LeftAloneReason::NotAllowed)
    }
}

#[cfg(test)]
mod tests {
    use tempfile::NamedTempFile;

    use super::*;

    #[test]
    fn a_lock_lasts_until_all_who_share_it_have_ended() {
        let file = NamedTempFile::new().unwrap();
        let lock = Lock::on(file.path()).unwrap();
        let is_held = || Lock::on(file.path()).err() == Some(LeftAloneReason::ChangedByOthers);
        assert!(is_held());
        let shared = lock.shared().unwrap();
        drop(lock);
        assert!(is_held());
        drop(shared);
        // What another test starts may share all open files, until it is a program of its own.
        while is_held() {}
    }

    #[test]
    fn a_network_namespace_has_a_file_that_can_be_locked() {
        let locked = Lock::on(Path::new("/proc/self/ns/net"));
        assert_ne!(locked.err(), Some(LeftAloneReason::NotAllowed));
    }
}
