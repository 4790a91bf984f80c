//! How much each user takes, in bytes and in files and folders: one usage file per user, in the folder of the uploads.
//!
//! A usage file is small and locked while in use, so that all processes and servers of one folder can share it. It holds
//! the size and number of the user's files and, for each upload in progress, the space reserved for it in advance, so that two uploads
//! can never exceed the quota together. What has arrived of an upload counts even where nothing was reserved, as it takes
//! space until it is finished or removed. It can always be rebuilt from the files: after a restart of the server, after a
//! process died during a change, and before an upload is refused.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileExt,
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use folder::Root;
use rustix::{
    fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, openat, statat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::{
    access::permissions,
    refusal::Refusal,
    writing::staging::{PartId, Record, Staging},
};

/// The name of usage files: alone for files that belong to no user, where only its lock matters, or with a user's name.
const NAME: &str = "book";
/// Maximum length of a usage file that is read, bytes.
const LEN_MAX: u64 = 4 * 1024 * 1024;
/// Maximum time to wait until another request is done with a usage file.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two attempts to lock a usage file.
pub(crate) const RETRY: Duration = Duration::from_millis(2);
/// Counting again before a refusal takes at most this part of the time, so that refused requests cannot keep the disk busy.
const COUNTING_SHARE: u64 = 20;
/// Maximum number of a user's uploads that wait to be resumed.
const PARTS_MAX: usize = 100;
/// Maximum number of a user's finished uploads whose end is remembered, for clients that lost the response.
const FINISHED_MAX: usize = 100;
/// Maximum depth of folders that are counted.
const DEPTH_MAX: usize = 128;

/// A usage file, locked until it is dropped.
pub(crate) struct Usage<'l> {
    staging: &'l Staging,
    owner: Option<&'l str>,
    folder: OwnedFd,
    file: File,
    stored: Stored,
}

/// The contents of a usage file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    /// The start of the server that counted. After another start the files are counted again, as they may have changed.
    counted_by: u64,
    /// Whether a change was started and not finished.
    unfinished: bool,
    /// Total length of all files, bytes.
    used: u64,
    /// Number of files and folders.
    entries: u64,
    /// When they were last counted, and how long that took.
    counted_at_ms: u64,
    counting_took_ms: u64,
    /// Space reserved for uploads, by part, bytes.
    reserved: BTreeMap<String, u64>,
    /// Uploads that are finished and whose records are kept, oldest first.
    #[serde(default)]
    finished: VecDeque<String>,
}

impl<'l> Usage<'l> {
    /// Opens the usage file of a user, or that of files without a user. Waits a moment until it is unlocked: longer waits
    /// would hold up the uploads of all others.
    pub(crate) fn open(staging: &'l Staging, owner: Option<&'l str>, started: u64) -> Result<Self, Refusal> {
        Self::open_within(PATIENCE, staging, owner, started)
    }

