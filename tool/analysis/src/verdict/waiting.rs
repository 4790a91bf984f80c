//! Users wait while nothing is busy: limits on how many are let in or served at a time.

use super::curve::{Curve, group};
use super::disk::{WAITING_THREAD, is_of_others, tiers_on};
use super::finding::{DIRECT, Finding, INDIRECT};
use super::hops;
use super::utilisation::{Use, mean_uses, uses};
use super::waiters;
use crate::counters::Role;
use crate::resources::{Group, HostUse};
use crate::run::{
    ConnectionEvidence, Evidence, HostName, Identity, ListenQueue, Processes, ResourceKind, Step,
    WaitingEvidence as Seen,
};
use crate::search::growth::{degrees_of_freedom, throughput_error};
use crate::statistics::pooling::effective_degrees_of_freedom;
use crate::statistics::{NORMAL_95, t_cdf};
use crate::tell_apart::Plan;
use crate::thresholds::{FULL, NOT_BUSY, PLATEAU, UNWATCHED};
use crate::ticks::ErrorKind;
use crate::verdict::variation::Variation;

/// A descriptor table this full has no room: some descriptors are kept in reserve or held for a moment
/// after their connection ended.
const TABLE_FULL: f64 = 0.95;

/// Memory is short when tasks stall for it this share of the time and pages come back from swap.
const MEMORY_PRESSURE: f64 = 0.2;
const SWAPPED_IN_PER_S: f64 = 100.0;

/// Tiers that wait for memory read at least so many pages a second, and so many for each request, from a disk. Fewer are what a
/// swapping neighbour takes from them. Fewer for each request suffice where a thread of theirs mostly waits for a disk.
const FAULTS_PER_S: f64 = 10.0;
const FAULTS_PER_REQUEST: f64 = 0.1;

/// Within this range one request is served at a time, X_max R(1): a lock, or a pool of one. Work outside the lock puts it
/// above one. Two workers serve two at a time, or more where a request takes time elsewhere as well.
pub(super) const ABOUT_ONE: std::ops::Range<f64> = 0.75..1.75;

/// The shortest of several mean response times is somewhat shorter by chance.
const CLEARLY_SHORTER: f64 = 0.98;

/// The half-width of a mean response time without an interval, as a share of it.
const RESPONSE_UNKNOWN: f64 = 0.1;

/// How often a fall may be said where there is none.
const BY_CHANCE: f64 = 0.01;

/// A processor busier than this may have no time to spare.
const SPARE: f64 = 0.95;

/// With fewer threads than this waiting for a processor, on average, users do not queue for it.
const UNWANTED: f64 = 0.2;

/// The limit on open descriptors.
pub(super) fn descriptors(curve: &Curve) -> Option<Finding> {
    let of = curve.tiers().into_iter().find(|of| curve.group_mean(of, table_fill) >= TABLE_FULL)?;
    let (open, limit) = curve.group(&of)?.open_files?;
    let requests = turned_away(curve);
    let queued = curve.plateau().any(|step| {
        let listening = &step.usage.listening;
        listening.overflows_per_s > 0.0 || listening.fullest.is_some_and(|(_, waiting, _)| waiting > 0)
    });
    // A server out of descriptors may spin on accept, so only one that was busy before it ran out is limited otherwise.
    let busy_first = curve
        .star()
        .and_then(|star| group(star, &of))
        .is_some_and(|at_star| table_fill(at_star) < TABLE_FULL && at_star.busy() >= FULL);
    if busy_first || !(requests > 0 || queued) {
        return None;
    }
    let full = ConnectionEvidence::DescriptorsFull { of: of.clone(), open, limit, users: curve.star_users() };
    Some(
        Finding::new(ResourceKind::FileDescriptors, DIRECT)
            .held_by(Identity::Processes(of))
            .busy(open as f64 / limit as f64)
            .seeing(full)
            .seeing(ConnectionEvidence::TurnedAway { requests, queued })
            .seeing(ConnectionEvidence::RaiseDescriptorLimit),
    )
}

