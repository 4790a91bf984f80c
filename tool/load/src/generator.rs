//! The generator as others see it: start, so many users, collect.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use analysis::estimate::stall::answered;
use analysis::sample::Tick;

use crate::error::LoadError;
use crate::limits;
use crate::merge::{Merged, Merger};
use crate::plan::{Pacing, Plan, Stop};
use crate::record::SLICE_US;
use crate::tally::{RequestTotal, totals};
use crate::threads::{Running, spawn};
use crate::worker::pacing::Allowance;
use crate::worker::{Command, Notice, Report, Settings, Target, Work};

/// How often a collection looks whether it is interrupted.
const LOOK: Duration = Duration::from_millis(20);

/// A server that is restarted answers again within about so long.
const RESTART: Duration = Duration::from_secs(10);

/// Users on threads, and what they measure.
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
    threads: Vec<Running>,
    reports: Receiver<Report>,
    merger: Merger,
    addresses: Vec<SocketAddr>,
    /// Users asked for, and whether the threads know.
    users: u32,
    pending: bool,
    /// Slices up to this one are of what went before.
    skip_to: u64,
    open_loop: bool,
    /// For so long the users go on without any answer when the work is a number of requests.
    patience_us: u64,
    /// Which change of users or work this is.
    run: u64,
    finished: Finished,
    totals: Vec<RequestTotal>,
}

/// Threads that have done their work, and when the last one had.
#[derive(Debug, Default)]
struct Finished {
    threads: usize,
    at_ns: u64,
}

impl Generator {
    /// Resolves the target, starts the threads, and waits for [`Generator::set_users`].
    ///
    /// # Errors
    /// A target that is not named or does not resolve, TLS without certificates to trust, a plan that
    /// contradicts itself, or an operating system that gives no threads or descriptors.
    pub fn start(plan: &Plan) -> Result<Self, LoadError> {
        check(plan)?;
        let settings = settings(plan)?;
        let (sender, reports) = channel();
        let mut generator = Generator {
            threads: Vec::with_capacity(plan.threads),
            reports,
            merger: Merger::new(plan.threads),
            addresses: settings.targets.iter().map(|target| target.address).collect(),
            users: 0,
            pending: false,
            skip_to: 0,
            open_loop: matches!(plan.pacing, Pacing::Open { .. }),
            patience_us: u64::try_from(plan.timeout.max(RESTART).as_micros()).unwrap_or(u64::MAX),
            run: 0,
            finished: Finished::default(),
            totals: settings.totals.clone(),
        };
        for number in 0..plan.threads {
            // Threads already started end when `generator` is dropped on an error.
            generator.threads.push(spawn(plan, &settings, number, sender.clone())?);
        }
        Ok(generator)
    }

    /// The addresses that the load goes to.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Kernel numbers of its threads.
    #[must_use]
    pub fn thread_ids(&self) -> Vec<u32> {
        self.threads.iter().map(|thread| thread.tid).collect()
    }

    /// Connections begun in what was collected so far, failed ones included.
    #[must_use]
    pub fn connects(&self) -> u64 {
        self.merger.connects()
    }

    /// Asks for so many users from the next [`Generator::collect`] or [`Generator::run`] on; in an open
    /// loop, for at most so many connections. Users that stay keep their connections; users beyond the
    /// number finish their request and leave.
    ///
    /// # Errors
    /// Fewer descriptors than users.
    pub fn set_users(&mut self, users: u32) -> Result<(), LoadError> {
        limits::ensure(users, self.threads.len())?;
        self.users = users;
        self.pending = true;
        Ok(())
    }

