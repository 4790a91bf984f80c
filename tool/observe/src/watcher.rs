//! Sampling once a period, in the background.

mod thinning;

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use analysis::counters::{Counters, ThreadLook};

use crate::clock::{monotonic_us, own_thread_cpu_us};
use crate::error::ObserveError;
use crate::kernel_files::{KernelPaths, Pid};
use crate::sampler::Sampler;
use crate::topology::Topology;
use crate::topology::tracker::TopologyTracker;
pub use thinning::Thinning;

/// Sampling may take at most one part in this many of a processor; the interval grows with the cost of a sample.
const SAMPLE_SHARE: u64 = 130;

/// The same limit for the search for new processes, whose cost grows with the host's connections. Together the two stay
/// within 1 %.
const TRACK_SHARE: u64 = 500;

/// The same limit for looks at threads, while they are asked for.
const LOOK_SHARE: u64 = 60;

/// The mean time between looks at threads.
const LOOK_PERIOD: Duration = Duration::from_millis(40);

/// The golden ratio: its multiples are spread evenly, whatever period the server has.
const SPREAD: f64 = 0.618_033_988_749_895;

/// The most samples that wait to be taken: four seconds of them, so that a stream may stall for a moment.
const UNTAKEN_MAX: usize = 16;

/// Looks that are made between two samples, at most.
const LOOKS_PER_SAMPLE: usize = 16;

/// The shortest time between searches for new processes.
const TRACK_PERIOD: Duration = Duration::from_secs(1);

/// A background thread that samples a [`Topology`] once a period and keeps the samples.
///
/// Watching takes at most 1 % of one processor on average, and 3 % while threads are looked at closely: where many
/// processes, threads or connections make it expensive, samples and looks come less often than asked for. Of a process
/// with more than 256 threads, each sample covers the 192 busiest and 64 of the others in turn; of fewer, where all processes
/// together have more than 1 024. The watcher's own thread, `nstar-observe`, is one of the generator's. Once a second, or less
/// often with thousands of connections, the topology is searched for new processes: workers, children, and tiers reached by
/// connections that were not open before. Where a process that listens has gone, what takes its place is searched for at once,
/// and then after twice as long each time, also where that goes soon again.
///
/// Keeps about 4 000 samples, fewer where each has hundreds of threads, and those at the borders of measurements besides. Each
/// time there are more, drops every second one and doubles the period.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What a watcher saw since it was last asked.
#[derive(Debug, Clone, Default)]
pub struct Taken {
    /// The samples, in order of time.
    pub samples: Vec<Counters>,
    /// The looks at threads, in order of time.
    pub looks: Vec<ThreadLook>,
    /// How many samples and looks were dropped, because nobody took them in time.
    pub left_out: u64,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    samples: Vec<Counters>,
    looks: Vec<ThreadLook>,
    /// Whether to look at threads between the samples.
    closely: bool,
    /// The most samples that are kept until they are taken, and as many looks for each; `None`: nobody takes them, and they are
    /// thinned as they become many.
    most: Option<usize>,
    thinning: Thinning,
    /// How many were dropped since the last were taken, because they were more.
    left_out: u64,
    topology: Topology,
    /// How many samples were requested, and how many of these requests are fulfilled.
    requested: u64,
    fulfilled: u64,
    /// The last request by [`Watcher::sample_now`].
    border: u64,
    stopping: bool,
    finished: bool,
}

