//! A cache of files, compared with the disk before an entry could be out of date.
//!
//! The key is the path as it stands in the request, still percent-encoded, so that a hit decodes nothing. Once an entry
//! has not been compared with the file for `check_every`, the file is opened again and its [`FileState`] compared; until
//! then a small file is sent whole as it was, never a mixture of two states.
//!
//! [`FileState`]: crate::FileState

use std::{
    cell::RefCell,
    fmt::Debug,
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
    representation::{Check, Content, Representation},
    root::{OpenError, Opened, Root},
    target::{self, BadTarget},
};

/// Longest path that is cached, bytes.
const KEY_LEN_MAX: usize = 512;
/// Files in each worker's own cache. Few, because a worker may serve only one connection.
const FRONT_SLOTS: usize = 8;
/// Names with this prefix, in any case, belong to the server: they are not listed, sent or accepted.
const RESERVED: &str = ".nstar";

/// A path as it stands in requests.
type Encoded = Box<str>;

/// What a server derives from a file's path and keeps with the cached file, such as the rule that applies to it.
pub trait PathRules: Debug + Send + Sync {
    /// What it derives.
    type Rule: Debug + Clone + Send + Sync + 'static;

    /// The rule of a decoded path.
    fn rule(&self, path: &str) -> Self::Rule;

    /// The rule of a path that leads to another one through a symbolic link.
    fn rule_of_link(&self, path: &str, target: &str) -> Self::Rule;
}

/// No rules.
impl PathRules for () {
    type Rule = ();

    fn rule(&self, _path: &str) {}

    fn rule_of_link(&self, _path: &str, _target: &str) {}
}

/// What a path names. `R` is what [`PathRules`] derives from it.
#[derive(Debug, Clone)]
pub enum Found<R> {
    /// A file.
    File(Arc<Representation<R>>),
    /// A directory, by its decoded path.
    Directory(String),
    /// A directory, by its decoded path, requested without the trailing slash.
    Unslashed(String),
}

/// Why a path names nothing that can be sent.
#[derive(Debug)]
pub enum FindError {
    /// The path is malformed.
    Path(BadTarget),
    /// It cannot be opened or read.
    Open(OpenError),
}

/// The files of a folder.
#[derive(Debug)]
pub struct OpenFiles<P: PathRules> {
    root: Root,
    rules: P,
    /// How many changes this server has made to its files, in all its processes.
    changes: Arc<Atomics>,
    cache: Cache<Encoded, Arc<Representation<P::Rule>>>,
    check_every_ms: u64,
    started: Instant,
}

impl<P: PathRules> OpenFiles<P> {
    /// Caches files of up to `bytes` in all, and compares each with the disk again after `check_every`.
    pub fn new(root: Root, rules: P, check_every: Duration, bytes: u64) -> Self {
        let cache = Cache::builder()
            .max_capacity(bytes)
            .weigher(|path: &Encoded, file: &Arc<Representation<P::Rule>>| {
                file.weight().saturating_add(u32::try_from(path.len()).unwrap_or(u32::MAX))
            })
            .build();
        let (check_every_ms, changes) = (millis(check_every), Arc::new(Atomics::new(1)));
        Self { root, rules, changes, cache, check_every_ms, started: Instant::now() }
    }

    /// The rules of paths.
    pub fn rules(&self) -> &P {
        &self.rules
    }

    /// The folder itself.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Notes that files were changed: every process compares its cached files with the disk again.
    pub fn changed(&self) {
        if let Some(changes) = self.changes.first() {
            changes.fetch_add(1, Release);
        }
    }

    /// Finds what the encoded path names at `now`.
    ///
    /// # Errors
    /// When the path is malformed, or names nothing that can be opened and read.
    pub fn find(&self, encoded: &str, now: Instant) -> Result<Found<P::Rule>, FindError> {
        let now = self.check(now);
        let cached = self.cache.get(encoded);
        if let Some(file) = cached.as_ref().filter(|file| file.is_fresh(now, self.check_every_ms)) {
            return Ok(Found::File(self.requested_again(encoded, file)));
        }
        let found = self.open(encoded, cached, now);
        match &found {
            Ok(Found::File(file)) if file.may_be_cached() && encoded.len() <= KEY_LEN_MAX => {
                self.cache.insert(encoded.into(), Arc::clone(file));
            }
            _ => self.cache.invalidate(encoded),
        }
        found
    }

    /// Removes a path from the cache.
    pub fn forget(&self, encoded: &str) {
        self.cache.invalidate(encoded);
    }

    /// A cached file, read into memory where that pays.
    fn requested_again(
        &self,
        encoded: &str,
        file: &Arc<Representation<P::Rule>>,
    ) -> Arc<Representation<P::Rule>> {
        let Some(in_memory) = file.read_into_memory() else { return Arc::clone(file) };
        let in_memory = Arc::new(in_memory);
        self.cache.insert(encoded.into(), Arc::clone(&in_memory));
        in_memory
    }

