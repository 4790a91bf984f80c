//! Takes content from other peers into the shared folder: right, or not at all.

mod claims;
mod fetch;
mod giving_up;
mod part;
pub(crate) mod parts;
mod placing;
mod plan;
mod progress;
mod small;
mod source;

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    fs, io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

pub(crate) use self::progress::Whose;
pub use self::progress::{Progress, Source, State};
pub(crate) use self::source::HttpPeers;
use self::{
    claims::claims,
    fetch::Fetch,
    part::Part,
    placing::{Placer, Whole},
    progress::Tracked,
};
use super::{hashing::Groups, sharing::Sharing};
use crate::{
    content::Content,
    name::Name,
    seam::{Entry, Found, Index, Obtain, Query},
};

/// Most files that are obtained at once, and most that wait for their turn.
const RUNNING_MAX: usize = 16;
const WAITING_MAX: usize = 10_000;
/// Most that are remembered, those apart that are not over.
const KEPT_MAX: usize = 20_000;
/// How often the index is asked for more peers.
const SEARCH_EVERY: Duration = Duration::from_secs(2);
/// How long there may be nobody to ask before it is given up.
const GIVE_UP: Duration = Duration::from_secs(15);
/// The same when nobody is known who may have it, liars apart.
const GIVE_UP_UNKNOWN: Duration = Duration::from_secs(5);

/// What is being obtained, and what was.
pub(crate) struct Obtaining {
    pub(crate) index: Arc<dyn Index>,
    pub(crate) obtain: Arc<dyn Obtain>,
    pub(crate) sharing: Arc<Sharing>,
    /// Where this peer can be reached: it is not asked by itself.
    pub(crate) me: OnceLock<SocketAddr>,
    /// Where content is while it is not whole.
    parts: PathBuf,
    placer: Placer,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    all: HashMap<Content, Arc<Tracked>>,
    waiting: VecDeque<Wanted>,
    /// How many threads obtain.
    running: usize,
}

/// What somebody asks for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) content: Content,
    /// What it is to be called, if that was said.
    pub(crate) name: Option<Name>,
    /// Whether what is here of it is in doubt, and to be hashed again first.
    pub(crate) check: bool,
}

/// Content that somebody asked for.
struct Wanted {
    asked: Asked,
    progress: Arc<Tracked>,
}

/// Too much is being obtained already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{WAITING_MAX} files wait to be obtained already")]
pub(crate) struct Busy;

impl Obtaining {
    pub(crate) fn new(
        index: Arc<dyn Index>,
        obtain: Arc<dyn Obtain>,
        sharing: Arc<Sharing>,
    ) -> io::Result<Self> {
        let parts = sharing.parts();
        fs::create_dir_all(&parts)?;
        let placer = Placer::new(Arc::clone(&sharing));
        let (me, known) = (OnceLock::new(), Mutex::default());
        Ok(Self { index, obtain, sharing, me, parts, placer, known })
    }

    /// Begins to obtain some content, unless it is being obtained or here already; tells how far it has come. Each call
    /// is of one who wants it, until [`Self::cancel`] takes that back.
    pub(crate) fn begin(self: &Arc<Self>, asked: Asked) -> Result<Progress, Busy> {
        let (content, mut known) = (asked.content, self.known());
        if let Some(begun) = known.all.get(&content) {
            let running = begun.want();
            let begun = begun.lock();
            let here = begun.state == State::Done && self.sharing.catalogue.find(&content).is_some();
            if running || here && !asked.check {
                return Ok(begun.clone());
            }
        }
        if known.waiting.len() >= WAITING_MAX {
            return Err(Busy);
        }
        if known.all.len() >= KEPT_MAX {
            known.all.retain(|_, progress| progress.lock().state == State::Running);
        }
        let progress = Arc::new(Tracked::new(content));
        let begun = progress.lock().clone();
        known.all.insert(content, Arc::clone(&progress));
        known.waiting.push_back(Wanted { asked, progress });
        self.start_one_more(&mut known)?;
        Ok(begun)
    }

    /// How far some content has come.
    pub(crate) fn progress(&self, content: &Content) -> Option<Arc<Tracked>> {
        self.known().all.get(content).cloned()
    }

    /// What is obtained and was, those first that are not over, then the latest; so many at most.
    pub(crate) fn latest(&self, limit: usize) -> Vec<Progress> {
        let mut all: Vec<_> = self.all();
        all.sort_by_cached_key(|tracked| Reverse((tracked.lock().state == State::Running, tracked.begun)));
        all.iter().take(limit).map(|tracked| tracked.lock().clone()).collect()
    }

    /// The peers that sent what is not the content, as far as that is remembered, and how.
    pub(crate) fn liars(&self) -> HashMap<SocketAddr, String> {
        let mut liars = HashMap::new();
        for tracked in self.all() {
            let progress = tracked.lock();
            let lied = progress.sources.iter().filter(|(_, source)| source.lied);
            liars.extend(lied.map(|(&peer, source)| (peer, source.trouble.clone().unwrap_or_default())));
        }
        liars
    }

    fn all(&self) -> Vec<Arc<Tracked>> {
        self.known().all.values().cloned().collect()
    }

    fn start_one_more(self: &Arc<Self>, known: &mut Known) -> Result<(), Busy> {
        if known.running == RUNNING_MAX {
            return Ok(());
        }
        let obtaining = Arc::clone(self);
        let started = thread::Builder::new()
            .name("share-obtain".into())
            .spawn(move || while obtaining.next().map(|wanted| obtaining.run(wanted)).is_some() {});
        match started {
            Ok(_) => known.running += 1,
            Err(_) if known.running > 0 => {}
            Err(_) => {
                if let Some(wanted) = known.waiting.pop_back() {
                    known.all.remove(&wanted.asked.content);
                }
                return Err(Busy);
            }
        }
        Ok(())
    }

