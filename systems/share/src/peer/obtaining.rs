//! Takes content from other peers into the shared folder: right, or not at all.

mod fetch;
mod part;
mod plan;
mod progress;
mod source;

use std::{
    collections::{HashMap, HashSet},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

pub use self::progress::{Progress, Source, State};
pub(crate) use self::source::HttpPeers;
use self::{
    fetch::{Fetch, lock},
    part::Part,
};
use super::{hashing::Groups, sharing::Sharing};
use crate::{
    content::Content,
    name::Name,
    seam::{Entry, Found, Index, Obtain, Query},
};

/// Most files that are obtained at once.
const RUNNING_MAX: usize = 16;
/// Most that are remembered when they are over.
const KEPT_MAX: usize = 1000;
/// Most peers that are asked for one file at once.
const SOURCES_MAX: usize = 8;
/// How often the index is asked for more peers.
const SEARCH_EVERY: Duration = Duration::from_secs(2);
/// How long there may be nobody to ask before it is given up.
const GIVE_UP: Duration = Duration::from_secs(15);

/// What is being obtained, and what was.
pub(crate) struct Obtaining {
    pub(crate) index: Arc<dyn Index>,
    pub(crate) obtain: Arc<dyn Obtain>,
    pub(crate) sharing: Arc<Sharing>,
    /// Where this peer can be reached: it is not asked by itself.
    pub(crate) me: OnceLock<SocketAddr>,
    all: Mutex<HashMap<Content, Arc<Mutex<Progress>>>>,
}

/// Too much is being obtained already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{RUNNING_MAX} files are being obtained already")]
pub(crate) struct Busy;

impl Obtaining {
    pub(crate) fn new(index: Arc<dyn Index>, obtain: Arc<dyn Obtain>, sharing: Arc<Sharing>) -> Self {
        Self { index, obtain, sharing, me: OnceLock::new(), all: Mutex::default() }
    }

    /// Begins to obtain some content, unless it is being obtained or here already; tells how far it has come.
    pub(crate) fn begin(self: &Arc<Self>, content: Content, name: Option<Name>) -> Result<Progress, Busy> {
        let mut all = self.all();
        if let Some(known) = all.get(&content) {
            let known = lock(known);
            let here = known.state == State::Done && self.sharing.catalogue.find(&content).is_some();
            if known.state == State::Running || here {
                return Ok(known.clone());
            }
        }
        let running = all.values().filter(|progress| lock(progress).state == State::Running).count();
        if running >= RUNNING_MAX {
            return Err(Busy);
        }
        if all.len() >= KEPT_MAX {
            all.retain(|_, progress| lock(progress).state == State::Running);
        }
        let progress = Arc::new(Mutex::new(Progress::new(content)));
        let (obtaining, running) = (Arc::clone(self), Arc::clone(&progress));
        let started = thread::Builder::new()
            .name("share-obtain".into())
            .spawn(move || obtaining.run(content, name.as_ref(), &running));
        started.map_err(|_| Busy)?;
        all.insert(content, Arc::clone(&progress));
        let begun = lock(&progress).clone();
        Ok(begun)
    }

    /// How far some content has come.
    pub(crate) fn progress(&self, content: &Content) -> Option<Progress> {
        self.all().get(content).map(|progress| lock(progress).clone())
    }

    fn run(&self, content: Content, name: Option<&Name>, progress: &Arc<Mutex<Progress>>) {
        let outcome = match self.sharing.catalogue.find(&content) {
            Some((path, shared)) => {
                let mut progress = lock(progress);
                (progress.size, progress.bytes) = (shared.entry.size, shared.entry.size);
                Ok(path)
            }
            None => self.take(content, name, progress),
        };
        let mut progress = lock(progress);
        match outcome {
            Ok(path) => (progress.path, progress.state) = (Some(path), State::Done),
            Err(why) => (progress.error, progress.state) = (Some(why), State::Failed),
        }
    }

    /// Obtains content that is not here; tells where in the folder it is then.
    fn take(
        &self,
        content: Content,
        name: Option<&Name>,
        progress: &Arc<Mutex<Progress>>,
    ) -> Result<String, String> {
        let begun = Instant::now();
        let mut useless = HashSet::new();
        while begun.elapsed() < GIVE_UP {
            let found = self.search(content);
            for claim in claims(&found) {
                if useless.contains(&claim.entry.size) {
                    continue;
                }
                let name = name.unwrap_or(&claim.entry.name);
                match self.learn(&claim, progress) {
                    Some(groups) => {
                        lock(progress).size = claim.entry.size;
                        if let Some(path) = self.fetch(&claim, groups, name, progress)? {
                            return Ok(path);
                        }
                        useless.insert(claim.entry.size);
                    }
                    None => thread::sleep(Duration::from_millis(100)),
                }
            }
            thread::sleep(Duration::from_millis(500));
        }
        Err(explain(progress))
    }

    /// Those who say they have it; from the catalogue of others, not believed.
    fn search(&self, content: Content) -> Vec<Found> {
        match self.index.search(&Query::Content(content)) {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "no more peers are known while the index is away");
                Vec::new()
            }
        }
    }

    /// What each group must be, from the first peer that can tell.
    fn learn(&self, claim: &Found, progress: &Mutex<Progress>) -> Option<Groups> {
        let Entry { content, size, .. } = &claim.entry;
        if let Some(groups) = Groups::learn(content, *size, &[]) {
            return Some(groups);
        }
        for peer in self.others(claim, progress) {
            match self.obtain.outboard(peer, content, *size) {
                Ok(outboard) => match Groups::learn(content, *size, &outboard) {
                    Some(groups) => {
                        if let Err(error) = self.sharing.keep_outboard(content, &outboard) {
                            tracing::warn!(%error, "the hashes of a file cannot be kept");
                        }
                        return Some(groups);
                    }
                    None => {
                        tracing::warn!(%peer, %content, "a peer sent hashes that are not those of the file");
                        let mut progress = lock(progress);
                        let source = progress.source(peer);
                        source.lied = true;
                        source.trouble = Some("it sent hashes that are not those of the file".into());
                    }
                },
                Err(error) => lock(progress).source(peer).trouble = Some(error.to_string()),
            }
        }
        None
    }

    /// Has all groups from whoever has them. None when nobody could give them all.
    fn fetch(
        &self,
        claim: &Found,
        groups: Groups,
        name: &Name,
        progress: &Arc<Mutex<Progress>>,
    ) -> Result<Option<String>, String> {
        let Entry { content, size, .. } = claim.entry;
        let parts = self.sharing.state_root.join("parts");
        let part = Part::open(&parts, &content, size).map_err(|error| on_disk(&error))?;
        let fetch =
            Arc::new(Fetch::new((content, groups), part, Arc::clone(&self.obtain), Arc::clone(progress)));
        let done = self.ask_all(claim, &fetch, progress);
        let part = fetch.stop().map_err(|error| on_disk(&error))?;
        if !done.map_err(|error| on_disk(&error))? {
            return Ok(None);
        }
        let path = part.place(&self.sharing.root, name).map_err(|error| on_disk(&error))?;
        let entry = Entry { name: path.parse().unwrap_or_else(|_| name.clone()), content, size };
        // Where that fails the folder is looked through, and it is shared then.
        let _ = self.sharing.share_known(&path, entry);
        Ok(Some(path))
    }

    /// Asks everybody who has it, and who comes to have it, until all is had or there is nobody for too long.
    fn ask_all(&self, claim: &Found, fetch: &Arc<Fetch>, progress: &Mutex<Progress>) -> io::Result<bool> {
        let (mut claim, mut alone_since) = (claim.clone(), Instant::now());
        loop {
            let others = self.others(&claim, progress);
            for peer in others.into_iter().take(SOURCES_MAX.saturating_sub(fetch.active())) {
                fetch.ask(peer)?;
            }
            if fetch.wait(SEARCH_EVERY)? {
                return Ok(true);
            }
            match fetch.active() {
                0 if alone_since.elapsed() >= GIVE_UP => return Ok(false),
                0 => thread::sleep(Duration::from_millis(300)),
                _ => alone_since = Instant::now(),
            }
            let found = self.search(claim.entry.content);
            if let Some(now) = claims(&found).into_iter().find(|now| now.entry.size == claim.entry.size) {
                claim.peers = now.peers;
            }
        }
    }

    /// The peers of a claim that have not lied, and are not this one.
    fn others(&self, claim: &Found, progress: &Mutex<Progress>) -> Vec<SocketAddr> {
        let progress = lock(progress);
        let lied = |peer: &SocketAddr| progress.sources.get(peer).is_some_and(|source| source.lied);
        let me = self.me.get();
        let mut others: Vec<_> =
            claim.peers.iter().filter(|peer| Some(*peer) != me && !lied(peer)).copied().collect();
        fastrand::shuffle(&mut others);
        others
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Content, Arc<Mutex<Progress>>>> {
        // Nothing panics while it is held.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is said of some content, by size: that of most peers first, for somebody may lie about it.
fn claims(found: &[Found]) -> Vec<Found> {
    let mut claims: Vec<Found> = Vec::new();
    for file in found {
        match claims.iter_mut().find(|claim| claim.entry.size == file.entry.size) {
            Some(same) => {
                same.peers.extend(&file.peers);
                same.peers.sort_unstable();
                same.peers.dedup();
            }
            None => claims.push(file.clone()),
        }
    }
    claims.sort_by_key(|claim| std::cmp::Reverse(claim.peers.len()));
    claims
}

fn explain(progress: &Mutex<Progress>) -> String {
    let progress = lock(progress);
    let troubles: Vec<_> = progress
        .sources
        .iter()
        .filter_map(|(peer, source)| source.trouble.as_ref().map(|trouble| format!("{peer}: {trouble}")))
        .collect();
    match &troubles[..] {
        [] => "nobody has it now; search for it again later".into(),
        troubles => format!("no peer could give all of it ({}); what came is kept", troubles.join("; ")),
    }
}

fn on_disk(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full; make room and ask for it again: what came is kept".into()
        }
        _ => format!("it cannot be written: {error}"),
    }
}
