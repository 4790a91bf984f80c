//! The generator: starts threads, sets the number of users, collects ticks.

pub(crate) mod threads;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use analysis::estimate::stall::answered;
use analysis::ticks::Tick;

use crate::error::LoadError;
use crate::limits;
use crate::plan::{Pacing, Plan, Stop, Think};
use crate::ticks::merger::{Merged, Merger};
use crate::ticks::recorder::SLICE_US;
use crate::ticks::totals::RequestTotal;
use crate::worker::messages::{Assignment, Command, FromThread, Notice};
use crate::worker::pacing::Allowance;
use crate::worker::target::Targets;
use threads::{ThreadHandle, spawn};

/// How often a collection checks for an interrupt.
const INTERRUPT_CHECK: Duration = Duration::from_millis(20);

/// Time within which a restarted server usually answers again.
const RESTART: Duration = Duration::from_secs(10);

/// Users on threads, and their measurements.
///
/// ```no_run
/// use std::sync::atomic::AtomicBool;
/// use load::{Generator, Plan, RequestTemplate, Scenario, Url};
///
/// let url: Url = "http://127.0.0.1:8080/".parse()?;
/// let plan = Plan::new(Scenario::single(&url, RequestTemplate::default())?);
/// let mut generator = Generator::start(&plan)?;
/// for users in [1, 2, 4] {
///     generator.set_users(users)?;
///     let ticks = generator.collect(1_000_000, &AtomicBool::new(false))?;
///     println!("{users} users: {} requests", ticks.iter().map(|tick| tick.completed).sum::<u64>());
/// }
/// generator.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Generator {
    threads: Vec<ThreadHandle>,
    reports: Receiver<FromThread>,
    merger: Merger,
    addresses: Vec<SocketAddr>,
    name_lookup: Option<Duration>,
    users: u32,
    /// The think time of a closed loop from the next assignment on, where it is another than the plan's.
    think: Option<Think>,
    /// The rate of an open loop from the next assignment on, where it is another than the plan's.
    rate_per_s: Option<f64>,
    /// Whether the threads have not been told the number of users yet.
    pending: bool,
    /// Slices before this one belong to the previous assignment.
    skip_to: u64,
    open_loop: bool,
    /// How long a counted number of requests goes on without any response.
    stall_limit_us: u64,
    /// Number of the current assignment.
    assignment: u64,
    finished: FinishedThreads,
    totals: Vec<RequestTotal>,
}

/// How many threads have finished the assignment, and when the last one did.
#[derive(Debug, Default)]
struct FinishedThreads {
    threads: usize,
    at_ns: u64,
}

impl Generator {
    /// Resolves the target and starts the threads, which wait for [`Generator::set_users`].
    ///
    /// # Errors
    /// The plan names no target or contradicts itself, the target does not resolve, there are no trusted certificates, or
    /// the operating system provides no threads or descriptors.
    pub fn start(plan: &Plan) -> Result<Self, LoadError> {
        check(plan)?;
        let targets = Targets::new(plan)?;
        let (sender, reports) = channel();
        let mut generator = Generator {
            threads: Vec::with_capacity(plan.threads),
            reports,
            merger: Merger::new(plan.threads),
            addresses: targets.targets.iter().map(|target| target.address).collect(),
            name_lookup: targets.targets.iter().filter_map(|target| target.name_lookup).max(),
            users: 0,
            think: None,
            rate_per_s: None,
            pending: false,
            skip_to: 0,
            open_loop: matches!(plan.pacing, Pacing::Open { .. }),
            stall_limit_us: stall_limit_us(plan),
            assignment: 0,
            finished: FinishedThreads::default(),
            totals: targets.totals.clone(),
        };
        for number in 0..plan.threads {
            // On an error, dropping `generator` ends the threads that have started.
            generator.threads.push(spawn(plan, &targets, number, sender.clone())?);
        }
        Ok(generator)
    }

    /// The addresses that the load goes to.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How long it took to look up the server's name, of several servers the longest; `None` where all are addresses. No response
    /// time includes it.
    #[must_use]
    pub fn name_lookup(&self) -> Option<Duration> {
        self.name_lookup
    }

