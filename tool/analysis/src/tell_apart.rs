//! Experiments at the end of a sweep that tell one explanation from another where throughput and response times of users who
//! send as soon as they are answered fit both: one user is compared with something else, back and forth.
//!
//! **A lock behind a delay, or a pool.** `X_max R(1)` workers that each keep a request for all of its time give the same
//! throughput and the same response times as one lock behind a delay: where times are constant, such users fall into a step
//! in which nobody meets anybody. So a few users pause for random times between their requests. With as many workers as
//! users nobody ever waits for another. At a lock, which is held for `h = 1 / X_max`, they meet by chance and wait: for the
//! `W = R(n) - R(1)` of mean value analysis where the hold is exponential, and for about half of it where it is constant
//! (the residual of a time with a coefficient of variation c is (1 + c²) / 2 of it: Pollaczek and Khinchine's formula, and for
//! several servers Lee and Longton's approximation, 1959). By how much it varies is told by how evenly responses come while
//! users queue. Users also wait for each other at
//! a processor. What that can add is told by the processor time of a request, and is granted to both explanations.
//!
//! **One at a time, or one per interval.** Where one user alone gets all of the throughput, a limit on the rate that delays
//! requests has the same figures as a lock. But it lets a user through at once who paused for the interval `h`. With
//! exponential pauses of mean Z the response time becomes shorter by `Z (1 - exp(-h / Z))`; at a lock it stays. A server may
//! also work on after its answer, to close a connection or end a thread: a pause then saves the time of that work. It is at
//! most the processor time of a request, and is granted to the lock.

use crate::laws::mva::repairman;
use crate::run::TimesCompared;
use crate::statistics::mean::{half_width, mean, standard_error};
use crate::statistics::t_cdf;

/// With fewer pairs their scatter says nothing.
const PAIRS_MIN: usize = 4;

/// How much more pairs would tell is judged from so many on: the odds of fewer change too much from one to the next.
const JUDGED_FROM: usize = 6;

/// What further pairs may say, as a multiple of what those before did: their scatter leaves room for that.
const MARGIN: f64 = 2.0;

/// From these odds on (30 to 1), more pairs are not worth their time.
const DECIDED: f64 = 3.4;

/// The odds never exceed 99 to 1: neither explanation may be the true one.
const MOST: f64 = 4.6;

/// What response times differ by for reasons that have nothing to do with it, as a share.
const UNLIKE: f64 = 0.002;

/// The wait at a lock, as a share of what its hold and the variation of it make of it.
const WAIT: [f64; 2] = [0.9, 1.05];

/// What a pause saves at a limit on the rate, as a share of what is expected: a limit that saves up lets more through.
const SAVED: [f64; 2] = [2.5, 0.6];

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
    /// Users at a time, to be compared with one who pauses likewise; one, to be compared with one who does not pause.
    pub users: u32,
    /// The mean of their exponentially distributed pauses, microseconds.
    pub think_us: f64,
    /// The response time of one user alone, microseconds.
    pub alone_us: f64,
    /// How long a lock would be held for each request, or a limit on the rate keep the next one off, microseconds.
    pub hold_us: f64,
    /// Processor time of a request, microseconds, all tiers together.
    pub processor_us: f64,
    /// Bounds of the squared coefficient of variation of the time for which a lock is held or a worker works: from 0 (constant)
    /// to 1 (exponential).
    pub variation: [f64; 2],
}

/// A load of the experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Users.
    pub users: u32,
    /// The mean of their exponentially distributed pauses, microseconds; 0 for none.
    pub think_us: f64,
}

impl Plan {
    /// For a server that answers one user alone after `alone_us` and serves `at_a_time` requests at a time, one every
    /// `hold_us`, each of which costs `processor_us` of processor time, by how much the hold varies being unknown. `None`
    /// where a figure is out of reason.
    pub fn new(at_a_time: f64, [alone_us, hold_us, processor_us]: [f64; 3]) -> Option<Self> {
        let finite = [at_a_time, alone_us, hold_us, processor_us].iter().all(|figure| figure.is_finite());
        // As many as there would be workers: none of them would wait.
        let several = (at_a_time + ROUNDING).floor().clamp(2.0, USERS_MOST) as u32;
        let users = if at_a_time < TWO { 1 } else { several };
        let plan = Self {
            users,
            think_us: PAUSE * alone_us,
            alone_us,
            hold_us,
            processor_us,
            variation: [0.0, 1.0],
        };
        (finite && hold_us > 0.0 && alone_us > 0.0).then_some(plan)
    }

    /// The two loads to be compared.
    pub fn sides(&self) -> [Side; 2] {
        let Self { users, think_us, .. } = *self;
        [Side { users: 1, think_us: if users == 1 { 0.0 } else { think_us } }, Side { users, think_us }]
    }

    /// By how much the second response time is longer than the first, microseconds, if requests pass one at a time (several
    /// users), or one per interval (one user): two bounds.
    fn expected_us(&self) -> [f64; 2] {
        if self.users > 1 {
            return self.at_servers_us(1);
        }
        SAVED.map(|share| -(share * self.saved_us(self.hold_us)).min(self.alone_us))
    }

