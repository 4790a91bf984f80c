//! Users wait while nothing is busy: limits on how many are let in or served at a time.

use super::curve::{Curve, group};
use super::disk::WAITING_THREAD;
use super::finding::Finding;
use super::hops;
use super::utilisation::{Use, mean_uses, uses};
use crate::counters::Role;
use crate::resources::Group;
use crate::run::{
    Confidence, ConnectionEvidence, Evidence, HopEvidence, Identity, ListenQueue, Processes, ResourceKind,
    Step, TimesCompared, WaitingEvidence as Seen,
};
use crate::tell_apart::Plan;
use crate::thresholds::{FULL, NOT_BUSY, PLATEAU, UNWATCHED};
use crate::ticks::ErrorKind;

/// A descriptor table this full has no room: some descriptors are kept in reserve or held for a moment
/// after their connection ended.
const TABLE_FULL: f64 = 0.95;

/// Memory is short when tasks stall for it this share of the time and pages come back from swap.
const MEMORY_PRESSURE: f64 = 0.2;
const SWAPPED_IN_PER_S: f64 = 100.0;

/// Within this range one request is served at a time, X_max R(1): a lock, or a pool of one. Work outside the lock puts it
/// above one. Two workers serve two at a time, or more where a request takes time elsewhere as well.
const ABOUT_ONE: std::ops::Range<f64> = 0.75..A_POOL;

/// Requests at other tiers than the one at which they queue are told of from this number on.
const ELSEWHERE: f64 = 0.1;

/// From here on it may be a pool.
const A_POOL: f64 = 1.75;

/// For each user beyond N*, at least this many more threads wait for a lock or a condition where that is what users wait
/// for. Threads that idle in a pool wait as well, but as many or fewer of them under load.
const WAITERS_PER_USER: f64 = 0.5;

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
        Finding::new(ResourceKind::FileDescriptors, Confidence::High)
            .held_by(Identity::Processes(of))
            .busy(open as f64 / limit as f64)
            .seeing(full)
            .seeing(ConnectionEvidence::TurnedAway { requests, queued })
            .seeing(ConnectionEvidence::RaiseDescriptorLimit),
    )
}

/// Memory: the host swaps.
pub(super) fn memory(curve: &Curve) -> Option<Finding> {
    let mean = |read: fn(&Step) -> f64| curve.mean(|step| Some(read(step))).unwrap_or(0.0);
    let pressure = mean(|step| step.usage.host.memory_pressure);
    let swapped_in_per_s = mean(|step| step.usage.host.swapped_in_per_s);
    if pressure < MEMORY_PRESSURE || swapped_in_per_s < SWAPPED_IN_PER_S || !curve.observed() {
        return None;
    }
    let seen = Seen::MemoryShort { pressure, swapped_in_per_s, users: curve.star_users() };
    Some(Finding::new(ResourceKind::Memory, Confidence::Medium).held_by(Identity::Host).seeing(seen))
}

/// A limit on how many requests are served at a time, while nothing is busy: a lock or a pool.
pub(super) fn served_at_a_time(curve: &Curve) -> Option<Finding> {
    let in_all = at_a_time(curve)?;
    let elsewhere = hops::elsewhere(curve);
    let at_a_time = in_all - elsewhere;
    if !curve.observed() || !nothing_busy(curve) || failed(curve, &UNANSWERED) > 0 {
        return None;
    }
    if let Some(fell) = fall(curve) {
        return slower_the_more_wait(curve, at_a_time, fell).filter(|_| had_room_beyond(curve));
    }
    let tested = curve.contention().and_then(TimesCompared::told);
    let (kind, seen) = match at_a_time {
        // A wait for a disk that cannot be seen to be full looks like a wait for a lock.
        k if ABOUT_ONE.contains(&k) && alone_at_the_disk(curve).is_some() => return None,
        k if ABOUT_ONE.contains(&k) => (ResourceKind::Lock, Seen::OneServed),
        k if k >= A_POOL && tested == Some(true) => (ResourceKind::Lock, Seen::OneServed),
        k if k >= A_POOL => (ResourceKind::WorkerPool, Seen::SeveralServed { at_a_time }),
        _ => return None,
    };
    let of = served_by(curve);
    let served_elsewhere = of.clone().filter(|_| elsewhere >= ELSEWHERE);
    let elsewhere = served_elsewhere.map(|of| HopEvidence::ServedElsewhere { of, elsewhere, at_a_time });
    let waiters = of.as_ref().and_then(|of| more_waiters(curve, of));
    let confirmed = match kind {
        // What is passed one at a time may be a limit on the rate too, unless threads are seen to wait.
        ResourceKind::Lock => waiters.is_some(),
        _ => tested.is_some(),
    };
    let finding = Finding::new(kind, if confirmed { Confidence::Medium } else { Confidence::Low });
    let finding = held_by(of, finding).seeing(seen);
    let finding =
        tested_by(curve).into_iter().fold(finding, Finding::seeing).seeing(by_little(curve, in_all)?);
    let finding = elsewhere.into_iter().fold(finding, Finding::seeing);
    Some(with_signs(curve, finding, waiters))
}

