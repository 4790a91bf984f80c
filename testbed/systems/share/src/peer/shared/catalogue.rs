//! The files that this peer shares now.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use folder::FileState;

use crate::entry::{Content, Entry, Name};

/// A shared file, and its state when it was hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SharedFile {
    pub(crate) entry: Entry,
    pub(crate) state: FileState,
}

/// The shared files, by path within the folder and by content.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    files: RwLock<Files>,
    /// Incremented with every change.
    version: Mutex<u64>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Files {
    by_path: BTreeMap<String, SharedFile>,
    by_content: HashMap<Content, BTreeSet<String>>,
}

impl Catalogue {
    /// Shares a file, in place of the one at its path.
    pub(crate) fn share(&self, path: &str, shared: SharedFile) {
        let mut files = self.write();
        if files.by_path.get(path) == Some(&shared) {
            return;
        }
        files.remove(path);
        files.by_content.entry(shared.entry.content).or_default().insert(path.to_owned());
        files.by_path.insert(path.to_owned(), shared);
        drop(files);
        self.notify();
    }

    /// Stops sharing the file at this path.
    pub(crate) fn unshare(&self, path: &str) {
        if self.write().remove(path) {
            self.notify();
        }
    }

    /// The state in which the file at a path is shared.
    pub(crate) fn state(&self, path: &str) -> Option<FileState> {
        self.read().by_path.get(path).map(|shared| shared.state)
    }

    /// A shared file with this content, and its path.
    pub(crate) fn find(&self, content: &Content) -> Option<(String, SharedFile)> {
        let files = self.read();
        let path = files.by_content.get(content)?.first()?;
        files.by_path.get(path).map(|shared| (path.clone(), shared.clone()))
    }

    /// All shared files with this content, and their paths.
    pub(crate) fn holding(&self, content: &Content) -> Vec<(String, SharedFile)> {
        let files = self.read();
        let paths = files.by_content.get(content).into_iter().flatten();
        paths.filter_map(|path| Some((path.clone(), files.by_path.get(path)?.clone()))).collect()
    }

    /// All shared paths.
    pub(crate) fn paths(&self) -> HashSet<String> {
        self.read().by_path.keys().cloned().collect()
    }

    /// All shared files with this name, and their paths.
    pub(crate) fn named(&self, name: &Name) -> Vec<(String, SharedFile)> {
        let files = self.read();
        let named = files.by_path.iter().filter(|(_, shared)| shared.entry.name == *name);
        named.map(|(path, shared)| (path.clone(), shared.clone())).collect()
    }

    /// Up to `limit` shared files whose paths sort after `after`, by path.
    pub(crate) fn list(&self, after: &str, limit: usize) -> Vec<(String, Entry)> {
        let files = self.read();
        let rest = files.by_path.iter().filter(|(path, _)| path.as_str() > after).take(limit);
        rest.map(|(path, shared)| (path.clone(), shared.entry.clone())).collect()
    }

    /// The entries to register in the index.
    pub(crate) fn entries(&self) -> HashSet<Entry> {
        self.read().by_path.values().map(|shared| shared.entry.clone()).collect()
    }

    /// Number of shared files.
    pub(crate) fn len(&self) -> usize {
        self.read().by_path.len()
    }

    /// Waits until the version differs from `version`, but not longer than `patience`. Returns the current version.
    pub(crate) fn wait_for_change(&self, version: u64, patience: Duration) -> u64 {
        let seen = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(seen, patience, |now| *now == version);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Increments the version, and wakes all that wait for a change.
    pub(crate) fn notify(&self) {
        *self.version() += 1;
        self.changed.notify_all();
    }

    fn version(&self) -> MutexGuard<'_, u64> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // No code panics while holding the locks.

    fn read(&self) -> RwLockReadGuard<'_, Files> {
        self.files.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Files> {
        self.files.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    fn remove(&mut self, path: &str) -> bool {
        let Some(shared) = self.by_path.remove(path) else { return false };
        if let Some(paths) = self.by_content.get_mut(&shared.entry.content) {
            paths.remove(path);
            if paths.is_empty() {
                self.by_content.remove(&shared.entry.content);
            }
        }
        true
    }
}