    /// The same if that is not so: several users have a server each, and one user saves at most the work after an answer.
    fn otherwise_us(&self) -> [f64; 2] {
        if self.users > 1 {
            return self.at_servers_us(self.users);
        }
        [-self.saved_us(self.processor_us.clamp(0.0, self.hold_us)), 0.0]
    }

    /// What a pause saves of a response that could begin only so long after the one before, microseconds on average.
    fn saved_us(&self, kept_off_us: f64) -> f64 {
        self.think_us * (1.0 - (-kept_off_us / self.think_us).exp())
    }

    /// How much longer several users wait than one at so many servers, which together let one request through per
    /// `hold_us`, and at the processor.
    fn at_servers_us(&self, servers: u32) -> [f64; 2] {
        let wait_us = self.wait_us(servers, self.hold_us * f64::from(servers));
        let processor_us = self.wait_us(1, self.processor_us.max(0.0));
        let ([least, most], [low, high]) = (WAIT, self.variation.map(|squared| (1.0 + squared) / 2.0));
        [least * low * wait_us, most * high * wait_us + processor_us]
    }

    /// How much longer several users wait than one where each request takes one of the servers for so long.
    fn wait_us(&self, servers: u32, service_us: f64) -> f64 {
        if servers >= self.users || service_us <= 0.0 {
            return 0.0;
        }
        let service_us = service_us.min(self.alone_us);
        let delay = (self.alone_us - service_us + self.think_us) / service_us;
        let cycle_us = f64::from(self.users) * service_us / repairman(servers, delay, self.users);
        (cycle_us - self.alone_us - self.think_us).max(0.0)
    }
}

/// The two loads, one after the other, so that what changes with time meets both.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pair {
    /// Mean response time of the first, microseconds.
    pub first_us: f64,
    /// Mean response time of the second, microseconds.
    pub second_us: f64,
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

    /// Whether the odds are as long as they ever are.
    pub fn tells_no_more(&self) -> bool {
        self.result().is_some_and(|result| result.log_odds.abs() >= MOST)
    }

    /// Whether going on to so many pairs is not worth their time: were the others to say twice as much as these, each, they would
    /// tell nothing in the end.
    pub fn is_futile(&self, pairs_most: usize) -> bool {
        let made = self.pairs.len();
        let Some(result) = self.result().filter(|_| made >= JUDGED_FROM) else { return false };
        let more = MARGIN * pairs_most.saturating_sub(made) as f64 / made as f64;
        let log_odds = result.log_odds * (1.0 + more);
        TimesCompared { log_odds, ..result }.told().is_none()
    }

    /// What the pairs say. `None` where there are too few.
    pub fn result(&self) -> Option<TimesCompared> {
        let longer = self.longer_us();
        if longer.len() < PAIRS_MIN || longer.iter().any(|us| !us.is_finite()) {
            return None;
        }
        let (first_us, longer_us) = (self.first_us(), mean(&longer));
        let half = half_width(&longer, 0.95);
        let expected_us = self.plan.expected_us();
        Some(TimesCompared {
            users: self.plan.users,
            think_us: self.plan.think_us,
            alone_us: first_us,
            longer_us,
            longer_ci_us: [longer_us - half, longer_us + half],
            expected_us,
            log_odds: self.log_odds(expected_us),
        })
    }

    /// The natural logarithm of the odds of a pool of so many workers, beside work that waits for nobody, against one of a
    /// worker for each user. 0 where nothing was measured.
    pub(crate) fn log_odds_of_workers(&self, workers: u32) -> f64 {
        let told = self.plan.users > 1 && self.result().is_some();
        if told { self.log_odds(self.plan.at_servers_us(workers)) } else { 0.0 }
    }

    fn longer_us(&self) -> Vec<f64> {
        self.pairs.iter().map(|pair| pair.second_us - pair.first_us).collect()
    }

    fn first_us(&self) -> f64 {
        mean(&self.pairs.iter().map(|pair| pair.first_us).collect::<Vec<_>>())
    }

    /// The odds of a range in which the longer times would lie, against the other explanation.
    fn log_odds(&self, expected_us: [f64; 2]) -> f64 {
        let seen = Seen::new(&self.longer_us(), UNLIKE * self.first_us());
        let odds = (seen.likelihood(expected_us) / seen.likelihood(self.plan.otherwise_us())).ln();
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
        Self {
            mean: mean(figures),
            error: standard_error(figures).hypot(unlike).max(f64::MIN_POSITIVE),
            freedom: figures.len() as f64 - 1.0,
        }
    }

    /// How likely it is where the truth lies anywhere in this range, as a density by the standard error.
    fn likelihood(&self, [low, high]: [f64; 2]) -> f64 {
        let [from, to] = [low, high.max(low + NARROW * self.error)].map(|at| (at - self.mean) / self.error);
        // The lower tail is exact where the upper one is rounded to 1.
        let [from, to] = if from > 0.0 { [-to, -from] } else { [from, to] };
        (t_cdf(self.freedom, to) - t_cdf(self.freedom, from)) / (to - from)
    }
}