/// What the experiment showed, where one was made.
pub(super) fn tested_by(curve: &Curve) -> Option<Seen> {
    let several = curve.contention().copied().map(Seen::Contention);
    several.or_else(|| curve.pausing().copied().map(Seen::Pausing))
}

/// The experiment that would tell the finding from another with the same throughput and response times.
pub(crate) fn to_tell_apart(curve: &Curve, found: ResourceKind) -> Option<Plan> {
    let waits = matches!(found, ResourceKind::Lock | ResourceKind::WorkerPool | ResourceKind::AcceptQueue);
    if !waits || curve.experiment().is_some() || !nothing_busy(curve) || fall(curve).is_some() {
        return None;
    }
    let per_request_us = 1e6 / curve.throughput_max();
    let cores = curve.star()?.usage.tiers().map(|group| group.cores).sum::<f64>();
    let times_us = [unqueued_us(curve)?, per_request_us, cores * per_request_us];
    Plan::new(at_a_time(curve)? - hops::elsewhere(curve), times_us)
}

fn by_little(curve: &Curve, at_a_time: f64) -> Option<Seen> {
    let (throughput_per_s, alone_us) = (curve.throughput_max(), unqueued_us(curve)?);
    Some(Seen::ServedByLittle { throughput_per_s, alone_us, at_a_time })
}

/// A lock that is held for longer the more wait for it: more users get less throughput while nothing is busy. A pool of
/// workers that wait for something else keeps its throughput.
fn slower_the_more_wait(curve: &Curve, at_a_time: f64, fell: Seen) -> Option<Finding> {
    let of = served_by(curve);
    let waiters = of.as_ref().and_then(|of| more_waiters(curve, of));
    let one = ABOUT_ONE.contains(&at_a_time);
    let confidence = if one || waiters.is_some() { Confidence::Medium } else { Confidence::Low };
    let finding = held_by(of, Finding::new(ResourceKind::Lock, confidence)).seeing(fell);
    let finding = if one { finding.seeing(by_little(curve, at_a_time)?) } else { finding };
    Some(with_signs(curve, finding, waiters))
}

/// Whether every resource had room at every step from N* on. Where others fill the processors at some of them, that may
/// be why throughput fell.
fn had_room_beyond(curve: &Curve) -> bool {
    let beyond = curve.steps().iter().filter(|step| step.users >= curve.star_users());
    beyond.flat_map(|step| uses(curve, step)).all(|seen| seen.utilisation() < NOT_BUSY)
}

