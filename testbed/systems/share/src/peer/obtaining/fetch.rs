//! Having content of a known size from several peers at once, each asked by a thread of its own.

use std::{
    collections::{HashMap, HashSet},
    io,
    net::SocketAddr,
    ops::Range,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use super::{part::Part, plan::Plan, progress::Tracked};
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
/// Most connections over which one file is had, and most of them to one peer: while the bytes of one are checked and
/// written, others come over the second.
const CONNECTIONS_MAX: usize = 8;
const OF_ONE_MAX: usize = 2;
/// How often a peer may fail in a row.
const FAILURES_MAX: u32 = 3;
/// How long a peer is left alone that does not have it now, or is slow where others are not.
const REST: Duration = Duration::from_secs(5);
/// Bytes, and time, after which what was had is kept.
const KEEP_BYTES: u64 = 64 * 1024 * 1024;
const KEEP_EVERY: Duration = Duration::from_secs(2);

/// Content that is being had.
pub(crate) struct Fetch {
    pub(crate) content: Content,
    pub(crate) groups: Groups,
    pub(crate) obtain: Arc<dyn Obtain>,
    pub(crate) progress: Arc<Tracked>,
    part: Part,
    state: Mutex<State>,
    changed: Condvar,
    stopping: AtomicBool,
    /// Held by those who write: once it is stopped nobody does, as the file may be in its place then, or be had anew.
    writing: RwLock<()>,
}

struct State {
    plan: Plan,
    /// Peers that are being asked, and over how many connections.
    active: HashMap<SocketAddr, usize>,
    /// Liars: they are asked for nothing more.
    left: HashSet<SocketAddr>,
    /// Peers that are not asked now, and until when.
    resting: HashMap<SocketAddr, Instant>,
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
        progress: Arc<Tracked>,
    ) -> Self {
        let plan = Plan::new(groups.count(), bits);
        progress.lock().bytes = plan.had().map(|group| groups.len(group)).sum();
        let (active, left, resting) = Default::default();
        let state = State { plan, active, left, resting, unkept: 0, kept: Instant::now(), broken: None };
        Self {
            content,
            groups,
            obtain,
            progress,
            part,
            state: Mutex::new(state),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            writing: RwLock::default(),
        }
    }

    /// Asks these peers, first each of them and then, where there are few, each once more.
    pub(crate) fn ask(self: &Arc<Self>, peers: &[SocketAddr]) -> io::Result<()> {
        for connections in 1..=OF_ONE_MAX {
            for &peer in peers {
                let mut state = self.lock();
                let begun = state.active.get(&peer).copied().unwrap_or(0);
                if begun < connections && state.connections() < CONNECTIONS_MAX && state.may_ask(peer) {
                    state.active.insert(peer, begun + 1);
                    drop(state);
                    self.connect(peer)?;
                }
            }
        }
        Ok(())
    }

    fn connect(self: &Arc<Self>, peer: SocketAddr) -> io::Result<()> {
        let fetch = Arc::clone(self);
        let started = thread::Builder::new().name("share-fetch".into()).spawn(move || {
            fetch.ask_until_done(peer);
            fetch.lock().end(peer);
            fetch.changed.notify_all();
        });
        if started.is_err() {
            self.lock().end(peer);
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
        let bits = (state.unkept > 0 && !done).then(|| state.keep());
        drop(state);
        bits.map_or(Ok(()), |bits| self.part.keep(&bits))?;
        broken.map_or(Ok(done), Err)
    }

    /// Whether anybody is being asked.
    pub(crate) fn is_active(&self) -> bool {
        !self.lock().active.is_empty()
    }

    /// Whoever is asked is asked for nothing more. What was had is kept, if that is not all.
    pub(crate) fn stop(&self) -> io::Result<&Part> {
        self.stopping.store(true, SeqCst);
        drop(self.writing.write());
        let state = self.lock();
        if !state.plan.is_done() {
            self.part.keep(state.plan.bits())?;
        }
        Ok(&self.part)
    }

    fn ask_until_done(&self, peer: SocketAddr) {
        let (mut limit, mut failures) = (FIRST, 0);
        while let Some(range) = self.next(peer, limit) {
            let started = Instant::now();
            let outcome = self.obtain.bytes(peer, &self.content, self.groups.size(), self.bytes(&range));
            let had = outcome.as_deref().map(|bytes| self.take_in(peer, &range, bytes));
            self.lock().plan.give_back(&range, peer);
            self.changed.notify_all();
            match had {
                Ok(Err(error)) => return self.break_off(error),
                Ok(Ok(false)) => return self.leave_liar(peer),
                Ok(Ok(true)) => {
                    failures = 0;
                    limit = if started.elapsed() < FAST { (limit * 2).min(MOST) } else { limit };
                }
                Err(error) => {
                    failures += 1;
                    limit = (limit / 8).max(LEAST);
                    if self.is_left(peer, error, failures) {
                        return;
                    }
                    thread::sleep(Duration::from_millis(100) * failures);
                }
            }
        }
    }

    fn leave_liar(&self, peer: SocketAddr) {
        self.lock().left.insert(peer);
        self.progress.lock().source(peer).lie("it sent bytes that are not those of the file");
        tracing::warn!(%peer, content = %self.content, "a peer sent bytes that are not those of the file");
    }

    /// Whether a peer that failed so often in a row is left, for a while at least.
    fn is_left(&self, peer: SocketAddr, error: &ObtainError, failures: u32) -> bool {
        self.progress.lock().source(peer).trouble = Some(error.to_string());
        let mut state = self.lock();
        let rests = match error {
            ObtainError::Slow => state.active.len() > 1,
            ObtainError::Refused(_) => true,
            ObtainError::Away(_) => false,
        };
        if rests {
            state.resting.insert(peer, Instant::now() + REST);
        }
        rests || failures >= FAILURES_MAX
    }

    /// The next groups to ask a peer for; none when all is had, or it is asked no more.
    fn next(&self, peer: SocketAddr, limit: u64) -> Option<Range<u64>> {
        let mut state = self.lock();
        loop {
            let over = state.plan.is_done() || state.broken.is_some();
            let stops = self.stopping.load(SeqCst) || self.progress.is_cancelled();
            if over || stops || !state.may_ask(peer) {
                return None;
            }
            let limit = limit.min(state.fair_share());
            if let Some(range) = state.plan.take(limit, peer) {
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
            let _writing = self.writing.read();
            if self.stopping.load(SeqCst) {
                return Ok(true);
            }
            // Another peer may have been faster.
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
        let mut progress = self.progress.lock();
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
    fn connections(&self) -> usize {
        self.active.values().sum()
    }

    /// Half of what each connection would have of the rest, so that towards the end pieces grow small and all end at about
    /// the same time: guided self-scheduling (Polychronopoulos and Kuck, 1987).
    fn fair_share(&self) -> u64 {
        (self.plan.unclaimed() / (2 * self.connections().max(1) as u64)).max(FIRST)
    }

    fn may_ask(&self, peer: SocketAddr) -> bool {
        let rests = self.resting.get(&peer).is_some_and(|until| Instant::now() < *until);
        !rests && !self.left.contains(&peer)
    }

    /// One connection less to a peer.
    fn end(&mut self, peer: SocketAddr) {
        match self.active.get_mut(&peer) {
            Some(connections @ 2..) => *connections -= 1,
            _ => drop(self.active.remove(&peer)),
        }
    }

    /// What is to be kept now: all that was written so far.
    fn keep(&mut self) -> Vec<u8> {
        (self.unkept, self.kept) = (0, Instant::now());
        self.plan.bits().to_vec()
    }
}