    /// Opens it like [`open`](Self::open), if nobody holds it just now. `None` if somebody does.
    pub(crate) fn open_unless_held(
        staging: &'l Staging,
        owner: Option<&'l str>,
        started: u64,
    ) -> Result<Option<Self>, Refusal> {
        match Self::open_within(Duration::ZERO, staging, owner, started) {
            Err(Refusal::Busy) => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn open_within(
        patience: Duration,
        staging: &'l Staging,
        owner: Option<&'l str>,
        started: u64,
    ) -> Result<Self, Refusal> {
        let folder = staging.folder()?;
        let name = owner.map_or_else(|| NAME.to_owned(), |owner| format!("{NAME}-{owner}"));
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = File::from(openat(&folder, name, flags, Mode::RUSR | Mode::WUSR)?);
        lock(&file, patience)?;
        let stored = owner.and_then(|_| read(&file));
        let is_lost = owner.is_some() && stored.is_none();
        let mut usage = Self { staging, owner, folder, file, stored: stored.unwrap_or_default() };
        if is_lost {
            usage.find_parts()?;
        }
        if owner.is_some() && (usage.stored.counted_by != started || usage.stored.unfinished) {
            usage.stored.counted_by = started;
            usage.count()?;
        }
        usage.look_at_parts();
        Ok(usage)
    }

    /// Space taken by files and reserved for uploads, bytes.
    pub(crate) fn used(&self) -> u64 {
        self.stored.reserved.values().fold(self.stored.used, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Reserves `bytes` in total for an upload, unless that would exceed the quota.
    pub(crate) fn reserve(&mut self, id: &PartId, bytes: u64, quota: u64) -> Result<(), Refusal> {
        let before = self.stored.reserved.get(id.as_str()).copied().unwrap_or(0);
        let with = |used: u64| used.saturating_sub(before).saturating_add(bytes);
        if with(self.used()) > quota {
            self.count_again()?;
        }
        if with(self.used()) > quota {
            return Err(Refusal::Quota { used: self.used().saturating_sub(before), quota });
        }
        self.stored.reserved.insert(id.as_str().to_owned(), bytes);
        Ok(self.write()?)
    }

    /// Notes an upload that can be resumed, unless too many of the user's wait for that.
    pub(crate) fn keep(&mut self, id: &PartId) -> Result<(), Refusal> {
        if self.stored.reserved.len() >= PARTS_MAX && !self.stored.reserved.contains_key(id.as_str()) {
            return Err(Refusal::Parts { max: PARTS_MAX });
        }
        self.stored.reserved.entry(id.as_str().to_owned()).or_default();
        Ok(self.write()?)
    }

    /// Makes sure that there may be so many `more` files and folders. Call it between [`begin`](Self::begin) and
    /// [`finish`](Self::finish).
    pub(crate) fn check_entries(&mut self, more: u64, max: u64) -> Result<(), Refusal> {
        let is_full = |entries: u64| entries.saturating_add(more) > max;
        if self.owner.is_none() || more == 0 || !is_full(self.stored.entries) {
            return Ok(());
        }
        self.count_again()?;
        self.begin()?;
        if is_full(self.stored.entries) { Err(Refusal::Entries { max }) } else { Ok(()) }
    }

    /// Notes that an upload is finished and its record kept, and removes the record of the oldest if there are too many.
    pub(crate) fn remember(&mut self, id: &PartId) -> io::Result<()> {
        self.stored.finished.push_back(id.as_str().to_owned());
        while self.stored.finished.len() > FINISHED_MAX {
            let oldest = self.stored.finished.pop_front().and_then(|id| PartId::parse(&id));
            oldest.inspect(|id| Record::remove(&self.folder, id));
        }
        self.write()
    }

    /// Notes that files are about to change. Without [`finish`](Self::finish) they are counted again.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.stored.unfinished = true;
        self.write()
    }

    /// Records a finished upload: so many bytes instead of others, in so many new files and folders.
    pub(crate) fn record_put(&mut self, id: &PartId, (removed, added): (u64, u64), entries: u64) {
        self.stored.reserved.remove(id.as_str());
        self.stored.used = self.stored.used.saturating_sub(removed).saturating_add(added);
        self.stored.entries = self.stored.entries.saturating_add(entries);
    }

    /// Records that a file or folder of so many bytes is gone.
    pub(crate) fn record_deleted(&mut self, bytes: u64) {
        self.stored.used = self.stored.used.saturating_sub(bytes);
        self.stored.entries = self.stored.entries.saturating_sub(1);
    }

    /// Notes that all changes are recorded.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.stored.unfinished = false;
        self.write()
    }

    /// Counts the user's files, unless that took too much time lately: somebody else may have removed some.
    fn count_again(&mut self) -> Result<(), Refusal> {
        let rest = self.stored.counting_took_ms.saturating_mul(COUNTING_SHARE);
        let since = now_ms().saturating_sub(self.stored.counted_at_ms);
        if since < rest { Ok(()) } else { self.count() }
    }

    /// Counts the user's files.
    fn count(&mut self) -> Result<(), Refusal> {
        let Some(owner) = self.owner else { return Ok(()) };
        let began = Instant::now();
        let Count { bytes, entries } = count(self.staging.0.root(), owner)?;
        (self.stored.used, self.stored.entries) = (bytes, entries);
        self.stored.counting_took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.stored.counted_at_ms = now_ms();
        self.stored.unfinished = false;
        Ok(self.write()?)
    }

    /// Releases the space of uploads that no longer exist, and counts what has arrived of the others.
    fn look_at_parts(&mut self) {
        let Self { folder, stored, .. } = self;
        stored.reserved.retain(|id, reserved| {
            let Ok(stat) = statat(&*folder, id, AtFlags::SYMLINK_NOFOLLOW) else { return false };
            *reserved = (*reserved).max(u64::try_from(stat.st_size).unwrap_or(0));
            true
        });
    }

    /// Finds the user's uploads that can be resumed by their records, as the usage file is new or was lost.
    fn find_parts(&mut self) -> Result<(), Refusal> {
        for (id, record) in self.staging.records()? {
            if record.done.is_none() && record.accountable() == self.owner {
                self.stored.reserved.insert(id.as_str().to_owned(), record.length.unwrap_or(0));
            }
        }
        Ok(())
    }

    fn write(&self) -> io::Result<()> {
        if self.owner.is_none() {
            return Ok(());
        }
        let text = serde_json::to_vec(&self.stored)?;
        self.file.write_all_at(&text, 0)?;
        self.file.set_len(text.len() as u64)
    }
}

/// Reads a usage file. One that is empty, damaged or half written counts as missing.
fn read(file: &File) -> Option<Stored> {
    let length = file.metadata().ok()?.len().min(LEN_MAX);
    let mut text = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut text, 0).ok()?;
    parse(&text)
}

fn parse(text: &[u8]) -> Option<Stored> {
    serde_json::from_slice(text).ok()
}

/// What the server would write in place of a usage file that holds this. `None` where it takes the file for missing.
pub fn rewritten_usage(text: &[u8]) -> Option<Vec<u8>> {
    serde_json::to_vec(&parse(text)?).ok()
}

/// Locks a usage file.
fn lock(file: &File, patience: Duration) -> Result<(), Refusal> {
    let deadline = Instant::now() + patience;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(RETRY),
            Err(Errno::WOULDBLOCK) => return Err(Refusal::Busy),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// What a user has.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    /// Total length of files.
    bytes: u64,
    /// Number of files and folders.
    entries: u64,
}

/// Counts the files of a user.
fn count(root: &Root, owner: &str) -> Result<Count, Errno> {
    let mut count = Count::default();
    let Some(path) = permissions::own_folder(owner) else { return Ok(count) };
    match root.folder(&path) {
        Ok(folder) => count_in(folder, DEPTH_MAX, &mut count)?,
        // Missing, or a link, which is not theirs.
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {}
        Err(error) => return Err(error),
    }
    Ok(count)
}

fn count_in(folder: OwnedFd, depth: usize, count: &mut Count) -> Result<(), Errno> {
    for entry in Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        // Files that were removed meanwhile do not count.
        let Ok(stat) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        count.entries = count.entries.saturating_add(1);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                count.bytes = count.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
            }
            FileType::Directory if depth > 0 => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                if let Ok(within) = openat(&folder, name, flags, Mode::empty()) {
                    count_in(within, depth - 1, count)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, sync::Arc};

