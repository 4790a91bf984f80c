//! Processors: processes that use all they may, one full thread, one lock around all threads.

use super::curve::{Curve, group, host_of, set_busy};
use super::finding::{DIRECT, Finding, INDIRECT, LIKELY};
use super::threads::LEFT_OUT;
use super::{io_limit, waiters, waiting};
use crate::resources::collectors::{collects, compiles};
use crate::resources::{Group, ThreadUse};
use crate::run::{
    Busy, CpuTimeEvidence, Identity, Probability, Processes, ProcessorEvidence as Seen, ResourceKind,
    TierDemand,
};
use crate::thresholds::{FULL, NOT_BUSY};

/// A process whose threads together use this many cores, none of them full, while it may use more,
/// runs one thread at a time: an interpreter's global lock, or a runtime told to use one processor.
/// System calls outside the lock put it a little above one core.
const ONE_AT_A_TIME: std::ops::RangeInclusive<f64> = 0.92..=1.15;

/// A thread busy this much, and found runnable in nearly every one of at least so many samples, had no
/// time to spare. At 75 % busy, twenty samples would all find it runnable three times in a thousand.
const MOSTLY_BUSY: f64 = 0.65;
const NEVER_ASLEEP: f64 = 0.97;
const RUNNABLE_SAMPLES_MIN: usize = 20;

/// Threads that want more cores than this together do not run one at a time.
const WANTED_IN_TURN: f64 = 1.3;

/// Behind a global lock some thread wants a processor at least this share of the time: the one that holds the lock.
const LOCK_HELD: f64 = 0.95;

/// What samples of the threads found must be this many times likelier of threads that run one at a time than of threads
/// that use about one core by chance.
const LIKELIER: f64 = 30.0;

/// Of servers that use about one core with several threads, so many run one thread at a time.
const IN_TURN: Probability = Probability::new(0.05);

/// Threads that hand a lock over to each other while they sleep may fall into a step in which exactly one of them computes.
/// Only of interpreters with a global lock is it known that this is no coincidence.
const MAYBE_IN_STEP: f64 = 0.75;

/// How the names of programs begin that are an interpreter with a global lock.
const INTERPRETERS: [&str; 6] = ["python", "gunicorn", "uvicorn", "uwsgi", "ruby", "puma"];

/// Samples find some thread of a full interpreter running or waiting to run this often: the one that has the global lock.
const LOCK_FOUND: f64 = 0.9;

/// Requests that compute for this share of the time that they take wait for nothing else.
pub(super) const COMPUTE: f64 = 0.92;

/// So many full processes of an interpreter are told by what they use together; of more a few percent would be one more.
const PROCESSES_MOST: usize = 8;

/// Full processes differ by at most this share in what they use.
const SAME_FOR_EACH: f64 = 0.05;

/// Threads that wait for a processor are worth telling from here on.
const QUEUED: f64 = 0.2;

/// CPU time of short-lived children is worth telling from this share on.
const REAPED: f64 = 0.1;

/// Processes whose own use of processors is full.
pub(super) fn full(curve: &Curve) -> Vec<Finding> {
    curve.tiers().iter().filter_map(|of| of_processes(curve, of)).collect()
}

fn of_processes(curve: &Curve, of: &Processes) -> Option<Finding> {
    let peak = curve.group(of)?;
    let thread_busy = curve.group_mean(of, thread_share);
    let all_busy = curve.group_mean(of, Group::busy);
    let finding = if all_busy >= FULL && !waiting::queue_at_locks(curve, of) {
        all_cores(curve, of, peak, all_busy)
    } else if thread_busy >= FULL && !peak.one_core() {
        (!is_aside(curve, of)).then(|| one_thread(curve, of, peak, thread_busy))?
    } else {
        let in_turn = || one_at_a_time(curve, of, peak).or_else(|| interpreter_full(curve, of, peak));
        never_asleep(curve, of, peak).filter(|_| !is_aside(curve, of)).or_else(in_turn)?
    };
    if !follows_load(curve, of) {
        return None;
    }
    let finding = finding.about(own_resources(of)).demanding(cpu_demand_us(curve, of));
    Some(with_details(curve, of, with_growth(curve, of, finding), peak))
}

