//! Processors: a group that uses all it may, one full thread, one lock around all threads.

use super::finding::Finding;
use super::io_limit;
use super::sweep::{GroupId, Sweep, group, set_busy};
use super::utilisation::Id;
use super::{FULL, NOT_BUSY};
use crate::resources::{Group, ThreadUse};
use crate::run::{Confidence, ResourceKind};
use crate::words::{core_noun, cores, percent, time, users};

/// A process whose threads together use this many cores, none of them full, while it may use more,
/// runs one thread at a time: an interpreter's global lock, or a runtime told to use one processor.
/// System calls outside the lock put it a little above one core.
const ONE_AT_A_TIME: std::ops::RangeInclusive<f64> = 0.92..=1.15;

/// A thread busy this much, and found runnable at nearly every one of at least so many looks, had no
/// time to spare. At 75 % busy, twenty looks would all find it runnable three times in a thousand.
const MOSTLY_BUSY: f64 = 0.65;
const NEVER_ASLEEP: f64 = 0.97;
const LOOKS: usize = 20;

/// With this share of threads found waiting on a futex, a global lock is likely.
const LOCK_WAITERS: f64 = 0.3;

/// Groups whose own use of processors is full.
pub(super) fn full(sweep: &Sweep) -> Vec<Finding> {
    sweep.tiers().iter().filter_map(|id| of_group(sweep, id)).collect()
}

fn of_group(sweep: &Sweep, id: &GroupId) -> Option<Finding> {
    let peak = sweep.group(id)?;
    let thread_busy = sweep.group_mean(id, thread_share);
    let all_busy = sweep.group_mean(id, Group::busy);
    let finding = if all_busy >= FULL {
        all_cores(sweep, id, peak, all_busy)
    } else if thread_busy >= FULL && !peak.one_core() {
        one_thread(sweep, id, peak, thread_busy)
    } else {
        never_asleep(sweep, id, peak).or_else(|| one_at_a_time(sweep, id, peak))?
    };
    let follows = sweep.follows_load(|point| group(point, id).map(|group| group.cores));
    if !follows {
        return None;
    }
    let own = [Id::Cpu(id.0, id.1.clone()), Id::Thread(id.0, id.1.clone()), Id::Quota(id.0, id.1.clone())];
    let demand = sweep.demand_us(|point| group(point, id).map(|group| group.cores));
    let finding = finding.held_by(sweep.group_name(id)).about(own).demanding(demand);
    Some(with_details(sweep, id, with_growth(sweep, id, finding), peak))
}

fn all_cores(sweep: &Sweep, id: &GroupId, peak: &Group, busy: f64) -> Finding {
    let which = match peak.allowed_count() {
        0 | 1 => "of the one core it may use".to_owned(),
        count => format!("of the {count} cores it may use"),
    };
    // A group that fills the whole host fills the host too; they are not rivals.
    let fills_host =
        sweep.mean(|point| Some(point.resources.host.cpus.len() as f64)) == Some(peak.allowed_count() as f64);
    Finding::new(ResourceKind::Cpu, Confidence::High)
        .busy(busy)
        .about(fills_host.then_some(Id::Host))
        .saying(first_sentence(sweep, id, &percent(busy), &which))
}

fn one_thread(sweep: &Sweep, id: &GroupId, peak: &Group, busy: f64) -> Finding {
    let thread = peak.busiest_thread.clone().unwrap_or_default();
    let finding = Finding::new(ResourceKind::SingleThread, Confidence::High).busy(busy);
    let may = peak.allowed_count();
    if peak.full_threads > 1 {
        let which = format!("of one core in each of {} threads", peak.full_threads);
        return finding.saying(first_sentence(sweep, id, &percent(busy), &which)).saying(format!(
            "It may use {may} cores, but has only {} threads to use them with: more workers could use the rest.",
            peak.full_threads
        ));
    }
    let others = sweep.group_mean(id, |group| group.cores) - busy;
    let idle = "its other threads did next to nothing".to_owned();
    let others =
        if others < 0.05 { idle } else { format!("its other threads together used {}", cores(others)) };
    finding.saying(first_sentence(sweep, id, &percent(busy), "of one core, all in one thread")).saying(
        format!("It may use {may} cores, but its thread {} can use only one; {others}.", named(&thread)),
    )
}

