//! Fetches content of a known size from several peers at once, with a thread for each connection.

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

use super::{assignments::Assignments, download::Download};
use crate::{
    entry::Content,
    interfaces::{ContentSource, FetchError, tell_wrong},
    peer::shared::{
        hashing::{GROUP_LEN, GroupHashes},
        partial::PartialFile,
    },
};

/// Groups per request: initial, smallest and largest number. It adapts to the speed of the peer.
const FIRST: u64 = 16;
const LEAST: u64 = 1;
const MOST: u64 = 256;
/// The next request is larger after a response that took less than this.
const FAST: Duration = Duration::from_millis(250);
/// Most connections for one file, and for one file to one peer. While bytes from one connection are verified and written,
/// the second one receives.
const CONNECTIONS_MAX: usize = 8;
const OF_ONE_MAX: usize = 2;
/// Failures in a row after which a peer is no longer asked for this content.
const FAILURES_MAX: u32 = 3;
/// How long not to ask a peer that does not have the content now or is slower than others.
const REST: Duration = Duration::from_secs(5);
/// Bytes and time after which received groups are made durable.
const SYNC_BYTES: u64 = 64 * 1024 * 1024;
const SYNC_INTERVAL: Duration = Duration::from_secs(2);

/// The fetching of one file.
pub(crate) struct Fetch {
    pub(crate) content: Content,
    pub(crate) groups: GroupHashes,
    pub(crate) source: Arc<dyn ContentSource>,
    pub(crate) download: Arc<Download>,
    partial: PartialFile,
    state: Mutex<FetchState>,
    changed: Condvar,
    stopping: AtomicBool,
    /// Read-locked while writing. After `stop` nothing is written any more, because the file may be in its final place by
    /// then, or being fetched again.
    writing: RwLock<()>,
}

struct FetchState {
    assignments: Assignments,
    /// Number of connections to each peer that is being asked.
    active: HashMap<SocketAddr, usize>,
    /// Peers that sent wrong content. They are not asked again.
    liars: HashSet<SocketAddr>,
    /// Peers that are not asked now, and until when.
    resting: HashMap<SocketAddr, Instant>,
    /// Verified bytes since the map was last written, and the time of that.
    unsynced: u64,
    synced: Instant,
    /// The disk error that makes it impossible to go on.
    broken: Option<io::Error>,
}

impl Fetch {
    /// Continues from the groups that the partial file has.
    pub(crate) fn new(
        (content, groups): (Content, GroupHashes),
        (partial, bits): (PartialFile, Vec<u8>),
        source: Arc<dyn ContentSource>,
        download: Arc<Download>,
    ) -> Self {
        let assignments = Assignments::new(groups.count(), bits);
        download.lock().bytes = assignments.received().map(|group| groups.len(group)).sum();
        let (active, liars, resting) = Default::default();
        let state = FetchState {
            assignments,
            active,
            liars,
            resting,
            unsynced: 0,
            synced: Instant::now(),
            broken: None,
        };
        Self {
            content,
            groups,
            source,
            download,
            partial,
            state: Mutex::new(state),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            writing: RwLock::default(),
        }
    }

    /// Asks these peers, first over one connection each, then over a second one while there are fewer than [`CONNECTIONS_MAX`].
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

    /// Waits until the content is complete or no peer is being asked, but not longer than `patience`. Returns whether it is
    /// complete.
    pub(crate) fn wait(&self, patience: Duration) -> io::Result<bool> {
        let over = |state: &mut FetchState| {
            !state.assignments.is_done() && state.broken.is_none() && !state.active.is_empty()
        };
        let waited = self.changed.wait_timeout_while(self.lock(), patience, over);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (broken, done) = (state.broken.take(), state.assignments.is_done());
        let bits = (state.unsynced > 0 && !done).then(|| state.take_unsynced());
        drop(state);
        bits.map_or(Ok(()), |bits| self.partial.sync(&bits))?;
        broken.map_or(Ok(done), Err)
    }

    /// Whether any peer is being asked.
    pub(crate) fn is_active(&self) -> bool {
        !self.lock().active.is_empty()
    }

    /// Stops asking. Makes the received groups durable if they are not all.
    pub(crate) fn stop(&self) -> io::Result<&PartialFile> {
        self.stopping.store(true, SeqCst);
        drop(self.writing.write());
        let state = self.lock();
        match state.assignments.received().next() {
            _ if state.assignments.is_done() => {}
            None => self.partial.discard(),
            Some(_) => self.partial.sync(state.assignments.bits())?,
        }
        Ok(&self.partial)
    }

