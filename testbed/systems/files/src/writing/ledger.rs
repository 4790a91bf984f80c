//! How much each user keeps: one book per user, in the folder of the uploads.
//!
//! A book is a small file under a lock, so that all processes and servers of one folder share it. It holds the bytes of
//! the user's files and, for each upload under way, what was set aside for it beforehand: two uploads can never pass the
//! quota together. It can always be made anew from the files: when the server was started since, when a process
//! died while changing something, or before a user is refused.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileExt,
    },
};

use folder::Root;
use rustix::{
    fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, openat, statat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::{
    access::permissions,
    writing::{
        refusal::Refusal,
        staging::{PartId, Staging},
    },
};

/// The book of what belongs to no user, kept for its lock.
const SHARED: &str = "book";
/// Longest book that is read, bytes.
const LEN_MAX: u64 = 4 * 1024 * 1024;
/// How deep folders are counted.
const DEPTH_MAX: usize = 128;

/// A book, locked until it is dropped.
pub(crate) struct Book<'l> {
    staging: &'l Staging,
    owner: Option<&'l str>,
    folder: OwnedFd,
    file: File,
    page: Page,
}

/// What a book holds.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Page {
    /// Which start of the server counted; another counts again, as files may have come and gone without it.
    counted_by: u64,
    /// Whether a change was begun whose end is not written here.
    unfinished: bool,
    /// Length of all files, bytes.
    used: u64,
    /// What was set aside for uploads, by part, bytes.
    reserved: BTreeMap<String, u64>,
}

impl<'l> Book<'l> {
    /// Opens the book of a user, or the one of what belongs to nobody, and waits for whoever has it open.
    pub(crate) fn open(staging: &'l Staging, owner: Option<&'l str>, started: u64) -> Result<Self, Refusal> {
        let folder = staging.folder()?;
        let name = owner.map_or_else(|| SHARED.to_owned(), |owner| format!("{SHARED}-{owner}"));
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = File::from(openat(&folder, name, flags, Mode::RUSR | Mode::WUSR)?);
        while let Err(error) = flock(&file, FlockOperation::LockExclusive) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        let page = if owner.is_some() { read(&file) } else { Some(Page::default()) };
        let mut book = Self { staging, owner, folder, file, page: page.unwrap_or_default() };
        if owner.is_some() && (book.page.counted_by != started || book.page.unfinished) {
            book.page.counted_by = started;
            book.count()?;
        }
        book.forget_the_gone();
        Ok(book)
    }

    /// What the user keeps, and what is set aside for uploads, bytes.
    pub(crate) fn used(&self) -> u64 {
        self.page.reserved.values().fold(self.page.used, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Sets `bytes` in all aside for an upload, unless the user would then keep more than `quota`.
    pub(crate) fn reserve(&mut self, id: &PartId, bytes: u64, quota: u64) -> Result<(), Refusal> {
        let before = self.page.reserved.get(id.as_str()).copied().unwrap_or(0);
        let with = |used: u64| used.saturating_sub(before).saturating_add(bytes);
        if with(self.used()) > quota {
            self.count()?;
        }
        if with(self.used()) > quota {
            return Err(Refusal::Quota { used: self.used().saturating_sub(before), quota });
        }
        self.page.reserved.insert(id.as_str().to_owned(), bytes);
        Ok(self.write()?)
    }

    /// Notes that files are about to change: without [`finish`](Self::finish) they are counted again.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.page.unfinished = true;
        self.write()
    }

    /// Enters that `gone` bytes were replaced by `come`, of this upload.
    pub(crate) fn enter(&mut self, id: Option<&PartId>, gone: u64, come: u64) {
        if let Some(id) = id {
            self.page.reserved.remove(id.as_str());
        }
        self.page.used = self.page.used.saturating_sub(gone).saturating_add(come);
    }

    /// Notes that all that was begun is entered.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.page.unfinished = false;
        self.write()
    }

    /// Counts the user's files.
    fn count(&mut self) -> Result<(), Refusal> {
        let Some(owner) = self.owner else { return Ok(()) };
        self.page.used = count(self.staging.0.root(), owner)?;
        self.page.unfinished = false;
        Ok(self.write()?)
    }

    /// Takes back what was set aside for uploads that are no more.
    fn forget_the_gone(&mut self) {
        let Self { folder, page, .. } = self;
        page.reserved.retain(|id, _| statat(&*folder, id, AtFlags::SYMLINK_NOFOLLOW).is_ok());
    }