/// The resources that processes hold themselves.
pub(super) fn own_resources(of: &Processes) -> [Identity; 3] {
    [Identity::Processes(of.clone()), Identity::Thread(of.clone()), Identity::Quota(of.clone())]
}

/// CPU time of a request, microseconds.
pub(crate) fn cpu_demand_us(curve: &Curve, of: &Processes) -> Option<f64> {
    curve.demand_us(|step| group(step, of).map(|group| group.cores))
}

pub(super) fn follows_load(curve: &Curve, of: &Processes) -> bool {
    curve.follows_load(|step| group(step, of).map(|group| group.cores))
}

/// Whether the busiest thread does no part of any request: it polls, or belongs to the runtime.
fn is_aside(curve: &Curve, of: &Processes) -> bool {
    curve.group(of).is_some_and(only_runtime_is_full) || polls(curve, of)
}

/// Whether the busiest thread, and every other that is full, compiles what the rest run, which ends once all is compiled, or
/// collects their garbage, which stops a server by its pauses.
fn only_runtime_is_full(group: &Group) -> bool {
    let is_runtime = |name: &str| compiles(name) || collects(name);
    let named = group.threads_by_name.iter().filter(|threads| is_runtime(&threads.name));
    let full: usize = named.map(|threads| threads.full).sum();
    let no_other = group.full_threads <= full;
    no_other && group.busiest_thread.as_ref().is_some_and(|thread| is_runtime(&thread.name))
}

/// Whether the busiest thread was as busy under less load, whatever the others of its processes did.
fn polls(curve: &Curve, of: &Processes) -> bool {
    let Some(now) = curve.group(of).and_then(|group| group.busiest_thread.as_ref()) else { return false };
    !curve.follows_load(|step| {
        let busiest = group(step, of)?.busiest_thread.as_ref()?;
        ((busiest.pid, busiest.tid) == (now.pid, now.tid)).then_some(busiest.busy)
    })
}

fn all_cores(curve: &Curve, of: &Processes, peak: &Group, share: f64) -> Finding {
    let cores = peak.allowed_count();
    // Processes that fill the whole host fill the host too; the two are not rivals.
    let fills_host = curve.mean(|step| Some(host_of(step, of)?.cpus.len() as f64)) == Some(cores as f64);
    let host = || Identity::Host { on: peak.machine.clone() };
    Finding::new(ResourceKind::Cpu, DIRECT)
        .held_by(Identity::Processes(of.clone()))
        .busy(share)
        .about(fills_host.then(host))
        .seeing(cores_busy(curve, of))
}

fn one_thread(curve: &Curve, of: &Processes, peak: &Group, share: f64) -> Finding {
    let finding =
        Finding::new(ResourceKind::SingleThread, DIRECT).held_by(Identity::Thread(of.clone())).busy(share);
    let (cores, threads) = (peak.allowed_count() as u64, peak.full_threads as u64);
    if threads > 1 {
        return finding
            .seeing(cpu_busy(curve, of, Busy::EachThread { share, threads }))
            .seeing(Seen::TooFewThreads { cores, threads });
    }
    let thread = peak.busiest_thread.clone().unwrap_or_default();
    finding.seeing(cpu_busy(curve, of, Busy::OneThread { share })).seeing(Seen::ThreadFull {
        cores,
        thread: thread.name,
        tid: thread.tid,
        others_cores: curve.group_mean(of, |group| group.cores) - share,
    })
}

