//! Keeps the catalogue up to date with the shared folder: finds new, changed and deleted files, and has them hashed.

mod catalogue;
mod failures;
pub(crate) mod hashing;
pub(crate) mod journal;
pub(crate) mod outboards;
pub(crate) mod partial;
#[cfg(test)]
mod tests;
pub(crate) mod walk;
mod watch;

use std::{
    collections::HashSet,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use folder::{FileState, Folder};
use rustix::process::setpriority_process;

use self::{
    catalogue::{Catalogue, SharedFile},
    failures::{Failures, NotHashed, PAUSE_MAX},
    journal::Journal,
    outboards::Outboards,
    walk::{Walk, WalkedFile},
    watch::{RootCheck, Watch},
};
use super::error::PeerError;
use crate::entry::{Content, Entry};

/// How long a file must be unchanged before it is hashed, so that a file being written is not hashed again and again.
const QUIET: Duration = Duration::from_millis(200);
/// How often the folder is walked through when no change is reported.
const WALK_INTERVAL: Duration = Duration::from_secs(30);
/// How soon a stop is noticed.
const STOP_POLL: Duration = Duration::from_millis(500);
/// Length from which on a file is hashed by a separate thread, with helpers, so that small files never wait for it. Bytes.
const LARGE: u64 = 64 * 1024 * 1024;
/// The niceness of threads that hash (nice(2)), so that sending files goes first.
const NICENESS: i32 = 10;
/// How often abandoned files are cleaned up.
const CLEAN_INTERVAL: Duration = Duration::from_secs(300);
/// The folder for incomplete downloads, within the state folder.
const PARTIALS: &str = "parts";

/// The shared folder, and what is known about it.
#[derive(Debug)]
pub(crate) struct SharedFolder {
    pub(crate) folder: Folder,
    pub(crate) root: PathBuf,
    root_check: RootCheck,
    /// The state folder.
    pub(crate) state_folder: Folder,
    pub(crate) state_root: PathBuf,
    pub(crate) catalogue: Catalogue,
    journal: Journal,
    outboards: Outboards,
    failures: Failures,
    /// Paths that are being hashed.
    in_progress: Mutex<HashSet<String>>,
    /// What was logged about paths, to log it once.
    logged: Mutex<HashSet<(String, String)>>,
    stopping: AtomicBool,
    /// The clock for retries.
    clock: fn() -> Instant,
}

/// Queues of files to hash.
struct Jobs {
    small: Sender<WalkedFile>,
    large: Sender<WalkedFile>,
}

impl Jobs {
    fn of(&self, size: u64) -> &Sender<WalkedFile> {
        if size < LARGE { &self.small } else { &self.large }
    }
}

impl SharedFolder {
    /// Shares the folder at `root`; opens the state folder.
    pub(crate) fn open(folder: Folder, root: &Path, state: &Path) -> Result<Self, PeerError> {
        let unusable = |source| PeerError::State { path: state.to_owned(), source };
        let journal = Journal::open(&state.join("memory")).map_err(unusable)?;
        let outboards = Outboards::open(state, &journal.contents()).map_err(unusable)?;
        let state_folder = Folder::open(state).map_err(|error| unusable(io::Error::other(error)))?;
        Ok(Self {
            folder,
            root: root.to_owned(),
            root_check: RootCheck::new(root)?,
            state_folder,
            state_root: state.to_owned(),
            catalogue: Catalogue::default(),
            journal,
            outboards,
            failures: Failures::default(),
            in_progress: Mutex::default(),
            logged: Mutex::default(),
            stopping: AtomicBool::new(false),
            clock: Instant::now,
        })
    }

    /// Starts the threads that look for files and hash them.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let watch = Watch::new()?;
        let small = self.start_hashing(thread::available_parallelism().map_or(1, usize::from))?;
        let jobs = Jobs { small, large: self.start_hashing(1)? };
        let shared = Arc::clone(self);
        thread::Builder::new().name("share-look".into()).spawn(move || shared.run(&watch, &jobs))?;
        Ok(())
    }

    fn start_hashing(self: &Arc<Self>, threads: usize) -> io::Result<Sender<WalkedFile>> {
        let (jobs, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let (shared, waiting) = (Arc::clone(self), Arc::clone(&waiting));
            thread::Builder::new().name("share-hash".into()).spawn(move || shared.hash_all(&waiting))?;
        }
        Ok(jobs)
    }

    /// Makes the threads end soon.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, SeqCst);
    }

    /// Stops sharing a file until it is deleted from the folder.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        self.journal.remove(path)?;
        self.catalogue.unshare(path);
        Ok(())
    }

    /// Lets a file that is about to come to a path be shared, although one that was there was removed from sharing. If that is
    /// still there, it stays so. Otherwise the next walk would notice first that it is gone.
    pub(crate) fn make_way(&self, path: &str) -> io::Result<()> {
        self.journal.forget_removed(path, &self.root)
    }

    /// Shares files whose content is known already, by their paths.
    pub(crate) fn share_known(&self, files: Vec<(String, Entry)>) -> io::Result<()> {
        let state = |(path, entry): (String, Entry)| {
            let state = FileState::of(&fs::symlink_metadata(self.root.join(&path))?);
            Ok((path, SharedFile { entry, state }))
        };
        let files = files.into_iter().map(state).collect::<io::Result<Vec<_>>>()?;
        let known = files.iter().map(|(path, shared)| (path.as_str(), &shared.state, shared.entry.content));
        self.journal.learn(known)?;
        for (path, shared) in files {
            self.catalogue.share(&path, shared);
        }
        Ok(())
    }

    /// The folder for incomplete downloads.
    pub(crate) fn partials(&self) -> PathBuf {
        self.state_root.join(PARTIALS)
    }

    /// Stores the outboard of some content, completely or not at all.
    pub(crate) fn keep_outboard(&self, content: &Content, outboard: &[u8]) -> io::Result<()> {
        self.outboards.keep(content, outboard)
    }

    /// A warning for people about what keeps files from being shared, if anything does.
    pub(crate) fn warning(&self) -> Option<String> {
        self.root_check.warning().or_else(|| self.unstored())
    }

    fn unstored(&self) -> Option<String> {
        let (count, why) = self.failures.unstored()?;
        Some(format!(
            "{count} of the files in {:?} cannot be shared, as their hashes cannot be saved in {:?} ({why}); each is \
             tried again {} minutes later at most",
            self.root,
            self.state_root,
            PAUSE_MAX.as_secs() / 60
        ))
    }

    fn run(&self, watch: &Watch, jobs: &Jobs) {
        let mut cleaned: Option<Instant> = None;
        while !self.stopping.load(SeqCst) {
            if cleaned.is_none_or(|at| at.elapsed() >= CLEAN_INTERVAL) {
                self.clean();
                cleaned = Some(Instant::now());
            }
            let started = Instant::now();
            let all_shared = self.walk(watch, jobs);
            let took = started.elapsed();
            // A large folder that changes all the time must not keep a processor busy.
            thread::sleep((took * 4).clamp(Duration::from_millis(20), WALK_INTERVAL));
            let patience = if all_shared { WALK_INTERVAL } else { QUIET / 2 };
            let until = Instant::now() + patience;
            while !self.stopping.load(SeqCst) && Instant::now() < until {
                if watch.wait(STOP_POLL.min(until.saturating_duration_since(Instant::now()))) {
                    break;
                }
            }
        }
    }

    fn clean(&self) {
        if let Err(error) = partial::clean(&self.partials(), SystemTime::now()) {
            tracing::warn!(%error, "what was abandoned of downloads cannot be cleaned away");
        }
        if let Err(error) = self.clean_outboards() {
            tracing::warn!(%error, "the hashes of what is no longer there cannot be cleaned away");
        }
    }

    /// Deletes outboards, except those of known files and of downloads.
    fn clean_outboards(&self) -> io::Result<()> {
        let (known, partials) = (self.journal.contents(), partial::contents(&self.partials())?);
        self.outboards.clean(|content| known.contains(content) || partials.contains(content))
    }

    /// Walks through the folder once. Returns `false` if some files have to be looked at again.
    fn walk(&self, watch: &Watch, jobs: &Jobs) -> bool {
        if !self.root_check.is_unchanged() {
            // The journal keeps everything about the files: the folder may come back.
            self.catalogue.paths().iter().for_each(|path| self.catalogue.unshare(path));
            return true;
        }
        let walk = Walk::through(&self.root);
        for folder in &walk.folders {
            if let Err(error) = watch.add(&self.root.join(folder)) {
                self.log_once(
                    folder,
                    &format!("changes cannot be watched for ({error}); it is looked at every 30 s"),
                );
            }
        }
        for (path, why) in &walk.left_out {
            self.log_once(path, &format!("is not shared: {why}"));
        }
        let there: HashSet<_> = walk.files.iter().map(|file| file.path.clone()).collect();
        for gone in self.catalogue.paths().difference(&there) {
            self.catalogue.unshare(gone);
        }
        if let Err(error) = self.journal.forget_all_but(&there, &self.root) {
            tracing::error!(%error, "the catalogue of shared files cannot be saved");
        }
        self.failures.forget_all_but(&there);
        let waiting = walk.files.into_iter().filter(|file| !self.share_or_hash(file, jobs)).count();
        waiting == 0
    }

    /// Shares a known file, or has it hashed. Returns `false` if it has to be looked at again.
    fn share_or_hash(&self, file: &WalkedFile, jobs: &Jobs) -> bool {
        let WalkedFile { path, name, state } = file;
        if self.journal.is_removed(path) {
            // It may have been removed while it was hashed, and shared after that.
            self.catalogue.unshare(path);
            return true;
        }
        if self.catalogue.state(path) == Some(*state) {
            return true;
        }
        let known = self.journal.content(path, state);
        if let Some(content) = known.filter(|content| self.outboards.has(content, state.size())) {
            let entry = Entry { name: name.clone(), content, size: state.size() };
            self.catalogue.share(path, SharedFile { entry, state: *state });
            return true;
        }
        self.catalogue.unshare(path);
        if self.failures.is_paused(file, (self.clock)()) {
            return true;
        }
        if SystemTime::now().checked_sub(QUIET).is_some_and(|quiet| state.is_settled(quiet))
            && self.in_progress().insert(path.clone())
        {
            let job = WalkedFile { path: path.clone(), name: name.clone(), state: *state };
            // The receiving threads live as long as the program.
            let _ = jobs.of(state.size()).send(job);
        }
        false
    }

    fn hash_all(&self, waiting: &Mutex<Receiver<WalkedFile>>) {
        // If the system refuses, hashing competes with sending. Helper threads inherit the niceness.
        let _ = setpriority_process(None, NICENESS);
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(file) = next else { return };
            if self.stopping.load(SeqCst) {
                return;
            }
            self.try_to_hash(&file);
            self.in_progress().remove(&file.path);
        }
    }

    /// Hashes all files again that are shared with this content, because a disk may change bytes that nobody wrote. A changed
    /// file is then shared as what it is now, and an unreadable one no longer.
    pub(crate) fn check(&self, content: &Content) {
        for (path, SharedFile { entry, state }) in self.catalogue.holding(content) {
            if !self.in_progress().insert(path.clone()) {
                continue;
            }
            if !self.try_to_hash(&WalkedFile { path: path.clone(), name: entry.name, state }) {
                if let Err(error) = self.journal.forget(&path) {
                    tracing::error!(%error, "the catalogue of shared files cannot be saved");
                }
                self.catalogue.unshare(&path);
            } else if self.journal.content(&path, &state) != Some(*content) {
                self.log_once(
                    &path,
                    "holds other bytes than before, though nobody wrote to it: check its disk",
                );
            }
            self.in_progress().remove(&path);
        }
    }

    /// Tries to hash a file in the state in which it was found. Returns whether that succeeded.
    fn try_to_hash(&self, walked: &WalkedFile) -> bool {
        let begun = (self.clock)();
        let hashed = self.hash(walked);
        let done = hashed.is_ok();
        match hashed {
            Ok(()) | Err(NotHashed::Changed) => self.failures.forget(&walked.path),
            Err(why) => {
                self.log_once(&walked.path, &format!("is not shared: {why}"));
                let now = (self.clock)();
                self.failures.note(walked, why, now.saturating_duration_since(begun), now);
            }
        }
        done
    }

    /// Hashes a file and shares it, unless it has changed meanwhile.
    fn hash(&self, walked: &WalkedFile) -> Result<(), NotHashed> {
        let (file, state) = self.folder.file(&walked.path).ok_or_else(|| self.why_not_opened(walked))?;
        if state != walked.state {
            return Err(NotHashed::Changed);
        }
        let size = state.size();
        let hashed = hashing::hash_file(&file, size).map_err(NotHashed::Unreadable);
        if !state.is_of(&file.metadata().map_err(NotHashed::Unreadable)?) {
            return Err(NotHashed::Changed);
        }
        let (content, outboard) = hashed?;
        self.keep_outboard(&content, &outboard).map_err(NotHashed::Unstored)?;
        self.journal.learn([(walked.path.as_str(), &state, content)]).map_err(NotHashed::Unstored)?;
        if !self.journal.is_removed(&walked.path) {
            let entry = Entry { name: walked.name.clone(), content, size };
            self.catalogue.share(&walked.path, SharedFile { entry, state });
        }
        Ok(())
    }

    fn why_not_opened(&self, walked: &WalkedFile) -> NotHashed {
        match File::open(self.root.join(&walked.path)).and_then(|file| file.metadata()) {
            Ok(metadata) if walked.state.is_of(&metadata) => {
                NotHashed::Unreadable(io::Error::other("it is not within the folder as that was opened"))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => NotHashed::Unreadable(error),
            _ => NotHashed::Changed,
        }
    }

    /// Logs a message about a path, once.
    fn log_once(&self, path: &str, what: &str) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.insert((path.to_owned(), what.to_owned())) {
            tracing::warn!("{:?} {what}", self.root.join(path));
        }
    }

    fn in_progress(&self) -> MutexGuard<'_, HashSet<String>> {
        // No code panics while holding the lock.
        self.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
