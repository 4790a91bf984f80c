//! Opens folders beneath the root for changing. No symbolic link on the way is followed, not even one that stays beneath
//! the root, so that a file is exactly where its path says.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
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
/// Who may enter folders that are made, less the umask: the server's user and group, as for the files in them.
const MODE: Mode = Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP);

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
            Err(Errno::NOENT) => match mkdirat(&above_fd, name, MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        changed.note(above_fd);
        self.folder(path)
    }
}

/// Splits a path into the folder and the name in it.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Folders whose entries have changed, each once. Two of them may have had the same path: one that was removed, and one
/// that was made in its place.
#[derive(Debug, Default)]
pub struct Changed {
    folders: Vec<File>,
    /// Device and inode of each.
    noted: BTreeSet<(u64, u64)>,
}

impl Changed {
    /// Adds a folder whose entries have changed.
    pub fn note(&mut self, folder: OwnedFd) {
        let folder = File::from(folder);
        // A folder that cannot be identified is synced twice rather than not at all.
        let is_new = folder.metadata().map_or(true, |found| self.noted.insert((found.dev(), found.ino())));
        if is_new {
            self.folders.push(folder);
        }
    }

    /// Returns once the changes are on the disk. Syncs several folders at once, so that the file system's journal can
    /// combine them: one after the other, each would wait for a write of its own.
    ///
    /// # Errors
    /// When a folder cannot be synced.
    pub fn sync(self) -> io::Result<()> {
        let folders = self.folders;
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
    use std::{fs, os::unix::fs::symlink, path::Path};

    use super::*;

    /// What is noted of folders with these paths.
    fn identities<const N: usize>(root: &Path, paths: [&str; N]) -> BTreeSet<(u64, u64)> {
        let identity = |path: &str| {
            let metadata = fs::metadata(root.join(path)).unwrap();
            (metadata.dev(), metadata.ino())
        };
        paths.map(identity).into()
    }

    #[test]
    fn missing_folders_are_made_and_each_change_is_noted_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let mut changed = Changed::default();
        root.folder_made("a/b/c", &mut changed).unwrap();
        root.folder_made("a/b/d", &mut changed).unwrap();
        assert!(folder.path().join("a/b/c").is_dir() && folder.path().join("a/b/d").is_dir());
        assert_eq!(changed.noted, identities(folder.path(), ["", "a", "a/b"]));
        assert_eq!(changed.folders.len(), 3);
        changed.sync().unwrap();
    }

    #[test]
    fn parents_that_exist_are_synced_too_as_whoever_made_them_may_not_have_done_so() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        let mut changed = Changed::default();
        root.folder_made("a/b", &mut changed).unwrap();
        assert_eq!(changed.noted, identities(folder.path(), ["", "a"]));
    }

    #[test]
    fn a_folder_made_in_place_of_a_removed_one_is_synced_too() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        let mut changed = Changed::default();
        changed.note(root.folder("a").unwrap());
        fs::remove_dir(folder.path().join("a")).unwrap();
        let made = root.folder_made("a", &mut changed).unwrap();
        changed.note(made);
        let there = identities(folder.path(), ["", "a"]);
        assert!(there.is_subset(&changed.noted), "{changed:?}");
        assert_eq!(changed.folders.len(), 3, "the removed one, its parent and the new one");
        changed.sync().unwrap();
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
