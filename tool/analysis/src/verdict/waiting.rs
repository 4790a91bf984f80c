//! Users wait while nothing is busy: limits on how many are let in or served at a time.

use super::FULL;
use super::disk::WAITING_THREAD;
use super::finding::Finding;
use super::sweep::{GroupId, Point, Sweep, group};
use super::utilisation::{Id, Use};
use crate::resources::Group;
use crate::run::{Confidence, ResourceKind};
use crate::sample::ErrorKind;
use crate::words::{count, percent, time};

/// A descriptor table this full has no room: some descriptors are kept in reserve or held for a moment
/// after their connection ended.
const TABLE_FULL: f64 = 0.95;

/// Overflows of a listen queue, per second, that are more than the burst when users are added.
const OVERFLOWS_PER_S: f64 = 1.0;

/// Memory is short when tasks stall for it this share of the time and pages come back from swap.
const MEMORY_PRESSURE: f64 = 0.2;
const SWAPPED_IN_PER_S: f64 = 100.0;

/// How many requests are served at a time, X_max R(1), is about one within this range: a lock, or a
/// pool of one. Work outside the lock puts it a little above one.
const ABOUT_ONE: std::ops::Range<f64> = 0.75..1.35;

/// From here on it is a pool; between the two it could be either, and nothing is claimed.
const A_POOL: f64 = 1.75;

/// Every resource must have this much room before waiting is put down to a limit on how many are served:
/// it is a conclusion by elimination, so what is eliminated must be clearly so.
const IDLE: f64 = 0.65;

/// Throughput within this share of the maximum on the whole plateau is flat, as a pool's is.
const FLAT: f64 = 0.90;

/// The limit on open descriptors.
pub(super) fn descriptors(sweep: &Sweep) -> Option<Finding> {
    let id = sweep.tiers().into_iter().find(|id| sweep.group_mean(id, table_fill) >= TABLE_FULL)?;
    let (open, limit) = sweep.group(&id)?.open_files?;
    let turned_away = turned_away(sweep);
    let stalled = sweep.plateau().any(|point| {
        let listening = &point.resources.listening;
        listening.overflows_per_s > 0.0 || listening.fullest.is_some_and(|(_, waiting, _)| waiting > 0)
    });
    // A server out of descriptors may spin on accept; busy before it ran out is another matter.
    let busy_first = sweep
        .star()
        .and_then(|star| group(star, &id))
        .is_some_and(|at_star| table_fill(at_star) < TABLE_FULL && at_star.busy() >= FULL);
    if busy_first || !(turned_away > 0 || stalled) {
        return None;
    }
    let name = sweep.group_name(&id);
    let waited =
        if stalled { "connections waited to be accepted" } else { "no connection waited to be accepted" };
    Some(
        Finding::new(ResourceKind::FileDescriptors, Confidence::High)
            .held_by(name.clone())
            .busy(open as f64 / limit as f64)
            .saying(format!(
                "{name} has {} of its {} descriptors open at N* = {} and beyond: it cannot take more connections.",
                count(open as f64),
                count(limit as f64),
                sweep.star_users()
            ))
            .saying(format!(
                "{} requests were refused, turned away, reset, closed early or timed out there, and {waited}.",
                count(turned_away as f64)
            ))
            .saying("Raise the limit: `ulimit -n`, or LimitNOFILE= of its systemd unit.".to_owned()),
    )
}

/// Memory: the host swaps.
pub(super) fn memory(sweep: &Sweep) -> Option<Finding> {
    let mean = |read: fn(&Point) -> f64| sweep.mean(|point| Some(read(point))).unwrap_or(0.0);
    let pressure = mean(|point| point.resources.host.memory_pressure);
    let swapped = mean(|point| point.resources.host.swapped_in_per_s);
    if pressure < MEMORY_PRESSURE || swapped < SWAPPED_IN_PER_S || !sweep.observed() {
        return None;
    }
    Some(Finding::new(ResourceKind::Memory, Confidence::Medium).held_by("host").saying(format!(
        "Some task waited for memory {} of the time, and {} pages per second came back from swap, at N* = {} and beyond.",
        percent(pressure),
        count(swapped),
        sweep.star_users()
    )))
}

