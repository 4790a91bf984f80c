//! Puts content that is whole and right into the shared folder, and shares it. Files that are ready at about the same time
//! are made durable together: one sync of their bytes and one of the folder for all of them, while others gather.

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

use super::{progress::Tracked, small};
use crate::{name::Name, peer::sharing::Sharing, seam::Entry};

/// From so many files on the whole file system is synced at once (syncfs(2)), below each file by itself: others may have
/// much to write that is no concern of a few files.
const TOGETHER_MIN: usize = 8;
/// Most names that are tried for a file whose own is taken.
const NAMES_MAX: u32 = 1000;

/// Content that is whole and right.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) entry: Entry,
    /// Where it is, on the file system of the shared folder. Its map, if it has one, is beside it.
    pub(crate) path: PathBuf,
    /// The file, when its bytes may not be on the disk yet.
    pub(crate) unsynced: Option<File>,
    /// Who waits for it.
    pub(crate) progress: Arc<Tracked>,
}

/// The way into the shared folder.
#[derive(Debug)]
pub(crate) struct Placer {
    sharing: Arc<Sharing>,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Whole>,
    /// Whether a thread is placing what waits.
    led: bool,
}

impl Placer {
    pub(crate) fn new(sharing: Arc<Sharing>) -> Self {
        Self { sharing, queue: Mutex::default() }
    }

    /// Has content placed; whoever waits for it is told. The first who comes places his own and what came meanwhile.
    pub(crate) fn place(&self, whole: Whole) {
        let mut queue = self.lock();
        queue.waiting.push(whole);
        if std::mem::replace(&mut queue.led, true) {
            return;
        }
        while !queue.waiting.is_empty() {
            let batch = std::mem::take(&mut queue.waiting);
            drop(queue);
            self.place_all(batch);
            queue = self.lock();
        }
        queue.led = false;
    }

    fn place_all(&self, batch: Vec<Whole>) {
        let root = &self.sharing.root;
        let unsynced = batch.iter().filter(|whole| whole.unsynced.is_some()).count();
        let synced = unsynced >= TOGETHER_MIN && File::open(root).is_ok_and(|folder| syncfs(folder).is_ok());
        let placed: Vec<_> = batch.into_iter().map(|whole| (whole.place(root, synced), whole)).collect();
        let shared = |(path, whole): &(io::Result<String>, Whole)| {
            let path = path.as_ref().ok()?.clone();
            let name: Name = path.parse().ok()?;
            Some((path, Entry { name, ..whole.entry.clone() }))
        };
        // Where that fails the folder is looked through, and they are shared then.
        let _ = self.sharing.share_known(placed.iter().filter_map(shared).collect());
        let (durable, parts) = (File::open(root).and_then(|folder| folder.sync_all()), self.sharing.parts());
        for (path, whole) in placed {
            if path.is_err() && whole.unsynced.is_some() {
                // Had in one piece, it is had again as fast; what cannot be removed is cleaned away later.
                let _ = fs::remove_file(&whole.path);
            }
            let explain = |error: &io::Error| explain(error, whole.entry.size, &parts);
            let outcome = path.map_err(|error| explain(&error));
            let outcome = outcome.and_then(|path| durable.as_ref().map(|()| path).map_err(explain));
            whole.progress.finish(outcome);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Whole {
    /// Moves it into a folder under its name, or the next that is free; tells which.
    fn place(&self, folder: &Path, synced: bool) -> io::Result<String> {
        if let Some(file) = self.unsynced.as_ref().filter(|_| !synced) {
            file.sync_all()?;
        }
        for number in 1..=NAMES_MAX {
            let name = numbered(&self.entry.name, number);
            match renameat_with(CWD, &self.path, CWD, folder.join(&name), RenameFlags::NOREPLACE) {
                Ok(()) => {
                    // Content that came in one piece has none.
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

/// Why the disk does not take content of this size, and what to do. What is not whole is kept among the `parts`.
pub(crate) fn explain(error: &io::Error, size: u64, parts: &Path) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if size > small::LEN_MAX => {
            format!("the disk is full; make room and ask for it again: what came is kept, in {parts:?}")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!(
            "the disk is full; make room and ask for it again; what is not whole of larger files is in {parts:?}, and \
             may be removed"
        ),
        _ => format!("it cannot be written: {error}"),
    }
}

/// `report.pdf`, `report (2).pdf`, `report (3).pdf`, no longer than file systems take.
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
    use crate::content::Content;

    #[test]
    fn nothing_that_is_there_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.tar.gz"), "mine").unwrap();
        fs::write(at("part.data"), "x").unwrap();
        let content = Content::of(b"x");
        let entry = Entry { name: "a.tar.gz".parse().unwrap(), content, size: 1 };
        let progress = Arc::new(Tracked::new(content));
        let whole = Whole { entry, path: at("part.data"), unsynced: None, progress };
        assert_eq!(whole.place(folder.path(), true).unwrap(), "a.tar (2).gz");
        assert_eq!(fs::read(at("a.tar.gz")).unwrap(), b"mine");
        assert_eq!(fs::read(at("a.tar (2).gz")).unwrap(), b"x");
    }

    #[test]
    fn what_is_said_to_be_kept_on_a_full_disk_is() {
        let (full, parts) = (io::Error::from(io::ErrorKind::StorageFull), Path::new("/a/.nstar/parts"));
        let large = explain(&full, small::LEN_MAX + 1, parts);
        assert!(large.contains("what came is kept, in \"/a/.nstar/parts\""), "{large}");
        let small = explain(&full, small::LEN_MAX, parts);
        assert!(!small.contains("what came is kept") && small.contains("/a/.nstar/parts"), "{small}");
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