    /// The kernel numbers of the threads.
    #[must_use]
    pub fn thread_ids(&self) -> Vec<u32> {
        self.threads.iter().map(|thread| thread.tid).collect()
    }

    /// Attempts to connect in the ticks collected so far, failed ones included.
    #[must_use]
    pub fn connects(&self) -> u64 {
        self.merger.connects()
    }

    /// Sets the number of users from the next [`Generator::collect`] or [`Generator::run`] on; in an open loop, the
    /// greatest number of connections. Users that stay keep their connections; surplus users finish their request and
    /// leave.
    ///
    /// # Errors
    /// The process may open fewer files than there are users.
    pub fn set_users(&mut self, users: u32) -> Result<(), LoadError> {
        limits::ensure(users, self.threads.len())?;
        self.users = users;
        self.pending = true;
        Ok(())
    }

    /// Sets another think time than the plan's from the next assignment of users on. Without effect in an open loop.
    pub fn set_think(&mut self, think: Think) {
        self.think = Some(think);
        self.pending = true;
    }

    /// Sets another rate than the plan's, requests per second, from the next assignment of users on. Without effect in a closed
    /// loop.
    pub fn set_rate(&mut self, rate_per_s: f64) {
        self.rate_per_s = Some(rate_per_s);
        self.pending = true;
    }

    /// Begins now, with the users, think time and rate set last: without end, or until every user or all together have made
    /// a number of requests. For whoever takes ticks with [`Generator::poll`]. Returns when it took effect on the last thread,
    /// microseconds of the monotonic clock.
    ///
    /// # Errors
    /// A thread ended unexpectedly, or `stop` is a number of requests per user in an open loop.
    pub fn begin_now(&mut self, stop: Option<Stop>) -> Result<u64, LoadError> {
        let allowance = match stop {
            Some(stop) => self.allowance(stop)?,
            None => Allowance::Unlimited,
        };
        let counted = !matches!(allowance, Allowance::Unlimited);
        let applied = self.begin(allowance)?;
        self.skip_to = if counted { applied.first_slice } else { applied.last_slice + 1 };
        Ok(applied.last_ns / 1_000)
    }

    /// Waits a moment, and returns the ticks that have come since the last call.
    ///
    /// # Errors
    /// A thread ended unexpectedly.
    pub fn poll(&mut self) -> Result<Vec<Tick>, LoadError> {
        let mut ticks = Vec::new();
        self.receive()?;
        self.drain(&mut ticks);
        Ok(ticks)
    }

    /// When the last request ended of the number that was to be made, microseconds of the monotonic clock; `None` until then.
    #[must_use]
    pub fn finished_us(&self) -> Option<u64> {
        let finished = self.finished.threads >= self.threads.len();
        finished.then(|| self.finished.at_ns.div_ceil(1_000))
    }

    /// Collects ticks, starting where the users were set or the last collection ended, until they cover `for_us`. The users
    /// go on between calls, so the ticks of successive calls without a change of users are consecutive. `interrupt`
    /// ends the collection early with what has been measured.
    ///
    /// # Errors
    /// A thread ended unexpectedly.
    pub fn collect(&mut self, for_us: u64, interrupt: &AtomicBool) -> Result<Vec<Tick>, LoadError> {
        if self.pending {
            let applied = self.begin(Allowance::Unlimited)?;
            // The slice in which the last thread changed over belongs to neither assignment.
            self.skip_to = applied.last_slice + 1;
        }
        let mut ticks = Vec::new();
        loop {
            self.drain(&mut ticks);
            if ticks.len() as u64 * SLICE_US >= for_us || interrupt.load(Ordering::Relaxed) {
                return Ok(ticks);
            }
            self.receive()?;
        }
    }

