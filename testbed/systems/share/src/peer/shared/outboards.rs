//! The outboards of shared content, each in a file named by the content's hash. A file is complete or absent.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use super::hashing::{self, GroupHashes};
use crate::entry::Content;

/// Their folder within the state folder.
const OUTBOARDS: &str = "outboards";

/// The stored outboards.
#[derive(Debug)]
pub(crate) struct Outboards {
    folder: PathBuf,
    /// Content whose outboard was not needed at the last [`Self::clean`].
    unused: Mutex<HashSet<Content>>,
}

impl Outboards {
    /// Opens their folder, and deletes incomplete outboards and those of unknown content.
    pub(crate) fn open(state: &Path, known: &HashSet<Content>) -> io::Result<Self> {
        let folder = state.join(OUTBOARDS);
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let content = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if content.is_none_or(|content| !known.contains(&content)) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Self { folder, unused: Mutex::default() })
    }

    /// Path of an outboard within the state folder.
    pub(crate) fn path(content: &Content) -> String {
        format!("{OUTBOARDS}/{content}")
    }

    /// Whether the outboard of content of this size is stored, or none is needed. Reads and verifies it: a power failure may
    /// leave a file with other bytes, or none, and whoever is sent those takes this peer for a liar.
    pub(crate) fn has(&self, content: &Content, size: u64) -> bool {
        let is_right = |kept: Vec<u8>| GroupHashes::from_outboard(content, size, &kept).is_some();
        hashing::outboard_len(size) == 0 || self.read(content).is_ok_and(is_right)
    }

    fn read(&self, content: &Content) -> io::Result<Vec<u8>> {
        fs::read(self.folder.join(content.to_string()))
    }

    /// Stores an outboard. After an error nothing of it is left.
    pub(crate) fn keep(&self, content: &Content, outboard: &[u8]) -> io::Result<()> {
        // A clean that is due must not delete it.
        self.unused().remove(content);
        if outboard.is_empty() || self.read(content).is_ok_and(|kept| kept == outboard) {
            return Ok(());
        }
        let path = self.folder.join(content.to_string());
        let aside = path.with_extension(format!("{:?}", thread::current().id()));
        let kept = fs::write(&aside, outboard).and_then(|()| fs::rename(&aside, path));
        if kept.is_err() {
            // A file that cannot be removed is deleted at the next start.
            let _ = fs::remove_file(&aside);
        }
        kept
    }

    /// Deletes outboards that are not `needed` and were not needed the last time either: between storing an outboard and
    /// sharing its file, nothing seems to need it.
    pub(crate) fn clean(&self, needed: impl Fn(&Content) -> bool) -> io::Result<()> {
        let mut unused = self.unused();
        let mut doubtful = HashSet::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // Other names are files being written.
            let Some(content) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if needed(&content) {
            } else if unused.contains(&content) {
                fs::remove_file(entry.path())?;
            } else {
                doubtful.insert(content);
            }
        }
        *unused = doubtful;
        Ok(())
    }

    fn unused(&self) -> MutexGuard<'_, HashSet<Content>> {
        // No code panics while holding the lock.
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outboard_goes_once_nobody_has_needed_it_twice_and_not_when_it_is_taken_up_again() {
        let state = tempfile::tempdir().unwrap();
        let outboards = Outboards::open(state.path(), &HashSet::new()).unwrap();
        let [old, new] = [b"old", b"new"].map(|content| Content::of(content));
        let there = |content| state.path().join(Outboards::path(content)).exists();
        for content in [&old, &new] {
            outboards.keep(content, &[7; 64]).unwrap();
        }
        outboards.clean(|content| *content == new).unwrap();
        assert!(there(&old) && there(&new));
        outboards.keep(&old, &[7; 64]).unwrap();
        outboards.clean(|content| *content == new).unwrap();
        assert!(there(&old), "it was taken up again meanwhile");
        outboards.clean(|content| *content == new).unwrap();
        assert!(!there(&old) && there(&new));
    }

    #[test]
    fn an_outboard_of_other_bytes_is_not_the_one_that_is_stored() {
        let state = tempfile::tempdir().unwrap();
        let outboards = Outboards::open(state.path(), &HashSet::new()).unwrap();
        let (content, outboard) = hashing::hash_bytes(&[7; 100_000]);
        assert!(!outboards.has(&content, 100_000));
        outboards.keep(&content, &vec![0; outboard.len()]).unwrap();
        assert!(!outboards.has(&content, 100_000));
        outboards.keep(&content, &outboard).unwrap();
        assert!(outboards.has(&content, 100_000) && !outboards.has(&content, 200_000));
    }

    #[test]
    fn nothing_is_left_of_an_outboard_that_could_not_be_kept() {
        let state = tempfile::tempdir().unwrap();
        let outboards = Outboards::open(state.path(), &HashSet::new()).unwrap();
        let content = Content::of(b"x");
        fs::create_dir(state.path().join(Outboards::path(&content))).unwrap();
        assert!(outboards.keep(&content, &[7; 64]).is_err());
        assert_eq!(fs::read_dir(state.path().join(OUTBOARDS)).unwrap().count(), 1, "that folder only");
    }
}