impl Watcher {
    /// Starts to sample: at once, then once every `period`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(paths: KernelPaths, topology: Topology, period: Duration) -> Result<Self, ObserveError> {
        Self::start_keeping(None, paths, topology, period)
    }

    /// Starts to sample the same way, for somebody who takes what was seen with [`Watcher::take`]. What is not taken is kept
    /// up to a limit; beyond that the oldest is dropped.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start_for_taking(
        paths: KernelPaths,
        topology: Topology,
        period: Duration,
    ) -> Result<Self, ObserveError> {
        Self::start_keeping(Some(UNTAKEN_MAX), paths, topology, period)
    }

    fn start_keeping(
        most: Option<usize>,
        paths: KernelPaths,
        topology: Topology,
        period: Duration,
    ) -> Result<Self, ObserveError> {
        let state = State {
            samples: Vec::new(),
            looks: Vec::new(),
            closely: false,
            most,
            thinning: Thinning::default(),
            left_out: 0,
            topology,
            requested: 0,
            fulfilled: 0,
            border: 0,
            stopping: false,
            finished: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("nstar-observe".to_owned())
            .spawn(move || {
                let _finish = FinishGuard(&theirs);
                watch(&theirs, &paths, period);
            })
            .map_err(ObserveError::Thread)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Has a sample taken soon, and does not wait for it.
    pub fn request_sample(&self) {
        self.shared.lock().requested += 1;
        self.shared.changed.notify_all();
    }

    /// Takes out what was seen since the last call; waits for the next sample if there is none, but no longer than this.
    #[must_use]
    pub fn take(&self, patience: Duration) -> Taken {
        let mut state = self.shared.lock();
        if state.samples.is_empty() {
            let waited = self
                .shared
                .changed
                .wait_timeout_while(state, patience, |state| state.samples.is_empty() && !state.finished);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Taken {
            samples: std::mem::take(&mut state.samples),
            looks: std::mem::take(&mut state.looks),
            left_out: std::mem::take(&mut state.left_out),
        }
    }

    /// Takes a sample now and returns once it is there, for the borders of a measurement. It is never dropped.
    ///
    /// It is taken whatever it costs: an earlier one in its place would count what came before the border.
    pub fn sample_now(&self) {
        self.sample(true);
    }

    fn sample(&self, is_border: bool) {
        let mut state = self.shared.lock();
        state.requested += 1;
        let ticket = state.requested;
        if is_border {
            state.border = ticket;
        }
        self.shared.changed.notify_all();
        while state.fulfilled < ticket && !state.finished {
            state = self.shared.wait(state);
        }
    }

    /// The samples that cover a span of the monotonic clock, in order of time: from the last at or before its start, if
    /// there is one, to the first at or after its end. Takes that last sample if necessary.
    #[must_use]
    pub fn between(&self, start_us: u64, end_us: u64) -> Vec<Counters> {
        let covered = self.shared.lock().samples.last().is_some_and(|sample| sample.at_us >= end_us);
        if !covered {
            self.sample(false);
        }
        covering(&self.shared.lock().samples, (start_us, end_us)).to_vec()
    }

    /// Reads all samples so far that were kept, in order of time.
    pub fn read<T>(&self, reader: impl FnOnce(&[Counters]) -> T) -> T {
        reader(&self.shared.lock().samples)
    }

    /// Starts, or stops, to look about 25 times a second at the futexes that threads wait for.
    pub fn look_closely(&self, closely: bool) {
        self.shared.lock().closely = closely;
        self.shared.changed.notify_all();
    }

    /// The looks at threads within a span of the monotonic clock, in order of time.
    #[must_use]
    pub fn looks_between(&self, start_us: u64, end_us: u64) -> Vec<ThreadLook> {
        let state = self.shared.lock();
        let before = state.looks.partition_point(|look| look.at_us < start_us);
        let until = state.looks.partition_point(|look| look.at_us <= end_us);
        state.looks.get(before..until).unwrap_or_default().to_vec()
    }

    /// The processes watched now: those of the start and those found since.
    #[must_use]
    pub fn topology(&self) -> Topology {
        self.shared.lock().topology.clone()
    }

    /// Takes a last sample, ends the thread and returns all samples that were kept, in order of time.
    #[must_use]
    pub fn stop(mut self) -> Vec<Counters> {
        self.sample_now();
        self.end();
        std::mem::take(&mut self.shared.lock().samples)
    }

    fn end(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread has no result, and a panic in it was reported where it happened.
            let _ = thread.join();
        }
    }
}

/// Of samples in order of time those that cover a span, microseconds: from the last at or before its start to the first at or
/// after its end, as far as there are any.
#[must_use]
pub fn covering(samples: &[Counters], (start_us, end_us): (u64, u64)) -> &[Counters] {
    let after_start = samples.partition_point(|sample| sample.at_us <= start_us);
    let before_end = samples.partition_point(|sample| sample.at_us < end_us);
    let range = after_start.saturating_sub(1)..(before_end + 1).min(samples.len());
    samples.get(range).unwrap_or_default()
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end();
    }
}

impl State {
    /// Keeps a sample, and drops what is more than may be kept.
    fn keep(&mut self, sample: Counters) {
        let is_border = self.border > self.fulfilled;
        match self.most {
            Some(_) => self.samples.push(sample),
            None => self.thinning.add(&mut self.samples, sample, is_border),
        }
        self.drop_oldest();
    }

