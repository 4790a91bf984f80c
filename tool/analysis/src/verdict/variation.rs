//! By how much the time varies for which a lock is held or a worker works, told by how evenly responses come while users
//! queue, and what that says of how many workers there are.
//!
//! While users queue, a lock lets the next one in as soon as it is free. So responses are a renewal process of its holds, and
//! those of a pool are one for each worker: over a time that is long beside a hold, the variance of their number comes to c²
//! of its mean, where c is the coefficient of variation of a hold (Cox, Renewal Theory, 1962, section 4.5). What else varies
//! adds to it. Errors are those within each measurement of a step: what several of them differ by is not the hold's.
//!
//! With m workers, each is kept for m / X, so one user's response times have a standard deviation of c m / X from that alone.
//! What else a request does may vary as well and add to it, but never takes anything away.

use super::curve::Curve;
use super::waiting;
use crate::estimate::replicates::usable;
use crate::run::{Replicate, Step};
use crate::statistics::t_95;

/// Users queue at all times from this multiple of N* on.
const QUEUEING: f64 = 1.5;

/// Fewer responses say nothing of how evenly they come.
const RESPONSES_MIN: u64 = 100;

/// Throughput of a host varies by this share for reasons of its own.
const OF_THE_HOST: f64 = 0.008;

/// What is estimated may be this many times too small or too large, and too small by this much besides.
const TOO_LARGE: f64 = 2.0;
const TOO_SMALL: [f64; 2] = [3.0, 0.05];

/// Times that vary less or more than by these c² are not compared with response times: what else varies then hides them, or
/// the server changes.
const COMPARED: [f64; 2] = [0.2, 4.0];

/// Where responses come less evenly by this factor than the holds in one user's response times can make them, that is not
/// because of the holds.
const UNLIKE: f64 = 4.0;

/// The standard error of the logarithm of a number of workers that is told by both standard deviations.
const ERROR: f64 = 0.3;

/// Where the other work of a request varies as well, the logarithm of the whole over that of the workers is spread evenly up to
/// this, and so it is for what is neither a lock nor a pool.
const WIDE: f64 = 5.0;

/// The share of servers of which the other work hardly varies.
const HARDLY: f64 = 0.5;

/// The least density: something may be different from all this.
const OTHERWISE: f64 = 0.01;

/// What is known of the time for which a lock is held or a worker works.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Variation {
    /// Its squared coefficient of variation, by how evenly responses come; with what the host adds, which may be much.
    seen: f64,
    /// The largest that it can be, by one user's response times: they vary by no less than the hold in them.
    most: f64,
    /// About how much of that the host may add.
    of_the_host: f64,
}

impl Variation {
    /// `None` where too few responses were measured while users queued.
    pub(crate) fn of(curve: &Curve) -> Option<Self> {
        let queueing = QUEUEING * f64::from(curve.star_users());
        let steps = || curve.steps().iter().filter(|step| f64::from(step.users) >= queueing);
        let responses: u64 = steps().map(|step| step.completed).sum();
        let weighted = |figure: fn(&Step) -> Option<f64>| -> Option<f64> {
            let sum: f64 =
                steps().map(|step| Some(step.completed as f64 * figure(step)?)).sum::<Option<f64>>()?;
            Some(sum / responses as f64)
        };
        let found = Self {
            seen: weighted(dispersion)?,
            most: alone_in_holds(curve)?.powi(2),
            of_the_host: weighted(|step| within(step, |one| Some(OF_THE_HOST.powi(2) * completed(one))))?,
        };
        (responses >= RESPONSES_MIN && found.squared().is_finite()).then_some(found)
    }

    /// The squared coefficient of variation, with what the host adds.
    fn squared(&self) -> f64 {
        self.seen.min(self.most)
    }

    /// Two bounds of the squared coefficient of variation, from 0 (constant times) to 1 (exponential times).
    pub(crate) fn bounds(&self) -> [f64; 2] {
        let least = (self.squared() - self.of_the_host) / TOO_LARGE;
        let [times, besides] = TOO_SMALL;
        [least.clamp(0.0, 1.0), (times * self.squared() + besides).clamp(0.0, 1.0)]
    }

    /// The number of workers that would make one user's response times vary as they do, if nothing else varied.
    fn workers(&self) -> Option<f64> {
        let compared = (COMPARED[0]..COMPARED[1]).contains(&self.squared());
        let told = compared && self.of_the_host < self.squared() / 4.0 && self.seen < UNLIKE * self.most;
        told.then_some((self.most / self.squared()).sqrt())
    }
}

/// How many times as likely the response times of one user vary as they do with a number of workers, as with something that is
/// neither a lock nor a pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scatter {
    workers: f64,
}

impl Scatter {
    /// `None` where the work hardly varies, or that is not known.
    pub(super) fn of(curve: &Curve) -> Option<Self> {
        if waiting::fall(curve).is_some() {
            return None;
        }
        Some(Self { workers: Variation::of(curve)?.workers()? })
    }

    /// The ratio of the densities of its logarithm.
    pub(super) fn with(self, workers: u32) -> f64 {
        let beyond = (self.workers / f64::from(workers)).ln();
        let fit = (-(beyond / ERROR).powi(2) / 2.0).exp();
        let alone = WIDE * fit / (ERROR * (2.0 * std::f64::consts::PI).sqrt());
        let others = if beyond > 0.0 { 1.0 } else { fit };
        (HARDLY * alone + (1.0 - HARDLY) * others).max(WIDE * OTHERWISE)
    }
}

