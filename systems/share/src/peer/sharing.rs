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

use files::{Folder, Identity};
use rustix::process::setpriority_process;

use super::{
    catalogue::{Catalogue, Shared},
    error::PeerError,
    hashing,
    memory::Memory,
    obtaining::parts,
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
const CLEAN_EVERY: Duration = Duration::from_secs(3600);
/// What a peer keeps of content, within its own folder: hashes, and what is not whole.
const OUTBOARDS: &str = "outboards";
const PARTS: &str = "parts";

/// The shared folder, and what is known of it.
#[derive(Debug)]
pub(crate) struct Sharing {
    pub(crate) folder: Folder,
    pub(crate) root: PathBuf,
    /// The peer's own folder.
    pub(crate) state: Folder,
    pub(crate) state_root: PathBuf,
    pub(crate) catalogue: Catalogue,
    memory: Memory,
    /// Paths that are being hashed.
    in_hand: Mutex<HashSet<String>>,
    /// What was told to be left out.
    told: Mutex<HashSet<(String, String)>>,
    stopping: AtomicBool,
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
        fs::create_dir_all(state.join(OUTBOARDS)).map_err(unusable)?;
        let memory = Memory::open(&state.join("memory")).map_err(unusable)?;
        let state_folder = Folder::open(state).map_err(|error| unusable(io::Error::other(error)))?;
        let sharing = Self {
            folder,
            root: root.to_owned(),
            state: state_folder,
            state_root: state.to_owned(),
            catalogue: Catalogue::default(),
            memory,
            in_hand: Mutex::default(),
            told: Mutex::default(),
            stopping: AtomicBool::new(false),
        };
        sharing.tidy().map_err(unusable)?;
        Ok(sharing)
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
            let identity = Identity::of(&fs::symlink_metadata(self.root.join(&path))?);
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

    /// Where the outboard of some content is, within the peer's own folder.
    pub(crate) fn outboard_path(content: &Content) -> String {
        format!("{OUTBOARDS}/{content}")
    }

    fn has_outboard(&self, content: &Content, size: u64) -> bool {
        // One that a power cut left empty is none.
        let length = hashing::outboard_len(size);
        let found = || fs::metadata(self.state_root.join(Self::outboard_path(content)));
        length == 0 || found().is_ok_and(|found| found.len() == length)
    }

    /// Takes away outboards of content that is no longer known, and those that were never finished.
    fn tidy(&self) -> io::Result<()> {
        let known = self.memory.contents();
        for entry in fs::read_dir(self.state_root.join(OUTBOARDS))? {
            let entry = entry?;
            let content = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if content.is_none_or(|content| !known.contains(&content)) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Keeps the outboard of some content. It is whole or not there.
    pub(crate) fn keep_outboard(&self, content: &Content, outboard: &[u8]) -> io::Result<()> {
        let path = self.state_root.join(Self::outboard_path(content));
        let kept = || fs::metadata(&path).is_ok_and(|found| found.len() == outboard.len() as u64);
        if outboard.is_empty() || kept() {
            return Ok(());
        }
        let aside = path.with_extension(format!("{:?}", thread::current().id()));
        fs::write(&aside, outboard)?;
        fs::rename(aside, path)
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
    }

    /// Looks through the folder once; `false` when some files are still to be looked at again.
    fn look(&self, watch: &Watch, jobs: &Jobs) -> bool {
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
        if let Some(content) = known.filter(|content| self.has_outboard(content, identity.size())) {
            let entry = Entry { name: name.clone(), content, size: identity.size() };
            self.catalogue.share(path, Shared { entry, identity: *identity });
            return true;
        }
        self.catalogue.unshare(path);
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
            match self.hash(&seen) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                Err(error) => self.tell(&seen.path, &format!("is not shared: it cannot be read ({error})")),
            }
            self.in_hand().remove(&seen.path);
        }
    }

    /// Names a file and shares it, unless it changed meanwhile: then it is looked at again.
    fn hash(&self, seen: &Seen) -> io::Result<()> {
        let changed = || io::Error::from(io::ErrorKind::ResourceBusy);
        let Some((file, identity)) = self.folder.file(&seen.path) else {
            return File::open(self.root.join(&seen.path)).and_then(|_| Err(changed()));
        };
        if identity != seen.identity {
            return Err(changed());
        }
        let size = identity.size();
        let (content, outboard) = hashing::name(&file, size)?;
        if !identity.is_of(&file.metadata()?) {
            return Err(changed());
        }
        self.keep_outboard(&content, &outboard)?;
        self.memory.learn([(seen.path.as_str(), &identity, content)])?;
        if !self.memory.is_removed(&seen.path) {
            let entry = Entry { name: seen.name.clone(), content, size };
            self.catalogue.share(&seen.path, Shared { entry, identity });
        }
        Ok(())
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
