//! Warm-up removal by MSER-5: the marginal standard error rule on means of five observations.
//!
//! K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
//! Simulation 69(6), 1997; batches of five: K. P. White, M. J. Cobb, S. C. Spratt, "A comparison of five
//! steady-state truncation heuristics for simulation", WSC 2000.

use crate::statistics::series::{Series, inflation};

/// Observations per mean.
pub const BATCH: usize = 5;

/// Where the steady part begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    /// How many means (of five observations each) to drop.
    pub batches: usize,
    /// The minimum lies at the end of the first half, the last place where it is looked for: the
    /// series has most likely not settled.
    pub at_limit: bool,
    /// The dropped means differ from the rest by more than chance explains. The minimum of a series without
    /// a warm-up also lies somewhere; dropping up to there would only pick the part that looks least
    /// variable and make intervals too narrow.
    pub evident: bool,
}

/// How many standard errors the dropped part has to be off to be evident. More than the usual 2, because the
/// part was chosen for being off.
const EVIDENT: f64 = 3.5;

/// The number `d` of leading `means` to drop that minimises the squared standard error of the rest,
/// `sum (y - mean)^2 / (k - d)^2`, with `d` in the first half.
///
/// Zero is returned for a series too short to judge.
pub fn truncation(means: &[f64]) -> Truncation {
    let limit = means.len() / 2;
    let scale = means.iter().fold(0.0f64, |largest, mean| largest.max(mean.abs()));
    let mut best = (f64::INFINITY, 0);
    let mut rest = Running::default();
    for (dropped, &mean) in means.iter().enumerate().rev() {
        rest.add(mean);
        if dropped > limit {
            continue;
        }
        let error = rest.squared_standard_error(scale);
        if error <= best.0 {
            best = (error, dropped);
        }
    }
    Truncation {
        batches: best.1,
        at_limit: limit > 0 && best.1 == limit,
        evident: evident(means, best.1, scale),
    }
}

fn evident(means: &[f64], dropped: usize, scale: f64) -> bool {
    let (start, rest) = means.split_at(dropped.min(means.len()));
    if start.is_empty() || rest.len() < 2 {
        return false;
    }
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (centre, count) = (mean(rest), rest.len() as f64);
    let series = Series::of(rest);
    let variance = series.variance() * inflation(series.lag_one);
    let error = (variance * (1.0 / start.len() as f64 + 1.0 / count)).sqrt();
    (mean(start) - centre).abs() > EVIDENT * error + scale * 1e-9
}

/// Mean and sum of squared deviations, updated one value at a time (Welford 1962): unlike the difference of
/// two large sums it is exactly zero for equal values.
#[derive(Default)]
struct Running {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Running {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let delta = value - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (value - self.mean);
    }

    /// Rounding noise, relative to the largest value, counts as zero.
    fn squared_standard_error(&self, scale: f64) -> f64 {
        let noise = (scale * 1e-9).powi(2) * self.count;
        if self.squares <= noise { 0.0 } else { self.squares / (self.count * self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_a_ramp_and_no_more() {
        let means: Vec<f64> =
            (0..40).map(|i| if i < 6 { f64::from(i) } else { 10.0 + f64::from(i % 2) }).collect();
        assert_eq!(truncation(&means), Truncation { batches: 6, at_limit: false, evident: true });
    }

    #[test]
    fn drops_an_overloaded_start() {
        let means: Vec<f64> =
            (0..40).map(|i| 10.0 + 50.0 * (-f64::from(i) / 2.0).exp() + f64::from(i % 2)).collect();
        let found = truncation(&means);
        assert!((4..=12).contains(&found.batches) && !found.at_limit && found.evident, "{found:?}");
    }

    #[test]
    fn a_constant_series_is_kept_whole() {
        assert_eq!(truncation(&[7.3; 30]), Truncation { batches: 0, at_limit: false, evident: false });
    }

    #[test]
    fn a_trend_ends_at_the_limit() {
        let means: Vec<f64> = (0..40).map(f64::from).collect();
        let found = truncation(&means);
        assert!(found.at_limit && found.evident);
    }

    #[test]
    fn too_short_to_judge() {
        assert_eq!(truncation(&[]), Truncation { batches: 0, at_limit: false, evident: false });
        assert_eq!(truncation(&[1.0]), Truncation { batches: 0, at_limit: false, evident: false });
    }
}
