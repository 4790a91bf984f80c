//! Keeps the catalogue as the folder is: finds what came, changed and went, and has it named.

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

use super::{
    catalogue::{Catalogue, Shared},
    error::PeerError,
    failures::{Failures, NotHashed, PAUSE_MAX},
    hashing,
    memory::Memory,
    obtaining::parts,
    outboards::Outboards,
    root::Root,
    walk::{Seen, Walk},
    watch::Watch,
};
use crate::{content::Content, seam::Entry};

/// How long a file must have been left alone before it is hashed, so that one being written is not hashed again and again.
const QUIET: Duration = Duration::from_millis(200);
/// How often the folder is looked through though nothing was heard.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How soon a stop is noticed.
const TICK: Duration = Duration::from_millis(500);
/// From this length on a file is hashed by a thread for such, several of whose helpers share the work: small ones never
/// wait for it. Bytes.
const LARGE: u64 = 64 * 1024 * 1024;
/// How far those who hash stand back from those who share (nice(2)).
const STAND_BACK: i32 = 10;
/// How often what was abandoned is looked for.
const CLEAN_EVERY: Duration = Duration::from_secs(300);
/// Where a peer keeps what is not whole, within its own folder.
const PARTS: &str = "parts";

/// The shared folder, and what is known of it.
#[derive(Debug)]
pub(crate) struct Sharing {
    pub(crate) folder: Folder,
    pub(crate) root: PathBuf,
    opened: Root,
    /// The peer's own folder.
    pub(crate) state: Folder,
    pub(crate) state_root: PathBuf,
    pub(crate) catalogue: Catalogue,
    memory: Memory,
    outboards: Outboards,
    failures: Failures,
    /// Paths that are being hashed.
    in_hand: Mutex<HashSet<String>>,
    /// What was told to be left out.
    told: Mutex<HashSet<(String, String)>>,
    stopping: AtomicBool,
    /// By which what failed is tried again.
    clock: fn() -> Instant,
}

/// Files that are to be hashed.
struct Jobs {
    small: Sender<Seen>,
    large: Sender<Seen>,
}

impl Jobs {
    fn of(&self, size: u64) -> &Sender<Seen> {
        if size < LARGE { &self.small } else { &self.large }
    }
}

impl Sharing {
    /// Of the folder at `root`; opens the peer's own.
    pub(crate) fn open(folder: Folder, root: &Path, state: &Path) -> Result<Self, PeerError> {
        let unusable = |source| PeerError::State { path: state.to_owned(), source };
        let memory = Memory::open(&state.join("memory")).map_err(unusable)?;
        let outboards = Outboards::open(state, &memory.contents()).map_err(unusable)?;
        let state_folder = Folder::open(state).map_err(|error| unusable(io::Error::other(error)))?;
        Ok(Self {
            folder,
            root: root.to_owned(),
            opened: Root::at(root)?,
            state: state_folder,
            state_root: state.to_owned(),
            catalogue: Catalogue::default(),
            memory,
            outboards,
            failures: Failures::default(),
            in_hand: Mutex::default(),
            told: Mutex::default(),
            stopping: AtomicBool::new(false),
            clock: Instant::now,
        })
    }