/// The variance of the number of responses over its mean, from the interval of the throughput.
fn dispersion(step: &Step) -> Option<f64> {
    within(step, |one| {
        let share = error(one, one.throughput_per_s, one.throughput_ci_per_s?) / one.throughput_per_s;
        Some(share.powi(2) * completed(one))
    })
}

/// The standard deviation of one user's response times, which follow each other without a queue, from the interval of their
/// mean; over the mean time between two responses while users queue.
fn alone_in_holds(curve: &Curve) -> Option<f64> {
    let variance = within(curve.alone()?, |one| {
        let error_us = error(one, one.response_time_mean_us, one.response_time_ci_us?);
        Some(error_us.powi(2) * completed(one))
    })?;
    Some(variance.sqrt() * curve.maximum().0 / 1e6)
}

/// The mean of a figure over the measurements that make a step, by how many responses each had.
fn within(step: &Step, figure: impl Fn(&Replicate) -> Option<f64>) -> Option<f64> {
    let only = [Replicate::of(step, 0.0)];
    let all = if step.replicates.is_empty() { &only[..] } else { &step.replicates[..] };
    let (mut responses, mut sum) = (0.0, 0.0);
    for one in usable(all, |one| one.steady) {
        let Some(seen) = figure(one).filter(|seen| seen.is_finite()) else { continue };
        responses += completed(one);
        sum += completed(one) * seen;
    }
    (responses > 0.0).then(|| sum / responses)
}

fn completed(one: &Replicate) -> f64 {
    one.throughput_per_s * one.elapsed_s
}

/// The standard error of a figure of a measurement, from its interval.
fn error(of: &Replicate, figure: f64, [_, high]: [f64; 2]) -> f64 {
    (high - figure) / t_95(of.degrees_of_freedom())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ResponseTime;
    use crate::verdict::Shape;

    #[test]
    fn a_constant_time_has_a_narrow_range_and_an_exponential_one_is_told_from_it() {
        let bounds = |seen: f64| Variation { seen, most: 16.0, of_the_host: 0.01 }.bounds();
        assert!(bounds(0.002)[1] < 0.1 && bounds(0.002)[0] == 0.0);
        assert!(bounds(1.0)[0] > 0.4 && bounds(1.0)[1] == 1.0);
        let noisy = Variation { seen: 1.0, most: 16.0, of_the_host: 2.0 }.bounds();
        assert_eq!(noisy, [0.0, 1.0], "all of it may be the host's");
    }

    /// A step that was measured twice: the two are 2 % apart, and each has intervals of this half-width. Those of the step hold
    /// what they differ by.
    fn measured_twice(users: u32, throughput_per_s: f64, response_us: f64, half_width: f64) -> Step {
        let around = |value: f64, half: f64| Some([value * (1.0 - half), value * (1.0 + half)]);
        let one = |speed: f64| Replicate {
            elapsed_s: 2.0,
            throughput_per_s: throughput_per_s * speed,
            throughput_ci_per_s: around(throughput_per_s * speed, half_width),
            response_time_mean_us: response_us / speed,
            response_time_ci_us: around(response_us / speed, half_width),
            steady: true,
            ..Replicate::default()
        };
        Step {
            users,
            elapsed_s: 4.0,
            completed: (throughput_per_s * 4.0) as u64,
            throughput_per_s,
            throughput_ci_per_s: around(throughput_per_s, 0.05),
            response_time_us: ResponseTime {
                mean: response_us,
                mean_ci: around(response_us, 0.05),
                ..ResponseTime::default()
            },
            steady: true,
            replicates: vec![one(0.99), one(1.01)],
            ..Step::default()
        }
    }

    #[test]
    fn what_measurements_differ_by_is_not_the_holds() {
        let of = |half_width: f64| {
            let times =
                [(1, 50.0, 20_000.0), (4, 199.0, 20_100.0), (8, 200.0, 40_000.0), (16, 200.0, 80_000.0)];
            let steps = times.map(|(users, rate, us)| measured_twice(users, rate, us, half_width)).into();
            let shape = Shape {
                users_at_saturation: Some(4),
                bounded: true,
                closed: true,
                throughput_max_per_s: 200.0,
                throughput_max_ci_per_s: [198.0, 202.0],
                ..Shape::default()
            };
            Variation::of(&Curve::new(steps, shape, None)).expect("enough responses")
        };
        let constant = of(0.001);
        assert!(constant.bounds()[1] < 0.1 && constant.workers().is_none(), "{constant:?}");
        let varying = of(0.05);
        assert!(varying.workers().is_some(), "{varying:?}");
    }

    #[test]
    fn a_host_that_wavers_makes_no_times_vary() {
        let wavers = Variation { seen: 0.9, most: 0.01, of_the_host: 0.05 };
        assert!(wavers.bounds()[1] < 0.1 && wavers.workers().is_none(), "one user's times are constant");
        let four = Variation { seen: 1.0, most: 16.0, of_the_host: 0.05 };
        assert_eq!(four.workers(), Some(4.0));
    }

    #[test]
    fn other_work_may_add_to_what_workers_vary_by_and_takes_nothing_away() {
        let four = Scatter { workers: 4.0 };
        assert!(four.with(4) > 5.0 * four.with(1), "a lock whose other work happens to vary as much is rare");
        assert!(four.with(1) >= 5.0 * four.with(9), "nine workers would vary by more");
        let densities = |workers: u32| -> f64 {
            let step = 0.01;
            (-300..500)
                .map(|at| Scatter { workers: (f64::from(at) * step).exp() }.with(workers) / WIDE * step)
                .sum()
        };
        assert!((densities(1) - 1.0).abs() < 0.2, "{}", densities(1));
    }
}