    /// Runs until `stop` and returns the ticks from start to end. `interrupt` ends the run early with what has been
    /// measured. If `stop` is a number of requests, so does a server that is gone: one that has answered nothing for the
    /// time-out or 10 s, whichever is longer, while requests failed.
    ///
    /// # Errors
    /// A thread ended unexpectedly, or `stop` is a number of requests per user in an open loop.
    pub fn run(&mut self, stop: Stop, interrupt: &AtomicBool) -> Result<Vec<Tick>, LoadError> {
        if let Stop::Time(time) = stop {
            return self.collect(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), interrupt);
        }
        let allowance = self.allowance(stop)?;
        let applied = self.begin(allowance)?;
        // Nobody was at work before, so the slice in which the run started counts from there on.
        self.skip_to = applied.first_slice;
        let (ticks, end_ns) = self.until_finished(interrupt)?;
        Ok(trim(ticks, applied.first_ns / 1_000, end_ns.map(|ns| ns.div_ceil(1_000))))
    }

    /// How many requests may be made until a load stops.
    fn allowance(&self, stop: Stop) -> Result<Allowance, LoadError> {
        match stop {
            Stop::Time(_) => Ok(Allowance::Unlimited),
            Stop::PerUser(_) if self.open_loop => {
                Err(LoadError::Plan("in an open loop requests belong to no user: stop by time or by total"))
            }
            Stop::PerUser(requests) => Ok(Allowance::PerUser(requests)),
            Stop::Total(requests) => Ok(Allowance::Total(Arc::new(AtomicU64::new(requests)))),
        }
    }

    /// Ends the threads and closes their connections.
    pub fn stop(self) {
        self.finish();
    }

    /// Ends the threads and closes their connections, without waiting for responses. Returns the totals per kind of request
    /// since the start.
    pub fn finish(mut self) -> Vec<RequestTotal> {
        self.end_threads();
        let mut all = std::mem::take(&mut self.totals);
        for report in self.reports.try_iter() {
            let FromThread::Notice(Notice::Ended { totals }) = report else { continue };
            all.iter_mut().zip(&totals).for_each(|(all, of_thread)| all.add(of_thread));
        }
        all
    }

    fn end_threads(&mut self) {
        for thread in &self.threads {
            thread.send(Command::Stop);
        }
        self.threads.iter_mut().for_each(ThreadHandle::join);
    }

    /// Gives the threads a new assignment and waits until each has applied it.
    fn begin(&mut self, allowance: Allowance) -> Result<Applied, LoadError> {
        self.pending = false;
        self.assignment += 1;
        self.finished = FinishedThreads::default();
        for thread in &self.threads {
            let (users, think, rate_per_s) = (self.users, self.think, self.rate_per_s);
            let number = self.assignment;
            let allowance = allowance.clone();
            thread.send(Command::Run(Assignment { users, think, rate_per_s, allowance, number }));
        }
        let mut applied = Applied::by_none();
        let mut waiting = self.threads.len();
        while waiting > 0 {
            if let Some(Notice::Applied { slice, at_ns }) = self.receive()? {
                waiting -= 1;
                applied.add(slice, at_ns);
            }
        }
        Ok(applied)
    }

    /// Collects until every thread has finished. Returns when the last one did, unless interrupted.
    fn until_finished(&mut self, interrupt: &AtomicBool) -> Result<(Vec<Tick>, Option<u64>), LoadError> {
        let mut ticks = Vec::new();
        // The last slice is handed over when it ends.
        while self.finished.threads < self.threads.len()
            || ticks.last().is_none_or(|tick| end_of(tick) * 1_000 <= self.finished.at_ns)
        {
            if interrupt.load(Ordering::Relaxed) || stalled_us(&ticks) > self.stall_limit_us {
                return Ok((ticks, None));
            }
            self.receive()?;
            self.drain(&mut ticks);
        }
        Ok((ticks, Some(self.finished.at_ns)))
    }

    /// Processes one message, if one comes before the next check for an interrupt.
    fn receive(&mut self) -> Result<Option<Notice>, LoadError> {
        match self.reports.recv_timeout(INTERRUPT_CHECK) {
            Ok(FromThread::Slice { thread, slice }) => self.merger.add(thread, *slice),
            // May come at any time: a thread without users finishes before the others have begun.
            Ok(FromThread::Notice(Notice::Finished { assignment, at_ns }))
                if assignment == self.assignment =>
            {
                self.finished.threads += 1;
                self.finished.at_ns = self.finished.at_ns.max(at_ns);
            }
            Ok(FromThread::Notice(notice)) => return Ok(Some(notice)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(LoadError::ThreadLost),
        }
        if self.threads.iter().any(ThreadHandle::is_lost) { Err(LoadError::ThreadLost) } else { Ok(None) }
    }

    fn drain(&mut self, ticks: &mut Vec<Tick>) {
        while let Some(merged) = self.merger.next() {
            self.keep(merged, ticks);
        }
    }

    fn keep(&self, merged: Merged, ticks: &mut Vec<Tick>) {
        if merged.index >= self.skip_to {
            ticks.push(merged.tick);
        }
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.end_threads();
    }
}

