//! Moves complete files into the shared folder, and shares them. Files that complete at about the same time are made
//! durable together, with one sync for their bytes and one for the folder, while the next ones gather.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with, syncfs},
    io::Errno,
};

use super::download::Download;
use crate::{
    entry::{Entry, Name},
    peer::shared::SharedFolder,
};

/// From this many files on, the file system is synced as a whole (syncfs(2)). Below it each file is synced by
/// itself, because others may have much to write that does not concern a few files.
const TOGETHER_MIN: usize = 8;
/// Longest content that is fetched in one piece, bytes.
pub(crate) const SMALL_LEN_MAX: u64 = 1024 * 1024;
/// Most names to try for a file whose own name is taken.
const NAMES_MAX: u32 = 1000;

/// A complete, verified file.
#[derive(Debug)]
pub(crate) struct CompleteFile {
    pub(crate) entry: Entry,
    /// Where it is, on the file system of the shared folder. Its map, if it has one, is beside it.
    pub(crate) path: PathBuf,
    /// The open file, if its bytes may not be durable yet.
    pub(crate) unsynced: Option<File>,
    /// The download that it belongs to.
    pub(crate) download: Arc<Download>,
}

/// Installs files, in batches.
#[derive(Debug)]
pub(crate) struct Installer {
    shared: Arc<SharedFolder>,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<CompleteFile>,
    /// Whether a thread is installing.
    busy: bool,
}

impl Installer {
    pub(crate) fn new(shared: Arc<SharedFolder>) -> Self {
        Self { shared, queue: Mutex::default() }
    }

    /// Installs a file and ends its download. The first thread that comes also installs the files of those that come
    /// meanwhile.
    pub(crate) fn install(&self, file: CompleteFile) {
        let mut queue = self.lock();
        queue.waiting.push(file);
        if std::mem::replace(&mut queue.busy, true) {
            return;
        }
        while !queue.waiting.is_empty() {
            let batch = std::mem::take(&mut queue.waiting);
            drop(queue);
            self.install_all(batch);
            queue = self.lock();
        }
        queue.busy = false;
    }

    fn install_all(&self, batch: Vec<CompleteFile>) {
        let root = &self.shared.root;
        let unsynced = batch.iter().filter(|file| file.unsynced.is_some()).count();
        let synced = unsynced >= TOGETHER_MIN && File::open(root).is_ok_and(|folder| syncfs(folder).is_ok());
        for file in &batch {
            if let Err(error) = self.shared.make_way(file.entry.name.as_str()) {
                tracing::error!(%error, "the catalogue of shared files cannot be saved");
            }
        }
        let installed: Vec<_> = batch.into_iter().map(|file| (file.move_into(root, synced), file)).collect();
        let shared = |(path, file): &(io::Result<String>, CompleteFile)| {
            let path = path.as_ref().ok()?.clone();
            let name: Name = path.parse().ok()?;
            Some((path, Entry { name, ..file.entry.clone() }))
        };
        // If this fails, the next walk through the folder shares them.
        let _ = self.shared.share_known(installed.iter().filter_map(shared).collect());
        let (durable, parts) =
            (File::open(root).and_then(|folder| folder.sync_all()), self.shared.partials());
        for (path, file) in installed {
            if path.is_err() && file.unsynced.is_some() {
                // It was fetched in one piece and can be again. If it cannot be removed, it is cleaned up later.
                let _ = fs::remove_file(&file.path);
            }
            let explain = |error: &io::Error| explain(error, file.entry.size, &parts);
            let outcome = path.map_err(|error| explain(&error));
            let outcome = outcome.and_then(|path| durable.as_ref().map(|()| path).map_err(explain));
            file.download.finish(outcome);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code panics while holding the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CompleteFile {
    /// Moves the file into a folder under its name or, if that is taken, a numbered one. Returns the name.
    fn move_into(&self, folder: &Path, synced: bool) -> io::Result<String> {
        if let Some(file) = self.unsynced.as_ref().filter(|_| !synced) {
            file.sync_all()?;
        }
        for number in 1..=NAMES_MAX {
            let name = numbered(&self.entry.name, number);
            match renameat_with(CWD, &self.path, CWD, folder.join(&name), RenameFlags::NOREPLACE) {
                Ok(()) => {
                    // Files that were fetched in one piece have no map.
                    let _ = fs::remove_file(self.path.with_extension("map"));
                    return Ok(name);
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other("too many files of that name are there already"))
    }
}

/// Explains a disk error while fetching content of this size, and what to do about it.
pub(crate) fn explain(error: &io::Error, size: u64, parts: &Path) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if size > SMALL_LEN_MAX => {
            format!(
                "the disk is full; free some space and ask for it again: the part already downloaded is kept in {parts:?}"
            )
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!(
            "the disk is full; make room and ask for it again; what is not file of larger files is in {parts:?}, and \
             may be removed"
        ),
        _ => format!("it cannot be written: {error}"),
    }
}

/// The name for try `number`: `report.pdf`, `report (2).pdf`, `report (3).pdf`, no longer than file systems allow.
fn numbered(name: &Name, number: u32) -> String {
    if number == 1 {
        return name.to_string();
    }
    let suffix = format!(" ({number})");
    let (stem, extension) = match name.as_str().rfind('.') {
        Some(dot) if dot > 0 => name.as_str().split_at(dot),
        _ => (name.as_str(), ""),
    };
    let (extension, room) = match 255_usize.checked_sub(suffix.len() + extension.len()) {
        Some(room) if room > 0 => (extension, room),
        _ => ("", 255 - suffix.len()),
    };
    let cut = (0..=room.min(stem.len())).rev().find(|&at| stem.is_char_boundary(at)).unwrap_or(0);
    format!("{}{suffix}{extension}", &stem[..cut])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::Content;

    #[test]
    fn nothing_that_is_there_is_reinstalled() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.tar.gz"), "mine").unwrap();
        fs::write(at("part.data"), "x").unwrap();
        let content = Content::of(b"x");
        let entry = Entry { name: "a.tar.gz".parse().unwrap(), content, size: 1 };
        let download = Arc::new(Download::new(content));
        let file = CompleteFile { entry, path: at("part.data"), unsynced: None, download };
        assert_eq!(file.move_into(folder.path(), true).unwrap(), "a.tar (2).gz");
        assert_eq!(fs::read(at("a.tar.gz")).unwrap(), b"mine");
        assert_eq!(fs::read(at("a.tar (2).gz")).unwrap(), b"x");
    }

    #[test]
    fn what_is_said_to_be_kept_on_a_full_disk_is() {
        let (full, parts) = (io::Error::from(io::ErrorKind::StorageFull), Path::new("/a/.nstar/parts"));
        let large = explain(&full, SMALL_LEN_MAX + 1, parts);
        assert!(large.contains("the part already downloaded is kept in \"/a/.nstar/parts\""), "{large}");
        let small = explain(&full, SMALL_LEN_MAX, parts);
        assert!(!small.contains("already downloaded") && small.contains("/a/.nstar/parts"), "{small}");
    }

    proptest! {
        #[test]
        fn another_name_is_still_a_name(name in "[^/\\x00-\\x1f.][^/]{0,120}", number in 2u32..1000) {
            if let Ok(name) = name.parse::<Name>() {
                prop_assert!(numbered(&name, number).parse::<Name>().is_ok());
            }
        }
    }
}
