//! Locks that transactions hold against each other in a database, by what the database itself reports.
//!
//! A lock that somebody always waits for is never free: it is as full as a processor that always has work, and more
//! users only lengthen its queue. Two shares tell that apart from a few collisions: how often anybody waited, and how
//! many of the sessions at work did. A server opens only so many sessions, so the rest of the queue may be in the
//! server; the shares hold all the same.

use super::curve::{Curve, DatabaseServer};
use super::finding::{DIRECT, Finding};
use super::utilisation::mean_uses;
use super::waiting::nothing_busy;
use crate::resources::LockUse;
use crate::run::{
    Database, Doubt, Identity, LockDoubt, LockEvidence as Seen, Processes, Resource, ResourceKind, Step,
    Unit, Words,
};
use crate::thresholds::FULL;

/// Where a lock stops them, at least this share of the sessions at work wait. With only two sessions one waits for the
/// other: half, less the work they do without the lock.
const MOST: f64 = 0.4;

/// With less than this share waiting, locks are not in the way.
const HARDLY_ANY_WAIT: f64 = 0.2;

/// Fewer samples than this prove nothing: ten samples all find a lock taken that is free a quarter of the time once in
/// eighteen times.
const LOCK_SAMPLES_MIN: usize = 10;

/// At the lightest step at most this share of the sessions that waited at saturation may have waited: a queue that the
/// load makes grows with it.
const LIGHT: f64 = 0.5;

/// Where the database adds up the time of waits, that must account for this share of what the samples saw.
const CONFIRMED: f64 = 0.5;

/// With less than this share of the users in the database, it lets no more in.
const INSIDE: f64 = 0.8;

/// The finding, if most sessions wait for a lock at N* and beyond, and somebody always does.
pub(super) fn full(curve: &Curve) -> Option<Finding> {
    let seen = queue(curve)?;
    let database = holder(curve)?;
    let enough = seen.samples >= LOCK_SAMPLES_MIN && seen.contended >= FULL && seen.share() >= MOST;
    let confirmed = seen.waiting_by_time.is_none_or(|waiting| waiting >= CONFIRMED * seen.waiting);
    if !enough || !confirmed || !grew(curve, &seen) {
        return None;
    }
    let finding = Finding::new(ResourceKind::Lock, DIRECT)
        .held_by(Identity::DatabaseLocks(database.clone()))
        .busy(seen.contended)
        .demanding(curve.demand_us(|_| Some(seen.contended)))
        .seeing(Seen::SessionsWaited {
            database: database.clone(),
            waiting: seen.waiting,
            at_work: seen.at_work,
            users: curve.star_users(),
            contended: seen.contended,
            samples: seen.samples as u64,
        });
    let counted = seen.waiting_by_time.map(|waiting| Seen::CountedByDatabase { waiting });
    let details = [share_of_response(curve), growth(curve), counted];
    let finding = details.into_iter().flatten().fold(finding, Finding::seeing);
    let because = if !curve.observed() || seen_behind(curve).is_none() {
        LockDoubt::NotWatched
    } else if !nothing_busy(curve) {
        LockDoubt::SomethingBusy
    } else {
        return Some(finding.seeing(all_else_had_room(curve)));
    };
    Some(finding.less_sure().doubting(Doubt::LocksHeldForLonger { database, because }))
}

/// A full resource while transactions queue for locks: whichever is removed, the other may stop the server at the same
/// throughput.
pub(super) fn beside(other: Finding, database: &Database, locks: Finding) -> Finding {
    // Threads that run one at a time are the effect of a lock.
    let same = matches!(database, Database::Processes(of) if other.is_held_by(of));
    if other.kind == ResourceKind::SingleThread && other.confidence < DIRECT && same {
        return other.evidence.into_iter().take(1).fold(locks, Finding::seeing);
    }
    let other = other.doubting(Doubt::LocksAsWell { database: database.clone() });
    locks.evidence.into_iter().take(1).fold(other, Finding::seeing)
}

/// Adds what the locks of the database say about another cause, or that nobody asked.
pub(super) fn compare(curve: &Curve, finding: Finding) -> Finding {
    let by_elimination = matches!(finding.kind, ResourceKind::Lock | ResourceKind::WorkerPool);
    let (Some(seen), Some(database)) = (queue(curve), holder(curve)) else {
        let unwatched = by_elimination || finding.kind == ResourceKind::Unknown;
        return match known_database(curve).filter(|_| unwatched && curve.database().is_none()) {
            Some(of) => finding.seeing(Seen::NotAsked { of }),
            None => finding,
        };
    };
    let (waiting, at_work) = (seen.waiting, seen.at_work);
    if at_work <= 0.0 {
        return finding;
    }
    if seen.share() < HARDLY_ANY_WAIT {
        // A few samples that find nobody waiting exclude nothing.
        let enough = seen.samples >= LOCK_SAMPLES_MIN;
        return if enough {
            finding.seeing(Seen::NotTheCause { database, waiting, at_work })
        } else {
            finding
        };
    }
    if by_elimination || seen.share() >= MOST {
        return finding.doubting(Doubt::LocksMayBePart { database, waiting, at_work });
    }
    finding.less_sure().seeing(Seen::PartOfTheWaiting { database, waiting, at_work })
}