    /// Lets the users run, and returns the ticks since they were set or since the last collection,
    /// until they cover `for_us`. The users go on in between: ticks of consecutive calls with no
    /// change of users are consecutive. `interrupt` ends it early with what was measured.
    ///
    /// # Errors
    /// A lost thread.
    pub fn collect(&mut self, for_us: u64, interrupt: &AtomicBool) -> Result<Vec<Tick>, LoadError> {
        if self.pending {
            let begun = self.begin(Allowance::Unlimited)?;
            // The slice in which the last thread changed over is neither one thing nor the other.
            self.skip_to = begun.last_slice + 1;
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

    /// Runs until `stop`, and returns the ticks from its beginning to its end. `interrupt` ends it early
    /// with what was measured. So does a server that is gone: where `stop` is a number of requests and none was
    /// answered for the time-out or 10 s, whichever is longer, while some failed.
    ///
    /// # Errors
    /// A lost thread; a stop by requests per user in an open loop.
    pub fn run(&mut self, stop: Stop, interrupt: &AtomicBool) -> Result<Vec<Tick>, LoadError> {
        let allowance = match stop {
            Stop::Time(time) => {
                return self.collect(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), interrupt);
            }
            Stop::PerUser(_) if self.open_loop => {
                return Err(LoadError::Plan(
                    "in an open loop requests belong to no user: stop by time or by total",
                ));
            }
            Stop::PerUser(requests) => Allowance::PerUser(requests),
            Stop::Total(requests) => Allowance::Total(Arc::new(AtomicU64::new(requests))),
        };
        let begun = self.begin(allowance)?;
        // Nobody was at work before: the slice in which it began counts from there on.
        self.skip_to = begun.first_slice;
        let (ticks, end_ns) = self.until_finished(interrupt)?;
        Ok(trim(ticks, begun.at_ns / 1_000, end_ns.map(|ns| ns.div_ceil(1_000))))
    }

    /// Ends the threads and closes the connections.
    pub fn stop(self) {
        self.finish();
    }

    /// Ends the threads and closes the connections, whatever is on its way on them; tells what became of each request of
    /// the scenario since the start.
    pub fn finish(mut self) -> Vec<RequestTotal> {
        self.end_threads();
        let mut all = std::mem::take(&mut self.totals);
        for report in self.reports.try_iter() {
            let Report::Notice(Notice::Ended { totals }) = report else { continue };
            all.iter_mut().zip(&totals).for_each(|(all, of_thread)| all.add(of_thread));
        }
        all
    }

    fn end_threads(&mut self) {
        for thread in &self.threads {
            thread.tell(Command::Stop);
        }
        self.threads.iter_mut().for_each(Running::join);
    }

    /// Tells the threads, and waits until each has done as told.
    fn begin(&mut self, allowance: Allowance) -> Result<Begun, LoadError> {
        self.pending = false;
        self.run += 1;
        self.finished = Finished::default();
        for thread in &self.threads {
            let work = Work { users: self.users, allowance: allowance.clone(), run: self.run };
            thread.tell(Command::Work(work));
        }
        let mut begun = Begun { first_slice: u64::MAX, last_slice: 0, at_ns: u64::MAX };
        let mut waiting = self.threads.len();
        while waiting > 0 {
            if let Some(Notice::Applied { slice, at_ns }) = self.receive()? {
                waiting -= 1;
                begun.first_slice = begun.first_slice.min(slice);
                begun.last_slice = begun.last_slice.max(slice);
                begun.at_ns = begun.at_ns.min(at_ns);
            }
        }
        Ok(begun)
    }

    /// Collects until every thread has done its work; when the last one had, unless interrupted.
    fn until_finished(&mut self, interrupt: &AtomicBool) -> Result<(Vec<Tick>, Option<u64>), LoadError> {
        let mut ticks = Vec::new();
        // The slice in which it ended is handed over when it is over.
        while self.finished.threads < self.threads.len()
            || ticks.last().is_none_or(|tick| end_of(tick) * 1_000 <= self.finished.at_ns)
        {
            if interrupt.load(Ordering::Relaxed) || silent_us(&ticks) > self.patience_us {
                return Ok((ticks, None));
            }
            self.receive()?;
            self.drain(&mut ticks);
        }
        Ok((ticks, Some(self.finished.at_ns)))
    }

    /// Takes in one report, if one comes before it is time to look up.
    fn receive(&mut self) -> Result<Option<Notice>, LoadError> {
        match self.reports.recv_timeout(LOOK) {
            Ok(Report::Slice { thread, slice }) => self.merger.add(thread, slice),
            // Comes at any time: a thread without users has finished before the others have begun.
            Ok(Report::Notice(Notice::Finished { run, at_ns })) if run == self.run => {
                self.finished.threads += 1;
                self.finished.at_ns = self.finished.at_ns.max(at_ns);
            }
            Ok(Report::Notice(notice)) => return Ok(Some(notice)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(LoadError::ThreadLost),
        }
        if self.threads.iter().any(Running::is_lost) { Err(LoadError::ThreadLost) } else { Ok(None) }
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

/// For how long requests have failed and none was answered, up to the last tick.
fn silent_us(ticks: &[Tick]) -> u64 {
    let silent = || ticks.iter().rev().take_while(|tick| !answered(tick));
    let failed = silent().any(|tick| !tick.errors.is_empty());
    if failed { silent().map(|tick| tick.length_us).sum() } else { 0 }
}

/// When a change took effect.
struct Begun {
    first_slice: u64,
    last_slice: u64,
    at_ns: u64,
}

fn end_of(tick: &Tick) -> u64 {
    tick.start_us + tick.length_us
}

/// Cuts the time before the beginning off the first tick and the time after the end off the last.
fn trim(mut ticks: Vec<Tick>, begin_us: u64, end_us: Option<u64>) -> Vec<Tick> {
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

fn settings(plan: &Plan) -> Result<Arc<Settings>, LoadError> {
    let bases = plan.scenario.bases();
    if bases.is_empty() {
        return Err(LoadError::NoBase { scenario: plan.scenario.name().into() });
    }
    let target = |base| Target::new(plan, base).map(Arc::new);
    Ok(Arc::new(Settings {
        targets: bases.iter().map(target).collect::<Result<_, _>>()?,
        totals: totals(&plan.scenario),
        connections: plan.connections,
        timeout_ns: u64::try_from(plan.timeout.as_nanos()).unwrap_or(u64::MAX),
    }))
}
