//! Signs of what users wait for, each with how many times as likely it is by one explanation as by another.
//!
//! The ratios are plain judgements of how often each sign is seen with each cause; only how they compare matters.

use super::Cause;
use crate::run::HopEvidence;
use crate::verdict::curve::Curve;
use crate::verdict::{hops, waiters, waiting};

/// Requests of which more users add this share to the listen queue have not all left it.
const UNACCEPTED: f64 = 0.25;

/// Users wait for each other in other ways too, on a busy host above all. A wait that is expected to be shorter than this
/// share of a request proves the less.
const OTHERWISE_LONGER: f64 = 0.1;

/// With as many workers users at random hardly ever wait, though there may be more of them.
const SMALL_POOL: u32 = 64;

/// How likely a sign is by each explanation.
pub(super) struct Sign {
    one: f64,
    pool: f64,
    /// Of pools of 2 workers, 3, and so on, where it is not the same of all.
    small_pools: Vec<f64>,
    accept_queue: f64,
    rate_limit: f64,
    upstream: f64,
    other: f64,
}

impl Sign {
    /// As likely by each.
    const NONE: Self = Self {
        one: 1.0,
        pool: 1.0,
        small_pools: Vec::new(),
        accept_queue: 1.0,
        rate_limit: 1.0,
        upstream: 1.0,
        other: 1.0,
    };

    fn of(waiters: waiters::Ratios) -> Self {
        let waiters::Ratios { lock, pool, rate_limit } = waiters;
        Self { one: lock, pool, rate_limit, ..Self::NONE }
    }

    pub(super) fn ratio(&self, cause: Cause) -> f64 {
        match cause {
            Cause::One => self.one,
            Cause::Pool(workers) | Cause::Connections(workers) => {
                let small = (workers as usize).checked_sub(2).and_then(|index| self.small_pools.get(index));
                small.copied().unwrap_or(self.pool)
            }
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
        threads(curve),
        sleepers(curve),
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
fn threads(curve: &Curve) -> Option<Sign> {
    waiters::ratios(curve).map(Sign::of)
}

/// Threads that sleep until a time, more of them with more users: each is delayed, and waits for no other.
fn sleepers(curve: &Curve) -> Option<Sign> {
    waiters::ratios_asleep(curve).map(Sign::of)
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
    Some(Sign { pool: 0.05, accept_queue: 0.3, rate_limit: 0.05, upstream: 0.3, other: 0.3, ..Sign::NONE })
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
/// them meet, and so do fewer workers than users.
fn contention(curve: &Curve) -> Option<Sign> {
    let made = curve.contention()?;
    let expected = made.expected_us.iter().sum::<f64>() / 2.0 / made.alone_us;
    let trusted = (expected / OTHERWISE_LONGER).clamp(0.0, 1.0);
    let ratio = |log_odds: f64| (if log_odds > 0.0 { trusted * log_odds } else { log_odds }).exp();
    let one = ratio(made.log_odds);
    let workers = 2..made.users.min(SMALL_POOL);
    let small_pools = workers.map(|workers| ratio(curve.log_odds_of_workers(workers))).collect();
    // Connections may be accepted several at a time, each time that the server gets to it.
    let (accept_queue, rate_limit, upstream) = (0.5 + 0.5 * one, one, one.sqrt());
    Some(Sign { one, pool: 1.0, small_pools, accept_queue, rate_limit, upstream, other: one.sqrt() })
}

/// Whether a pause saves one user time, as it does where requests are let through at a rate.
fn pausing(curve: &Curve) -> Option<Sign> {
    let rate_limit = curve.pausing()?.log_odds.exp();
    Some(Sign { rate_limit, ..Sign::NONE })
}
