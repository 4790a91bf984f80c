//! Files kept at hand, and looked at again before they could be out of date.
//!
//! A file is kept under the path as it stands in the request, still encoded, so that a hit decodes nothing. What is
//! kept is compared with the file (opened anew, device, inode, length and times) once it was not for
//! [`crate::Options::file_check_every`]; until then a small file is sent as it was in whole, never a mixture.

use std::{
    cell::RefCell,
    hash::{DefaultHasher, Hash, Hasher},
    rc::Rc,
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Release},
    },
    time::{Duration, Instant},
};

use engine::shared::Atomics;
use moka::sync::Cache;

use crate::{
    access::permissions::Permissions,
    reading::representation::{Content, Representation},
    tree::{
        names,
        root::{OpenError, Opened, Root},
        target::{self, BadTarget},
    },
};

/// Longest path that is kept.
const KEY_LEN_MAX: usize = 512;
/// How many files each worker has at hand on its own. Few, for one worker may serve only one connection.
const FRONT_SLOTS: usize = 8;

/// A path as it stands in requests.
type Encoded = Box<str>;

/// What a path names.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    /// A file.
    File(Arc<Representation>),
    /// A directory, by its decoded path.
    Directory(String),
    /// A directory, by its decoded path, asked for without the slash at the end.
    Unslashed(String),
}

/// Why a path names nothing that can be sent.
#[derive(Debug)]
pub(crate) enum FindError {
    /// The path is no path.
    Path(BadTarget),
    /// It cannot be opened or read.
    Open(OpenError),
}

/// The files of the whole server.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    root: Root,
    permissions: Permissions,
    /// How many changes this server has made to its files, in all its processes.
    changes: Arc<Atomics>,
    kept: Cache<Encoded, Arc<Representation>>,
    check_every_ms: u64,
    started: Instant,
}

/// When a file was compared with the disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    /// Milliseconds since the server started.
    pub(crate) at_ms: u64,
    /// How many changes had been made.
    pub(crate) changes: u64,
}

impl OpenFiles {
    /// Keeps files of up to `bytes` in all, each looked at again after `check_every`.
    pub(crate) fn new(root: Root, permissions: Permissions, check_every: Duration, bytes: u64) -> Self {
        let kept = Cache::builder()
            .max_capacity(bytes)
            .weigher(|path: &Encoded, file: &Arc<Representation>| {
                file.weight().saturating_add(u32::try_from(path.len()).unwrap_or(u32::MAX))
            })
            .build();
        let (check_every_ms, changes) = (millis(check_every), Arc::new(Atomics::new(1)));
        Self { root, permissions, changes, kept, check_every_ms, started: Instant::now() }
    }