/// Memory: a host swaps, and the tiers on it wait for pages.
pub(super) fn memory(curve: &Curve) -> Option<Finding> {
    let hosts = curve.star().into_iter().flat_map(|star| star.usage.tier_hosts());
    let hosts = hosts.filter(|host| waits_for_pages(curve, &host.name));
    let of_host = |on: &HostName, read: fn(&HostUse) -> f64| {
        curve.mean(|step| step.usage.host(on).map(read)).unwrap_or(0.0)
    };
    let pressed = hosts.map(|host| (of_host(&host.name, |host| host.memory_pressure), &host.name));
    let (pressure, on) = pressed.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let swapped_in_per_s = of_host(on, |host| host.swapped_in_per_s);
    if pressure < MEMORY_PRESSURE || swapped_in_per_s < SWAPPED_IN_PER_S {
        return None;
    }
    let seen = Seen::MemoryShort { pressure, swapped_in_per_s, users: curve.star_users() };
    Some(Finding::new(ResourceKind::Memory, INDIRECT).held_by(Identity::Host { on: on.clone() }).seeing(seen))
}

/// Whether the tiers on a host wait for pages that come from a disk, and for more of them the more they are asked.
fn waits_for_pages(curve: &Curve, on: &HostName) -> bool {
    let sum = |step: &Step| tiers_on(step, on).map(|group| group.major_faults_per_s).sum::<f64>();
    let most = |step: &Step| tiers_on(step, on).map(|group| group.found_disk_waiting).fold(0.0, f64::max);
    let faults_per_s = curve.mean(|step| Some(sum(step))).unwrap_or(0.0);
    let requests_per_s = curve.mean(|step| Some(step.throughput_per_s)).unwrap_or(0.0);
    let awaited = curve.mean(|step| Some(most(step))).unwrap_or(0.0);
    faults_per_s >= FAULTS_PER_S
        && (faults_per_s >= FAULTS_PER_REQUEST * requests_per_s || awaited >= WAITING_THREAD)
        && curve.follows_load(|step| Some(sum(step)))
}

/// What the experiment showed, where one was made. A finding that a pool is the limit says of how many workers.
pub(super) fn tested_by(curve: &Curve, pool: Option<u32>) -> Option<Seen> {
    let several = curve.contention().map(|compared| {
        let workers = pool.filter(|workers| (2..compared.users).contains(workers));
        Seen::Contention { compared: *compared, workers }
    });
    several.or_else(|| curve.pausing().copied().map(Seen::Pausing))
}

/// The experiment that would tell the finding from another with the same throughput and response times.
pub(crate) fn to_tell_apart(curve: &Curve, found: &Finding) -> Option<Plan> {
    use ResourceKind::{AcceptQueue, Lock, WorkerPool};
    let kinds = found.alternatives.iter().map(|other| other.kind).chain([found.kind]);
    let waits = kinds.into_iter().any(|kind| matches!(kind, Lock | WorkerPool | AcceptQueue));
    // Users who are turned away wait for nobody.
    let rejects = |seen: &Evidence| matches!(seen, Evidence::Waiting(Seen::RequestsRejected { .. }));
    if !waits || found.evidence.iter().any(rejects) || !nothing_busy(curve) || fall(curve).is_some() {
        return None;
    }
    let per_request_us = 1e6 / curve.maximum().0;
    let cores = curve.star()?.usage.tiers().map(|group| group.cores).sum::<f64>();
    let times_us = [unqueued(curve)?.0, per_request_us, cores * per_request_us];
    let plan = Plan::new(at_a_time_there(curve)?, times_us)?;
    let variation = Variation::of(curve).map_or(plan.variation, |variation| variation.bounds());
    Some(Plan { variation, ..plan })
}

/// Whether users wait though nothing is busy, and are not turned away.
pub(super) fn waits_for_nothing_busy(curve: &Curve) -> bool {
    let turned_away = failed(curve, &UNANSWERED) > 0;
    curve.observed()
        && nothing_busy(curve)
        && !turned_away
        && (fall(curve).is_none() || had_room_beyond(curve))
}

