//! 95 % intervals for a ratio of sums over correlated observations, by batch means.
//!
//! Throughput is completions over time; the mean response time is the sum of response times over
//! completions. Both are ratios, estimated as the ratio of the sums, with the variance of the
//! residuals `numerator - ratio * denominator` of batches (Law and Kelton, "Simulation Modeling and
//! Analysis", section 9.5.3; ratio estimator: Cochran, "Sampling Techniques", section 6.3).
//!
//! Batches grow until von Neumann's ratio no longer tells their residuals from uncorrelated ones (Fishman
//! 1978; Fishman and Yarberry, "An implementation of the batch means method", 1997). What positive
//! correlation is left widens the interval.

use crate::statistics::series::{Series, inflation};
use crate::statistics::{t_95, t_two_sided};

/// One observation: what is counted, and per what.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Observation {
    /// The quantity counted: completions, or a sum of response times.
    pub numerator: f64,
    /// Per what: time, or completions.
    pub denominator: f64,
}

/// A ratio and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchMeans {
    /// Sum of numerators over sum of denominators.
    pub ratio: f64,
    /// Half the width of its 95 % interval.
    pub half_width: f64,
    /// Batches used.
    pub batches: usize,
    /// Whether the batches passed the correlation check. If not, the interval was widened.
    pub uncorrelated: bool,
    /// How far the later half lies above the earlier by the trend of the batches, as a share of the ratio.
    pub drift: f64,
    /// Whether such a drift has less than one chance in a hundred in a steady series.
    pub drift_significant: bool,
}

/// The most batches worth having: with more, the t quantile hardly falls and correlation rises.
const MAX_BATCHES: usize = 32;

/// Reject independence where it had less than this chance, two-sided. High, because accepting
/// correlated batches is the costly mistake.
const CORRELATION_Z: f64 = 1.281_551_565_544_6;

/// The interval, or `None` where there are fewer than `min_batches` observations (at least two) or no
/// denominator.
pub fn batch_means(observations: &[Observation], min_batches: usize) -> Option<BatchMeans> {
    let min_batches = min_batches.max(2);
    let ratio = ratio(observations)?;
    if observations.len() < min_batches {
        return None;
    }
    let mut batches = MAX_BATCHES.max(min_batches).min(observations.len());
    loop {
        let residuals = residuals(observations, batches, ratio);
        let correlation = Correlation::of(&residuals);
        let fewer = (batches * 3 / 4).max(min_batches);
        if !correlation.significant || fewer == batches {
            let per_batch = observations.iter().map(|o| o.denominator).sum::<f64>() / batches as f64;
            return Some(interval(ratio, per_batch, &residuals, correlation));
        }
        batches = fewer;
    }
}

fn ratio(observations: &[Observation]) -> Option<f64> {
    let numerator: f64 = observations.iter().map(|o| o.numerator).sum();
    let denominator: f64 = observations.iter().map(|o| o.denominator).sum();
    (denominator > 0.0).then(|| numerator / denominator)
}

/// Residuals of `batches` runs of consecutive observations, as equal in length as can be.
fn residuals(observations: &[Observation], batches: usize, ratio: f64) -> Vec<f64> {
    let length = observations.len();
    (0..batches)
        .filter_map(|batch| observations.get(batch * length / batches..(batch + 1) * length / batches))
        .map(|run| run.iter().map(|o| o.numerator - ratio * o.denominator).sum())
        .collect()
}

fn interval(ratio: f64, per_batch: f64, residuals: &[f64], correlation: Correlation) -> BatchMeans {
    let batches = residuals.len();
    let df = batches as f64 - 1.0;
    let variance = residuals.iter().map(|r| r * r).sum::<f64>() / df * inflation(correlation.lag_one);
    let standard_error = (variance / batches as f64).sqrt() / per_batch;
    let trend = Series::of(residuals);
    let halves_apart = batches as f64 / 2.0;
    BatchMeans {
        ratio,
        half_width: t_95(df) * standard_error,
        batches,
        uncorrelated: !correlation.significant || correlation.lag_one < 0.0,
        drift: if ratio == 0.0 { 0.0 } else { trend.slope * halves_apart / per_batch / ratio },
        drift_significant: trend.slope.abs() > t_two_sided(df - 1.0, 0.99) * trend.slope_error(),
    }
}

/// Correlation of neighbouring batches.
#[derive(Debug, Clone, Copy)]
struct Correlation {
    lag_one: f64,
    significant: bool,
}

impl Correlation {
    /// Von Neumann's ratio `eta = sum (r[i+1] - r[i])^2 / sum (r[i] - mean)^2`: `1 - eta / 2` is about the
    /// lag-one correlation and, without correlation, about normal with variance `(b - 2) / (b^2 - 1)`.
    fn of(residuals: &[f64]) -> Self {
        let batches = residuals.len() as f64;
        let mean = residuals.iter().sum::<f64>() / batches;
        let spread: f64 = residuals.iter().map(|r| (r - mean).powi(2)).sum();
        let jumps: f64 = residuals.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
        if spread <= 0.0 {
            return Self { lag_one: 0.0, significant: false };
        }
        let lag_one = 1.0 - jumps / spread / 2.0;
        let deviation = ((batches - 2.0) / (batches * batches - 1.0)).sqrt();
        Self { lag_one, significant: lag_one.abs() > CORRELATION_Z * deviation }
    }
}