    /// Drops what is more than may be kept until it is taken.
    fn drop_oldest(&mut self) {
        let Some(most) = self.most else { return };
        let samples = self.samples.len().saturating_sub(most);
        let looks = self.looks.len().saturating_sub(most * LOOKS_PER_SAMPLE);
        self.samples.drain(..samples);
        self.looks.drain(..looks);
        self.left_out += (samples + looks) as u64;
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

/// Marks the thread as finished however it ends, so that nobody waits for it.
struct FinishGuard<'a>(&'a Shared);

impl Drop for FinishGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().finished = true;
        self.0.changed.notify_all();
    }
}

fn watch(shared: &Shared, paths: &KernelPaths, period: Duration) {
    let mut sampler = Sampler::new(paths);
    let mut tracker = TopologyTracker::new(paths);
    let mut topology = shared.lock().topology.clone();
    let mut due = Due { track_at_us: monotonic_us() + micros(TRACK_PERIOD), ..Due::default() };
    loop {
        let requested = shared.lock().requested;
        if monotonic_us() >= due.track_at_us {
            let start = Start::now();
            tracker.search(&mut topology);
            due.searched(start.at_us, start.next(TRACK_PERIOD, TRACK_SHARE));
        }
        let start = Start::now();
        if due.wants_look(shared, start.at_us) {
            let look = sampler.look();
            let mut state = shared.lock();
            state.looks.push(look);
            state.drop_oldest();
            drop(state);
            due.look_at_us = start.next(due.next_pause(), LOOK_SHARE);
        } else if due.wants_sample(shared, start.at_us) {
            tracker.add_children(&mut topology);
            due.hasten_search(tracker.gone(&topology));
            let counters = sampler.sample(&topology);
            let stretch = publish(shared, counters, &topology, requested);
            due.sample_at_us = start.next(period.saturating_mul(stretch), SAMPLE_SHARE);
        }
        if pause(shared, &due) {
            return;
        }
    }
}

/// When to sample, to look at threads and to search for new processes next, microseconds.
#[derive(Default)]
struct Due {
    sample_at_us: u64,
    look_at_us: u64,
    track_at_us: u64,
    looks: u32,
    /// When the last search began.
    searched_us: u64,
    /// The time from there to the next search by what it cost.
    period_us: u64,
    /// The processes that listened and had gone at the last sample.
    gone: BTreeSet<Pid>,
    /// How long after the last search to search again while they are gone.
    again_us: u64,
    /// A search at this time or later shows that those that listen stay.
    settled_us: u64,
}

impl Due {
    /// Whether a look at threads is due now, and no sample.
    fn wants_look(&self, shared: &Shared, now_us: u64) -> bool {
        let is_looking = shared.lock().closely && now_us >= self.look_at_us;
        is_looking && !self.wants_sample(shared, now_us)
    }

    /// Whether a sample is due now, or requested.
    fn wants_sample(&self, shared: &Shared, now_us: u64) -> bool {
        let state = shared.lock();
        state.requested > state.fulfilled || now_us >= self.sample_at_us
    }

    /// Notes when a search began, and when the next is due by what it cost.
    fn searched(&mut self, began_us: u64, next_us: u64) {
        (self.searched_us, self.track_at_us) = (began_us, next_us);
        self.period_us = next_us.saturating_sub(began_us);
        self.again_us = self.again_us.saturating_mul(2);
    }

    /// Brings the next search forward while processes that listened are gone, whatever a search costs: a second after the last
    /// one, then after twice as long each time. So what takes their place is found about as long after it came as they were
    /// away, and those that never come back cost a few searches. The time begins anew at a second only where nothing went
    /// during a whole period before: with servers that end as soon as they are found, each search would come a second after
    /// the last.
    fn hasten_search(&mut self, gone: BTreeSet<Pid>) {
        if !gone.is_subset(&self.gone) {
            if self.searched_us >= self.settled_us {
                self.again_us = micros(TRACK_PERIOD);
            }
            self.settled_us = self.searched_us.saturating_add(self.period_us.saturating_mul(2));
        }
        if !gone.is_empty() {
            self.track_at_us = self.track_at_us.min(self.searched_us.saturating_add(self.again_us));
        }
        self.gone = gone;
    }

    /// The time from one look to the next, between half the period and one and a half.
    fn next_pause(&mut self) -> Duration {
        self.looks = self.looks.wrapping_add(1);
        LOOK_PERIOD.mul_f64(0.5 + (f64::from(self.looks) * SPREAD).fract())
    }

    fn next_us(&self, closely: bool) -> u64 {
        let next_us = self.sample_at_us.min(self.track_at_us);
        if closely { next_us.min(self.look_at_us) } else { next_us }
    }
}

