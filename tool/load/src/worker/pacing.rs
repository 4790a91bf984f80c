//! When requests start: think times of a closed loop, arrivals of an open loop, and how many requests there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;

use crate::plan::{Arrivals, Think};
use crate::values::stream::mix;

/// What makes requests start.
pub(crate) enum LoopMode {
    /// The end of the user's last request.
    Closed { think: Think },
    /// A schedule.
    Open(Schedule),
}

/// How many requests may be made.
#[derive(Debug, Clone)]
pub(crate) enum Allowance {
    Unlimited,
    /// This many by each user.
    PerUser(u64),
    /// This many in total, by all threads together.
    Total(Arc<AtomicU64>),
}

impl Allowance {
    pub(super) fn per_user(&self) -> u64 {
        match self {
            Allowance::PerUser(requests) => *requests,
            Allowance::Unlimited | Allowance::Total(_) => u64::MAX,
        }
    }
}

/// A thread's part of a total, claimed in pieces so that not every request touches the shared counter.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    left: u64,
}

impl Claim {
    /// Takes one request from `total`. Returns false if none is left.
    ///
    /// Each piece is a fraction of the rest, and at most 64, so that all threads run out at about the same time (guided
    /// self-scheduling, Polychronopoulos and Kuck 1987).
    pub(crate) fn take(&mut self, total: &AtomicU64, threads: u64) -> bool {
        if self.left == 0 {
            let share = |left: u64| (left / (8 * threads.max(1))).clamp(1, 64).min(left);
            let claimed =
                total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - share(left)));
            self.left = claimed.map_or(0, share);
        }
        self.left = match self.left.checked_sub(1) {
            Some(rest) => rest,
            None => return false,
        };
        true
    }
}

/// Draws the length of the next pause, nanoseconds.
#[inline]
pub(crate) fn think_ns(think: Think, rng: &mut Rng) -> u64 {
    match think {
        Think::None => 0,
        Think::Constant(time) => nanoseconds(time),
        Think::Exponential(mean) => exponential_ns(nanoseconds(mean) as f64, rng),
    }
}

/// The time that a user waits before it connects again after this many failures in a row: 10 ms, doubled every time, up
/// to 1 s. Without it, a server that is down would make the generator spin.
pub(crate) fn back_off_ns(failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(7);
    (10_000_000u64 << doublings).min(1_000_000_000)
}

/// The intended starts of a thread's share of an open loop.
#[derive(Debug)]
pub(crate) struct Schedule {
    next_ns: u64,
    gap_ns: f64,
    /// Mean gap between the starts of all threads taken together.
    total_gap_ns: f64,
    /// Fraction of a nanosecond left over from earlier gaps.
    carry_ns: f64,
    /// Number of the thread, which is the number of total gaps by which it starts later than thread 0.
    turn: f64,
    arrivals: Arrivals,
    rng: Rng,
}

impl Schedule {
    /// Makes the schedule of a thread's share of `rate_per_s`. Independent Poisson streams add up to a Poisson stream;
    /// equal gaps are offset so that the threads take turns. Call [`Schedule::restart`] to start it.
    pub(crate) fn new(rate_per_s: f64, arrivals: Arrivals, thread: ThreadShare) -> Self {
        Schedule {
            next_ns: 0,
            gap_ns: 0.0,
            total_gap_ns: 1e9 / rate_per_s,
            carry_ns: 0.0,
            turn: thread.number as f64,
            arrivals,
            rng: Rng::with_seed(mix(thread.seed, u64::MAX - thread.number as u64)),
        }
    }

    /// Starts the schedule at `start_ns`, at another rate where one is given. The rate is shared by `threads` threads, those that have a connection to send
    /// on, which include this one.
    pub(crate) fn restart(&mut self, start_ns: u64, threads: usize, rate_per_s: Option<f64>) {
        self.total_gap_ns = rate_per_s.map_or(self.total_gap_ns, |rate_per_s| 1e9 / rate_per_s);
        self.gap_ns = self.total_gap_ns * threads.max(1) as f64;
        self.next_ns = start_ns;
        self.carry_ns = 0.0;
        match self.arrivals {
            Arrivals::Uniform => self.carry_ns = self.total_gap_ns * self.turn,
            Arrivals::Poisson => self.advance(),
        }
    }