/// How long a counted number of requests goes on without any response, microseconds.
#[must_use]
pub fn stall_limit_us(plan: &Plan) -> u64 {
    u64::try_from(plan.timeout.max(RESTART).as_micros()).unwrap_or(u64::MAX)
}

/// The time up to the last tick in which requests failed and none was answered, microseconds.
#[must_use]
pub fn stalled_us(ticks: &[Tick]) -> u64 {
    let stalled = || ticks.iter().rev().take_while(|tick| !answered(tick));
    let failed = stalled().any(|tick| !tick.errors.is_empty());
    if failed { stalled().map(|tick| tick.length_us).sum() } else { 0 }
}

/// When an assignment took effect, on the first and on the last thread.
struct Applied {
    first_slice: u64,
    last_slice: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Applied {
    fn by_none() -> Self {
        Self { first_slice: u64::MAX, last_slice: 0, first_ns: u64::MAX, last_ns: 0 }
    }

    /// Adds a thread.
    fn add(&mut self, slice: u64, at_ns: u64) {
        self.first_slice = self.first_slice.min(slice);
        self.last_slice = self.last_slice.max(slice);
        self.first_ns = self.first_ns.min(at_ns);
        self.last_ns = self.last_ns.max(at_ns);
    }
}

fn end_of(tick: &Tick) -> u64 {
    tick.start_us + tick.length_us
}

/// Cuts the time before the start off the first tick, and the time after the end off the last one.
#[must_use]
pub fn trim(mut ticks: Vec<Tick>, begin_us: u64, end_us: Option<u64>) -> Vec<Tick> {
    if let Some(first) = ticks.first_mut() {
        let end = end_of(first);
        first.start_us = begin_us.clamp(first.start_us, end);
        first.length_us = end - first.start_us;
    }
    if let Some(end_us) = end_us {
        let keep = ticks.iter().take_while(|tick| tick.start_us < end_us).count();
        ticks.truncate(keep.max(1));
        if let Some(last) = ticks.last_mut() {
            last.length_us = last.length_us.min(end_us.saturating_sub(last.start_us));
        }
    }
    ticks
}

fn check(plan: &Plan) -> Result<(), LoadError> {
    if plan.threads == 0 {
        return Err(LoadError::Plan("it has no threads"));
    }
    if plan.timeout.is_zero() {
        return Err(LoadError::Plan("its time-out is zero"));
    }
    if plan.cpus.as_ref().is_some_and(Vec::is_empty) {
        return Err(LoadError::Plan("its list of processors is empty"));
    }
    match plan.pacing {
        Pacing::Open { rate_per_s, .. } if !(rate_per_s.is_finite() && rate_per_s > 0.0) => {
            Err(LoadError::Plan("its rate is not a positive number"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread with many users to make told later than the others, and when these began was told.
    #[test]
    fn a_load_has_begun_once_the_last_thread_has() {
        let mut applied = Applied::by_none();
        for (slice, at_ns) in [(7, 140_000_100), (9, 199_000_000), (8, 160_000_000)] {
            applied.add(slice, at_ns);
        }
        assert_eq!((applied.first_slice, applied.last_slice), (7, 9));
        assert_eq!((applied.first_ns, applied.last_ns), (140_000_100, 199_000_000));
    }
}