/// The listen queue, while nothing is busy.
pub(super) fn accept_queue(sweep: &Sweep) -> Option<Finding> {
    let mean = |read: fn(&Point) -> f64| sweep.mean(|point| Some(read(point))).unwrap_or(0.0);
    let overflows = mean(|point| point.resources.listening.overflows_per_s);
    let drops = mean(|point| point.resources.listening.drops_per_s);
    let full = mean(|point| point.resources.listening.full);
    let fullest = fullest_queue(sweep);
    let known = fullest.is_some();
    if !sweep.observed()
        || overflows.max(drops) < OVERFLOWS_PER_S
        || (known && full <= 0.0)
        || limited_before_it_was_full(sweep)
        || !nothing_busy(sweep)
    {
        return None;
    }
    let finding = Finding::new(ResourceKind::AcceptQueue, Confidence::Medium)
        .held_by(fullest.map_or_else(String::new, |(port, ..)| format!("port {port}")))
        .saying(format!(
            "{} connections per second found the listen queue full at N* = {} and beyond ({} were dropped), while \
             nothing was busy.",
            count(overflows),
            sweep.star_users(),
            count(drops)
        ));
    let finding = match fullest {
        Some((port, waiting, backlog)) => finding.saying(format!(
            "Up to {} connections waited to be accepted on port {port}, whose queue holds {}; it was full at {} of \
             the looks.",
            count(waiting as f64),
            count(backlog as f64),
            percent(full)
        )),
        None => finding,
    };
    Some(match at_a_time(sweep) {
        Some(k) => finding.saying(format!(
            "About {} requests are served at a time, so the server may accept too slowly because its workers are taken.",
            count(k)
        )),
        None => finding,
    })
}

/// Whether clearly more users than N* got no more throughput although all of them found room in the queue: then
/// something else was the limit, and a queue that fills later is how that shows.
fn limited_before_it_was_full(sweep: &Sweep) -> bool {
    let enough = MORE_USERS * f64::from(sweep.star_users());
    let found_room = |point: &Point| {
        let listening = &point.resources.listening;
        point.resources.observed() && listening.overflows_per_s.max(listening.drops_per_s) <= 0.0
    };
    sweep.plateau().any(|point| f64::from(point.users) >= enough && found_room(point))
}

/// So many times N* are clearly more users.
const MORE_USERS: f64 = 1.5;

/// A limit on how many requests are served at a time, while nothing is busy: a lock or a pool.
pub(super) fn served_at_a_time(sweep: &Sweep) -> Option<Finding> {
    let k = at_a_time(sweep)?;
    if !sweep.observed() || !nothing_busy(sweep) || !flat(sweep) || failed(sweep, &UNANSWERED) > 0 {
        return None;
    }
    let (kind, what) = match k {
        // Whoever waits for a disk looks like somebody who waits for a lock, where the disk cannot be seen to be full.
        k if ABOUT_ONE.contains(&k) && alone_at_the_disk(sweep).is_some() => return None,
        k if ABOUT_ONE.contains(&k) => (
            ResourceKind::Lock,
            "one request is served at a time while nothing is busy: a lock, or a single worker that waits for something"
                .to_owned(),
        ),
        k if k >= A_POOL => (
            ResourceKind::WorkerPool,
            format!(
                "{} requests are served at a time while nothing is busy: a pool of {} workers, or a limit of {} downstream",
                count(k.round()), count(k.round()), count(k.round())
            ),
        ),
        _ => return None,
    };
    let id = served_by(sweep)?;
    let futex = piled_up(sweep, &id);
    let confirmed = kind == ResourceKind::Lock && futex >= 0.5;
    let unqueued_us = unqueued_us(sweep)?;
    let finding = Finding::new(kind, if confirmed { Confidence::Medium } else { Confidence::Low })
        .held_by(sweep.group_name(&id))
        .saying(format!("About {what}."))
        .saying(format!(
            "By Little's law: {} req/s at most, times {} for a request that waits for no other, is {} requests at a time.",
            count(sweep.throughput_max()),
            time(unqueued_us),
            count((k * 100.0).round() / 100.0)
        ));
    Some(with_signs(sweep, finding, futex))
}