    /// The next intended start.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns + self.carry_ns as u64
    }

    /// Advances to the intended start after that.
    pub(crate) fn advance(&mut self) {
        let gap = match self.arrivals {
            Arrivals::Uniform => self.gap_ns,
            Arrivals::Poisson => exponential_ns(self.gap_ns, &mut self.rng) as f64,
        };
        self.carry_ns += gap;
        let whole = self.carry_ns as u64;
        self.next_ns += whole;
        self.carry_ns -= whole as f64;
    }
}

/// The position of a thread among all threads, which determines its share of the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadShare {
    pub(crate) number: usize,
    pub(crate) of: usize,
    /// Seed of the whole load.
    pub(crate) seed: u64,
}

impl ThreadShare {
    /// The number of users that this thread runs: user u belongs to thread u modulo the number of threads.
    pub(super) fn of_users(&self, users: u32) -> usize {
        (users as usize + self.of - 1 - self.number) / self.of
    }

    /// The place, among all users of this generator, of the user in this slot.
    pub(super) fn number_of(&self, slot: usize) -> usize {
        slot * self.of + self.number
    }
}

/// Draws from the exponential distribution, by inversion.
fn exponential_ns(mean_ns: f64, rng: &mut Rng) -> u64 {
    // 1 - f64() is in (0, 1]: the logarithm is finite.
    (-(1.0 - rng.f64()).ln() * mean_ns) as u64
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(arrivals: Arrivals, thread: ThreadShare, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(1_000.0, arrivals, thread);
        schedule.restart(5_000_000, thread.of, None);
        let next = |_| {
            let at = schedule.next_ns();
            schedule.advance();
            at
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn uniform_threads_take_turns() {
        let thread = |number| ThreadShare { number, of: 2, seed: 1 };
        assert_eq!(starts(Arrivals::Uniform, thread(0), 3), [5_000_000, 7_000_000, 9_000_000]);
        assert_eq!(starts(Arrivals::Uniform, thread(1), 3), [6_000_000, 8_000_000, 10_000_000]);
    }

    #[test]
    fn the_rate_is_shared_by_threads_with_a_connection() {
        let mut schedule =
            Schedule::new(1_000.0, Arrivals::Uniform, ThreadShare { number: 0, of: 2, seed: 1 });
        schedule.restart(5_000_000, 1, None);
        schedule.advance();
        assert_eq!(schedule.next_ns(), 6_000_000);
    }

    #[test]
    fn fractional_uniform_gaps_do_not_drift() {
        let thread = ThreadShare { number: 0, of: 3, seed: 1 };
        let mut schedule = Schedule::new(7_000.0, Arrivals::Uniform, thread);
        schedule.restart(0, 3, None);
        (0..7_000).for_each(|_| schedule.advance());
        assert!(schedule.next_ns().abs_diff(3_000_000_000) <= 2, "{}", schedule.next_ns());
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_an_exponential() {
        let thread = ThreadShare { number: 0, of: 1, seed: 7 };
        let at = starts(Arrivals::Poisson, thread, 20_001);
        let gaps: Vec<f64> = at.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Standard errors over 20 000 gaps: 0.7 % of the mean, about 2 % of the variance.
        assert!((mean - 1.0).abs() < 0.035, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.1, "variance {variance}");
    }

    #[test]
    fn claims_add_up_to_the_total() {
        let total = AtomicU64::new(1_000);
        let mut claims = [Claim::default(), Claim::default()];
        let mut taken = 0;
        while claims.iter_mut().any(|claim| claim.take(&total, 2)) {
            taken += 1;
        }
        assert_eq!(taken, 1_000);
    }

    #[test]
    fn back_off_doubles_to_a_second() {
        let waits: Vec<u64> = (1..10).map(|failures| back_off_ns(failures) / 1_000_000).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
    }
}
