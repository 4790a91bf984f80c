//! Signs of what users wait for, each with how many times as likely it is by one explanation as by another.
//!
//! The ratios are plain judgements of how often each sign is seen with each cause; only how they compare matters.

use super::Cause;
use crate::run::{HopEvidence, WaitingEvidence as Seen};
use crate::verdict::curve::Curve;
use crate::verdict::{hops, waiting};

/// Requests of which more users add this share to the listen queue have not all left it.
const UNACCEPTED: f64 = 0.25;

/// Users wait for each other in other ways too, on a busy host above all. A wait that is expected to be shorter than this
/// share of a request proves the less.
const OTHERWISE_LONGER: f64 = 0.1;

/// How likely a sign is by each explanation.
pub(super) struct Sign {
    one: f64,
    pool: f64,
    accept_queue: f64,
    rate_limit: f64,
    upstream: f64,
    other: f64,
}

impl Sign {
    /// As likely by each.
    const NONE: Self =
        Self { one: 1.0, pool: 1.0, accept_queue: 1.0, rate_limit: 1.0, upstream: 1.0, other: 1.0 };

    pub(super) fn ratio(&self, cause: Cause) -> f64 {
        match cause {
            Cause::One => self.one,
            Cause::Pool(_) | Cause::Connections(_) => self.pool,
            Cause::AcceptQueue => self.accept_queue,
            Cause::RateLimit => self.rate_limit,
            Cause::Upstream => self.upstream,
            Cause::Else => self.other,
        }
    }
}

/// All signs that were seen. What else tells the explanations apart is added here.
pub(super) fn all(curve: &Curve) -> Vec<Sign> {
    let all = [
        waiters(curve),
        unread(curve),
        falls(curve),
        waiting_to_be_accepted(curve),
        contention(curve),
        pausing(curve),
    ];
    all.into_iter().flatten().collect()
}

/// Threads that wait at one futex, more of them with more users: they wait for a lock, or for a semaphore before a pool. A
/// runtime with a scheduler of its own shows none.
fn waiters(curve: &Curve) -> Option<Sign> {
    let of = waiting::served_by(curve)?;
    Some(match waiting::more_waiters(curve, &of) {
        Some(Seen::ThreadsAtOneFutex { .. }) => Sign { one: 10.0, pool: 6.0, ..Sign::NONE },
        Some(_) => Sign { one: 4.0, pool: 2.4, ..Sign::NONE },
        None => Sign { one: 0.75, ..Sign::NONE },
    })
}

/// Requests that the tier where they queue has not read have no thread yet that could wait for a lock; those it has read
/// have left the listen queue.
fn unread(curve: &Curve) -> Option<Sign> {
    let queue = hops::queue(curve)?;
    if hops::unaccepted(curve) >= UNACCEPTED && several(curve) {
        return Some(Sign { one: 0.3, accept_queue: 3.0, upstream: 0.1, ..Sign::NONE });
    }
    let unread = queue.evidence.iter().any(|seen| matches!(seen, HopEvidence::NotRead { .. }));
    Some(if unread {
        Sign { one: 0.5, rate_limit: 0.5, accept_queue: 2.0, upstream: 0.1, ..Sign::NONE }
    } else {
        Sign { pool: 0.6, accept_queue: 0.05, upstream: 0.1, ..Sign::NONE }
    })
}

/// Throughput that falls with users: a lock is held for longer the more wait for it, and workers that wait for something else
/// keep their throughput.
fn falls(curve: &Curve) -> Option<Sign> {
    waiting::fall(curve)?;
    Some(Sign { one: 1.0, pool: 0.05, accept_queue: 0.3, rate_limit: 0.05, upstream: 0.3, other: 0.3 })
}

/// Whether more than one request is under way at a time: connections that wait for a single worker wait to be accepted too.
fn several(curve: &Curve) -> bool {
    waiting::at_a_time(curve).is_some_and(|number| number >= waiting::ABOUT_ONE.end)
}

/// Connections that wait to be accepted.
fn waiting_to_be_accepted(curve: &Curve) -> Option<Sign> {
    let queue = waiting::fullest_queue(curve).filter(|queue| queue.waiting > 0)?;
    let accept_queue = if queue.waiting >= queue.backlog && several(curve) { 20.0 } else { 3.0 };
    Some(Sign { accept_queue, ..Sign::NONE })
}

/// What a few users at random moments met: one at a time, or several at a time. Whatever lets requests pass one by one makes
/// them meet.
fn contention(curve: &Curve) -> Option<Sign> {
    let made = curve.contention()?;
    let expected = made.expected_us.iter().sum::<f64>() / 2.0 / made.alone_us;
    let trust = if made.log_odds > 0.0 { (expected / OTHERWISE_LONGER).clamp(0.0, 1.0) } else { 1.0 };
    let one = (trust * made.log_odds).exp();
    Some(Sign { one, pool: 1.0, accept_queue: one, rate_limit: one, upstream: one.sqrt(), other: one.sqrt() })
}

/// Whether a pause saves one user time, as it does where requests are let through at a rate.
fn pausing(curve: &Curve) -> Option<Sign> {
    let rate_limit = curve.pausing()?.log_odds.exp();
    Some(Sign { rate_limit, ..Sign::NONE })
}