/// A thread that was runnable in every sample, though the kernel counts less than a whole core for it: where interrupts
/// are accounted apart, the work they do for a thread is not in its own time.
fn never_asleep(curve: &Curve, of: &Processes, peak: &Group) -> Option<Finding> {
    let thread = |read: fn(&ThreadUse) -> f64| {
        curve.mean(|step| group(step, of)?.busiest_thread.as_ref().map(read)).unwrap_or(0.0)
    };
    let (share, runnable) = (thread(|t| t.busy), thread(|t| t.found_runnable));
    let samples: usize = curve.plateau().map(|step| step.usage.samples).sum();
    let free = processors_are_free(curve, of);
    if share < MOSTLY_BUSY
        || runnable < NEVER_ASLEEP
        || samples < RUNNABLE_SAMPLES_MIN
        || !free
        || peak.one_core()
    {
        return None;
    }
    Some(
        Finding::new(ResourceKind::SingleThread, INDIRECT)
            .held_by(Identity::Thread(of.clone()))
            .busy(runnable)
            .weaker_by(1.0 - NOT_BUSY)
            .seeing(cpu_busy(curve, of, Busy::OneThreadAndInterrupts { share }))
            .seeing(Seen::NeverAsleep { runnable, samples: samples as u64 }),
    )
}

fn processors_are_free(curve: &Curve, of: &Processes) -> bool {
    curve.mean(|step| set_busy(step, group(step, of)?)).is_none_or(|busy| busy < FULL)
}

/// Threads that together never use more than one core, though they may, and of which one always wants a processor.
fn one_at_a_time(curve: &Curve, of: &Processes, peak: &Group) -> Option<Finding> {
    let cores = curve.group_mean(of, |group| group.busiest_process_cores);
    let steady = curve
        .plateau()
        .filter_map(|step| group(step, of))
        .all(|group| ONE_AT_A_TIME.contains(&group.busiest_process_cores));
    let alone = curve.group_mean(of, |group| group.cores) <= *ONE_AT_A_TIME.end();
    let free = processors_are_free(curve, of);
    if peak.working_threads < 3 || peak.one_core() || !steady || !free || !alone {
        return None;
    }
    let (runnable, samples) = found_runnable(curve, of);
    let likelier = likelier_in_turn(curve, of, peak.working_threads, runnable, samples);
    if likelier < LIKELIER {
        return None;
    }
    let interpreter = has_global_lock(peak);
    let most = if interpreter { INDIRECT.share() } else { MAYBE_IN_STEP };
    let confidence = Probability::new(IN_TURN.times_odds(likelier).share().min(most));
    // The threads of an interpreter wait for its global lock in the same way as those of other programs for their own.
    let waiters = waiters::seen(curve, of).filter(|_| !interpreter);
    let (lock, thread) = (Identity::Processes(of.clone()), Identity::Thread(of.clone()));
    let of_thread = Finding::new(ResourceKind::SingleThread, confidence).held_by(thread);
    let of_lock = Finding::new(ResourceKind::Lock, confidence).held_by(lock);
    let (found, other) = if waiters.is_some() { (of_lock, of_thread) } else { (of_thread, of_lock) };
    let found = found
        .busy(cores.min(1.0))
        .weaker_by(1.0 - NOT_BUSY)
        .or(other.explanation((1.0 - confidence.share()) / 2.0))
        .seeing(cpu_busy(curve, of, Busy::OneAtATime { cores }))
        .seeing(Seen::OneThreadAtATime {
            threads: peak.working_threads as u64,
            cores: peak.allowed_count() as u64,
            runnable,
            samples,
        });
    Some(waiters.into_iter().fold(found, Finding::seeing))
}

/// An interpreter that computes for the whole time of one core, and whose other threads have to wait for its global lock. They
/// fight for it, so that more users may cost more processor time and get less done.
fn interpreter_full(curve: &Curve, of: &Processes, peak: &Group) -> Option<Finding> {
    let cores = curve.group_mean(of, |group| group.busiest_process_cores);
    let full =
        ONE_AT_A_TIME.contains(&cores) && (1..=PROCESSES_MOST).any(|number| are_all_full(peak, number));
    if !has_global_lock(peak) || !full || peak.one_core() || !processors_are_free(curve, of) {
        return None;
    }
    let (runnable, _) = found_runnable(curve, of);
    // Samples that leave threads out may miss the one that has the lock.
    let is_unseen = curve.group_mean(of, |group| group.threads_left_out) > LEFT_OUT;
    let found = if is_unseen || runnable >= LOCK_FOUND {
        Finding::new(ResourceKind::SingleThread, INDIRECT)
    } else {
        or_one_core_by_chance(of)
    };
    let program = if peak.program.is_empty() { &peak.name } else { &peak.program };
    Some(
        found
            .held_by(Identity::Thread(of.clone()))
            .busy(cores.min(1.0))
            .weaker_by(1.0 - NOT_BUSY)
            .seeing(cpu_busy(curve, of, Busy::OneAtATime { cores }))
            .seeing(Seen::GlobalLock { program: program.clone(), cores: peak.allowed_count() as u64 }),
    )
}