/// Threads of the server that waited for a lock or a condition, if more users made more of them wait.
fn more_waiters(curve: &Curve, of: &Processes) -> Option<Seen> {
    let (few, most) = (curve.star()?, curve.steps().last()?);
    let (from_users, to_users) = (few.users, most.users);
    let more_users = f64::from(to_users) - f64::from(from_users);
    let grew = |waiting: fn(&Group) -> f64| {
        let (from, to) = (waiting(group(few, of)?), waiting(group(most, of)?));
        (more_users > 0.0 && to - from >= WAITERS_PER_USER * more_users).then_some((from, to))
    };
    if let Some((from_threads, to_threads)) = grew(|group| group.futex_queue) {
        return Some(Seen::ThreadsAtOneFutex { from_users, from_threads, to_users, to_threads });
    }
    let (from_threads, to_threads) = grew(|group| group.states.futex * f64::from(group.threads))?;
    Some(Seen::MoreThreadsWait { from_users, from_threads, to_users, to_threads })
}

/// Evidence that one user alone waited for a disk most of the time, though none is busy.
pub(super) fn alone_at_the_disk(curve: &Curve) -> Option<Seen> {
    let alone = curve.steps().first().filter(|step| step.users == 1)?;
    let most = |group: &&Group| group.found_disk_waiting >= WAITING_THREAD;
    let found = alone
        .usage
        .tiers()
        .filter(most)
        .max_by(|a, b| a.found_disk_waiting.total_cmp(&b.found_disk_waiting))?;
    Some(Seen::AloneAtTheDisk { of: curve.processes(found), waiting: found.found_disk_waiting })
}

/// Adds what else points at a limit on requests served at a time.
fn with_signs(curve: &Curve, finding: Finding, waiters: Option<Seen>) -> Finding {
    let uses = mean_uses(curve);
    let busy_host = |seen: &&Use| seen.resource == Identity::Host && seen.utilisation() >= IDLE;
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
    let signs: [Option<Evidence>; 6] = [
        alone_at_the_disk(curve).map(Evidence::from),
        top.map(Evidence::from),
        others.then(|| Seen::HostBusyForOthers.into()),
        queue.map(Evidence::from),
        told.map(Evidence::from),
        waiters.map(Evidence::from),
    ];
    signs.into_iter().flatten().fold(finding, Finding::seeing)
}

/// How many requests were served at a time, as a hint where nothing is certain.
pub(super) fn number_served(curve: &Curve) -> Option<Seen> {
    Some(Seen::NumberServed { at_a_time: at_a_time(curve)? })
}

/// The response time of a request that waits for no other, microseconds: that of one user alone, or of a few users if
/// theirs is shorter. Queueing only lengthens it, so something else lengthened that of one user. Needs a step of one
/// user.
fn unqueued_us(curve: &Curve) -> Option<f64> {
    curve.steps().first().filter(|step| step.users == 1 && step.completed > 0)?;
    let answered = curve.steps().iter().filter(|step| step.completed > 0);
    answered.map(|step| step.response_time_us.mean).min_by(f64::total_cmp)
}

/// X_max R(1): how many requests are served at a time.
pub(super) fn at_a_time(curve: &Curve) -> Option<f64> {
    let k = curve.throughput_max() * unqueued_us(curve)? / 1e6;
    (curve.closed() && k.is_finite() && k > 0.0).then_some(k)
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
        seen.resource == Identity::Host && (idle_queue || (not_the_loads && hardly_starved(curve)))
    };
    let with_unwatched = |seen: &Use| (seen.used + unwatched) / seen.capacity < NOT_BUSY;
    let room = |seen: &Use| seen.utilisation() < IDLE || with_unwatched(seen) || by_others(seen);
    let unwatched_idle = idle_queue || not_the_loads || curve.unwatched_cores() < UNWATCHED;
    unwatched_idle && mean_uses(curve).iter().all(room)
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

/// How far throughput fell beyond N*, if a step there falls off the plateau. With a pool none does.
fn fall(curve: &Curve) -> Option<Seen> {
    let top = curve.plateau().max_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s))?;
    let beyond = curve.steps().iter().filter(|step| step.users > top.users);
    let lowest = beyond.min_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s))?;
    let fell = lowest.throughput_per_s < PLATEAU * top.throughput_per_s;
    fell.then_some(Seen::FellWithUsers {
        from_users: top.users,
        from_per_s: top.throughput_per_s,
        to_users: lowest.users,
        to_per_s: lowest.throughput_per_s,
    })
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
