//! Looks once a period, in the background.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use analysis::counters::Counters;

use crate::clock::{monotonic_us, own_thread_cpu_us};
use crate::look::Look;
use crate::topology::Follower;
use crate::{ObserveError, Roots, Topology};

/// One part in so many of a processor is what looking may take: a look that costs more comes less often.
const LOOK_SHARE: u64 = 66;

/// The same for the search for new processes, whose cost grows with the host's connections. Together they
/// stay within 2 %.
const FOLLOW_SHARE: u64 = 200;

/// The time between searches for new processes, at least.
const FOLLOW_PERIOD: Duration = Duration::from_secs(1);

/// A background thread that looks at a [`Topology`] once a period and keeps what it saw.
///
/// Watching takes at most 2 % of one processor on average: where many processes, threads or connections make
/// it costly, looks come less often than asked for. Of a process with more than 256 threads the busiest 192
/// are looked at each time, and the others 64 at a time, in turn. Its own thread, `nstar-observe`, is one of
/// the generator's. Once a second, less often among thousands of connections, the topology is searched for
/// processes that came since: workers, children, tiers reached by connections that were not open before.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    looks: Vec<Counters>,
    topology: Topology,
    /// Looks asked for by [`Watcher::look_now`], and answered.
    asked: u64,
    answered: u64,
    stopping: bool,
    finished: bool,
}

impl Watcher {
    /// Starts to look: at once, then once every `period`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(roots: Roots, topology: Topology, period: Duration) -> Result<Self, ObserveError> {
        let state =
            State { looks: Vec::new(), topology, asked: 0, answered: 0, stopping: false, finished: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("nstar-observe".to_owned())
            .spawn(move || {
                let _finish = Finish(&theirs);
                watch(&theirs, &roots, period);
            })
            .map_err(ObserveError::Thread)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Takes a look now and returns once it is there: at the borders of a measurement.
    pub fn look_now(&self) {
        let mut state = self.shared.lock();
        state.asked += 1;
        let ticket = state.asked;
        self.shared.changed.notify_all();
        while state.answered < ticket && !state.finished {
            state = self.shared.wait(state);
        }
    }

    /// The looks that cover a span of the monotonic clock, in order of time: the last at or before its
    /// start (if there is one), to the first at or after its end. Takes that last look if need be.
    #[must_use]
    pub fn between(&self, start_us: u64, end_us: u64) -> Vec<Counters> {
        let covered = self.shared.lock().looks.last().is_some_and(|look| look.at_us >= end_us);
        if !covered {
            self.look_now();
        }
        let state = self.shared.lock();
        let after_start = state.looks.partition_point(|look| look.at_us <= start_us);
        let before_end = state.looks.partition_point(|look| look.at_us < end_us);
        let range = after_start.saturating_sub(1)..(before_end + 1).min(state.looks.len());
        state.looks.get(range).unwrap_or_default().to_vec()
    }

    /// Drops the looks that no span from `start_us` on needs.
    pub fn forget_before(&self, start_us: u64) {
        let mut state = self.shared.lock();
        let needed = state.looks.partition_point(|look| look.at_us <= start_us).saturating_sub(1);
        state.looks.drain(..needed);
    }

    /// The processes watched now: those of the start and those found since.
    #[must_use]
    pub fn topology(&self) -> Topology {
        self.shared.lock().topology.clone()
    }

    /// Takes a last look, ends the thread and returns all looks kept, in order of time.
    #[must_use]
    pub fn stop(mut self) -> Vec<Counters> {
        self.look_now();
        self.end();
        std::mem::take(&mut self.shared.lock().looks)
    }

    fn end(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It ends without a result; a panic in it was reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets nobody wait for a thread that is gone, however it went.
struct Finish<'a>(&'a Shared);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.lock().finished = true;
        self.0.changed.notify_all();
    }
}

fn watch(shared: &Shared, roots: &Roots, period: Duration) {
    let mut look = Look::new(roots);
    let mut follower = Follower::new(roots);
    let mut topology = shared.lock().topology.clone();
    let mut follow_at_us = monotonic_us() + micros(FOLLOW_PERIOD);
    loop {
        let asked = shared.lock().asked;
        if monotonic_us() >= follow_at_us {
            let begin = Begin::now();
            follower.follow(&mut topology);
            follow_at_us = begin.next(FOLLOW_PERIOD, FOLLOW_SHARE);
        }
        let begin = Begin::now();
        follower.follow_children(&mut topology);
        let counters = look.take(&topology);
        publish(shared, counters, &topology, asked);
        if pause(shared, begin.next(period, LOOK_SHARE)) {
            return;
        }
    }
}

/// When something began, and the CPU time used until then.
struct Begin {
    at_us: u64,
    cpu_us: u64,
}

impl Begin {
    fn now() -> Self {
        Self { at_us: monotonic_us(), cpu_us: own_thread_cpu_us() }
    }

    /// When to do again what is done now. Its cost counts in CPU time: on a host that is overloaded,
    /// where looks matter most, it takes longer without costing more.
    fn next(&self, period: Duration, share: u64) -> u64 {
        let cost_us = own_thread_cpu_us().saturating_sub(self.cpu_us);
        self.at_us + micros(period).max(cost_us.saturating_mul(share))
    }
}

fn publish(shared: &Shared, counters: Counters, topology: &Topology, asked: u64) {
    let mut state = shared.lock();
    state.looks.push(counters);
    if state.topology != *topology {
        state.topology = topology.clone();
    }
    state.answered = asked;
    shared.changed.notify_all();
}

/// Waits until `until_us` or until a look is asked for; whether to stop.
fn pause(shared: &Shared, until_us: u64) -> bool {
    let mut state = shared.lock();
    loop {
        let left_us = until_us.saturating_sub(monotonic_us());
        if state.stopping {
            return true;
        }
        if left_us == 0 || state.asked > state.answered {
            return false;
        }
        let waited = shared.changed.wait_timeout(state, Duration::from_micros(left_us));
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