/// A global lock that goes from thread to thread faster than a sample looks at them all, or threads that compute without it, as
/// libraries of compiled code let them, and use about one core because something else lets no more through.
fn or_one_core_by_chance(of: &Processes) -> Finding {
    let each = (1.0 - LIKELY.share()) / 3.0;
    let holder = Identity::Processes(of.clone());
    let other = |kind| Finding::new(kind, LIKELY).held_by(holder.clone()).explanation(each);
    Finding::new(ResourceKind::SingleThread, LIKELY)
        .or(other(ResourceKind::Lock))
        .or(other(ResourceKind::WorkerPool))
}

/// Whether so many of the processes use a core each, and the others none: each has a global lock of its own. A parent that only
/// starts them is among the others.
fn are_all_full(group: &Group, number: usize) -> bool {
    let each = group.cores / number as f64;
    let same = number == 1 || (each / group.busiest_process_cores - 1.0).abs() <= SAME_FOR_EACH;
    number <= group.processes.max(1) && ONE_AT_A_TIME.contains(&each) && same
}

/// Whether they are an interpreter of which one thread computes at a time. Builds without that lock are named so: `python3.13t`.
fn has_global_lock(group: &Group) -> bool {
    let without = |name: &str| name.strip_suffix('t').is_some_and(ends_with_digit);
    is_interpreter(group) && !without(&group.program) && !without(&group.name)
}

fn ends_with_digit(name: &str) -> bool {
    name.ends_with(|c: char| c.is_ascii_digit())
}

pub(super) fn is_interpreter(group: &Group) -> bool {
    let begins = |name: &str| INTERPRETERS.iter().any(|interpreter| name.starts_with(interpreter));
    begins(&group.program) || begins(&group.name)
}

/// Share of the samples on the plateau that found some thread running or waiting to run, and how many there were.
fn found_runnable(curve: &Curve, of: &Processes) -> (f64, u64) {
    let seen = || curve.plateau().filter_map(|step| Some((group(step, of)?, step.usage.samples)));
    let samples: usize = seen().map(|(_, samples)| samples).sum();
    let runnable: f64 = seen().map(|(group, samples)| group.found_runnable * samples as f64).sum();
    (runnable / samples.max(1) as f64, samples as u64)
}

/// How many times likelier so many runnable samples are if the threads run one at a time than if they work independently.
/// Independent threads that want `wanted` cores together are all asleep a share (1 - wanted / threads) ^ threads of the
/// time: 30 % where three threads use one core.
fn likelier_in_turn(curve: &Curve, of: &Processes, threads: usize, runnable: f64, samples: u64) -> f64 {
    let wanted = curve.group_mean(of, |group| group.cores + group.run_queue);
    if wanted > WANTED_IN_TURN {
        return 0.0;
    }
    let asleep = (1.0 - wanted / threads as f64).max(0.0).powf(threads as f64).max(f64::MIN_POSITIVE);
    let (found, idle) = (runnable * samples as f64, (1.0 - runnable) * samples as f64);
    (found * (LOCK_HELD / (1.0 - asleep)).ln() + idle * ((1.0 - LOCK_HELD) / asleep).ln()).exp()
}

