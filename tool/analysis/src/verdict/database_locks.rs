//! Locks that transactions hold against each other in a database, from what the database itself told.
//!
//! A lock that somebody always waits for is never free: it is full, as a processor is that always has work, and more
//! users only lengthen its queue. Two shares tell that apart from a few collisions: how often anybody waited, and how
//! many of the sessions at work did. A server opens only so many sessions, so the queue may end within it and go on in
//! the server; the shares hold there too.

use super::FULL;
use super::finding::Finding;
use super::sweep::{GroupId, Point, Sweep};
use super::waiting::nothing_busy;
use crate::counters::Role;
use crate::resources::LockUse;
use crate::run::{Confidence, Resource, ResourceKind};
use crate::words::{count, percent, time, users};

/// At least this share of the sessions at work wait, where a lock is what stops them. One waits for one other where a
/// server opens only two sessions: half, less what they do without the lock.
const MOST: f64 = 0.4;

/// With less than this share waiting, locks are not in the way.
const FEW: f64 = 0.2;

/// Fewer looks than this prove nothing: ten find a lock taken that is free a quarter of the time once in eighteen.
const LOOKS: usize = 10;

/// With so few users as at the lightest step, at most this share of those at saturation may have waited: a queue of the
/// load's own making grows with it.
const LIGHT: f64 = 0.5;

/// Where the server adds up the time of waits, that must account for this share of what the looks saw.
const CONFIRMED: f64 = 0.5;

/// With less than this share of the users in the database, it lets no more in.
const INSIDE: f64 = 0.8;

/// A database behind the server that was asked, during the run, who waits for its locks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedDatabase {
    /// What people call it, without credentials.
    pub name: String,
    /// What its server's processes are called.
    pub processes: &'static [&'static str],
    /// Why what it told is not all there is to know, if so.
    pub trouble: Option<String>,
}

/// Most sessions wait for a lock at N* and beyond, and somebody always does.
pub(super) fn full(sweep: &Sweep) -> Option<Finding> {
    let seen = queue(sweep)?;
    let database = holder(sweep)?;
    let enough = seen.looks >= LOOKS && seen.contended >= FULL && seen.share() >= MOST;
    let confirmed = seen.waiting_by_time.is_none_or(|waiting| waiting >= CONFIRMED * seen.waiting);
    if !enough || !confirmed || !grew(sweep, &seen) {
        return None;
    }
    let demand = sweep.demand_us(|_| Some(seen.contended));
    let mut finding = Finding::new(ResourceKind::Lock, Confidence::High)
        .held_by(database.clone())
        .busy(seen.contended)
        .demanding(demand)
        .saying(format!(
            "On average {} of the {} sessions at work in {database} waited for a lock that another transaction held, \
             with more users than N* = {}; at {} of {} looks somebody did.",
            count(tenth(seen.waiting)),
            count(tenth(seen.at_work)),
            sweep.star_users(),
            percent(seen.contended),
            seen.looks
        ));
    finding = [share_of_response(sweep), growth(sweep), counted(&seen)]
        .into_iter()
        .flatten()
        .fold(finding, Finding::saying);
    let doubt = if !sweep.observed() || seen_behind(sweep).is_none() {
        "the database's own processes could not be watched, so that nobody knows whether something else is full"
    } else if !nothing_busy(sweep) {
        "a processor, a disk or a link is busy as well: measure again with more room for the servers, or on a machine \
         that does nothing else"
    } else {
        return Some(finding.saying(with_room(sweep)));
    };
    finding.confidence = Confidence::Low;
    Some(finding.doubting(format!(
        "Transactions queue for locks of {database}, but locks are held for longer where what their holder needs is \
         full, and {doubt}."
    )))
}

/// Something else is full while transactions queue for locks: whichever is removed, the other may stop the server at the
/// same throughput.
pub(super) fn beside(other: Finding, locks: &Finding) -> Finding {
    // Threads that run one at a time are what a lock makes of them: it says why.
    if other.kind == ResourceKind::SingleThread
        && other.confidence != Confidence::High
        && other.holder == locks.holder
    {
        return other.evidence.into_iter().take(1).fold(locks.clone(), Finding::saying);
    }
    let doubt = format!(
        "Transactions queued for locks of {} as well, and which of the two comes first cannot be told: locks are held \
         for longer where what their holder needs is full.",
        locks.holder
    );
    locks.evidence.iter().take(1).cloned().fold(other.doubting(doubt), Finding::saying)
}

/// What the locks of the database say about another cause; where nobody asked, that one can.
pub(super) fn compare(sweep: &Sweep, mut finding: Finding) -> Finding {
    let by_elimination = matches!(finding.kind, ResourceKind::Lock | ResourceKind::WorkerPool);
    let (Some(seen), Some(database)) = (queue(sweep), holder(sweep)) else {
        let unwatched = by_elimination || finding.kind == ResourceKind::Unknown;
        return match known_database(sweep).filter(|_| unwatched && sweep.database().is_none()) {
            Some(id) => finding.saying(format!(
                "Whether transactions waited for locks in {} was not asked: --watch-database URL does.",
                sweep.group_name(&id)
            )),
            None => finding,
        };
    };
    if seen.at_work <= 0.0 {
        return finding;
    }
    let waited = format!(
        "on average {} of the {} sessions at work in {database} waited for one that another transaction held",
        count(tenth(seen.waiting)),
        count(tenth(seen.at_work))
    );
    if seen.share() < FEW {
        return finding.saying(format!("Locks of the database are not what stops it: {waited}."));
    }
    if by_elimination || seen.share() >= MOST {
        return finding.doubting(format!(
            "Locks of the database may be part of the cause, which the figures neither prove nor exclude: {waited}."
        ));
    }
    if finding.confidence == Confidence::High {
        finding.confidence = Confidence::Medium;
    }
    finding.saying(format!("Locks of the database are part of the waiting: {waited}."))
}