/// Share of the looks that found threads of the server waiting for a lock or a condition, where most users were:
/// with fewer there is little to pile up.
fn piled_up(sweep: &Sweep, id: &GroupId) -> f64 {
    let most = sweep.plateau().max_by_key(|point| point.users);
    most.and_then(|point| group(point, id)).map_or(0.0, |group| group.states.futex)
}

/// That one user alone waited for a disk most of the time, though none is busy.
pub(super) fn alone_at_the_disk(sweep: &Sweep) -> Option<String> {
    let alone = sweep.points().first().filter(|point| point.users == 1)?;
    let most = |group: &&Group| group.found_disk_waiting >= WAITING_THREAD;
    let found = alone
        .resources
        .tiers()
        .filter(most)
        .max_by(|a, b| a.found_disk_waiting.total_cmp(&b.found_disk_waiting))?;
    Some(format!(
        "With one user {} was found waiting for a disk at {} of the looks, and no disk that was watched is full: one over \
         a network, or a limit on it that cannot be seen from here.",
        sweep.group_name(&(found.role, found.name.clone())),
        percent(found.found_disk_waiting)
    ))
}

/// What else points at a limit on requests served at a time.
fn with_signs(sweep: &Sweep, mut finding: Finding, futex: f64) -> Finding {
    finding.evidence.extend(alone_at_the_disk(sweep));
    if let Some(top) = sweep.mean_uses().into_iter().find(|seen| seen.utilisation() < IDLE) {
        finding = finding.saying(format!(
            "{} was the busiest resource, at only {}.",
            sweep.name(&top.id),
            percent(top.utilisation())
        ));
    }
    if sweep.mean_uses().iter().any(|seen| seen.id == Id::Host && seen.utilisation() >= IDLE) {
        finding = finding.saying(
            "Others kept the processors of this host busy, but the server and the generator hardly waited for one."
                .to_owned(),
        );
    }
    if let Some((port, waiting, _)) = fullest_queue(sweep).filter(|(_, waiting, _)| *waiting > 0) {
        finding = finding.saying(format!(
            "Up to {} connections waited on port {port} to be accepted.",
            count(waiting as f64)
        ));
    }
    let told_to_come_back = failed(sweep, &[ErrorKind::Unavailable]);
    if told_to_come_back > 0 {
        finding = finding.saying(format!(
            "{} requests were turned away: the server answered that it is too busy.",
            count(told_to_come_back as f64)
        ));
    }
    if futex > 0.0 {
        finding = finding.saying(format!(
            "{} of the looks at the server's threads found them waiting for a lock or a condition.",
            percent(futex)
        ));
    }
    finding
}

/// How many requests were served at a time, as a hint where nothing is certain.
pub(super) fn number_served(sweep: &Sweep) -> Option<String> {
    let k = at_a_time(sweep)?;
    Some(format!(
        "About {} served at a time (by Little's law, from the shortest mean response time).",
        if k < 1.5 {
            "one request was".to_owned()
        } else {
            format!("{} requests were", count((k * 10.0).round() / 10.0))
        }
    ))
}

/// The response time of a request that waits for no other, microseconds: of one user alone, or of a few if that is
/// shorter, for queueing only lengthens it, and what lengthened one user's was something else. Needs a step of one user.
fn unqueued_us(sweep: &Sweep) -> Option<f64> {
    sweep.points().first().filter(|point| point.users == 1 && point.completed > 0)?;
    let answered = sweep.points().iter().filter(|point| point.completed > 0);
    answered.map(|point| point.response_mean_us).min_by(f64::total_cmp)
}