pub(super) fn by_little(curve: &Curve, at_a_time: f64) -> Option<Seen> {
    let ((throughput_per_s, _), (alone_us, _)) = (curve.maximum(), unqueued(curve)?);
    Some(Seen::ServedByLittle { throughput_per_s, alone_us, at_a_time })
}

/// Whether every resource had room at every step from N* on. Where others fill the processors at some of them, that may
/// be why throughput fell.
fn had_room_beyond(curve: &Curve) -> bool {
    let beyond = curve.steps().iter().filter(|step| step.users >= curve.star_users());
    let has_room = |seen: Use| seen.utilisation() < NOT_BUSY || is_of_others(curve, &seen.resource);
    beyond.flat_map(|step| uses(curve, step)).all(has_room)
}

/// Whether users of a nearly full processor queue for a lock or a condition in front of it, and not for the processor: it
/// has time to spare while they wait, and no thread wants it.
pub(super) fn queue_at_locks(curve: &Curve, of: &Processes) -> bool {
    let mean = |read: fn(&Group) -> f64| curve.group_mean(of, read);
    let spare = mean(Group::busy) < SPARE && mean(|group| group.run_queue) < UNWANTED;
    spare && waiters::seen(curve, of).is_some()
}

/// Evidence that one user alone waited for a disk most of the time, though none is busy.
pub(super) fn alone_at_the_disk(curve: &Curve) -> Option<Seen> {
    let alone = curve.alone()?;
    let most = |group: &&Group| group.found_disk_waiting >= WAITING_THREAD;
    let found = alone
        .usage
        .tiers()
        .filter(most)
        .max_by(|a, b| a.found_disk_waiting.total_cmp(&b.found_disk_waiting))?;
    Some(Seen::AloneAtTheDisk { of: curve.processes(found), waiting: found.found_disk_waiting })
}

/// Adds what else points at a limit on requests served at a time.
pub(super) fn with_signs(curve: &Curve, finding: Finding, threads: impl Iterator<Item = Seen>) -> Finding {
    let uses = mean_uses(curve);
    let busy_host =
        |seen: &&Use| matches!(seen.resource, Identity::Host { .. }) && seen.utilisation() >= IDLE;
    let top = uses.iter().find(|seen| seen.utilisation() < NOT_BUSY && !busy_host(seen));
    let others = uses.iter().any(|seen| busy_host(&seen));
    let queue = fullest_queue(curve).filter(|queue| queue.waiting > 0);
    let told = failed(curve, &[ErrorKind::Unavailable]);
    let queue = queue.map(|queue| ConnectionEvidence::WaitingToBeAccepted {
        port: queue.port,
        connections: queue.waiting,
    });
    let told = (told > 0).then_some(ConnectionEvidence::ToldToComeBack { requests: told });
    let top =
        top.map(|seen| Seen::BusiestHadRoom { resource: seen.resource.clone(), busy: seen.utilisation() });
    let signs: [Option<Evidence>; 5] = [
        alone_at_the_disk(curve).map(Evidence::from),
        top.map(Evidence::from),
        others.then(|| Seen::HostBusyForOthers.into()),
        queue.map(Evidence::from),
        told.map(Evidence::from),
    ];
    let signs = signs.into_iter().flatten().chain(threads.map(Evidence::from));
    signs.fold(finding, Finding::seeing)
}

/// How many requests were served at a time, as a hint where nothing is certain.
pub(super) fn number_served(curve: &Curve) -> Option<Seen> {
    Some(Seen::NumberServed { at_a_time: at_a_time(curve)? })
}

/// The response time of a request that waits for no other, microseconds, and its standard error as a share: that of one
/// user alone, or of a few users if theirs is clearly shorter. Queueing only lengthens it, so something else lengthened
/// that of one user. Needs a step of one user.
pub(super) fn unqueued(curve: &Curve) -> Option<(f64, f64)> {
    let step = unqueued_step(curve)?;
    let half = step.response_relative_half_width().unwrap_or(RESPONSE_UNKNOWN);
    Some((step.response_time_us.mean, half / NORMAL_95))
}

