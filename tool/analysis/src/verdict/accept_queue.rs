//! The listen queue: connections that are accepted too slowly, or find no room to wait, while nothing is busy.

use super::curve::Curve;
use super::finding::{EITHER, Finding, INDIRECT, LIKELY};
use super::hops;
use super::waiting::{ABOUT_ONE, at_a_time, fullest_queue, held_by, nothing_busy, served_by, tested_by};
use crate::laws::little;
use crate::run::{
    ConnectionEvidence as Seen, Identity, ListenQueue, Probability, ResourceKind, Step, TimesCompared,
};

/// Overflows of a listen queue, per second, that are more than the burst when users are added.
const OVERFLOWS_PER_S: f64 = 1.0;

/// A listen queue that holds this share of the users beyond N* is where they wait.
const PILED_UP: f64 = 0.5;

/// Where connecting takes this share of the response times, users wait to be let in.
const CONNECTING: f64 = 0.25;

/// Workers of which this share has a request are full.
const WORKED_ON: f64 = 0.85;

/// Users that have no connection are told of from this share on.
const OUTSIDE: f64 = 0.05;

/// The finding, if nearly all requests wait to be accepted, or the queue overflowed as soon as throughput stopped growing.
pub(super) fn full(curve: &Curve) -> Option<Finding> {
    if !nothing_busy(curve) {
        return None;
    }
    if !curve.observed() {
        return out_of_sight(curve);
    }
    let finding = Finding::new(ResourceKind::AcceptQueue, INDIRECT);
    if let Some((port, slowly)) = hops::accepted_slowly(curve) {
        let finding = finding.held_by(Identity::ListenQueue { port }).seeing(slowly);
        return Some(with_overflows(curve, finding));
    }
    if let Some(port) = let_in_one_by_one(curve) {
        let finding = Finding::new(ResourceKind::AcceptQueue, LIKELY).held_by(Identity::ListenQueue { port });
        let finding = tested_by(curve, None).into_iter().fold(finding, Finding::seeing);
        return Some(with_overflows(curve, finding));
    }
    let full = curve.steps().iter().any(|step| step.usage.listening.full > 0.0);
    let room = fullest_queue(curve).is_some() && !full;
    if room || overflowing(curve).next().is_none() || limited_before_it_was_full(curve) {
        return None;
    }
    let several = curve.contention().and_then(TimesCompared::told) == Some(false);
    let finding = match (workers_may_be_full(curve), several) {
        (true, true) => return None,
        (true, false) => or_workers(curve),
        (false, _) => finding,
    };
    let finding = with_overflows(curve, finding);
    Some(match at_a_time(curve) {
        Some(at_a_time) => finding.seeing(Seen::AcceptsSlowly { at_a_time }),
        None => finding,
    })
}

/// Whether as many requests as are served at a time are worked on while the queue in front overflows: then it may wait for them.
/// So many are behind an acceptor, too, which lets them in one at a time.
fn workers_may_be_full(curve: &Curve) -> bool {
    let held = hops::held_at_front(overflowing(curve)).zip(at_a_time(curve));
    held.is_some_and(|(held, k)| k >= ABOUT_ONE.end && held >= WORKED_ON * k) && !curve.one_by_one()
}

/// A listen queue that is too short for the workers behind it, or one that is emptied too slowly: the one about as often as the
/// other.
fn or_workers(curve: &Curve) -> Finding {
    let [queue, of_workers] = EITHER.map(Probability::new);
    let workers = Finding::new(ResourceKind::WorkerPool, of_workers);
    let workers = held_by(served_by(curve), workers).explanation(of_workers.share());
    Finding::new(ResourceKind::AcceptQueue, queue).or(workers)
}

/// The finding where the server cannot be watched: as soon as throughput stopped growing handshakes had to be tried again,
/// and users are missing in it or spend their time connecting. What keeps it from accepting is not seen, so it is less sure.
fn out_of_sight(curve: &Curve) -> Option<Finding> {
    let heaviest = overflowing(curve).last()?;
    let finding = Finding::new(ResourceKind::AcceptQueue, LIKELY);
    let is_limit = some_wait_outside(heaviest) && !limited_before_it_was_full(curve);
    is_limit.then(|| with_overflows(curve, finding))
}

