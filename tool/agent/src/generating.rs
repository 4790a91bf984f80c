//! The far end makes load: a thread that runs a generator as it is told, and one that passes on what that counts.
//!
//! The threads that make the load hand over their counts and go on. Between them and the stream is a queue of bounded
//! length: where the stream takes too little for too long, the load ends and says so, because a hole in the counts would be
//! worth nothing. Where nothing is heard from the near end any longer, though it says something every second, the load ends too:
//! others make it by then.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use analysis::ticks::Tick;
use load::{Ceiling, Generator, LoadError, Plan, THREADS_MAX, limits};
use observe::monotonic_us;

use crate::heard::{CutOff, LastHeard};
use crate::own_watch::OwnWatch;
use crate::protocol::{Begin, Command, Prepare, Prepared, Report, Started};
use crate::serve::Output;
use crate::stream::named;

/// How long to test what the generator can do.
const CEILING_TIME: Duration = Duration::from_millis(300);

/// Reports that wait for the stream: ten seconds of slices.
const QUEUE: usize = 500;

/// Commands that wait.
const COMMANDS: usize = 16;

/// What is to begin sooner than this is waited for; until then slices are passed on.
const SOON_US: u64 = 30_000;

/// A generator that is told what to do.
pub(crate) struct Generating {
    commands: SyncSender<Command>,
}

impl Generating {
    /// Starts the threads, which wait for a load to prepare.
    pub(crate) fn start(output: Output, heard: LastHeard) -> std::io::Result<Self> {
        let (commands, told) = sync_channel(COMMANDS);
        let (reports, waiting) = sync_channel(QUEUE);
        named("nstar-pass-on", move || pass_on(&waiting, &output))?;
        named("nstar-generate", move || {
            if let Err(Stop::Because(reason)) = work(&told, &reports, heard) {
                // The load has ended: there is time to wait for the stream now.
                let _ = reports.send(Report::Failed(reason));
            }
        })?;
        Ok(Self { commands })
    }

    /// Passes on a command. Returns whether there was room for it: nobody sends so many that there is none.
    pub(crate) fn obey(&self, command: Command) -> bool {
        !matches!(self.commands.try_send(command), Err(TrySendError::Full(_)))
    }
}

/// Why there is nothing more to do.
enum Stop {
    /// Nobody asks or listens any more, or all was done.
    Over,
    /// Something went wrong.
    Because(String),
}

impl From<LoadError> for Stop {
    fn from(error: LoadError) -> Self {
        Self::Because(error.to_string())
    }
}

/// Sends reports for as long as the stream takes them.
fn pass_on(waiting: &Receiver<Report>, output: &Output) {
    while let Ok(report) = waiting.recv() {
        if output.report(&report).is_err() {
            return;
        }
    }
}

fn work(told: &Receiver<Command>, reports: &SyncSender<Report>, heard: LastHeard) -> Result<(), Stop> {
    let Ok(Command::Prepare(prepare)) = told.recv() else { return Err(Stop::Over) };
    let is_watched = prepare.watch;
    let mut plan = with_threads(*prepare);
    if !plan.is_sound() {
        return Err(Stop::Because("the load that was sent cannot be one".to_owned()));
    }
    tell(reports, Report::Prepared(prepared(&plan)))?;
    let Ok(Command::Start(member)) = told.recv() else { return Err(Stop::Over) };
    plan.member = member;
    if !plan.is_sound() {
        return Err(Stop::Because("the share of the load that was sent cannot be one".to_owned()));
    }
    let probes = load::probe(&plan)?;
    let generator = Generator::start(&plan)?;
    let addresses = generator.addresses().to_vec();
    let own = if is_watched { OwnWatch::start(&addresses) } else { None };
    tell(reports, Report::Started(Started { addresses, probes }))?;
    drive(generator, told, reports, (CutOff::new(heard, monotonic_us()), own))
}

fn with_threads(Prepare { mut plan, threads, .. }: Prepare) -> Plan {
    let processors = plan.cpus.as_ref().map(Vec::len).filter(|count| *count > 0);
    let usable = || processors.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    plan.threads = threads.map_or_else(usable, |threads| threads as usize).clamp(1, usize::from(THREADS_MAX));
    plan
}

