//! Operational laws: Little's law, and the asymptotes of a closed system (Denning and Buzen, "The operational analysis of
//! queueing network models", Computing Surveys 10(3), 1978).

pub(crate) mod by_kind;
pub mod demands;
pub mod mva;
pub mod usl;

use crate::run::{Bounds, LoadShape, Step};

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

    /// Whether the law does not hold, and no rounding explains by how much.
    pub fn is_broken(&self) -> bool {
        !self.holds() && is_broken(self.gap)
    }
}

/// Whether no rounding explains a gap of Little's law: some of the users got no answer, or the figures are wrong.
pub fn is_broken(gap: f64) -> bool {
    gap.abs() > BROKEN
}

/// A larger gap of Little's law, as a share of N, than rounding explains.
const BROKEN: f64 = 0.10;

/// Rounding and clock resolution, as a share of N.
const RESOLUTION: f64 = 0.005;

/// With a larger share of failures than this, the time users spend in failed requests, which Little's law over the
/// completed ones leaves out, shows.
const FAILURES_MAX: f64 = 0.01;

/// Tests Little's law at one step. Z is the mean think time really taken, as the generator counted it; `think_us`, the one
/// asked for, stands in where it counted none.
pub fn little(step: &Step, think_us: f64) -> Little {
    let users = f64::from(step.users.max(1));
    let think_us = taken_think_us(step).unwrap_or(think_us);
    let response_us = step.response_time_us.mean;
    let cycle_us = response_us + think_us;
    let present = step.throughput_per_s * cycle_us / 1e6;
    let throughput = step.throughput_relative_half_width().unwrap_or(0.0);
    let response = step.response_relative_half_width().unwrap_or(0.0) * share(response_us, cycle_us);
    Little {
        gap: (users - present) / users,
        tolerance: throughput.hypot(response) + ends(step, cycle_us) + RESOLUTION,
    }
}

/// A count at instants is the one side with an error of its own, and there are many steps: beyond its 95 % interval it would
/// be off at one in twenty.
const COUNT_MARGIN: f64 = 2.0;

/// With fewer requests under way on average, nearly every count is nought.
const COUNTED_MIN: f64 = 0.9;

/// Tests Little's law over the requests under way, L = X R, at one step: L was counted at instants, by looking at who waits
/// for a response, and shares no clock with R. `None` where they were not counted, or there was
/// hardly ever one.
pub fn little_of_requests(step: &Step) -> Option<Little> {
    let counted = step.in_flight.filter(|counted| counted.mean >= COUNTED_MIN)?;
    let [low, high] = counted.ci?;
    let response_us = step.response_time_us.mean;
    let present = step.throughput_per_s * response_us / 1e6;
    let throughput = step.throughput_relative_half_width().unwrap_or(0.0);
    let response = step.response_relative_half_width().unwrap_or(0.0);
    let count = COUNT_MARGIN * (high - counted.mean).max(counted.mean - low) / counted.mean;
    Some(Little {
        gap: (counted.mean - present) / counted.mean,
        tolerance: throughput.hypot(response).hypot(count) + ends(step, response_us) + RESOLUTION,
    })
}

/// The worse of both tests of Little's law at one step: over users, and over requests under way where those were counted.
pub fn worse_little(step: &Step, think_us: f64) -> Little {
    let beyond = |little: &Little| little.gap.abs() - little.tolerance;
    let users = little(step, think_us);
    let requests = little_of_requests(step).filter(|requests| beyond(requests) > beyond(&users));
    requests.unwrap_or(users)
}

/// Z = M / X for M thinking users: Little's law for the thinking.
fn taken_think_us(step: &Step) -> Option<f64> {
    let thinking = step.measurement.mean_thinking_users;
    let counted = thinking > 0.0 && step.throughput_per_s > 0.0;
    counted.then(|| thinking / step.throughput_per_s * 1e6)
}

/// The mean of think times is known to so many standard errors.
const THINK_ERRORS: f64 = 2.0;

/// Share of the users that neither waited for a response nor thought: not yet connected, or backing off after an error.
/// Thinking users less those that the think time accounts for, X Z (Little's law), 0 to 1. Think times may be drawn, and vary as
/// much as exponential ones: the mean of those that n requests were followed by may be longer by a part of 1 / sqrt(n).
pub(crate) fn idle_share(step: &Step, think_us: f64) -> f64 {
    let error = THINK_ERRORS / (step.completed.max(1) as f64).sqrt();
    let thinking = step.throughput_per_s * think_us / 1e6 * (1.0 + error);
    let idle = (step.measurement.mean_thinking_users - thinking) / f64::from(step.users.max(1));
    if idle.is_finite() { idle.clamp(0.0, 1.0) } else { 0.0 }
}

