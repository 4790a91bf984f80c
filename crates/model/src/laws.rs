//! Little's law and the utilisation law (Denning and Buzen, "The operational analysis of queueing network models",
//! Computing Surveys 10(3), 1978).

use crate::steady::Estimate;

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

/// The check of one step; `think_us` is the mean think time Z.
pub fn little(users: u32, estimate: &Estimate, think_us: f64) -> Little {
    let users = f64::from(users.max(1));
    let cycle_us = estimate.response_time_us.mean + think_us;
    let present = estimate.throughput_per_s * cycle_us / 1e6;
    let throughput = estimate.throughput_relative_half_width().unwrap_or(0.0);
    let response = estimate.response_relative_half_width().unwrap_or(0.0)
        * share(estimate.response_time_us.mean, cycle_us);
    Little {
        gap: (users - present) / users,
        tolerance: throughput.hypot(response) + ends(estimate, cycle_us) + RESOLUTION,
    }
}

/// Little's gap, (N - X (R + Z)) / N.
pub fn little_gap(users: u32, estimate: &Estimate, think_us: f64) -> f64 {
    little(users, estimate, think_us).gap
}

/// Requests that straddle an end of the window count with their whole response time at its end and not
/// at its start: at most one cycle of the measured time.
fn ends(estimate: &Estimate, cycle_us: f64) -> f64 {
    share(cycle_us, estimate.measured_us as f64)
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 }
}

/// Utilisation law: busy share of a resource of `capacity` servers, U = X D / capacity.
pub fn utilization(throughput_per_s: f64, demand_us: f64, capacity: f64) -> f64 {
    if capacity > 0.0 { throughput_per_s * demand_us / 1e6 / capacity } else { 0.0 }
}
