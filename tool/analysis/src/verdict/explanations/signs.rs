//! Signs of what users wait for, each with how many times as likely it is by one explanation as by another.
//!
//! The ratios are plain judgements of how often each sign is seen with each cause; only how they compare matters.

use super::Cause;
use crate::run::HopEvidence;
use crate::verdict::curve::Curve;
use crate::verdict::variation::Scatter;
use crate::verdict::{hops, waiters, waiting};

/// Requests of which more users add this share to the listen queue have not all left it.
const UNACCEPTED: f64 = 0.25;

/// Users wait for each other in other ways too, on a busy host above all. A wait that is expected to be shorter than this
/// share of a request proves the less.
const OTHERWISE_LONGER: f64 = 0.1;

/// Of pools, the share at which requests that wait have been read: the others accept connections, or read requests, only
/// when a worker is free.
const POOLS_THAT_READ: f64 = 0.6;

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

    /// Of threads that wait where the requests have been `read` by them: a pool is seen so more rarely than a lock because
    /// some pools read no request that waits, which is a sign of its own then.
    fn of_threads(waiters: waiters::Ratios, read: bool) -> Self {
        let pool = if read { waiters.lock } else { waiters.pool };
        Self::of(waiters::Ratios { pool, ..waiters })
    }

    fn of_requests(read: bool) -> Self {
        if read {
            Self { pool: POOLS_THAT_READ, accept_queue: 0.05, upstream: 0.1, ..Self::NONE }
        } else {
            Self { one: 0.5, rate_limit: 0.5, accept_queue: 2.0, upstream: 0.1, ..Self::NONE }
        }
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
        scatter(curve),
    ];
    all.into_iter().flatten().collect()
}

/// Threads that wait at one futex, more of them with more users: they wait for a lock, or for a semaphore before a pool. A
/// runtime with a scheduler of its own shows none.
fn threads(curve: &Curve) -> Option<Sign> {
    let read = requests_read(curve).unwrap_or(false);
    waiters::ratios(curve).map(|waiters| Sign::of_threads(waiters, read))
}

/// Threads that sleep until a time, more of them with more users: each is delayed, and waits for no other.
fn sleepers(curve: &Curve) -> Option<Sign> {
    waiters::ratios_asleep(curve).map(Sign::of)
}

/// Requests that the tier where they queue has not read have no thread yet that could wait for a lock; those it has read
/// have left the listen queue.
fn unread(curve: &Curve) -> Option<Sign> {
    let read = requests_read(curve)?;
    if !accepted(curve) {
        return Some(Sign { one: 0.3, accept_queue: 3.0, upstream: 0.1, ..Sign::NONE });
    }
    Some(Sign::of_requests(read))
}

/// Whether the tier where requests queue has read those that wait. `None` where that is not known.
fn requests_read(curve: &Curve) -> Option<bool> {
    let not_read = |seen: &HopEvidence| matches!(seen, HopEvidence::NotRead { .. });
    Some(accepted(curve) && !hops::queue(curve)?.evidence.iter().any(not_read))
}

/// Whether requests that more users add have left the listen queue.
fn accepted(curve: &Curve) -> bool {
    hops::unaccepted(curve) < UNACCEPTED || !several(curve)
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

/// By how much one user's response times vary, where the time varies for which a lock is held or a worker works.
fn scatter(curve: &Curve) -> Option<Sign> {
    let scatter = Scatter::of(curve)?;
    let small_pools = (2..SMALL_POOL).map(|workers| scatter.with(workers)).collect();
    Some(Sign { one: scatter.with(1), pool: scatter.with(SMALL_POOL), small_pools, ..Sign::NONE })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four workers with requests of varying times were called a lock: that requests were read and that threads waited had
    /// counted twice against the pool, though threads that wait have read their requests.
    #[test]
    fn threads_that_have_read_their_requests_count_once() {
        let waiters = waiters::Ratios { lock: 5.0, pool: 5.0 * POOLS_THAT_READ, rate_limit: 1.0 };
        for read in [true, false] {
            let signs = [Sign::of_threads(waiters, read), Sign::of_requests(read)];
            let ratio = |cause| signs.iter().map(|sign| sign.ratio(cause)).product::<f64>();
            let pool = ratio(Cause::Pool(4)) / ratio(Cause::One);
            let expected = if read { POOLS_THAT_READ } else { POOLS_THAT_READ / 0.5 };
            assert!((pool - expected).abs() < 1e-9, "{read}: {pool}");
        }
    }
}