/// Whether so many requests failed that Little's law says nothing: the time users spend in those is not counted.
pub fn lost_in_failures(step: &Step) -> bool {
    step.completed == 0 || step.failed_share() > FAILURES_MAX
}

/// Whether Little's law can be tested at a step of this load: in a closed loop, in a steady state, and where few requests
/// failed.
pub fn is_tested(load: &LoadShape, step: &Step) -> bool {
    load.is_closed() && step.steady && !lost_in_failures(step)
}

/// Requests that straddle an end of the window count with their whole response time at its end and not
/// at its start: at most one cycle of the measured time.
fn ends(step: &Step, cycle_us: f64) -> f64 {
    share(cycle_us, step.measured_us() as f64)
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
    use crate::run::{InFlight, Measurement, ResponseTime};

    /// A step of ten users.
    fn step(throughput: f64, response_us: f64, mean_thinking_users: f64) -> Step {
        Step {
            users: 10,
            elapsed_s: 5.0,
            throughput_per_s: throughput,
            throughput_ci_per_s: Some([throughput * 0.99, throughput * 1.01]),
            response_time_us: ResponseTime {
                mean: response_us,
                mean_ci: Some([response_us * 0.98, response_us * 1.02]),
                ..ResponseTime::default()
            },
            measurement: Measurement { mean_thinking_users, ..Measurement::default() },
            ..Step::default()
        }
    }

    #[test]
    fn holds_where_everyone_is_accounted_for() {
        let found = little(&step(1_000.0, 4_000.0, 0.0), 6_000.0);
        assert!(found.gap.abs() < 1e-12 && found.holds());
        assert!(little(&step(1_000.0, 10_000.0, 0.0), 0.0).holds());
    }

    /// A tenth of the users is nowhere: waiting to reconnect, or counted twice.
    #[test]
    fn fails_where_users_are_missing() {
        let found = little(&step(1_000.0, 9_000.0, 0.0), 0.0);
        assert!((found.gap - 0.1).abs() < 1e-12 && !found.holds(), "{found:?}");
        assert!(!little(&step(1_000.0, 11_000.0, 0.0), 0.0).holds());
    }

    /// 48 users thought for 200 ms on average, at random. In a second of it the mean was 221 ms, and 8 % were said to be idle.
    #[test]
    fn think_times_that_happen_to_be_long_are_no_idle_users() {
        let seen = |completed| Step { users: 48, completed, ..step(185.6, 38_300.0, 41.0) };
        assert_eq!(idle_share(&seen(219), 200_000.0), 0.0);
        assert!(idle_share(&seen(100_000), 200_000.0) > 0.07, "chance does not explain that of many");
        assert_eq!(idle_share(&Step { completed: 0, ..step(0.0, 0.0, 10.0) }, 200_000.0), 1.0);
    }

    /// Users think longer than they were told to when the generator is late: what they did counts.
    #[test]
    fn think_time_is_the_one_taken() {
        assert!(little(&step(1_000.0, 4_000.0, 6.0), 5_000.0).holds());
    }

    /// Twelve were under way, by looking; throughput and response time account for ten.
    #[test]
    fn requests_under_way_are_an_account_of_their_own() {
        let counted = |mean| Step {
            in_flight: Some(InFlight { mean, ci: Some([mean - 0.2, mean + 0.2]) }),
            ..step(1_000.0, 10_000.0, 0.0)
        };
        assert!(worse_little(&counted(10.1), 0.0).holds());
        let found = worse_little(&counted(12.0), 0.0);
        assert!((found.gap - 2.0 / 12.0).abs() < 1e-12 && found.is_broken(), "{found:?}");
        assert_eq!(little_of_requests(&step(1_000.0, 10_000.0, 0.0)), None);
    }

    #[test]
    fn nothing_completed() {
        assert_eq!(little(&Step { users: 4, ..Step::default() }, 0.0).gap, 1.0);
    }

    /// By hand: demands 2, 0.5 and 3 s, think time 15 s, so X <= min(N / 20.5, 1 / 3) and the knee is at 6.83.
    #[test]
    fn asymptotes_cross_at_the_knee() {
        assert!((bounds(5.5e6, 15e6, 1.0 / 3.0).knee_users - 6.833).abs() < 1e-3);
    }
}
