//! Keeps the catalogue as the folder is: finds what came, changed and went, and has it named.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, BufReader, Read},
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

use super::{
    catalogue::{Catalogue, Shared},
    error::PeerError,
    hashing,
    memory::Memory,
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
/// Read at a time, bytes.
const READ_LEN: usize = 1024 * 1024;
/// What a peer keeps of content, within its own folder.
const OUTBOARDS: &str = "outboards";

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
        let (jobs, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (sharing, waiting) = (Arc::clone(self), Arc::clone(&waiting));
            thread::Builder::new().name("share-hash".into()).spawn(move || sharing.hash_all(&waiting))?;
        }
        let sharing = Arc::clone(self);
        thread::Builder::new()
            .name("share-look".into())
            .spawn(move || sharing.keep_looking(&watch, &jobs))?;
        Ok(())
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

    /// Shares a file whose content is known already.
    pub(crate) fn share_known(&self, path: &str, entry: Entry) -> io::Result<()> {
        let identity = Identity::of(&fs::symlink_metadata(self.root.join(path))?);
        self.memory.learn(path, &identity, entry.content)?;
        self.catalogue.share(path, Shared { entry, identity });
        Ok(())
    }

    /// Where the outboard of some content is, within the peer's own folder.
    pub(crate) fn outboard_path(content: &Content) -> String {
        format!("{OUTBOARDS}/{content}")
    }

    fn has_outboard(&self, content: &Content, size: u64) -> bool {
        hashing::outboard_len(size) == 0 || self.state_root.join(Self::outboard_path(content)).exists()
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
        if outboard.is_empty() || path.exists() {
            return Ok(());
        }
        let aside = path.with_extension(format!("{:?}", thread::current().id()));
        fs::write(&aside, outboard)?;
        fs::rename(aside, path)
    }

    fn keep_looking(&self, watch: &Watch, jobs: &Sender<Seen>) {
        while !self.stopping.load(SeqCst) {
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

    /// Looks through the folder once; `false` when some files are still to be looked at again.
    fn look(&self, watch: &Watch, jobs: &Sender<Seen>) -> bool {
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
    fn take_up(&self, seen: &Seen, jobs: &Sender<Seen>) -> bool {
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
            let _ = jobs.send(job);
        }
        false
    }

    fn hash_all(&self, waiting: &Mutex<Receiver<Seen>>) {
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
        let buffer = READ_LEN.min(usize::try_from(size).unwrap_or(READ_LEN));
        let (content, outboard) = hashing::name(BufReader::with_capacity(buffer, (&file).take(size)), size)?;
        if !identity.is_of(&file.metadata()?) {
            return Err(changed());
        }
        self.keep_outboard(&content, &outboard)?;
        self.memory.learn(&seen.path, &identity, content)?;
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