    fn open(
        &self,
        encoded: &str,
        cached: Option<Arc<Representation<P::Rule>>>,
        now: Check,
    ) -> Result<Found<P::Rule>, FindError> {
        let target = target::decode(encoded).map_err(FindError::Path)?;
        if is_reserved(&target.path) {
            return Err(FindError::Open(OpenError::NotFound));
        }
        let (opened, link) = self.root.open_with_target(&target.path).map_err(FindError::Open)?;
        if link.as_deref().is_some_and(is_reserved) {
            return Err(FindError::Open(OpenError::NotFound));
        }
        let (file, state) = match (opened, target.directory) {
            (Opened::File(file, state), false) => (file, state),
            (Opened::File(..), true) => return Err(FindError::Open(OpenError::NotFound)),
            (Opened::Directory, true) => return Ok(Found::Directory(target.path.into_owned())),
            (Opened::Directory, false) => return Ok(Found::Unslashed(target.path.into_owned())),
        };
        if let Some(same) = cached.filter(|cached| cached.state == state) {
            same.checked(now);
            return Ok(Found::File(same));
        }
        let rule = match link {
            None => self.rules.rule(&target.path),
            Some(link) => self.rules.rule_of_link(&target.path, &link),
        };
        let read = Representation::new(&target.path, file, state, rule, now);
        read.map(|file| Found::File(Arc::new(file))).map_err(|error| FindError::Open(error.into()))
    }

    /// A comparison with the disk that begins now.
    fn check(&self, now: Instant) -> Check {
        let changes = self.changes.first().map_or(0, |changes| changes.load(Acquire));
        Check { at_ms: millis(now.saturating_duration_since(self.started)), changes }
    }
}

/// One worker's cache: small files only, looked up without a lock.
#[derive(Debug)]
pub struct Front<R> {
    slots: RefCell<[Option<Rc<FrontEntry<R>>>; FRONT_SLOTS]>,
}

/// A file in a worker's cache.
#[derive(Debug)]
pub struct FrontEntry<R> {
    encoded: Encoded,
    /// The file.
    pub file: Arc<Representation<R>>,
}

impl<R> Default for Front<R> {
    fn default() -> Self {
        Self { slots: RefCell::default() }
    }
}

impl<R> Front<R> {
    /// A file that is in the cache and was compared with the disk recently.
    pub fn get<P: PathRules<Rule = R>>(
        &self,
        encoded: &str,
        behind: &OpenFiles<P>,
        now: Instant,
    ) -> Option<Rc<FrontEntry<R>>> {
        let slots = self.slots.borrow();
        let slot = slots.get(slot_of(encoded))?.as_ref()?;
        let current =
            slot.encoded.as_ref() == encoded && slot.file.is_fresh(behind.check(now), behind.check_every_ms);
        current.then(|| Rc::clone(slot))
    }

    /// Caches a small file; ignores larger ones.
    pub fn put(&self, encoded: &str, file: &Arc<Representation<R>>) {
        let small = matches!(file.content, Content::Bytes(_)) && file.may_be_cached();
        if !small || encoded.len() > KEY_LEN_MAX {
            return;
        }
        if let Some(slot) = self.slots.borrow_mut().get_mut(slot_of(encoded)) {
            *slot = Some(Rc::new(FrontEntry { encoded: encoded.into(), file: Arc::clone(file) }));
        }
    }
}

/// Whether a decoded path leads to a name that belongs to the server.
pub fn is_reserved(path: &str) -> bool {
    path.split('/').any(is_reserved_name)
}

/// Whether one name belongs to the server.
pub fn is_reserved_name(name: &str) -> bool {
    name.get(..RESERVED.len()).is_some_and(|start| start.eq_ignore_ascii_case(RESERVED))
}

fn slot_of(encoded: &str) -> usize {
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
    use crate::FileState;

    const EVERY: Duration = Duration::from_secs(1);

    fn open(folder: &Path) -> OpenFiles<()> {
        OpenFiles::new(Root::open(folder).unwrap(), (), EVERY, 1 << 20)
    }

    fn file(files: &OpenFiles<()>, path: &str, now: Instant) -> Arc<Representation<()>> {
        match files.find(path, now).unwrap() {
            Found::File(file) => file,
            other => panic!("{other:?}"),
        }
    }

    fn bytes(file: &Representation<()>) -> &[u8] {
        match &file.content {
            Content::Bytes(bytes) => bytes,
            Content::File(_) => panic!("not a small file"),
        }
    }

    /// Waits until a change to the file would show. Not a guess at a duration: the file system is asked.
    fn settle(path: &Path) {
        while !FileState::of(&fs::metadata(path).unwrap()).is_settled(SystemTime::now()) {
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
        assert_eq!(later.state.size(), 5);
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
        std::os::unix::fs::symlink(".nstar-uploads/part", folder.path().join("link")).unwrap();
        let files = open(folder.path());
        for path in [
            ".nstar-uploads/",
            ".nstar-uploads",
            ".nstar-uploads/part",
            "%2enstar-uploads/part",
            "here/.nstar-uploads/part",
            "link",
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
        let (files, mut now) = (open(folder.path()), Instant::now());
        for text in ["one", "two", "six"] {
            fs::write(&path, text).unwrap();
            assert_eq!(bytes(&file(&files, "a", now)), text.as_bytes());
            // Where the machine stood still before that look, it is no longer just changed, and kept for a while.
            if FileState::of(&fs::metadata(&path).unwrap()).is_settled(SystemTime::now()) {
                now += 2 * EVERY;
            }
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