/// A thread that was found runnable at every look, though the kernel counts less than a whole core for
/// it: where interrupts are accounted apart, the work they do for a thread is not in its own time.
fn never_asleep(sweep: &Sweep, id: &GroupId, peak: &Group) -> Option<Finding> {
    let thread = |read: fn(&ThreadUse) -> f64| {
        sweep.mean(|point| group(point, id)?.busiest_thread.as_ref().map(read)).unwrap_or(0.0)
    };
    let (busy, found) = (thread(|t| t.busy), thread(|t| t.found_runnable));
    let looks: usize = sweep.plateau().map(|point| point.resources.looks).sum();
    let free = sweep.mean(|point| set_busy(point, group(point, id)?)).is_none_or(|busy| busy < FULL);
    if busy < MOSTLY_BUSY || found < NEVER_ASLEEP || looks < LOOKS || !free || peak.one_core() {
        return None;
    }
    Some(
        Finding::new(ResourceKind::SingleThread, Confidence::Medium)
            .busy(found)
            .weaker_by(1.0 - NOT_BUSY)
            .saying(first_sentence(sweep, id, &percent(busy), "of one core in one thread"))
            .saying(format!(
                "That thread was running or waiting to run at {} of {looks} looks, so it hardly ever waited for \
                 work; what its own time lacks of a whole core is spent in interrupts or waiting for a processor.",
                percent(found)
            )),
    )
}

/// Threads that together never use more than one core, though they may.
fn one_at_a_time(sweep: &Sweep, id: &GroupId, peak: &Group) -> Option<Finding> {
    let process = sweep.group_mean(id, |group| group.busiest_process_cores);
    let free = sweep.mean(|point| set_busy(point, group(point, id)?)).is_none_or(|busy| busy < FULL);
    let steady = sweep
        .plateau()
        .filter_map(|point| group(point, id))
        .all(|group| ONE_AT_A_TIME.contains(&group.busiest_process_cores));
    let alone = sweep.group_mean(id, |group| group.cores) <= *ONE_AT_A_TIME.end();
    if peak.working_threads < 3 || peak.one_core() || !steady || !free || !alone {
        return None;
    }
    let futex = sweep.group_mean(id, |group| group.states.futex);
    let confidence = if futex >= LOCK_WAITERS { Confidence::Medium } else { Confidence::Low };
    Some(
        Finding::new(ResourceKind::SingleThread, confidence)
            .busy(process.min(1.0))
            .weaker_by(1.0 - NOT_BUSY)
            .saying(first_sentence(sweep, id, &cores(process), "times one core, all its threads together"))
            .saying(format!(
                "{} of its threads worked and it may use {} cores, yet together they never used more than about \
                 one: they run one at a time, as behind a global lock (an interpreter's, or a runtime told to use \
                 one processor). {} of the looks at its threads found them waiting for a lock.",
                peak.working_threads,
                peak.allowed_count(),
                percent(futex)
            )),
    )
}

fn first_sentence(sweep: &Sweep, id: &GroupId, busy: &str, which: &str) -> String {
    let demand = sweep.demand_us(|point| group(point, id).map(|group| group.cores)).unwrap_or(0.0);
    format!(
        "{} is busy {busy} {which}, at N* = {} and beyond; each request costs it {} of CPU.",
        sweep.group_name(id),
        sweep.star_users(),
        time(demand)
    )
}

/// That it was less busy under less load.
fn with_growth(sweep: &Sweep, id: &GroupId, finding: Finding) -> Finding {
    let Some((low, then)) = sweep.low().and_then(|low| Some((low, group(low, id)?))) else { return finding };
    finding.saying(format!(
        "At {} it used {} {}; its use grew with the load until throughput stopped growing.",
        users(low.users),
        cores(then.cores),
        core_noun(then.cores)
    ))
}

/// Where the time went, and whether it waited for a processor.
fn with_details(sweep: &Sweep, id: &GroupId, finding: Finding, peak: &Group) -> Finding {
    let mut finding = finding.saying(format!(
        "{} of that CPU time was spent in the kernel.",
        percent(sweep.group_mean(id, |g| g.kernel))
    ));
    let queue = sweep.group_mean(id, |group| group.run_queue);
    if queue >= 0.2 {
        finding = finding.saying(format!(
            "On average {} of its runnable threads waited for a processor.",
            crate::words::count(queue)
        ));
    }
    if peak.reaped_cores > 0.1 * peak.cores {
        finding = finding.saying(format!(
            "{} of that CPU time was used by child processes that came and went.",
            percent(peak.reaped_cores / peak.cores)
        ));
    }
    finding
}

/// Whether a tier's use of its processors, or of a limit on a disk, did not follow the load.
pub(super) fn busy_whatever_the_load(sweep: &Sweep, id: &Id) -> bool {
    match id {
        Id::Cpu(role, name) | Id::Thread(role, name) => {
            let id = (*role, name.clone());
            !sweep.follows_load(|point| group(point, &id).map(|group| group.cores))
        }
        Id::IoLimit(role, name, what) => !io_limit::follows(sweep, &(*role, name.clone()), what),
        _ => false,
    }
}

fn named(thread: &ThreadUse) -> String {
    if thread.name.is_empty() { thread.tid.to_string() } else { format!("{} ({})", thread.name, thread.tid) }
}

fn thread_share(group: &Group) -> f64 {
    group.busiest_thread.as_ref().map_or(0.0, |thread| thread.busy)
}