/// Whether users are missing in throughput, or spend their time connecting.
fn some_wait_outside(step: &Step) -> bool {
    let connecting = step.connecting.is_some_and(|took| took.share >= CONNECTING);
    connecting || not_admitted(step).is_some()
}

/// The port at whose listen queue users beyond N* pile up, if requests are known to pass one at a time although several
/// are worked on, and the connections themselves were not seen. Workers that all wait for one lock look the same.
fn let_in_one_by_one(curve: &Curve) -> Option<u16> {
    let beyond = |step: &Step| f64::from(step.users) - f64::from(curve.star_users());
    let piled_up = |step: &Step| {
        let (port, waiting, _) = step.usage.listening.fullest?;
        (beyond(step) >= 2.0 && waiting as f64 >= PILED_UP * beyond(step)).then_some(port)
    };
    curve.plateau().find_map(piled_up).filter(|_| curve.one_by_one() && hops::queue(curve).is_none())
}

/// Adds how the queue overflowed, if it did.
fn with_overflows(curve: &Curve, finding: Finding) -> Finding {
    let Some(heaviest) = overflowing(curve).last() else { return finding };
    let count = overflowing(curve).count() as f64;
    let mean = |read: fn(&Step) -> f64| overflowing(curve).map(read).sum::<f64>() / count;
    let (overflows_per_s, users) = (mean(|step| step.usage.listening.overflows_per_s), curve.star_users());
    let finding = finding.seeing(if overflows_per_s > 0.0 && curve.observed() {
        let drops_per_s = mean(|step| step.usage.listening.drops_per_s);
        Seen::ListenQueueFull { overflows_per_s, drops_per_s, users }
    } else {
        Seen::HandshakesRetried { per_s: mean(|step| step.usage.listening.retried_per_s), users }
    });
    let finding = not_admitted(heaviest).into_iter().fold(finding, Finding::seeing);
    let Some(ListenQueue { port, waiting, backlog }) = fullest_queue(curve) else { return finding };
    let full = mean(|step| step.usage.listening.full);
    let holder = finding.holder.clone().unwrap_or(Identity::ListenQueue { port });
    finding.held_by(holder).seeing(Seen::ListenQueueSeen { port, waiting, backlog, full })
}

/// The steps from N* on at which the queue overflowed all the time, by ascending users. Not only those that hold the
/// maximum throughput: users that are not admitted are missing in it.
fn overflowing(curve: &Curve) -> impl DoubleEndedIterator<Item = &Step> {
    let from = curve.star_users();
    curve.steps().iter().filter(move |step| step.users >= from && overflows_per_s(step) >= OVERFLOWS_PER_S)
}

/// Connections that were not let in, per second: as the generator's host counts them, and as the server's does where that
/// is watched.
fn overflows_per_s(step: &Step) -> f64 {
    let listening = &step.usage.listening;
    let overflows = listening.overflows_per_s.max(listening.drops_per_s);
    if step.usage.observed() { overflows.max(listening.retried_per_s) } else { listening.retried_per_s }
}

/// Users without a connection: those that throughput times response time does not account for.
fn not_admitted(step: &Step) -> Option<Seen> {
    let little = little(step, 0.0);
    let outside = little.gap * f64::from(step.users);
    let seen = !little.holds() && little.gap >= OUTSIDE && outside >= 1.0;
    seen.then_some(Seen::NotAdmitted { users: step.users, outside })
}

/// Whether clearly more users than N* got no more throughput although all of them found room in the queue. Then
/// something else was the limit, and the queue filled later because of it. Where nothing overflowed, those outside may wait
/// for seconds before they try again.
fn limited_before_it_was_full(curve: &Curve) -> bool {
    let found_room =
        |step: &Step| step.usage.elapsed_us > 0.0 && overflows_per_s(step) <= 0.0 && !some_wait_outside(step);
    curve.plateau().any(|step| curve.is_clearly_beyond(step) && found_room(step))
}
