//! Little's law and the utilisation law (Denning and Buzen, "The operational analysis of queueing network
//! models", Computing Surveys 10(3), 1978).

pub mod demands;
pub mod mva;
pub mod usl;

use crate::estimate::Estimate;
use crate::run::{Bounds, Run, Step};
use crate::ticks::{ErrorCounts, failed_share};

/// How far a step is from Little's law, N = X (R + Z).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Little {
    /// (N - X (R + Z)) / N.
    pub gap: f64,
    /// The largest gap, either way, that the intervals of X and R and the ends of the window explain.
    pub tolerance: f64,
}

impl Little {
    /// Whether the law holds within the tolerance.
    pub fn holds(&self) -> bool {
        self.gap.abs() <= self.tolerance
    }
}

/// Rounding and clock resolution, as a share of N.
const RESOLUTION: f64 = 0.005;
/// With a larger share of failures than this, the time users spend in failed requests, which Little's law over the
/// completed ones leaves out, shows.
const FAILURES_MAX: f64 = 0.01;

/// The check of one step. Z is the mean think time really taken, as the generator counted it; `think_us`,
/// the one asked for, stands in where it counted none.
pub fn little(users: u32, estimate: &Estimate, think_us: f64) -> Little {
    let users = f64::from(users.max(1));
    let think_us = taken_think_us(estimate).unwrap_or(think_us);
    let cycle_us = estimate.response_time_us.mean + think_us;
    let present = estimate.throughput_per_s * cycle_us / 1e6;
    let throughput = estimate.throughput_relative_half_width().unwrap_or(0.0);
    let response = estimate.response_relative_half_width().unwrap_or(0.0);
    let response = response * share(estimate.response_time_us.mean, cycle_us);
    Little {
        gap: (users - present) / users,
        tolerance: throughput.hypot(response) + ends(estimate, cycle_us) + RESOLUTION,
    }
}

/// Z = M / X for M thinking users: Little's law for the thinking.
fn taken_think_us(estimate: &Estimate) -> Option<f64> {
    let counted = estimate.mean_thinking_users > 0.0 && estimate.throughput_per_s > 0.0;
    counted.then(|| estimate.mean_thinking_users / estimate.throughput_per_s * 1e6)
}

/// Little's gap, (N - X (R + Z)) / N.
pub fn little_gap(users: u32, estimate: &Estimate, think_us: f64) -> f64 {
    little(users, estimate, think_us).gap
}

/// Whether so many requests failed that Little's law says nothing: the time users spend in those is not counted.
pub fn lost_in_failures(completed: u64, errors: &ErrorCounts) -> bool {
    completed == 0 || failed_share(completed, errors) > FAILURES_MAX
}

/// Whether Little's law is tested at this step of a run: in a closed loop, in a steady state, and where few requests
/// failed.
pub fn is_tested(run: &Run, step: &Step) -> bool {
    run.load.rate_per_s.is_none() && step.steady && !lost_in_failures(step.completed, &step.errors)
}

/// Requests that straddle an end of the window count with their whole response time at its end and not
/// at its start: at most one cycle of the measured time.
fn ends(estimate: &Estimate, cycle_us: f64) -> f64 {
    share(cycle_us, estimate.measured_us as f64)
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 }
}

/// The asymptotes of a closed system (Denning and Buzen 1978): with few users throughput is at most N / (R(1) + Z), with
/// many at most X_max.
pub fn bounds(response_time_alone_us: f64, think_us: f64, throughput_max_per_s: f64) -> Bounds {
    Bounds {
        response_time_alone_us,
        throughput_max_per_s,
        knee_users: (response_time_alone_us + think_us) / 1e6 * throughput_max_per_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ResponseTime;

    fn step(throughput: f64, response_us: f64, thinking: f64) -> Estimate {
        Estimate {
            measured_us: 5_000_000,
            throughput_per_s: throughput,
            throughput_ci_per_s: Some([throughput * 0.99, throughput * 1.01]),
            response_time_us: ResponseTime {
                mean: response_us,
                mean_ci: Some([response_us * 0.98, response_us * 1.02]),
                ..ResponseTime::default()
            },
            mean_thinking_users: thinking,
            ..Estimate::default()
        }
    }

    #[test]
    fn holds_where_everyone_is_accounted_for() {
        let found = little(10, &step(1_000.0, 4_000.0, 0.0), 6_000.0);
        assert!(found.gap.abs() < 1e-12 && found.holds());
        assert!(little(10, &step(1_000.0, 10_000.0, 0.0), 0.0).holds());
    }

    /// A tenth of the users is nowhere: waiting to reconnect, or counted twice.
    #[test]
    fn fails_where_users_are_missing() {
        let found = little(10, &step(1_000.0, 9_000.0, 0.0), 0.0);
        assert!((found.gap - 0.1).abs() < 1e-12 && !found.holds(), "{found:?}");
        assert!(!little(10, &step(1_000.0, 11_000.0, 0.0), 0.0).holds());
    }

    /// Users think longer than they were told to when the generator is late: what they did counts.
    #[test]
    fn think_time_is_the_one_taken() {
        assert!(little(10, &step(1_000.0, 4_000.0, 6.0), 5_000.0).holds());
    }

    #[test]
    fn nothing_completed() {
        assert_eq!(little_gap(4, &Estimate::default(), 0.0), 1.0);
    }

    /// By hand: demands 2, 0.5 and 3 s, think time 15 s, so X <= min(N / 20.5, 1 / 3) and the knee is at 6.83.
    #[test]
    fn asymptotes_cross_at_the_knee() {
        assert!((bounds(5.5e6, 15e6, 1.0 / 3.0).knee_users - 6.833).abs() < 1e-3);
    }
}