    /// What is to be obtained next. None: the thread is to end.
    fn next(&self) -> Option<Wanted> {
        let mut known = self.known();
        let next = known.waiting.pop_front();
        known.running -= usize::from(next.is_none());
        next
    }

    fn run(&self, wanted: Wanted) {
        let Wanted { asked: Asked { content, name, check }, progress } = wanted;
        if check {
            self.sharing.check(&content);
        }
        if let Some((path, shared)) = self.sharing.catalogue.find(&content) {
            let size = shared.entry.size;
            (progress.lock().size, progress.lock().bytes) = (size, size);
            progress.lock().name = Some(shared.entry.name);
            return progress.finish(Ok(path));
        }
        loop {
            match self.take(content, name.as_ref(), &progress) {
                Ok(whole) => return self.placer.place(whole),
                Err(why) if progress.give_up(&why) => return,
                Err(_) => {}
            }
        }
    }

    /// Obtains content that is not here.
    fn take(&self, content: Content, name: Option<&Name>, progress: &Arc<Tracked>) -> Result<Whole, String> {
        let (begun, mut patience) = (Instant::now(), GIVE_UP_UNKNOWN);
        while begun.elapsed() < patience && !progress.is_cancelled() {
            for mut claim in claims(&self.search(content)) {
                patience = self.patience(&claim, progress).max(patience);
                if progress.is_cancelled() {
                    break;
                }
                claim.entry.name = name.unwrap_or(&claim.entry.name).clone();
                progress.lock().name = Some(claim.entry.name.clone());
                if let Some(whole) = self.take_claimed(&claim, progress)? {
                    return Ok(whole);
                }
            }
            thread::sleep(Duration::from_millis(300));
        }
        Err(giving_up::why(progress, self.index.trouble()))
    }

    /// Obtains content of the size that is claimed; none where it cannot be right, or be had now.
    fn take_claimed(&self, claim: &Found, progress: &Arc<Tracked>) -> Result<Option<Whole>, String> {
        let explain = |error: &io::Error| placing::explain(error, claim.entry.size, &self.parts);
        if claim.entry.size <= small::LEN_MAX
            && let Some(bytes) = self.ask_small(claim, progress)
        {
            let whole = self.write_small(claim.entry.clone(), &bytes, progress);
            return whole.map(Some).map_err(|error| explain(&error));
        }
        let Some(groups) = self.learn(claim, progress) else { return Ok(None) };
        progress.lock().size = claim.entry.size;
        self.fetch(claim, groups, progress).map_err(|error| explain(&error))
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
    fn learn(&self, claim: &Found, progress: &Tracked) -> Option<Groups> {
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
                        progress.lock().source(peer).lie("it sent hashes that are not those of the file");
                    }
                },
                Err(error) => progress.lock().source(peer).trouble = Some(error.to_string()),
            }
        }
        None
    }

    /// Has all groups from whoever has them. None when nobody could give them all.
    fn fetch(&self, claim: &Found, groups: Groups, progress: &Arc<Tracked>) -> io::Result<Option<Whole>> {
        let entry = claim.entry.clone();
        let part = Part::open(&self.parts, &entry.content, entry.size)?;
        let fetch = Arc::new(Fetch::new(
            (entry.content, groups),
            part,
            Arc::clone(&self.obtain),
            Arc::clone(progress),
        ));
        let done = self.ask_all(claim, &fetch, progress);
        let part = fetch.stop()?;
        if !done? {
            return Ok(None);
        }
        let path = part.finish()?.to_owned();
        Ok(Some(Whole { entry, path, unsynced: None, progress: Arc::clone(progress) }))
    }

    /// Asks everybody who has it, and who comes to have it, until all is had or there is nobody for too long: at all, where
    /// others say that its size is another.
    fn ask_all(&self, claim: &Found, fetch: &Arc<Fetch>, progress: &Tracked) -> io::Result<bool> {
        let (mut claim, mut alone_since, mut disputed) = (claim.clone(), Instant::now(), false);
        loop {
            fetch.ask(&self.others(&claim, progress))?;
            if fetch.wait(SEARCH_EVERY)? {
                return Ok(true);
            }
            if progress.is_cancelled() {
                return Ok(false);
            }
            match fetch.is_active() {
                false if disputed || alone_since.elapsed() >= self.patience(&claim, progress) => {
                    return Ok(false);
                }
                false => thread::sleep(Duration::from_millis(300)),
                true => alone_since = Instant::now(),
            }
            let claims = claims(&self.search(claim.entry.content));
            disputed = claims.len() > 1;
            if let Some(now) = claims.into_iter().find(|now| now.entry.size == claim.entry.size) {
                claim.peers = now.peers;
            }
        }
    }

    /// How long to wait for somebody to ask.
    fn patience(&self, claim: &Found, progress: &Tracked) -> Duration {
        if self.others(claim, progress).is_empty() { GIVE_UP_UNKNOWN } else { GIVE_UP }
    }

    /// The peers of a claim that have not lied, and are not this one.
    fn others(&self, claim: &Found, progress: &Tracked) -> Vec<SocketAddr> {
        let progress = progress.lock();
        let lied = |peer: &SocketAddr| progress.sources.get(peer).is_some_and(|source| source.lied);
        let me = self.me.get();
        let mut others: Vec<_> =
            claim.peers.iter().filter(|peer| Some(*peer) != me && !lied(peer)).copied().collect();
        fastrand::shuffle(&mut others);
        others
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing panics while it is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