/// The sessions of one step as a resource for the report.
pub(crate) fn resource(curve: &Curve, step: &Step) -> Option<Resource> {
    let seen = step.usage.locks?;
    Some(Resource {
        kind: ResourceKind::Lock,
        holder: Words::default(),
        identity: Some(Identity::DatabaseLocks(holder(curve)?)),
        utilization: seen.share(),
        used: seen.waiting,
        capacity: seen.at_work,
        unit: Unit::Sessions,
    })
}

/// The steps with more users than N*, or the step at N* where there are none. They include steps whose throughput fell,
/// because long queues for locks cause that too.
fn crowded(curve: &Curve) -> impl Iterator<Item = &Step> {
    let star = curve.star().map_or(0, |step| step.users);
    let from = if curve.steps().iter().any(|step| step.users > star) { star + 1 } else { star };
    curve.steps().iter().filter(move |step| step.users >= from)
}

/// Waits among the sessions there, on average; `None` where the database was not sampled.
fn queue(curve: &Curve) -> Option<LockUse> {
    let seen: Vec<LockUse> = crowded(curve).filter_map(|step| step.usage.locks).collect();
    let of = |read: fn(&LockUse) -> f64| seen.iter().map(read).sum::<f64>() / seen.len() as f64;
    let by_time: Vec<f64> = seen.iter().filter_map(|seen| seen.waiting_by_time).collect();
    (!seen.is_empty()).then(|| LockUse {
        samples: seen.iter().map(|seen| seen.samples).sum(),
        waiting: of(|seen| seen.waiting),
        waiting_by_time: (by_time.len() == seen.len())
            .then(|| by_time.iter().sum::<f64>() / by_time.len() as f64),
        at_work: of(|seen| seen.at_work),
        contended: of(|seen| seen.contended),
    })
}

/// Whether clearly fewer waited at the lightest step.
fn grew(curve: &Curve, seen: &LockUse) -> bool {
    let Some(lightest) = curve.steps().first() else { return false };
    let heavier = crowded(curve).next().is_some_and(|step| step.users > lightest.users);
    let light = lightest.usage.locks.map(|locks| locks.waiting);
    heavier && light.is_some_and(|waiting| waiting <= LIGHT * seen.waiting)
}

/// Time waited for locks, by Little's law, at the step with most users.
fn share_of_response(curve: &Curve) -> Option<Seen> {
    let most = crowded(curve).filter(|step| step.throughput_per_s > 0.0).last()?;
    let locks = most.usage.locks?;
    let waited_us = locks.waiting / most.throughput_per_s * 1e6;
    let share = waited_us / most.response_time_us.mean;
    let before = locks.at_work < INSIDE * f64::from(most.users);
    (share.is_finite() && share <= 1.1).then(|| Seen::ShareOfResponse {
        waited_us,
        users: most.users,
        share: share.min(1.0),
        inside: before.then_some(locks.at_work),
    })
}

/// How the queue grew with the users.
fn growth(curve: &Curve) -> Option<Seen> {
    let (first, last) = (curve.steps().first()?, crowded(curve).last()?);
    let waiting = |step: &Step| Some(step.usage.locks?.waiting);
    Some(Seen::QueueGrew {
        from_users: first.users,
        from_waiting: waiting(first)?,
        to_users: last.users,
        to_waiting: waiting(last)?,
    })
}

fn all_else_had_room(curve: &Curve) -> Seen {
    let other = mean_uses(curve).into_iter().find(|seen| seen.resource != Identity::Generator);
    let busiest = other.map(|seen| (seen.resource.clone(), seen.utilisation()));
    Seen::AllElseHadRoom { busiest }
}

/// The database: its processes where they were seen behind the server, and its name otherwise.
pub(super) fn holder(curve: &Curve) -> Option<Database> {
    let name = curve.database()?.name.clone();
    Some(seen_behind(curve).map_or(Database::Address { name }, Database::Processes))
}

fn seen_behind(curve: &Curve) -> Option<Processes> {
    let server = curve.database()?.server;
    curve.tiers().into_iter().find(|of| server.runs_as(of))
}

/// Processes of a database server that could have been asked.
fn known_database(curve: &Curve) -> Option<Processes> {
    curve.tiers().into_iter().find(DatabaseServer::any_runs_as)
}