    fn ask_until_done(&self, peer: SocketAddr) {
        let (mut limit, mut failures) = (FIRST, 0);
        while let Some(range) = self.next(peer, limit) {
            let started = Instant::now();
            let outcome = self.source.bytes(peer, &self.content, self.groups.size(), self.bytes(&range));
            let had = outcome.as_deref().map(|bytes| self.take_in(peer, &range, bytes));
            self.lock().assignments.give_back(&range, peer);
            self.changed.notify_all();
            match had {
                Ok(Err(error)) => return self.abort(error),
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
        self.lock().liars.insert(peer);
        self.download.lock().source(peer).lie("it sent bytes that are not those of the file");
        tell_wrong(&self.source, peer, self.content);
        tracing::warn!(%peer, content = %self.content, "a peer sent bytes that are not those of the file");
    }

    /// Records a failure, and returns whether to leave the peer, at least for a while.
    fn is_left(&self, peer: SocketAddr, error: &FetchError, failures: u32) -> bool {
        self.download.lock().source(peer).trouble = Some(error.to_string());
        let mut state = self.lock();
        let rests = match error {
            FetchError::TooSlow => state.active.len() > 1,
            FetchError::Refused(_) => true,
            FetchError::Unreachable(_) => false,
        };
        if rests {
            state.resting.insert(peer, Instant::now() + REST);
        }
        rests || failures >= FAILURES_MAX
    }

    /// The next groups to ask a peer for. `None` when the content is complete, or the peer is not to be asked any more.
    fn next(&self, peer: SocketAddr, limit: u64) -> Option<Range<u64>> {
        let mut state = self.lock();
        loop {
            let over = state.assignments.is_done() || state.broken.is_some();
            let stops = self.stopping.load(SeqCst) || self.download.is_cancelled();
            if over || stops || !state.may_ask(peer) {
                return None;
            }
            let limit = limit.min(state.fair_share());
            if let Some(range) = state.assignments.take(limit, peer) {
                return Some(range);
            }
            // The remaining groups are being fetched from others.
            let waited = self.changed.wait_timeout(state, Duration::from_millis(200));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes the verified groups of a response. Returns `false` if some are wrong.
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
            if !self.lock().assignments.is_received(group) {
                self.partial.write(group, part)?;
                self.finish(peer, group)?;
            }
        }
        Ok(rest.is_empty())
    }

    fn finish(&self, peer: SocketAddr, group: u64) -> io::Result<()> {
        let mut state = self.lock();
        if !state.assignments.finish(group) {
            return Ok(());
        }
        let length = self.groups.len(group);
        state.unsynced += length;
        let due = state.unsynced >= SYNC_BYTES || state.synced.elapsed() >= SYNC_INTERVAL;
        let bits = due.then(|| state.take_unsynced());
        drop(state);
        let mut progress = self.download.lock();
        progress.bytes += length;
        progress.source(peer).bytes += length;
        drop(progress);
        bits.map_or(Ok(()), |bits| self.partial.sync(&bits))
    }

    fn abort(&self, error: io::Error) {
        self.lock().broken = Some(error);
        self.changed.notify_all();
    }

    fn bytes(&self, range: &Range<u64>) -> Range<u64> {
        let last = range.end.saturating_sub(1);
        range.start * GROUP_LEN..last * GROUP_LEN + self.groups.len(last)
    }

    fn lock(&self) -> MutexGuard<'_, FetchState> {
        // No code panics while holding the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FetchState {
    fn connections(&self) -> usize {
        self.active.values().sum()
    }

    /// Half of each connection's share of the rest, so that requests get smaller towards the end and all connections finish at
    /// about the same time: guided self-scheduling (Polychronopoulos and Kuck, 1987).
    fn fair_share(&self) -> u64 {
        (self.assignments.unassigned() / (2 * self.connections().max(1) as u64)).max(FIRST)
    }

    fn may_ask(&self, peer: SocketAddr) -> bool {
        let rests = self.resting.get(&peer).is_some_and(|until| Instant::now() < *until);
        !rests && !self.liars.contains(&peer)
    }

    /// Removes a connection to a peer.
    fn end(&mut self, peer: SocketAddr) {
        match self.active.get_mut(&peer) {
            Some(connections @ 2..) => *connections -= 1,
            _ => drop(self.active.remove(&peer)),
        }
    }

    /// The groups to record as durable now.
    fn take_unsynced(&mut self) -> Vec<u8> {
        (self.unsynced, self.synced) = (0, Instant::now());
        self.assignments.bits().to_vec()
    }
}
