//! Opens folders beneath the root for changing. No symbolic link on the way is followed, not even one that stays beneath
//! the root, so that a file is exactly where its path says.

use std::{
    collections::BTreeMap,
    io,
    os::fd::OwnedFd,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, fsync, mkdirat},
    io::Errno,
};

use super::Root;

/// Most folders to sync at once.
const SYNCING_MAX: usize = 16;

impl Root {
    /// Opens a folder for changing its entries; the empty path is the root itself.
    ///
    /// # Errors
    /// When it does not exist, is not a folder, or is reached only through a link.
    pub fn folder(&self, path: &str) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY, resolve)
    }

    /// Opens a folder, and creates it and its parents where they are missing. Adds all its parents to `changed`: those that
    /// exist may have been created by another process that has not synced them yet, or was killed before it could.
    ///
    /// # Errors
    /// When it cannot be created or opened.
    pub fn folder_made(&self, path: &str, changed: &mut Changed) -> Result<OwnedFd, Errno> {
        if path.is_empty() {
            return self.folder(path);
        }
        let (above, name) = split(path);
        let above_fd = self.folder_made(above, changed)?;
        match self.folder(path) {
            Err(Errno::NOENT) => match mkdirat(&above_fd, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        changed.note(above, above_fd);
        self.folder(path)
    }
}

/// Splits a path into the folder and the name in it.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Folders whose entries have changed, each once.
#[derive(Debug, Default)]
pub struct Changed(BTreeMap<String, OwnedFd>);

impl Changed {
    /// Adds a folder whose entries have changed.
    pub fn note(&mut self, path: &str, folder: OwnedFd) {
        self.0.entry(path.to_owned()).or_insert(folder);
    }

    /// Returns once the changes are on the disk. Syncs several folders at once, so that the file system's journal can
    /// combine them: one after the other, each would wait for a write of its own.
    ///
    /// # Errors
    /// When a folder cannot be synced.
    pub fn sync(self) -> io::Result<()> {
        let folders: Vec<_> = self.0.into_values().collect();
        let next = AtomicUsize::new(0);
        let sync_some = || -> io::Result<()> {
            while let Some(folder) = folders.get(next.fetch_add(1, Relaxed)) {
                fsync(folder)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let helpers = folders.len().min(SYNCING_MAX).saturating_sub(1);
            // Without helpers it only takes longer.
            let start = |_| thread::Builder::new().spawn_scoped(scope, sync_some).ok();
            let helping: Vec<_> = (0..helpers).map_while(start).collect();
            let failed = |_| io::Error::other("a thread that syncs folders panicked");
            helping.into_iter().fold(sync_some(), |synced, helper| synced.and(helper.join().map_err(failed)?))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn missing_folders_are_made_and_each_change_is_noted_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let mut changed = Changed::default();
        root.folder_made("a/b/c", &mut changed).unwrap();
        root.folder_made("a/b/d", &mut changed).unwrap();
        assert!(folder.path().join("a/b/c").is_dir() && folder.path().join("a/b/d").is_dir());
        assert_eq!(changed.0.keys().collect::<Vec<_>>(), ["", "a", "a/b"]);
        changed.sync().unwrap();
    }

    #[test]
    fn parents_that_exist_are_synced_too_as_whoever_made_them_may_not_have_done_so() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        let mut changed = Changed::default();
        root.folder_made("a/b", &mut changed).unwrap();
        assert_eq!(changed.0.keys().collect::<Vec<_>>(), ["", "a"]);
    }

    #[test]
    fn no_link_is_followed_on_the_way_to_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("real")).unwrap();
        symlink("real", folder.path().join("within")).unwrap();
        symlink(outside.path(), folder.path().join("out")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        for path in ["within", "out", "within/new", "out/new", "../x"] {
            assert!(root.folder_made(path, &mut Changed::default()).is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
