//! Having content of a known size from several peers at once, each asked by a thread of its own.

use std::{
    collections::HashSet,
    io,
    net::SocketAddr,
    ops::Range,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use super::{part::Part, plan::Plan, progress::Progress};
use crate::{
    content::Content,
    peer::hashing::{GROUP_LEN, Groups},
    seam::{Obtain, ObtainError},
};

/// Groups asked for at once: first, and at least and at most, as a peer is slow or fast.
const FIRST: u64 = 16;
const LEAST: u64 = 1;
const MOST: u64 = 256;
/// A piece that comes in less is made larger.
const FAST: Duration = Duration::from_millis(250);
/// How often a peer may fail in a row.
const FAILURES_MAX: u32 = 3;
/// Bytes, and time, after which what was had is kept.
const KEEP_BYTES: u64 = 64 * 1024 * 1024;
const KEEP_EVERY: Duration = Duration::from_secs(2);

/// Content that is being had.
pub(crate) struct Fetch {
    pub(crate) content: Content,
    pub(crate) groups: Groups,
    pub(crate) obtain: Arc<dyn Obtain>,
    pub(crate) progress: Arc<Mutex<Progress>>,
    part: Part,
    state: Mutex<State>,
    changed: Condvar,
    stopping: AtomicBool,
}

struct State {
    plan: Plan,
    /// Peers that are being asked.
    active: HashSet<SocketAddr>,
    /// Right bytes since the map was written last, and when that was.
    unkept: u64,
    kept: Instant,
    /// What makes it impossible to go on: the disk.
    broken: Option<io::Error>,
}

impl Fetch {
    /// With what is there of it already.
    pub(crate) fn new(
        (content, groups): (Content, Groups),
        (part, bits): (Part, Vec<u8>),
        obtain: Arc<dyn Obtain>,
        progress: Arc<Mutex<Progress>>,
    ) -> Self {
        let plan = Plan::new(groups.count(), bits);
        lock(&progress).bytes = plan.had().map(|group| groups.len(group)).sum();
        let state = State { plan, active: HashSet::new(), unkept: 0, kept: Instant::now(), broken: None };
        Self {
            content,
            groups,
            obtain,
            progress,
            part,
            state: Mutex::new(state),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
        }
    }

    /// Asks one more peer, unless it is being asked.
    pub(crate) fn ask(self: &Arc<Self>, peer: SocketAddr) -> io::Result<()> {
        if !self.lock().active.insert(peer) {
            return Ok(());
        }
        let fetch = Arc::clone(self);
        let started = thread::Builder::new().name("share-fetch".into()).spawn(move || {
            fetch.ask_until_done(peer);
            fetch.lock().active.remove(&peer);
            fetch.changed.notify_all();
        });
        if started.is_err() {
            self.lock().active.remove(&peer);
        }
        started.map(drop)
    }

    /// Waits until all is had, nobody is being asked any more, or so long; whether all is had.
    pub(crate) fn wait(&self, patience: Duration) -> io::Result<bool> {
        let over =
            |state: &mut State| !state.plan.is_done() && state.broken.is_none() && !state.active.is_empty();
        let waited = self.changed.wait_timeout_while(self.lock(), patience, over);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (broken, done) = (state.broken.take(), state.plan.is_done());
        let bits = (state.unkept > 0).then(|| state.keep());
        drop(state);
        bits.map_or(Ok(()), |bits| self.part.keep(&bits))?;
        broken.map_or(Ok(done), Err)
    }

    /// How many peers are being asked.
    pub(crate) fn active(&self) -> usize {
        self.lock().active.len()
    }

    /// Whoever is asked is asked for nothing more. What was had is kept, if that is not all.
    pub(crate) fn stop(&self) -> io::Result<&Part> {
        self.stopping.store(true, SeqCst);
        let state = self.lock();
        if !state.plan.is_done() {
            self.part.keep(state.plan.bits())?;
        }
        Ok(&self.part)
    }

    fn ask_until_done(&self, peer: SocketAddr) {
        let (mut limit, mut failures) = (FIRST, 0);
        while let Some(range) = self.next(limit) {
            let started = Instant::now();
            let bytes = self.bytes(&range);
            let outcome = self.obtain.bytes(peer, &self.content, bytes);
            let had = match &outcome {
                Ok(bytes) => self.take_in(peer, &range, bytes),
                Err(_) => Ok(false),
            };
            self.lock().plan.give_back(&range);
            self.changed.notify_all();
            match (had, outcome) {
                (Err(error), _) => return self.break_off(error),
                (Ok(true), _) if started.elapsed() < FAST => (limit, failures) = ((limit * 2).min(MOST), 0),
                (Ok(true), _) => failures = 0,
                (Ok(false), Ok(_)) => {
                    let mut progress = lock(&self.progress);
                    let source = progress.source(peer);
                    source.lied = true;
                    source.trouble = Some("it sent bytes that are not those of the file".into());
                    return tracing::warn!(%peer, content = %self.content, "a peer sent bytes that are not those of the file");
                }
                (Ok(false), Err(error)) => {
                    lock(&self.progress).source(peer).trouble = Some(error.to_string());
                    failures += 1;
                    if failures >= FAILURES_MAX || matches!(error, ObtainError::Refused(_)) {
                        return;
                    }
                    limit = (limit / 8).max(LEAST);
                    thread::sleep(Duration::from_millis(100) * failures);
                }
            }
        }
    }

    /// The next groups to ask for; none when all is had.
    fn next(&self, limit: u64) -> Option<Range<u64>> {
        let mut state = self.lock();
        loop {
            if self.stopping.load(SeqCst) || state.plan.is_done() || state.broken.is_some() {
                return None;
            }
            if let Some(range) = state.plan.take(limit) {
                return Some(range);
            }
            // Others are having what is left.
            let waited = self.changed.wait_timeout(state, Duration::from_millis(200));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes what is right of the bytes of these groups; `false` when not all are.
    fn take_in(&self, peer: SocketAddr, range: &Range<u64>, bytes: &[u8]) -> io::Result<bool> {
        let mut rest = bytes;
        for group in range.clone() {
            let length = usize::try_from(self.groups.len(group)).unwrap_or(usize::MAX);
            let Some((part, after)) = rest.split_at_checked(length) else { return Ok(false) };
            if !self.groups.holds(group, part) {
                return Ok(false);
            }
            rest = after;
            // Another peer was faster: the file may be in its place already, and is not touched again.
            if !self.lock().plan.is_had(group) {
                self.part.write(group, part)?;
                self.finish(peer, group)?;
            }
        }
        Ok(rest.is_empty())
    }

    fn finish(&self, peer: SocketAddr, group: u64) -> io::Result<()> {
        let mut state = self.lock();
        if !state.plan.finish(group) {
            return Ok(());
        }
        let length = self.groups.len(group);
        state.unkept += length;
        let due = state.unkept >= KEEP_BYTES || state.kept.elapsed() >= KEEP_EVERY;
        let bits = due.then(|| state.keep());
        drop(state);
        let mut progress = lock(&self.progress);
        progress.bytes += length;
        progress.source(peer).bytes += length;
        drop(progress);
        bits.map_or(Ok(()), |bits| self.part.keep(&bits))
    }

    fn break_off(&self, error: io::Error) {
        self.lock().broken = Some(error);
        self.changed.notify_all();
    }

    fn bytes(&self, range: &Range<u64>) -> Range<u64> {
        let last = range.end.saturating_sub(1);
        range.start * GROUP_LEN..last * GROUP_LEN + self.groups.len(last)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What is to be kept now: all that was written so far.
    fn keep(&mut self) -> Vec<u8> {
        (self.unkept, self.kept) = (0, Instant::now());
        self.plan.bits().to_vec()
    }
}

/// The progress, to be looked at or changed.
pub(crate) fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    // Nothing panics while it is held.
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