/// How much of a load this host can make. Where that cannot be tested, the load still can be made.
fn prepared(plan: &Plan) -> Prepared {
    let users_max = limits::users_allowed(plan.threads);
    let ceiling = Ceiling::measure(plan, CEILING_TIME, &AtomicBool::new(false)).ok();
    Prepared {
        threads: u32::try_from(plan.threads).unwrap_or(u32::MAX),
        ceiling_per_s: ceiling.map(|ceiling| ceiling.requests_per_s),
        users_max,
    }
}

/// Makes the load as told until it is to finish.
fn drive(
    mut generator: Generator,
    told: &Receiver<Command>,
    reports: &SyncSender<Report>,
    (mut cut_off, mut own): (CutOff, Option<OwnWatch>),
) -> Result<(), Stop> {
    let (mut due, mut current) = (None, Current::default());
    loop {
        match told.try_recv() {
            Ok(Command::Begin(begin)) => due = Some(begin),
            Ok(Command::Finish) => {
                tell(reports, Report::Totals(generator.finish()))?;
                return Err(Stop::Over);
            }
            Ok(_) => return Err(Stop::Because("what was asked for does not come next".to_owned())),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(Stop::Over),
        }
        if cut_off.is_so(monotonic_us()) {
            return Err(Stop::Because("nothing was heard from nstar for 4 s".to_owned()));
        }
        if let Some(own) = own.as_mut().and_then(|own| own.look(monotonic_us())) {
            tell(reports, Report::OwnUse(own))?;
        }
        if let Some(begin) = due.take_if(|begin| begin.at_us <= monotonic_us() + SOON_US) {
            current = begun(&mut generator, begin)?;
            tell(reports, Report::Begun(current.number, current.begun_us))?;
        }
        for tick in generator.poll()? {
            pass(reports, current.number, tick)?;
        }
        if let Some(at_us) = generator.finished_us().filter(|_| current.counts && !current.is_finished) {
            current.is_finished = true;
            tell(reports, Report::Finished(current.number, at_us))?;
        }
    }
}

/// What is under way.
#[derive(Default)]
struct Current {
    number: u64,
    begun_us: u64,
    /// Whether it is to make a number of requests.
    counts: bool,
    is_finished: bool,
}

fn begun(generator: &mut Generator, begin: Begin) -> Result<Current, Stop> {
    let Begin { number, at_us, users, think, rate_per_s, stop } = begin;
    if let Some(think) = think {
        generator.set_think(think);
    }
    if let Some(rate_per_s) = rate_per_s.filter(|rate| rate.is_finite() && *rate > 0.0) {
        generator.set_rate(rate_per_s);
    }
    generator.set_users(users)?;
    thread::sleep(Duration::from_micros(at_us.saturating_sub(monotonic_us())));
    let begun_us = generator.begin_now(stop)?;
    Ok(Current { number, begun_us, counts: stop.is_some(), is_finished: false })
}

/// Hands over a slice without waiting.
fn pass(reports: &SyncSender<Report>, number: u64, tick: Tick) -> Result<(), Stop> {
    // Before anything was begun there is nothing in them.
    if number == 0 {
        return Ok(());
    }
    tell(reports, Report::Tick(number, Box::new(tick)))
}

fn tell(reports: &SyncSender<Report>, report: Report) -> Result<(), Stop> {
    reports.try_send(report).map_err(|error| match error {
        TrySendError::Disconnected(_) => Stop::Over,
        TrySendError::Full(_) => Stop::Because(
            "the stream took nothing for ten seconds, so that its counts fell behind".to_owned(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_fit_no_longer_into_the_queue_end_the_load() {
        let (reports, _waiting) = sync_channel(1);
        assert!(pass(&reports, 1, Tick::default()).is_ok());
        let ended = pass(&reports, 1, Tick::default());
        assert!(matches!(ended, Err(Stop::Because(reason)) if reason.contains("fell behind")));
    }
}
