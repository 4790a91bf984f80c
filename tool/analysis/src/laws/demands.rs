//! Service demand of a resource: what one completed request costs of it, regressed over the sweep.
//!
//! The utilisation law says that use grows in proportion to throughput, U = X D (Denning and Buzen 1978).
//! What the resource does besides serving (background load) is an intercept, kept only where it is
//! significant.

use crate::statistics::t_95;

/// One step's use of a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepUse {
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// How much of the resource was busy, in its own unit: cores, devices, bits per second.
    pub used: f64,
}

/// A fitted demand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DemandFit {
    /// Resource-microseconds (for a link: microbits) per completed request.
    pub demand_us: f64,
    /// 95 % interval of it; `None` with fewer than three steps.
    pub demand_ci_us: Option<[f64; 2]>,
    /// Use that is there without any request, in the resource's unit; 0 where it is not significant.
    pub background: f64,
}

impl DemandFit {
    /// Throughput at which a resource of this capacity would be full, requests per second; infinite for one
    /// that requests do not use.
    pub fn throughput_limit_per_s(&self, capacity: f64) -> f64 {
        let free = (capacity - self.background).max(0.0);
        if self.demand_us > 0.0 { free / self.demand_us * 1e6 } else { f64::INFINITY }
    }
}

/// The demand that explains `uses` best; `None` where nothing completed.
pub fn demand(uses: &[StepUse]) -> Option<DemandFit> {
    let uses: Vec<StepUse> =
        uses.iter().copied().filter(|u| u.throughput_per_s > 0.0 && u.used.is_finite()).collect();
    if uses.is_empty() {
        return None;
    }
    Some(with_background(&uses).unwrap_or_else(|| proportional(&uses)))
}

/// Ratio of the sums: least squares through the origin with variance in proportion to throughput.
fn proportional(uses: &[StepUse]) -> DemandFit {
    let throughput: f64 = uses.iter().map(|u| u.throughput_per_s).sum();
    let slope = uses.iter().map(|u| u.used).sum::<f64>() / throughput;
    let df = uses.len() as f64 - 1.0;
    let squares: f64 =
        uses.iter().map(|u| (u.used - slope * u.throughput_per_s).powi(2) / u.throughput_per_s).sum();
    let error = (squares / df.max(1.0) / throughput).sqrt();
    fit(slope, t_95(df) * error, 0.0, uses.len())
}

/// Weighted least squares with an intercept, where that is significantly above 0.
fn with_background(uses: &[StepUse]) -> Option<DemandFit> {
    let df = uses.len() as f64 - 2.0;
    if df < 1.0 {
        return None;
    }
    let sum = |term: &dyn Fn(&StepUse) -> f64| uses.iter().map(|u| term(u) / u.throughput_per_s).sum::<f64>();
    let weight = sum(&|_| 1.0);
    let mean_x = sum(&|u| u.throughput_per_s) / weight;
    let mean_y = sum(&|u| u.used) / weight;
    let spread = sum(&|u| (u.throughput_per_s - mean_x).powi(2));
    if spread <= mean_x * mean_x * weight * 1e-6 {
        return None;
    }
    let slope = sum(&|u| (u.throughput_per_s - mean_x) * (u.used - mean_y)) / spread;
    let intercept = mean_y - slope * mean_x;
    let variance = sum(&|u| (u.used - intercept - slope * u.throughput_per_s).powi(2)) / df;
    let intercept_error = (variance * (1.0 / weight + mean_x * mean_x / spread)).sqrt();
    let significant = intercept > t_95(df) * intercept_error && slope > 0.0;
    significant.then(|| fit(slope, t_95(df) * (variance / spread).sqrt(), intercept, uses.len()))
}

fn fit(slope: f64, half_width: f64, background: f64, steps: usize) -> DemandFit {
    let interval = [(slope - half_width).max(0.0) * 1e6, (slope + half_width) * 1e6];
    DemandFit { demand_us: slope * 1e6, demand_ci_us: (steps >= 3).then_some(interval), background }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(points: &[(f64, f64)]) -> Vec<StepUse> {
        points.iter().map(|&(throughput_per_s, used)| StepUse { throughput_per_s, used }).collect()
    }

    #[test]
    fn exact_proportion() {
        let found = demand(&uses(&[(1_000.0, 0.03), (2_000.0, 0.06), (30_000.0, 0.9)])).unwrap();
        assert!((found.demand_us - 30.0).abs() < 1e-9);
        assert_eq!(found.background, 0.0);
        assert!((found.throughput_limit_per_s(1.0) - 33_333.3).abs() < 0.1);
    }

    #[test]
    fn background_load_is_told_apart() {
        let found = demand(&uses(&[
            (0.5, 0.2),
            (1_000.0, 0.230_1),
            (2_000.0, 0.259_9),
            (10_000.0, 0.5),
            (20_000.0, 0.8),
        ]));
        let found = found.unwrap();
        assert!((found.demand_us - 30.0).abs() < 0.1, "{found:?}");
        assert!((found.background - 0.2).abs() < 0.001, "{found:?}");
        assert!((found.throughput_limit_per_s(1.0) - 26_667.0).abs() < 50.0);
    }

    #[test]
    fn one_step_has_no_interval_and_none_no_demand() {
        assert_eq!(demand(&uses(&[(1_000.0, 0.5)])).unwrap().demand_ci_us, None);
        assert_eq!(demand(&[]), None);
        assert_eq!(demand(&uses(&[(0.0, 0.5)])), None);
    }

    /// Use with a relative error of 5 %: the interval holds the truth about as often as it says.
    #[test]
    fn interval_covers() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let mut covered = 0;
        for _ in 0..1_000 {
            let points: Vec<(f64, f64)> = [100.0f64, 200.0, 400.0, 800.0, 820.0, 810.0]
                .iter()
                .map(|&x| (x, x * 1e-3 + 0.02 * x.sqrt() * 0.1 * normal()))
                .collect();
            let [low, high] = demand(&uses(&points)).unwrap().demand_ci_us.unwrap();
            covered += usize::from(low <= 1_000.0 && 1_000.0 <= high);
        }
        assert!((930..=970).contains(&covered), "{covered} of 1000");
    }
}
