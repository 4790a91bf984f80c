//! What this peer shares now.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use folder::FileState;

use crate::{content::Content, name::Name, seam::Entry};

/// A file that is shared: where it is, and in which state it was when its content was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(crate) entry: Entry,
    pub(crate) identity: FileState,
}

/// What is shared, by path within the folder and by content.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    files: RwLock<Files>,
    /// Rises with every change.
    version: Mutex<u64>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Files {
    by_path: BTreeMap<String, Shared>,
    by_content: HashMap<Content, BTreeSet<String>>,
}

impl Catalogue {
    /// Shares a file, in place of what was at its path.
    pub(crate) fn share(&self, path: &str, shared: Shared) {
        let mut files = self.write();
        if files.by_path.get(path) == Some(&shared) {
            return;
        }
        files.remove(path);
        files.by_content.entry(shared.entry.content).or_default().insert(path.to_owned());
        files.by_path.insert(path.to_owned(), shared);
        drop(files);
        self.tell();
    }

    /// Shares nothing at this path any more.
    pub(crate) fn unshare(&self, path: &str) {
        if self.write().remove(path) {
            self.tell();
        }
    }

    /// In which state the file at a path is shared.
    pub(crate) fn identity(&self, path: &str) -> Option<FileState> {
        self.read().by_path.get(path).map(|shared| shared.identity)
    }

    /// A path at which this content is, and in which state of the file.
    pub(crate) fn find(&self, content: &Content) -> Option<(String, Shared)> {
        let files = self.read();
        let path = files.by_content.get(content)?.first()?;
        files.by_path.get(path).map(|shared| (path.clone(), shared.clone()))
    }

    /// The paths at which this content is.
    pub(crate) fn holding(&self, content: &Content) -> Vec<(String, Shared)> {
        let files = self.read();
        let paths = files.by_content.get(content).into_iter().flatten();
        paths.filter_map(|path| Some((path.clone(), files.by_path.get(path)?.clone()))).collect()
    }

    /// The paths that are shared.
    pub(crate) fn paths(&self) -> HashSet<String> {
        self.read().by_path.keys().cloned().collect()
    }

    /// The paths of the files of this name.
    pub(crate) fn named(&self, name: &Name) -> Vec<(String, Shared)> {
        let files = self.read();
        let named = files.by_path.iter().filter(|(_, shared)| shared.entry.name == *name);
        named.map(|(path, shared)| (path.clone(), shared.clone())).collect()
    }

    /// What is shared after this path, in the order of paths.
    pub(crate) fn list(&self, after: &str, limit: usize) -> Vec<(String, Entry)> {
        let files = self.read();
        let rest = files.by_path.iter().filter(|(path, _)| path.as_str() > after).take(limit);
        rest.map(|(path, shared)| (path.clone(), shared.entry.clone())).collect()
    }

    /// What the index is to know.
    pub(crate) fn entries(&self) -> HashSet<Entry> {
        self.read().by_path.values().map(|shared| shared.entry.clone()).collect()
    }

    /// How many files are shared.
    pub(crate) fn len(&self) -> usize {
        self.read().by_path.len()
    }

    /// Waits until something has changed since `version`, or so long; tells the version now.
    pub(crate) fn await_change(&self, version: u64, patience: Duration) -> u64 {
        let seen = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(seen, patience, |now| *now == version);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Lets who waits for a change look again.
    pub(crate) fn tell(&self) {
        *self.version() += 1;
        self.changed.notify_all();
    }

    fn version(&self) -> MutexGuard<'_, u64> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Nothing panics while the files are held.

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