    /// Who may read and write what.
    pub(crate) fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// Says that files were changed: what was kept is looked at again, in every process.
    pub(crate) fn changed(&self) {
        if let Some(changes) = self.changes.first() {
            changes.fetch_add(1, Release);
        }
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// What the encoded path names now.
    pub(crate) fn find(&self, encoded: &str, now: Instant) -> Result<Found, FindError> {
        let now = self.check(now);
        let kept = self.kept.get(encoded);
        if let Some(file) = kept.as_ref().filter(|file| file.is_fresh(now, self.check_every_ms)) {
            return Ok(Found::File(self.asked_again(encoded, file)));
        }
        let found = self.open(encoded, kept, now);
        match &found {
            Ok(Found::File(file)) if file.may_be_kept() && encoded.len() <= KEY_LEN_MAX => {
                self.kept.insert(encoded.into(), Arc::clone(file));
            }
            _ => self.kept.invalidate(encoded),
        }
        found
    }

    /// Forgets what was kept for a path.
    pub(crate) fn forget(&self, encoded: &str) {
        self.kept.invalidate(encoded);
    }

    /// A kept file, brought into memory where that pays.
    fn asked_again(&self, encoded: &str, file: &Arc<Representation>) -> Arc<Representation> {
        let Some(near) = file.brought_near() else { return Arc::clone(file) };
        let near = Arc::new(near);
        self.kept.insert(encoded.into(), Arc::clone(&near));
        near
    }

    fn open(&self, encoded: &str, kept: Option<Arc<Representation>>, now: Check) -> Result<Found, FindError> {
        let target = target::decode(encoded).map_err(FindError::Path)?;
        if names::is_reserved(&target.path) {
            return Err(FindError::Open(OpenError::NotFound));
        }
        let (file, identity) = match (self.root.open_beneath(&target.path), target.directory) {
            (Ok(Opened::File(file, identity)), false) => (file, identity),
            (Ok(Opened::File(..)), true) => return Err(FindError::Open(OpenError::NotFound)),
            (Ok(Opened::Directory), true) => return Ok(Found::Directory(target.path.into_owned())),
            (Ok(Opened::Directory), false) => return Ok(Found::Unslashed(target.path.into_owned())),
            (Err(error), _) => return Err(FindError::Open(error)),
        };
        if let Some(same) = kept.filter(|kept| kept.identity == identity) {
            same.checked(now);
            return Ok(Found::File(same));
        }
        let place = self.permissions.place(&target.path);
        let read = Representation::new(&target.path, file, identity, now);
        read.map(|file| file.at(place))
            .map(|file| Found::File(Arc::new(file)))
            .map_err(|error| FindError::Open(error.into()))
    }

    /// A comparison with the disk that begins now.
    fn check(&self, now: Instant) -> Check {
        let changes = self.changes.first().map_or(0, |changes| changes.load(Acquire));
        Check { at_ms: millis(now.saturating_duration_since(self.started)), changes }
    }
}

/// The files one worker has at hand: small ones only, looked up without a lock.
#[derive(Debug, Default)]
pub(crate) struct Front {
    slots: RefCell<[Option<Rc<AtHand>>; FRONT_SLOTS]>,
}

/// A file at hand.
#[derive(Debug)]
pub(crate) struct AtHand {
    encoded: Encoded,
    /// The file.
    pub(crate) file: Arc<Representation>,
}

impl Front {
    /// A file that is at hand and was compared with the disk lately.
    pub(crate) fn get(&self, encoded: &str, behind: &OpenFiles, now: Instant) -> Option<Rc<AtHand>> {
        let slots = self.slots.borrow();
        let slot = slots.get(place(encoded))?.as_ref()?;
        let current =
            slot.encoded.as_ref() == encoded && slot.file.is_fresh(behind.check(now), behind.check_every_ms);
        current.then(|| Rc::clone(slot))
    }

    /// Puts a small file at hand.
    pub(crate) fn put(&self, encoded: &str, file: &Arc<Representation>) {
        let small = matches!(file.content, Content::Bytes(_)) && file.may_be_kept();
        if !small || encoded.len() > KEY_LEN_MAX {
            return;
        }
        if let Some(slot) = self.slots.borrow_mut().get_mut(place(encoded)) {
            *slot = Some(Rc::new(AtHand { encoded: encoded.into(), file: Arc::clone(file) }));
        }
    }
}

fn place(encoded: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    encoded.hash(&mut hasher);
    (hasher.finish() % FRONT_SLOTS as u64) as usize
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::{fs, fs::FileTimes, path::Path, time::SystemTime};

    use super::*;

    const EVERY: Duration = Duration::from_secs(1);

    fn open(folder: &Path) -> OpenFiles {
        OpenFiles::new(Root::open(folder).unwrap(), Permissions::default(), EVERY, 1 << 20)
    }

    fn file(files: &OpenFiles, path: &str, now: Instant) -> Arc<Representation> {
        match files.find(path, now).unwrap() {
            Found::File(file) => file,
            other => panic!("{other:?}"),
        }
    }

    fn bytes(file: &Representation) -> &[u8] {
        match &file.content {
            Content::Bytes(bytes) => bytes,
            Content::File(_) => panic!("not a small file"),
        }
    }

    /// Waits until a change to the file would show. Not a guess at a duration: the file system is asked.
    fn settle(path: &Path) {
        while !crate::tree::identity::Identity::of(&fs::metadata(path).unwrap()).is_settled(SystemTime::now())
        {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_settled_file_is_kept_and_a_change_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        settle(&path);
        let (files, now) = (open(folder.path()), Instant::now());
        let first = file(&files, "a", now);
        assert!(Arc::ptr_eq(&first, &file(&files, "a", now)));
        assert!(Arc::ptr_eq(&first, &file(&files, "a", now + 2 * EVERY)), "unchanged: the same after a look");

        fs::write(&path, "newer").unwrap();
        let later = file(&files, "a", now + 4 * EVERY);
        assert_eq!((bytes(&first), bytes(&later)), (&b"old"[..], &b"newer"[..]));
        assert_eq!(later.identity.size, 5);
        fs::remove_file(&path).unwrap();
        assert!(files.find("a", now + 6 * EVERY).is_err());
    }

    #[test]
    fn a_change_that_restores_length_and_time_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
            fs::File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
        };
        write("old");
        settle(&path);
        let (files, now) = (open(folder.path()), Instant::now());
        assert_eq!(bytes(&file(&files, "a", now)), b"old");
        write("new");
        assert_eq!(bytes(&file(&files, "a", now + 2 * EVERY)), b"new");
    }