/// The sessions of one step as a resource for the report.
pub(crate) fn resource(sweep: &Sweep, point: &Point) -> Option<Resource> {
    let seen = point.resources.locks?;
    Some(Resource {
        kind: ResourceKind::Lock,
        holder: holder(sweep)?,
        utilization: seen.share(),
        used: seen.waiting,
        capacity: seen.at_work,
        unit: "sessions".to_owned(),
    })
}

/// The steps with more users than N*, or that at N* where there are none. Those whose throughput fell are among them:
/// that, too, is what long queues for locks do.
fn crowded(sweep: &Sweep) -> impl Iterator<Item = &Point> {
    let star = sweep.star().map_or(0, |point| point.users);
    let from = if sweep.points().iter().any(|point| point.users > star) { star + 1 } else { star };
    sweep.points().iter().filter(move |point| point.users >= from)
}

/// What the sessions did there, on average; `None` where the database was not looked at.
fn queue(sweep: &Sweep) -> Option<LockUse> {
    let seen: Vec<LockUse> = crowded(sweep).filter_map(|point| point.resources.locks).collect();
    let of = |read: fn(&LockUse) -> f64| seen.iter().map(read).sum::<f64>() / seen.len() as f64;
    let by_time: Vec<f64> = seen.iter().filter_map(|seen| seen.waiting_by_time).collect();
    (!seen.is_empty()).then(|| LockUse {
        looks: seen.iter().map(|seen| seen.looks).sum(),
        waiting: of(|seen| seen.waiting),
        waiting_by_time: (by_time.len() == seen.len())
            .then(|| by_time.iter().sum::<f64>() / by_time.len() as f64),
        at_work: of(|seen| seen.at_work),
        contended: of(|seen| seen.contended),
    })
}

/// Whether clearly fewer waited at the lightest step.
fn grew(sweep: &Sweep, seen: &LockUse) -> bool {
    let Some(lightest) = sweep.points().first() else { return false };
    let heavier = crowded(sweep).next().is_some_and(|point| point.users > lightest.users);
    let light = lightest.resources.locks.map(|locks| locks.waiting);
    heavier && light.is_some_and(|waiting| waiting <= LIGHT * seen.waiting)
}

/// Time waited for locks, by Little's law, at the step with most users.
fn share_of_response(sweep: &Sweep) -> Option<String> {
    let most = crowded(sweep).filter(|point| point.throughput_per_s > 0.0).last()?;
    let locks = most.resources.locks?;
    let waited_us = locks.waiting / most.throughput_per_s * 1e6;
    let share = waited_us / most.response_mean_us;
    let before = locks.at_work < INSIDE * f64::from(most.users);
    let rest = if before {
        let inside = count(tenth(locks.at_work));
        format!("; of {} {inside} were in the database at a time, the others before it", users(most.users))
    } else {
        String::new()
    };
    (share.is_finite() && share <= 1.1).then(|| {
        format!(
            "By Little's law a request waited {} for them with {}, {} of its response time{rest}.",
            time(waited_us),
            users(most.users),
            percent(share.min(1.0))
        )
    })
}

/// How the queue grew with the users.
fn growth(sweep: &Sweep) -> Option<String> {
    let (first, last) = (sweep.points().first()?, crowded(sweep).last()?);
    let waiting = |point: &Point| Some(count(tenth(point.resources.locks?.waiting)));
    Some(format!(
        "With {} {} waited, with {} {}.",
        users(first.users),
        waiting(first)?,
        users(last.users),
        waiting(last)?
    ))
}

fn counted(seen: &LockUse) -> Option<String> {
    let waiting = seen.waiting_by_time?;
    Some(format!("The database itself counted waits that come to {} at a time.", count(tenth(waiting))))
}

fn with_room(sweep: &Sweep) -> String {
    let uses = sweep.mean_uses();
    let busiest = uses.iter().find(|seen| seen.id.kind() != ResourceKind::Generator);
    match busiest {
        Some(seen) => format!(
            "All else had room. {} was the busiest, at {}.",
            sweep.name(&seen.id),
            percent(seen.utilisation())
        ),
        None => "All else had room.".to_owned(),
    }
}

/// The database server's processes, where they were seen behind the server, and else what people call the database.
fn holder(sweep: &Sweep) -> Option<String> {
    let database = sweep.database()?;
    Some(seen_behind(sweep).map_or_else(|| database.name.clone(), |id| sweep.group_name(&id)))
}

fn seen_behind(sweep: &Sweep) -> Option<GroupId> {
    let names = sweep.database()?.processes;
    sweep.tiers().into_iter().find(|id| is_behind(id, names))
}

/// Processes of a database server that could have been asked.
fn known_database(sweep: &Sweep) -> Option<GroupId> {
    sweep.tiers().into_iter().find(|id| is_behind(id, &["mariadbd", "mysqld", "postgres"]))
}

fn is_behind(id: &GroupId, names: &[&str]) -> bool {
    id.0 == Role::Downstream && names.contains(&id.1.as_str())
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