/// Requests that are under way on average at the maximum throughput and wait for nobody: their responses are held back until
/// the client acknowledges the first part.
pub(super) fn held_back(curve: &Curve) -> f64 {
    let seen = unqueued_step(curve).and_then(|step| step.held_back);
    seen.map_or(0.0, |seen| curve.maximum().0 * seen.share * seen.mean_us / 1e6)
}

fn unqueued_step(curve: &Curve) -> Option<&Step> {
    let alone = curve.alone().filter(|step| step.completed > 0)?;
    let answered = curve.steps().iter().filter(|step| step.completed > 0);
    let us = |step: &Step| step.response_time_us.mean;
    let shortest = answered.min_by(|a, b| us(a).total_cmp(&us(b)))?;
    Some(if us(shortest) < CLEARLY_SHORTER * us(alone) { shortest } else { alone })
}

/// X_max R(1), without those held back: how many requests are served at a time.
pub(super) fn at_a_time(curve: &Curve) -> Option<f64> {
    let k = curve.maximum().0 * unqueued(curve)?.0 / 1e6 - held_back(curve);
    (curve.closed() && k.is_finite() && k > 0.0).then_some(k)
}

/// The same without those that are served elsewhere than where requests queue.
pub(super) fn at_a_time_there(curve: &Curve) -> Option<f64> {
    Some(at_a_time(curve)? - hops::elsewhere(curve))
}

/// Clearly idle, whatever is not counted of it.
const IDLE: f64 = 0.65;

/// Whether every watched resource had room, and no unwatched work was done for the load. Unwatched work may be interrupts
/// for a thread, so it counts as that of any resource which is not clearly idle. Others may keep the host's processors
/// busy, as long as that made nobody here wait, or requests are seen to queue where nobody does.
pub(super) fn nothing_busy(curve: &Curve) -> bool {
    let unwatched = curve.unwatched_at_most();
    let not_the_loads = unwatched < IDLE;
    let idle_queue = hops::waits_for_no_processor(curve);
    let by_others = |seen: &Use| {
        matches!(seen.resource, Identity::Host { .. })
            && (idle_queue || (not_the_loads && hardly_starved(curve)))
    };
    let with_unwatched = |seen: &Use| (seen.used + unwatched) / seen.capacity < NOT_BUSY;
    let at_locks = |seen: &Use| seen.resource.processes().is_some_and(|of| queue_at_locks(curve, of));
    let room = |seen: &Use| {
        seen.utilisation() < IDLE
            || with_unwatched(seen)
            || by_others(seen)
            || at_locks(seen)
            || is_of_others(curve, &seen.resource)
            || waits_in_between(curve, seen)
    };
    let unwatched_idle = idle_queue || not_the_loads || curve.unwatched_cores() < UNWATCHED;
    unwatched_idle && mean_uses(curve).iter().all(room)
}

/// Whether a thread that is not full serves requests which wait unread in front of its processes: it waits for something else in
/// between, and they for it. One that takes up whatever comes would have read them.
fn waits_in_between(curve: &Curve, seen: &Use) -> bool {
    let Identity::Thread(of) = &seen.resource else { return false };
    seen.utilisation() < FULL && hops::waits_unread_at(curve, of)
}

/// Threads of the server and the generator that waited for a processor, on average, per request in service: below this
/// share the wait is no part of the response times.
pub(super) const WAITING_PER_REQUEST: f64 = 0.10;

/// Whether server and generator nearly always got a processor when they wanted one. On a busy host there is always some
/// waiting; none at all means that the kernel does not count it.
pub(super) fn hardly_starved(curve: &Curve) -> bool {
    let waiting = |step: &Step| Some(step.usage.groups.iter().map(|group| group.run_queue).sum::<f64>());
    let share = curve.mean(waiting).zip(at_a_time(curve)).map(|(waiting, served)| waiting / served);
    share.is_some_and(|share| share > 0.0 && share < WAITING_PER_REQUEST)
}