/// Processes that serve a few requests at a time, which compute for nearly all of the time that they take, whichever threads do so: a
/// runtime that is told to use fewer processors than it may.
pub(super) fn few_at_a_time(curve: &Curve) -> Option<Finding> {
    let of = waiting::served_by(curve)?;
    let at_a_time = waiting::at_a_time_there(curve)?;
    let computing = curve.group_mean(&of, |group| group.cores);
    let few = at_a_time >= waiting::ABOUT_ONE.end && computing >= COMPUTE * at_a_time;
    if !few || !waiting::waits_for_nothing_busy(curve) {
        return None;
    }
    let pool = Finding::new(ResourceKind::WorkerPool, LIKELY).held_by(Identity::Processes(of.clone()));
    let found = Finding::new(ResourceKind::SingleThread, LIKELY)
        .held_by(Identity::Thread(of.clone()))
        .or(pool.explanation((1.0 - LIKELY.share()) * COMPUTE))
        .seeing(cores_busy(curve, &of));
    Some(waiting::by_little(curve, at_a_time).into_iter().fold(found, Finding::seeing))
}

/// How much of all that they may use processes do.
pub(super) fn cores_busy(curve: &Curve, of: &Processes) -> Seen {
    let cores = curve.group(of).map_or(0, |group| group.allowed_count() as u64);
    cpu_busy(curve, of, Busy::Cores { share: curve.group_mean(of, Group::busy), cores })
}

fn cpu_busy(curve: &Curve, of: &Processes, busy: Busy) -> Seen {
    Seen::CpuBusy {
        of: of.clone(),
        busy,
        users: curve.star_users(),
        demand_us: cpu_demand_us(curve, of).unwrap_or(0.0),
    }
}

/// Adds how much less was used under less load.
fn with_growth(curve: &Curve, of: &Processes, finding: Finding) -> Finding {
    let low = curve.compared_with();
    let Some((low, then)) = low.and_then(|low| Some((low, group(low, of)?))) else { return finding };
    finding.seeing(CpuTimeEvidence::GrewWithLoad { users: low.users, cores: then.cores })
}

/// Adds where the time went, and how many threads waited for a processor.
fn with_details(curve: &Curve, of: &Processes, finding: Finding, peak: &Group) -> Finding {
    let mut finding =
        finding.seeing(CpuTimeEvidence::KernelTime { share: curve.group_mean(of, |group| group.kernel) });
    let threads = curve.group_mean(of, |group| group.run_queue);
    if threads >= QUEUED {
        finding = finding.seeing(CpuTimeEvidence::RunQueue { threads });
    }
    if peak.reaped_cores > REAPED * peak.cores {
        finding =
            finding.seeing(CpuTimeEvidence::ShortLivedChildren { share: peak.reaped_cores / peak.cores });
    }
    finding
}

/// Adds the CPU time of a request in each tier, the dearest first, where there are several tiers.
pub(super) fn with_tiers(curve: &Curve, finding: Finding) -> Finding {
    let demand = |of: Processes| Some(TierDemand { demand_us: cpu_demand_us(curve, &of)?, of });
    let mut tiers: Vec<TierDemand> = curve.tiers().into_iter().filter_map(demand).collect();
    tiers.retain(|tier| tier.demand_us.is_finite());
    if tiers.len() < 2 || finding.kind == ResourceKind::Generator {
        return finding;
    }
    tiers.sort_by(|a, b| b.demand_us.total_cmp(&a.demand_us).then_with(|| a.of.cmp(&b.of)));
    finding.seeing(CpuTimeEvidence::CpuByTier { tiers })
}

/// Whether a tier's use of its processors, or of a limit on a disk, was the same under less load.
pub(super) fn busy_whatever_the_load(curve: &Curve, resource: &Identity) -> bool {
    match resource {
        Identity::Processes(of) => !follows_load(curve, of),
        Identity::Thread(of) => !follows_load(curve, of) || polls(curve, of),
        Identity::IoLimit(limit) => !io_limit::follows_load(curve, limit),
        _ => false,
    }
}

fn thread_share(group: &Group) -> f64 {
    group.busiest_thread.as_ref().map_or(0.0, |thread| thread.busy)
}