    use super::*;
    use crate::{
        access::permissions::{OpenFiles, Permissions},
        writing::{headers::Condition, staging::Part},
    };

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
        Usage::open(staging, Some("ann"), started).unwrap().used()
    }

    #[test]
    fn files_are_counted_at_any_depth_and_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        keep(folder.path(), "a", 10);
        keep(folder.path(), "b/c/d", 5);
        keep(folder.path(), "../bob/e", 100);
        std::os::unix::fs::symlink("../bob/e", folder.path().join("users/ann/link")).unwrap();
        assert_eq!(used(&staging(folder.path()), 1), 15);
    }

    #[test]
    fn reserved_space_counts_until_its_part_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        keep(folder.path(), "a", 10);
        let parts: Vec<Part> = (0..3).map(|_| staging.create().unwrap()).collect();
        let reserve =
            |part: &Part, bytes| Usage::open(&staging, Some("ann"), 1).unwrap().reserve(&part.id, bytes, 100);
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
    fn files_are_counted_again_after_a_start_an_unfinished_change_and_before_a_refusal() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        assert_eq!(used(&staging, 1), 0);
        keep(folder.path(), "a", 10);
        assert_eq!((used(&staging, 1), used(&staging, 2)), (0, 10));
        keep(folder.path(), "b", 10);
        Usage::open(&staging, Some("ann"), 2).unwrap().begin().unwrap();
        assert_eq!(used(&staging, 2), 20);
        fs::remove_file(folder.path().join("users/ann/a")).unwrap();
        let part = staging.create().unwrap();
        let mut usage = Usage::open(&staging, Some("ann"), 2).unwrap();
        // However long the last count took.
        usage.stored.counting_took_ms = 0;
        usage.reserve(&part.id, 90, 100).unwrap();
        drop(usage);
        for damage in ["", "{", "null", "{\"used\":1}"] {
            fs::write(folder.path().join(".nstar-uploads/book-ann"), damage).unwrap();
            assert_eq!(used(&staging, 2), 10, "{damage:?}");
        }
    }

    #[test]
    fn a_refusal_counts_again_only_if_that_is_cheap() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        keep(folder.path(), "a", 10);
        let part = staging.create().unwrap();
        let mut usage = Usage::open(&staging, Some("ann"), 1).unwrap();
        fs::remove_file(folder.path().join("users/ann/a")).unwrap();
        usage.stored.counting_took_ms = 60_000;
        assert!(matches!(usage.reserve(&part.id, 91, 100), Err(Refusal::Quota { used: 10, .. })));
        usage.stored.counting_took_ms = 0;
        usage.reserve(&part.id, 91, 100).unwrap();
    }

    #[test]
    fn who_holds_a_usage_file_for_long_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        let held = Usage::open(&staging, Some("ann"), 1).unwrap();
        assert!(matches!(Usage::open(&staging, Some("ann"), 1), Err(Refusal::Busy)));
        drop(held);
        Usage::open(&staging, Some("ann"), 1).unwrap();
    }

    #[test]
    fn only_so_many_uploads_wait_to_be_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        let mut parts: Vec<Part> = (0..=PARTS_MAX).map(|_| staging.create().unwrap()).collect();
        let keep = |part: &Part| Usage::open(&staging, Some("ann"), 1).unwrap().keep(&part.id);
        parts.iter().take(PARTS_MAX).for_each(|part| keep(part).unwrap());
        assert!(matches!(keep(&parts[PARTS_MAX]), Err(Refusal::Parts { max: PARTS_MAX })));
        keep(&parts[0]).unwrap();
        drop(parts.swap_remove(0));
        keep(&parts[0]).unwrap();
    }

    #[test]
    fn parts_count_what_has_arrived_even_if_the_usage_file_was_lost() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        let upload = |path: &str, length, arrived| {
            let part = staging.create().unwrap();
            part.file.write_all_at(&vec![b'x'; arrived], 0).unwrap();
            let user = Some("ann".to_owned());
            let record = Record::new(path.into(), user, length, Condition::default());
            Usage::open(&staging, record.accountable(), 1).unwrap().keep(&part.id).unwrap();
            record.write(&part.folder, &part.id).unwrap();
            part.keep();
        };
        upload("users/ann/a", None, 10);
        upload("users/bob/b", None, 20);
        upload("all/c", None, 40);
        assert_eq!(used(&staging, 1), 50, "hers, and that to a folder of nobody");
        upload("users/ann/d", Some(100), 5);
        for damage in ["", "{"] {
            fs::write(folder.path().join(".nstar-uploads/book-ann"), damage).unwrap();
            assert_eq!(used(&staging, 1), 150, "{damage:?}");
        }
    }

    #[test]
    fn only_so_many_records_of_finished_uploads_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        let ids: Vec<PartId> = (0..=FINISHED_MAX)
            .map(|_| {
                let part = staging.create().unwrap();
                let (path, condition) = ("users/ann/a".into(), Condition::default());
                let record = Record { done: Some(1), ..Record::new(path, None, None, condition) };
                record.write(&part.folder, &part.id).unwrap();
                Usage::open(&staging, Some("ann"), 1).unwrap().remember(&part.id).unwrap();
                part.keep();
                part.id.clone()
            })
            .collect();
        let parts = staging.folder().unwrap();
        let kept: Vec<bool> = ids.iter().map(|id| Record::exists(&parts, id)).collect();
        assert!(!kept[0] && kept[1..].iter().all(|&kept| kept), "{kept:?}");
    }

    #[test]
    fn concurrent_uploads_never_exceed_the_quota_together() {
        let folder = tempfile::tempdir().unwrap();
        let staging = staging(folder.path());
        let parts: Vec<_> = std::thread::scope(|scope| {
            let each: Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| {
                        let part = staging.create().unwrap();
                        let mut usage = Usage::open(&staging, Some("ann"), 1).unwrap();
                        usage.reserve(&part.id, 30, 100).is_ok().then_some(part)
                    })
                })
                .collect();
            each.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(parts.len(), 3);
    }
}