    #[test]
    fn a_change_made_here_is_seen_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        settle(&path);
        let (files, front, now) = (open(folder.path()), Front::default(), Instant::now());
        front.put("a", &file(&files, "a", now));
        fs::write(&path, "new").unwrap();
        assert_eq!(bytes(&file(&files, "a", now)), b"old");
        files.changed();
        assert!(front.get("a", &files, now).is_none());
        assert_eq!(bytes(&file(&files, "a", now)), b"new");
    }

    #[test]
    fn what_is_the_servers_own_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".nstar-uploads")).unwrap();
        fs::write(folder.path().join(".nstar-uploads/part"), "half").unwrap();
        std::os::unix::fs::symlink(".", folder.path().join("here")).unwrap();
        let files = open(folder.path());
        for path in [
            ".nstar-uploads/",
            ".nstar-uploads",
            ".nstar-uploads/part",
            "%2enstar-uploads/part",
            "here/.nstar-uploads/part",
        ] {
            assert!(
                matches!(files.find(path, Instant::now()), Err(FindError::Open(OpenError::NotFound))),
                "{path}"
            );
        }
    }

    #[test]
    fn a_file_just_changed_is_looked_at_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let (files, now) = (open(folder.path()), Instant::now());
        for text in ["one", "two", "six"] {
            fs::write(&path, text).unwrap();
            assert_eq!(bytes(&file(&files, "a", now)), text.as_bytes());
        }
    }

    #[test]
    fn the_front_gives_only_what_is_fresh_and_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        settle(&path);
        let (files, front, now) = (open(folder.path()), Front::default(), Instant::now());
        assert!(front.get("a", &files, now).is_none());
        front.put("a", &file(&files, "a", now));
        assert!(front.get("a", &files, now).is_some());
        assert!(front.get("b", &files, now).is_none());
        assert!(front.get("a", &files, now + EVERY).is_none());
    }

    #[test]
    fn a_file_of_middling_length_comes_into_memory_when_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        for (name, length) in [("middling", 100_000), ("large", 300_000)] {
            fs::write(folder.path().join(name), vec![b'x'; length]).unwrap();
            settle(&folder.path().join(name));
        }
        let (files, now) = (open(folder.path()), Instant::now());
        assert!(matches!(file(&files, "middling", now).content, Content::File(_)));
        assert_eq!(bytes(&file(&files, "middling", now)), vec![b'x'; 100_000]);
        let kept = file(&files, "middling", now);
        assert!(Arc::ptr_eq(&kept, &file(&files, "middling", now)));
        for _ in 0..3 {
            assert!(matches!(file(&files, "large", now).content, Content::File(_)));
        }
    }

    #[test]
    fn a_file_that_was_changed_meanwhile_is_not_brought_into_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, vec![b'x'; 100_000]).unwrap();
        settle(&path);
        let (files, now) = (open(folder.path()), Instant::now());
        file(&files, "a", now);
        fs::write(&path, vec![b'y'; 100_000]).unwrap();
        assert!(matches!(file(&files, "a", now).content, Content::File(_)), "not the old state's");
        settle(&path);
        file(&files, "a", now + 2 * EVERY);
        assert_eq!(bytes(&file(&files, "a", now + 2 * EVERY)), vec![b'y'; 100_000]);
    }

    #[test]
    fn directories_and_large_files_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("large"), vec![0; 32 * 1024 + 1]).unwrap();
        let (files, now) = (open(folder.path()), Instant::now());
        assert!(matches!(files.find("sub/", now), Ok(Found::Directory(path)) if path == "sub"));
        assert!(matches!(files.find("sub", now), Ok(Found::Unslashed(path)) if path == "sub"));
        assert!(matches!(files.find("", now), Ok(Found::Directory(path)) if path.is_empty()));
        assert!(matches!(file(&files, "large", now).content, Content::File(_)));
        assert!(files.find("large/", now).is_err());
    }
}