/// When some work started, and the thread's CPU time until then.
struct Start {
    at_us: u64,
    cpu_us: u64,
}

impl Start {
    fn now() -> Self {
        Self { at_us: monotonic_us(), cpu_us: own_thread_cpu_us() }
    }

    /// When to repeat the work that ends now. Its cost is its CPU time: on an overloaded host, where samples matter most,
    /// the work takes longer without costing more.
    fn next(&self, period: Duration, share: u64) -> u64 {
        let cost_us = own_thread_cpu_us().saturating_sub(self.cpu_us);
        self.at_us + micros(period).max(cost_us.saturating_mul(share))
    }
}

/// Keeps a sample for whoever asks. Returns how many times as long as asked for to wait until the next one.
fn publish(shared: &Shared, counters: Counters, topology: &Topology, requested: u64) -> u32 {
    let mut state = shared.lock();
    state.keep(counters);
    if state.topology != *topology {
        state.topology = topology.clone();
    }
    state.fulfilled = requested;
    shared.changed.notify_all();
    state.thinning.stretch()
}

/// Waits until something is due or a sample is requested. Returns whether to stop.
fn pause(shared: &Shared, due: &Due) -> bool {
    let mut state = shared.lock();
    loop {
        let left_us = due.next_us(state.closely).saturating_sub(monotonic_us());
        if state.stopping {
            return true;
        }
        if left_us == 0 || state.requested > state.fulfilled {
            return false;
        }
        let waited = shared.changed.wait_timeout(state, Duration::from_micros(left_us));
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::cgroup::fake::Tree;

    #[test]
    fn samples_are_kept_for_good_only_where_they_were_asked_for_at_a_border() {
        let tree = Tree::new("");
        let topology = Topology::unseen(([127, 0, 0, 1], 80).into());
        let watcher = Watcher::start(tree.paths(), topology, Duration::from_secs(60)).unwrap();
        watcher.sample_now();
        let borders = || watcher.shared.lock().thinning.borders();
        let before = borders();
        let taken = || watcher.read(<[Counters]>::len);
        let earlier = taken();
        let _ = watcher.between(u64::MAX, u64::MAX);
        assert!(taken() > earlier, "it took another");
        assert!(before > 0);
        assert_eq!(borders(), before);
    }

    #[test]
    fn new_processes_are_searched_for_between_samples_that_are_far_apart() {
        let due = Due { sample_at_us: 60_000_000, track_at_us: 1_000_000, ..Due::default() };
        assert_eq!((due.next_us(false), due.next_us(true)), (1_000_000, 0));
    }

    #[test]
    fn what_takes_the_place_of_a_tier_is_searched_for_at_once_whatever_a_search_costs() {
        let minute_us = 60_000_000;
        let mut due = Due::default();
        due.searched(5_000_000, 5_000_000 + minute_us);
        due.hasten_search(BTreeSet::new());
        assert_eq!(due.track_at_us, 65_000_000, "nobody has gone");
        let gone = || BTreeSet::from([7]);
        for expected_us in [6_000_000, 8_000_000, 12_000_000, 20_000_000, 36_000_000, 68_000_000] {
            due.hasten_search(gone());
            assert_eq!(due.track_at_us, expected_us);
            due.searched(expected_us, expected_us + minute_us);
        }
        due.hasten_search(gone());
        assert_eq!(due.track_at_us, 68_000_000 + minute_us, "it does not come back");
        due.searched(128_000_000, 128_000_000 + minute_us);
        due.hasten_search(BTreeSet::from([7, 8]));
        assert_eq!(due.track_at_us, 129_000_000, "another has gone");
    }

    #[test]
    fn servers_that_each_go_soon_after_they_were_found_are_searched_for_after_twice_as_long_each_time() {
        let minute_us = 60_000_000;
        let mut due = Due::default();
        due.searched(0, minute_us);
        let mut gone = BTreeSet::new();
        for (pid, expected_us) in (1..).zip([1, 3, 7, 15, 31, 63, 123, 183].map(|at_s| at_s * 1_000_000)) {
            gone.insert(pid);
            due.hasten_search(gone.clone());
            assert_eq!(due.track_at_us, expected_us, "{pid}");
            due.searched(expected_us, expected_us + minute_us);
            due.hasten_search(gone.clone());
        }
        // The last one stays for a minute.
        due.searched(243_000_000, 243_000_000 + minute_us);
        due.hasten_search(gone.clone());
        gone.insert(9);
        due.hasten_search(gone);
        assert_eq!(due.track_at_us, 244_000_000);
    }
}
