//! A limit on requests per second, by how the server turns away what exceeds it.
//!
//! A limit that delays requests instead has the throughput and the response times of a lock or a pool, with which it competes
//! (see [`explanations`](super::explanations)).

use super::curve::Curve;
use super::finding::{DIRECT, Finding, INDIRECT, LIKELY};
use super::waiting::{ABOUT_ONE, held_by, nothing_busy, served_by};
use crate::run::{Probability, ResourceKind, Step, WaitingEvidence as Seen};
use crate::ticks::{ErrorKind, failures};

/// `429 Too Many Requests` (RFC 6585): the user has sent too many requests in a given amount of time.
const TOO_MANY_REQUESTS: u16 = 429;

/// A lock or a pool that turns requests away is full: at least one request is being served at any time. With fewer than
/// this on average, neither can be the limit.
const IN_SERVICE: f64 = 0.7;

/// A limit on how many requests are served at a time keeps a whole number of them in service, within this share of it. From 12.5 on
/// any number is that near to a whole one.
const WHOLE: f64 = 0.04;

/// Where at least this share of the failures are rejections, the others are accidents.
const MOSTLY: f64 = 0.9;

/// Fewer failures may be accidents.
const REJECTIONS: u64 = 10;

/// The finding, if the server rejects requests though nothing of it is busy.
pub(super) fn rejects(curve: &Curve) -> Option<Finding> {
    if !nothing_busy(curve) {
        return None;
    }
    let rejected = sum(curve, rejected);
    let mostly = rejected >= REJECTIONS && rejected > sum(curve, |step| failures(&step.errors)) / 2;
    let too_many = sum(curve, |step| status(step, TOO_MANY_REQUESTS));
    let in_service = curve.mean(|step| Some(step.throughput_per_s * step.response_time_us.mean / 1e6))?;
    let confidence = match (too_many >= REJECTIONS && too_many > rejected / 2, in_service < IN_SERVICE) {
        (true, _) => by_number(in_service),
        (false, true) => INDIRECT,
        (false, false) => return None,
    };
    if !mostly {
        return None;
    }
    let full_before = limited_before_it_rejected(curve);
    let confidence = if full_before { LIKELY } else { confidence };
    let finding = Finding::new(ResourceKind::RateLimit, confidence).seeing(Seen::RequestsRejected {
        requests: rejected,
        too_many,
        throughput_per_s: curve.throughput_max(),
        users: curve.star_users(),
    });
    let finding = held_by(served_by(curve), finding).seeing(Seen::InService { requests: in_service });
    let may_be_at_a_time = full_before || (in_service >= IN_SERVICE && confidence < DIRECT);
    let kind = if in_service < ABOUT_ONE.end { ResourceKind::Lock } else { ResourceKind::WorkerPool };
    let at_a_time = held_by(served_by(curve), Finding::new(kind, LIKELY));
    Some(if may_be_at_a_time { finding.or(at_a_time.explanation(1.0 - confidence.share())) } else { finding })
}

/// How sure it is that requests which are rejected as too many exceed a rate, by how many of the others are in service. A server
/// that serves so many at a time, and rejects whatever comes meanwhile, may call these too many as well.
fn by_number(in_service: f64) -> Probability {
    let whole = in_service.round();
    let is_whole = (in_service - whole).abs() <= WHOLE * whole;
    match (in_service < IN_SERVICE, is_whole) {
        (true, _) => DIRECT,
        (false, true) => LIKELY,
        (false, false) => INDIRECT,
    }
}

/// Whether clearly more users than N* got no more throughput at a step at which nobody was rejected: then rejections are what a
/// full queue does, or a limit that delays requests first.
fn limited_before_it_rejected(curve: &Curve) -> bool {
    curve.plateau().any(|step| curve.is_clearly_beyond(step) && rejected(step) == 0)
}

fn sum(curve: &Curve, count: impl Fn(&Step) -> u64) -> u64 {
    curve.plateau().map(count).fold(0, u64::saturating_add)
}

/// Whether nearly all requests that failed at a step were rejected so.
pub(super) fn rejected_mostly(step: &Step) -> bool {
    rejected(step) as f64 >= MOSTLY * failures(&step.errors) as f64
}

/// Responses that told the client to send less, or to come back later.
fn rejected(step: &Step) -> u64 {
    let unavailable = step.errors.get(&ErrorKind::Unavailable).copied().unwrap_or(0);
    let without_time = step.errors.get(&ErrorKind::Status).copied().unwrap_or(0);
    unavailable.saturating_add(without_time.min(status(step, TOO_MANY_REQUESTS)))
}

fn status(step: &Step, status: u16) -> u64 {
    step.measurement.unexpected_statuses.get(&status).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_in_service_may_be_that_of_a_lock_or_a_pool() {
        let sure = [0.4, 1.0, 4.1, 4.4, 8.0, 40.3].map(by_number);
        assert_eq!(sure, [DIRECT, LIKELY, LIKELY, INDIRECT, LIKELY, LIKELY]);
    }
}
