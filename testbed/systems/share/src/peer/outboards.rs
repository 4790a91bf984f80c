//! The hashes in between (outboards) of what is shared, each in a file named by its content. They are whole or not there.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use super::hashing;
use crate::content::Content;

/// Their folder, within the peer's own.
const OUTBOARDS: &str = "outboards";

/// Those that are kept.
#[derive(Debug)]
pub(crate) struct Outboards {
    folder: PathBuf,
    /// Of content that nobody had a use for when it was looked for last.
    unused: Mutex<HashSet<Content>>,
}

impl Outboards {
    /// Opens their folder within the peer's own, and takes away what was not finished, or is of none of these contents.
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

    /// Where the outboard of some content is, within the peer's own folder.
    pub(crate) fn path(content: &Content) -> String {
        format!("{OUTBOARDS}/{content}")
    }

    /// Whether that of content of this size is there, or none is needed.
    pub(crate) fn has(&self, content: &Content, size: u64) -> bool {
        // One that a power cut left empty is none.
        self.is_there(content, hashing::outboard_len(size))
    }

    fn is_there(&self, content: &Content, length: u64) -> bool {
        let found = || fs::metadata(self.folder.join(content.to_string()));
        length == 0 || found().is_ok_and(|found| found.len() == length)
    }

    /// Keeps the outboard of some content. Where that fails nothing is left of it.
    pub(crate) fn keep(&self, content: &Content, outboard: &[u8]) -> io::Result<()> {
        // What is taken up now is not taken away.
        self.unused().remove(content);
        if self.is_there(content, outboard.len() as u64) {
            return Ok(());
        }
        let path = self.folder.join(content.to_string());
        let aside = path.with_extension(format!("{:?}", thread::current().id()));
        let kept = fs::write(&aside, outboard).and_then(|()| fs::rename(&aside, path));
        if kept.is_err() {
            // What cannot be removed is cleaned away at the next start.
            let _ = fs::remove_file(&aside);
        }
        kept
    }

    /// Takes away those of content that is not `needed`, and was not the last time either: between the keeping of one and
    /// the file that it is for nobody seems to need it.
    pub(crate) fn clean(&self, needed: impl Fn(&Content) -> bool) -> io::Result<()> {
        let mut unused = self.unused();
        let mut doubtful = HashSet::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // Others are being written.
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
        // Nothing panics while it is held.
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
    fn nothing_is_left_of_an_outboard_that_could_not_be_kept() {
        let state = tempfile::tempdir().unwrap();
        let outboards = Outboards::open(state.path(), &HashSet::new()).unwrap();
        let content = Content::of(b"x");
        fs::create_dir(state.path().join(Outboards::path(&content))).unwrap();
        assert!(outboards.keep(&content, &[7; 64]).is_err());
        assert_eq!(fs::read_dir(state.path().join(OUTBOARDS)).unwrap().count(), 1, "that folder only");
    }
}