/// How often throughput has to be seen to fall: of many sweeps, some have one measurement that is wide of the mark.
const WITNESSES: usize = 2;

/// How far throughput fell beyond N*, if it falls off the plateau there beyond doubt, in several measurements. With a pool
/// it never does.
pub(super) fn fall(curve: &Curve) -> Option<Seen> {
    let top = curve.plateau().max_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s))?;
    let beyond = || curve.steps().iter().filter(|step| step.users > top.users);
    let lowest = beyond().min_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s))?;
    let compared = (curve.plateau().count() * beyond().count()).max(1) as f64;
    let fell = |step: &&Step| {
        let far = step.throughput_per_s < PLATEAU * top.throughput_per_s;
        far && chance_of_less(top, step) < BY_CHANCE / compared
    };
    let witnesses: usize = beyond().filter(fell).map(|step| step.replicates.len().max(1)).sum();
    (fell(&lowest) && witnesses >= WITNESSES).then_some(Seen::FellWithUsers {
        from_users: top.users,
        from_per_s: top.throughput_per_s,
        to_users: lowest.users,
        to_per_s: lowest.throughput_per_s,
    })
}

/// The chance that the second step comes out as much below the first while both have the same throughput (Welch's test).
/// The extremes of several were chosen, so it has to be divided by the number of pairs (Bonferroni).
fn chance_of_less(first: &Step, second: &Step) -> f64 {
    let errors = [first, second].map(|step| (throughput_error(step).powi(2), degrees_of_freedom(step)));
    let error = errors.iter().map(|(variance, _)| variance).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    let less = (first.throughput_per_s - second.throughput_per_s) / error;
    t_cdf(effective_degrees_of_freedom(&errors), -less)
}

/// The processes at which requests queue. Where that was not seen, the busiest group of the server's, unless tiers behind
/// it may be where they queue.
pub(super) fn served_by(curve: &Curve) -> Option<Processes> {
    if let Some(queue) = hops::queue(curve) {
        return queue.tier();
    }
    let used = |of: &Processes| curve.group_mean(of, |group| group.cores);
    let tiers = curve.tiers();
    if tiers.iter().any(|of| of.role == Role::Downstream) {
        return None;
    }
    let server = tiers.into_iter().filter(|of| of.role == Role::Server);
    server.max_by(|a, b| used(a).total_cmp(&used(b)))
}

pub(super) fn held_by(of: Option<Processes>, finding: Finding) -> Finding {
    match of {
        Some(of) => finding.held_by(Identity::Processes(of)),
        None => finding,
    }
}

fn table_fill(group: &Group) -> f64 {
    group.open_files.map_or(0.0, |(open, limit)| open as f64 / limit.max(1) as f64)
}

/// How a server that takes no more fails its clients. Telling them to come back later is not among them: a server that
/// does so works as designed.
const UNANSWERED: [ErrorKind; 4] =
    [ErrorKind::Refused, ErrorKind::Reset, ErrorKind::ClosedEarly, ErrorKind::TimedOut];

/// Requests that a server had no room for, on the plateau.
fn turned_away(curve: &Curve) -> u64 {
    failed(curve, &UNANSWERED).saturating_add(failed(curve, &[ErrorKind::Unavailable]))
}

/// Requests that failed in these ways, on the plateau.
fn failed(curve: &Curve, kinds: &[ErrorKind]) -> u64 {
    let at = |step: &Step| {
        kinds.iter().filter_map(|kind| step.errors.get(kind)).copied().fold(0, u64::saturating_add)
    };
    curve.plateau().map(at).fold(0, u64::saturating_add)
}

pub(super) fn fullest_queue(curve: &Curve) -> Option<ListenQueue> {
    let fill = |queue: &ListenQueue| queue.waiting as f64 / queue.backlog.max(1) as f64;
    curve
        .plateau()
        .filter_map(|step| step.usage.listening.fullest)
        .map(|(port, waiting, backlog)| ListenQueue { port, waiting, backlog })
        .max_by(|a, b| fill(a).total_cmp(&fill(b)))
}