    /// Starts looking, and hashing, in threads of their own.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let watch = Watch::new()?;
        let small = self.start_hashing(thread::available_parallelism().map_or(1, usize::from))?;
        let jobs = Jobs { small, large: self.start_hashing(1)? };
        let sharing = Arc::clone(self);
        thread::Builder::new()
            .name("share-look".into())
            .spawn(move || sharing.keep_looking(&watch, &jobs))?;
        Ok(())
    }

    fn start_hashing(self: &Arc<Self>, threads: usize) -> io::Result<Sender<Seen>> {
        let (jobs, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let (sharing, waiting) = (Arc::clone(self), Arc::clone(&waiting));
            thread::Builder::new().name("share-hash".into()).spawn(move || sharing.hash_all(&waiting))?;
        }
        Ok(jobs)
    }

    /// The threads end soon.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, SeqCst);
    }

    /// Takes a file out of sharing until it leaves the folder.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        self.memory.remove(path)?;
        self.catalogue.unshare(path);
        Ok(())
    }

    /// Shares files, by their paths, whose content is known already.
    pub(crate) fn share_known(&self, files: Vec<(String, Entry)>) -> io::Result<()> {
        let state = |(path, entry): (String, Entry)| {
            let identity = FileState::of(&fs::symlink_metadata(self.root.join(&path))?);
            Ok((path, Shared { entry, identity }))
        };
        let files = files.into_iter().map(state).collect::<io::Result<Vec<_>>>()?;
        let known =
            files.iter().map(|(path, shared)| (path.as_str(), &shared.identity, shared.entry.content));
        self.memory.learn(known)?;
        for (path, shared) in files {
            self.catalogue.share(&path, shared);
        }
        Ok(())
    }

    /// Where content is kept while it is not whole.
    pub(crate) fn parts(&self) -> PathBuf {
        self.state_root.join(PARTS)
    }

    /// Keeps the outboard of some content. It is whole or not there.
    pub(crate) fn keep_outboard(&self, content: &Content, outboard: &[u8]) -> io::Result<()> {
        self.outboards.keep(content, outboard)
    }

    /// What keeps files from being shared that nobody but the owner of this machine can mend.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.opened.trouble().or_else(|| self.unkept())
    }

    fn unkept(&self) -> Option<String> {
        let (count, why) = self.failures.unkept()?;
        Some(format!(
            "{count} of the files in {:?} cannot be shared, as their hashes cannot be kept in {:?} ({why}); each is \
             tried again {} minutes later at most",
            self.root,
            self.state_root,
            PAUSE_MAX.as_secs() / 60
        ))
    }

    fn keep_looking(&self, watch: &Watch, jobs: &Jobs) {
        let mut cleaned: Option<Instant> = None;
        while !self.stopping.load(SeqCst) {
            if cleaned.is_none_or(|at| at.elapsed() >= CLEAN_EVERY) {
                self.clean();
                cleaned = Some(Instant::now());
            }
            let started = Instant::now();
            let all_named = self.look(watch, jobs);
            let took = started.elapsed();
            // A large folder that changes all the time is not to keep a processor busy.
            thread::sleep((took * 4).clamp(Duration::from_millis(20), LOOK_EVERY));
            let patience = if all_named { LOOK_EVERY } else { QUIET / 2 };
            let until = Instant::now() + patience;
            while !self.stopping.load(SeqCst) && Instant::now() < until {
                if watch.wait(TICK.min(until.saturating_duration_since(Instant::now()))) {
                    break;
                }
            }
        }
    }

    fn clean(&self) {
        if let Err(error) = parts::clean(&self.parts(), SystemTime::now()) {
            tracing::warn!(%error, "what was abandoned of downloads cannot be cleaned away");
        }
        if let Err(error) = self.clean_outboards() {
            tracing::warn!(%error, "the hashes of what is no longer there cannot be cleaned away");
        }
    }

    /// Outboards are needed for what is known of, and for what is being obtained.
    fn clean_outboards(&self) -> io::Result<()> {
        let (known, parts) = (self.memory.contents(), parts::contents(&self.parts())?);
        self.outboards.clean(|content| known.contains(content) || parts.contains(content))
    }

    /// Looks through the folder once; `false` when some files are still to be looked at again.
    fn look(&self, watch: &Watch, jobs: &Jobs) -> bool {
        if !self.opened.is_there() {
            // Nothing that is remembered of the files is forgotten: the folder may come back.
            self.catalogue.paths().iter().for_each(|path| self.catalogue.unshare(path));
            return true;
        }
        let walk = Walk::through(&self.root);
        for folder in &walk.folders {
            if let Err(error) = watch.add(&self.root.join(folder)) {
                self.tell(
                    folder,
                    &format!("changes cannot be watched for ({error}); it is looked at every 30 s"),
                );
            }
        }
        for (path, why) in &walk.left_out {
            self.tell(path, &format!("is not shared: {why}"));
        }
        let there: HashSet<_> = walk.files.iter().map(|seen| seen.path.clone()).collect();
        for gone in self.catalogue.paths().difference(&there) {
            self.catalogue.unshare(gone);
        }
        if let Err(error) = self.memory.forget_all_but(&there) {
            tracing::error!(%error, "what is known of the shared files cannot be kept");
        }
        self.failures.forget_all_but(&there);
        let waiting = walk.files.into_iter().filter(|seen| !self.take_up(seen, jobs)).count();
        waiting == 0
    }

    /// Shares a file that is known, and has another hashed; `false` when it is to be looked at again.
    fn take_up(&self, seen: &Seen, jobs: &Jobs) -> bool {
        let Seen { path, name, identity } = seen;
        if self.memory.is_removed(path) || self.catalogue.identity(path) == Some(*identity) {
            return true;
        }
        let known = self.memory.content(path, identity);
        if let Some(content) = known.filter(|content| self.outboards.has(content, identity.size())) {
            let entry = Entry { name: name.clone(), content, size: identity.size() };
            self.catalogue.share(path, Shared { entry, identity: *identity });
            return true;
        }
        self.catalogue.unshare(path);
        if self.failures.is_left_alone(seen, (self.clock)()) {
            return true;
        }
        if SystemTime::now().checked_sub(QUIET).is_some_and(|quiet| identity.is_settled(quiet))
            && self.in_hand().insert(path.clone())
        {
            let job = Seen { path: path.clone(), name: name.clone(), identity: *identity };
            // The hashers end only with the program.
            let _ = jobs.of(identity.size()).send(job);
        }
        false
    }

    fn hash_all(&self, waiting: &Mutex<Receiver<Seen>>) {
        // Where that is refused they compete; a thread that one of them starts is as it is.
        let _ = setpriority_process(None, STAND_BACK);
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(seen) = next else { return };
            if self.stopping.load(SeqCst) {
                return;
            }
            self.try_to_hash(&seen);
            self.in_hand().remove(&seen.path);
        }
    }

    /// Hashes the files again that are shared as this content: a disk may change bytes that nobody wrote. What is not it any
    /// more is shared as what it is now, or not at all where it cannot be read.
    pub(crate) fn check(&self, content: &Content) {
        for (path, Shared { entry, identity }) in self.catalogue.holding(content) {
            if !self.in_hand().insert(path.clone()) {
                continue;
            }
            if !self.try_to_hash(&Seen { path: path.clone(), name: entry.name, identity }) {
                if let Err(error) = self.memory.forget(&path) {
                    tracing::error!(%error, "what is known of the shared files cannot be kept");
                }
                self.catalogue.unshare(&path);
            } else if self.memory.content(&path, &identity) != Some(*content) {
                self.tell(&path, "holds other bytes than before, though nobody wrote to it: check its disk");
            }
            self.in_hand().remove(&path);
        }
    }

    /// Whether it could be hashed as it was seen.
    fn try_to_hash(&self, seen: &Seen) -> bool {
        let begun = (self.clock)();
        let hashed = self.hash(seen);
        let done = hashed.is_ok();
        match hashed {
            Ok(()) | Err(NotHashed::Changed) => self.failures.forget(&seen.path),
            Err(why) => {
                self.tell(&seen.path, &format!("is not shared: {why}"));
                let now = (self.clock)();
                self.failures.note(seen, why, now.saturating_duration_since(begun), now);
            }
        }
        done
    }

    /// Names a file and shares it, unless it changed meanwhile: then it is looked at again.
    fn hash(&self, seen: &Seen) -> Result<(), NotHashed> {
        let (file, identity) = self.folder.file(&seen.path).ok_or_else(|| self.why_not_opened(seen))?;
        if identity != seen.identity {
            return Err(NotHashed::Changed);
        }
        let size = identity.size();
        let named = hashing::name(&file, size).map_err(NotHashed::Unreadable);
        if !identity.is_of(&file.metadata().map_err(NotHashed::Unreadable)?) {
            return Err(NotHashed::Changed);
        }
        let (content, outboard) = named?;
        self.keep_outboard(&content, &outboard).map_err(NotHashed::Unkept)?;
        self.memory.learn([(seen.path.as_str(), &identity, content)]).map_err(NotHashed::Unkept)?;
        if !self.memory.is_removed(&seen.path) {
            let entry = Entry { name: seen.name.clone(), content, size };
            self.catalogue.share(&seen.path, Shared { entry, identity });
        }
        Ok(())
    }

    fn why_not_opened(&self, seen: &Seen) -> NotHashed {
        match File::open(self.root.join(&seen.path)).and_then(|file| file.metadata()) {
            Ok(metadata) if seen.identity.is_of(&metadata) => {
                NotHashed::Unreadable(io::Error::other("it is not within the folder as that was opened"))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => NotHashed::Unreadable(error),
            _ => NotHashed::Changed,
        }
    }

    /// Says once what is wrong with a path.
    fn tell(&self, path: &str, what: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert((path.to_owned(), what.to_owned())) {
            tracing::warn!("{:?} {what}", self.root.join(path));
        }
    }

    fn in_hand(&self) -> MutexGuard<'_, HashSet<String>> {
        // Nothing panics while it is held.
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