/// X_max R(1): how many requests are served at a time.
fn at_a_time(sweep: &Sweep) -> Option<f64> {
    let k = sweep.throughput_max() * unqueued_us(sweep)? / 1e6;
    (sweep.closed() && k.is_finite() && k > 0.0).then_some(k)
}

/// Whether every watched resource had room, and nothing that was not watched worked for the load. The host's processors
/// may be busy with the work of others, as long as that kept nobody here waiting.
pub(super) fn nothing_busy(sweep: &Sweep) -> bool {
    let not_the_loads = sweep.unwatched_at_most() < IDLE;
    let by_others = |seen: &Use| seen.id == Id::Host && not_the_loads && hardly_starved(sweep);
    let room = |seen: &Use| seen.utilisation() < IDLE || by_others(seen);
    (not_the_loads || sweep.unwatched_cores() < super::UNWATCHED) && sweep.mean_uses().iter().all(room)
}

/// Threads of the server and the generator that waited for a processor, on average, per request in service: below this
/// share the wait is no part of the response times.
const STARVED: f64 = 0.10;

/// Whether server and generator got a processor whenever they wanted one, near enough. On a busy host some waiting
/// there always is; none at all means that the kernel does not count it.
pub(super) fn hardly_starved(sweep: &Sweep) -> bool {
    let waiting =
        |point: &Point| Some(point.resources.groups.iter().map(|group| group.run_queue).sum::<f64>());
    let share = sweep.mean(waiting).zip(at_a_time(sweep)).map(|(waiting, served)| waiting / served);
    share.is_some_and(|share| share > 0.0 && share < STARVED)
}

fn flat(sweep: &Sweep) -> bool {
    let top = sweep.throughput_max();
    let beyond = sweep.points().iter().filter(|point| point.users >= sweep.star_users());
    beyond.map(|point| point.throughput_per_s).all(|throughput| throughput >= FLAT * top)
}

/// The server's group: the one with most threads or processes, for an idle one uses no CPU to tell by.
fn served_by(sweep: &Sweep) -> Option<GroupId> {
    let server = |id: &&GroupId| id.0 == crate::counters::Role::Server;
    let tiers = sweep.tiers();
    let used = |id: &GroupId| sweep.group_mean(id, |group| group.cores);
    tiers.iter().filter(server).max_by(|a, b| used(a).total_cmp(&used(b))).cloned()
}

fn table_fill(group: &Group) -> f64 {
    group.open_files.map_or(0.0, |(open, limit)| open as f64 / limit.max(1) as f64)
}

/// How a server that takes no more lets its clients down. Being told to come back later is not among them: a server that
/// does so still works as it was made to.
const UNANSWERED: [ErrorKind; 4] =
    [ErrorKind::Refused, ErrorKind::Reset, ErrorKind::ClosedEarly, ErrorKind::TimedOut];

/// Requests that a server had no room for, on the plateau.
fn turned_away(sweep: &Sweep) -> u64 {
    failed(sweep, &UNANSWERED).saturating_add(failed(sweep, &[ErrorKind::Unavailable]))
}

/// Requests that failed in these ways, on the plateau.
fn failed(sweep: &Sweep, kinds: &[ErrorKind]) -> u64 {
    let at = |point: &Point| {
        kinds.iter().filter_map(|kind| point.errors.get(kind)).copied().fold(0, u64::saturating_add)
    };
    sweep.plateau().map(at).fold(0, u64::saturating_add)
}

fn fullest_queue(sweep: &Sweep) -> Option<(u16, u64, u64)> {
    let fill = |queue: &(u16, u64, u64)| queue.1 as f64 / queue.2.max(1) as f64;
    sweep
        .plateau()
        .filter_map(|point| point.resources.listening.fullest)
        .max_by(|a, b| fill(a).total_cmp(&fill(b)))
}
