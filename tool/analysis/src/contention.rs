//! Whether requests are served one at a time or several at a time, asked of the server by an experiment.
//!
//! `X_max R(1)` workers that each keep a request for all of its time give the same throughput and the same response times
//! as one lock behind a delay: where times are constant, users who send again as soon as they are answered fall into a
//! step in which nobody meets anybody. So a few users pause for random times between their requests. With as many workers
//! as users nobody ever waits for another. At a lock, which is held for `h = 1 / X_max`, they meet by chance and wait: for
//! the `W = R(n) - R(1)` of mean value analysis where the hold is exponential, and for about half of it where it is constant
//! (the residual of a constant time is half of it, that of an exponential one all of it).
//!
//! Users also wait for each other at a processor. What that can add is told by the processor time of a request, and is
//! granted to both explanations.

use crate::laws::mva::{Station, mva};
use crate::run::ContentionTest;
use crate::statistics::mean::{half_width, mean};
use crate::statistics::t_cdf;

/// With fewer pairs their scatter says nothing.
const PAIRS_MIN: usize = 4;

/// From these odds on (30 to 1), more pairs are not worth their time.
const DECIDED: f64 = 3.4;

/// The odds never exceed 99 to 1: neither explanation may be the true one.
const MOST: f64 = 4.6;

/// What response times differ by for reasons that have nothing to do with it, as a share.
const UNLIKE: f64 = 0.002;

/// The wait at a lock, as a share of that of an exponential hold.
const WAIT: [f64; 2] = [0.45, 1.05];

/// The narrowest range that an explanation allows, in standard errors.
const NARROW: f64 = 0.01;

/// A whole number of workers may be measured this much too low.
const ROUNDING: f64 = 0.03;

/// More of them are no light load any more.
const USERS_MOST: f64 = 1e4;

/// With fewer at a time than this it is one: two workers serve two at a time, or more where a request takes time elsewhere.
const TWO: f64 = 1.75;

/// The mean pause of a user, as a share of the time of a request: long enough to lose step, and short enough to meet often.
const PAUSE: f64 = 0.5;

/// An experiment to be made.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Plan {
    /// Users at a time, at least two, to be compared with one.
    pub users: u32,
    /// The mean of their exponentially distributed pauses, microseconds.
    pub think_us: f64,
    /// The response time of one user alone, microseconds.
    pub alone_us: f64,
    /// How long a lock would be held for each request, microseconds.
    pub hold_us: f64,
    /// Processor time of a request, microseconds, all tiers together.
    pub processor_us: f64,
}

impl Plan {
    /// For a server that answers one user alone after `alone_us` and serves `at_a_time` requests at a time, one every
    /// `hold_us`, each of which costs `processor_us` of processor time. `None` with fewer than two at a time: then it is one.
    pub fn new(at_a_time: f64, [alone_us, hold_us, processor_us]: [f64; 3]) -> Option<Self> {
        let possible = [at_a_time, alone_us, hold_us, processor_us].iter().all(|figure| figure.is_finite());
        // As many as there would be workers: none of them would wait.
        let users = (at_a_time + ROUNDING).floor().clamp(2.0, USERS_MOST) as u32;
        let plan = Self { users, think_us: PAUSE * alone_us, alone_us, hold_us, processor_us };
        (possible && at_a_time >= TWO && hold_us > 0.0 && alone_us >= hold_us).then_some(plan)
    }
}

/// One user and several, one after the other, so that what changes with time meets both.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pair {
    /// Mean response time of one user, microseconds.
    pub alone_us: f64,
    /// Mean response time of several, microseconds.
    pub together_us: f64,
}

/// What was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trial {
    /// The experiment.
    pub plan: Plan,
    /// Measurements in the order of time.
    pub pairs: Vec<Pair>,
}

impl Trial {
    /// Whether more pairs would change nothing.
    pub fn is_decided(&self) -> bool {
        self.result().is_some_and(|result| result.log_odds.abs() >= DECIDED)
    }

    /// What the pairs say. `None` where there are too few.
    pub fn result(&self) -> Option<ContentionTest> {
        let Plan { users, think_us, .. } = self.plan;
        let longer: Vec<f64> = self.pairs.iter().map(|pair| pair.together_us - pair.alone_us).collect();
        if longer.len() < PAIRS_MIN || longer.iter().any(|us| !us.is_finite()) {
            return None;
        }
        let alone: Vec<f64> = self.pairs.iter().map(|pair| pair.alone_us).collect();
        let (alone_us, longer_us) = (mean(&alone), mean(&longer));
        let half = half_width(&longer, 0.95);
        let wait_us = self.wait_us(self.plan.hold_us);
        Some(ContentionTest {
            users,
            think_us,
            alone_us,
            longer_us,
            longer_ci_us: [longer_us - half, longer_us + half],
            expected_us: WAIT.map(|share| share * wait_us),
            log_odds: self.log_odds(&longer, alone_us),
        })
    }

    /// How much longer several users wait than one where each request takes a single server for so long.
    fn wait_us(&self, demand_us: f64) -> f64 {
        let Plan { users, think_us, alone_us, .. } = self.plan;
        let stations = [
            Station::Queue { demand_us, servers: 1 },
            Station::Delay { demand_us: (alone_us - demand_us).max(0.0) },
        ];
        let times = mva(&stations, think_us, users);
        let time_us = |users: usize| times.get(users.wrapping_sub(1)).map_or(0.0, |at| at.response_time_us);
        (time_us(users as usize) - time_us(1)).max(0.0)
    }

    /// The logarithm of the odds of one at a time against several.
    fn log_odds(&self, longer_us: &[f64], alone_us: f64) -> f64 {
        let (lock_us, processor_us) =
            (self.wait_us(self.plan.hold_us), self.wait_us(self.plan.processor_us.max(0.0)));
        let seen = Seen::new(longer_us, UNLIKE * alone_us);
        let one = seen.likelihood(WAIT[0] * lock_us, WAIT[1] * lock_us + processor_us);
        let several = seen.likelihood(0.0, processor_us);
        let odds = (one / several).ln();
        if odds.is_nan() { 0.0 } else { odds.clamp(-MOST, MOST) }
    }
}

/// A mean and its standard error, of so many degrees of freedom.
struct Seen {
    mean: f64,
    error: f64,
    freedom: f64,
}

impl Seen {
    fn new(figures: &[f64], unlike: f64) -> Self {
        let (count, mean) = (figures.len() as f64, mean(figures));
        let variance = figures.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Self {
            mean,
            error: (variance / count).sqrt().hypot(unlike).max(f64::MIN_POSITIVE),
            freedom: count - 1.0,
        }
    }

    /// How likely it is where the truth lies anywhere in this range, as a density by the standard error.
    fn likelihood(&self, low: f64, high: f64) -> f64 {
        let [from, to] = [low, high.max(low + NARROW * self.error)].map(|at| (at - self.mean) / self.error);
        // The lower tail is exact where the upper one is rounded to 1.
        let [from, to] = if from > 0.0 { [-to, -from] } else { [from, to] };
        (t_cdf(self.freedom, to) - t_cdf(self.freedom, from)) / (to - from)
    }
}