    fn write(&self) -> io::Result<()> {
        if self.owner.is_none() {
            return Ok(());
        }
        let text = serde_json::to_vec(&self.page)?;
        self.file.write_all_at(&text, 0)?;
        self.file.set_len(text.len() as u64)
    }
}

/// A book that is empty, damaged or half written counts as none.
fn read(file: &File) -> Option<Page> {
    let length = file.metadata().ok()?.len().min(LEN_MAX);
    let mut text = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut text, 0).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The length of all files of a user, bytes.
fn count(root: &Root, owner: &str) -> Result<u64, Errno> {
    let Some(path) = permissions::own_folder(owner) else { return Ok(0) };
    match root.folder(&path) {
        Ok(folder) => count_in(folder, DEPTH_MAX),
        // Not there yet, or a link: nothing of theirs.
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(0),
        Err(error) => Err(error),
    }
}

fn count_in(folder: OwnedFd, depth: usize) -> Result<u64, Errno> {
    let mut bytes = 0_u64;
    for entry in Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        // What is removed meanwhile does not count.
        let Ok(stat) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => bytes = bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0)),
            FileType::Directory if depth > 0 => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                if let Ok(within) = openat(&folder, name, flags, Mode::empty()) {
                    bytes = bytes.saturating_add(count_in(within, depth - 1)?);
                }
            }
            _ => {}
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, sync::Arc, time::Duration};

    use super::*;
    use crate::{access::permissions::Permissions, reading::OpenFiles, writing::staging::Part};

    fn staging(folder: &Path) -> Staging {
        let root = Root::open(folder).unwrap();
        Staging(Arc::new(OpenFiles::new(root, Permissions::default(), Duration::ZERO, 0)))
    }

    fn keep(folder: &Path, name: &str, bytes: usize) {
        let path = folder.join("users/ann").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![b'x'; bytes]).unwrap();
    }

    fn used(staging: &Staging, started: u64) -> u64 {
        Book::open(staging, Some("ann"), started).unwrap().used()
    }

    #[test]
    fn files_are_counted_whatever_their_depth_and_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        keep(folder.path(), "a", 10);
        keep(folder.path(), "b/c/d", 5);
        keep(folder.path(), "../bob/e", 100);
        std::os::unix::fs::symlink("../bob/e", folder.path().join("users/ann/link")).unwrap();
        assert_eq!(used(&staging(folder.path()), 1), 15);
    }

    #[test]
    fn what_is_set_aside_counts_until_its_part_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        keep(folder.path(), "a", 10);
        let parts: Vec<Part> = (0..3).map(|_| staging.create().unwrap()).collect();
        let reserve =
            |part: &Part, bytes| Book::open(&staging, Some("ann"), 1).unwrap().reserve(&part.id, bytes, 100);
        reserve(&parts[0], 40).unwrap();
        reserve(&parts[1], 50).unwrap();
        assert!(matches!(reserve(&parts[2], 1), Err(Refusal::Quota { used: 100, quota: 100 })));
        assert!(matches!(reserve(&parts[1], 51), Err(Refusal::Quota { .. })), "nor by growing");
        reserve(&parts[1], 20).unwrap();
        reserve(&parts[2], 30).unwrap();
        drop(parts);
        assert_eq!(used(&staging, 1), 10);
    }

    #[test]
    fn what_changed_unseen_is_counted_after_a_start_a_broken_change_or_before_a_refusal() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        assert_eq!(used(&staging, 1), 0);
        keep(folder.path(), "a", 10);
        assert_eq!((used(&staging, 1), used(&staging, 2)), (0, 10));
        keep(folder.path(), "b", 10);
        Book::open(&staging, Some("ann"), 2).unwrap().begin().unwrap();
        assert_eq!(used(&staging, 2), 20);
        fs::remove_file(folder.path().join("users/ann/a")).unwrap();
        let part = staging.create().unwrap();
        Book::open(&staging, Some("ann"), 2).unwrap().reserve(&part.id, 90, 100).unwrap();
        for damage in ["", "{", "null", "{\"used\":1}"] {
            fs::write(folder.path().join(".nstar-uploads/book-ann"), damage).unwrap();
            assert_eq!(used(&staging, 2), 10, "{damage:?}");
        }
    }

    #[test]
    fn uploads_at_once_never_pass_the_quota_together() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        let parts: Vec<_> = std::thread::scope(|scope| {
            let each: Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| {
                        let part = staging.create().unwrap();
                        let mut book = Book::open(&staging, Some("ann"), 1).unwrap();
                        book.reserve(&part.id, 30, 100).is_ok().then_some(part)
                    })
                })
                .collect();
            each.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(parts.len(), 3);
    }
}
