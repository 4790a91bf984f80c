//! Whether throughput still grows with the number of users.

use crate::estimate::Estimate;
use crate::statistics::student::{NORMAL_95, t_95};

/// What steps of ascending numbers of users say about growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Growth {
    /// Throughput rose, beyond doubt.
    Grows,
    /// The interval of the slope holds 0 (or negligible growth) or lies below, and excludes growth that
    /// matters.
    Stopped,
    /// The intervals are too wide to tell.
    #[default]
    Unclear,
}

/// Growth per doubling of users that is not worth following, however certain. Real servers differ by that
/// much from one step to the next for no reason; and a tenth more throughput would take five doublings.
pub(crate) const NEGLIGIBLE: f64 = 0.02;

/// If growth per doubling above this is possible as well, the steps were too imprecise to say that growth
/// stopped.
const MATTERS: f64 = 0.10;

/// Growth over `points`, which ascend by users.
pub fn growth(points: &[(u32, &Estimate)]) -> Growth {
    let completing = |point: &&(u32, &Estimate)| point.1.throughput_per_s > 0.0;
    match (points.iter().any(|point| completing(&point)), points.last().is_some_and(|last| completing(&last)))
    {
        (true, false) => Growth::Stopped,
        (false, _) => Growth::Unclear,
        (true, true) => slope(points).map_or(Growth::Unclear, |[low, high]| judge(low, high)),
    }
}

/// Whether growth ended within `points` (ascending): at least `rungs` of them at the end show none together,
/// and no neighbours among those show any.
pub(crate) fn ended(points: &[(u32, &Estimate)], rungs: usize) -> bool {
    let level = |from: usize| {
        let tail = points.get(from..).unwrap_or_default();
        growth(tail) == Growth::Stopped && tail.windows(2).all(|pair| growth(pair) != Growth::Grows)
    };
    points.len() >= rungs && (0..=points.len() - rungs).any(level)
}

/// The share of growth per doubling that is certain, 0 where none is.
pub(crate) fn certain_growth(points: &[(u32, &Estimate)]) -> f64 {
    slope(points).map_or(0.0, |[low, _]| low.max(0.0))
}

fn judge(low: f64, high: f64) -> Growth {
    match () {
        () if low > NEGLIGIBLE => Growth::Grows,
        () if high <= MATTERS => Growth::Stopped,
        () => Growth::Unclear,
    }
}

/// 95 % interval of growth per doubling of users: weighted least squares of the logarithm of throughput on
/// the binary logarithm of users, with the errors that the steps' intervals stand for.
fn slope(points: &[(u32, &Estimate)]) -> Option<[f64; 2]> {
    let rows: Vec<[f64; 3]> = points.iter().filter_map(row).collect();
    let sum = |term: &dyn Fn(&[f64; 3]) -> f64| rows.iter().map(|row| row[2] * term(row)).sum::<f64>();
    let weight = sum(&|_| 1.0);
    let centre = sum(&|row| row[0]) / weight;
    let spread = sum(&|row| (row[0] - centre).powi(2));
    let slope = sum(&|row| (row[0] - centre) * row[1]) / spread;
    let half_width = NORMAL_95 / spread.sqrt();
    (slope.is_finite() && half_width.is_finite())
        .then(|| [(slope - half_width), (slope + half_width)].map(|log_ratio| log_ratio.exp_m1()))
}

/// Binary logarithm of users, logarithm of throughput, weight.
fn row(&(users, estimate): &(u32, &Estimate)) -> Option<[f64; 3]> {
    let throughput = estimate.throughput_per_s;
    let error = (throughput_error(estimate) / throughput).max(1e-9);
    (users > 0 && throughput > 0.0).then(|| [f64::from(users).log2(), throughput.ln(), error.powi(-2)])
}

/// Standard error of a step's throughput; half the throughput where it has no interval.
pub(crate) fn throughput_error(estimate: &Estimate) -> f64 {
    match estimate.throughput_ci_per_s {
        Some([_, high]) => (high - estimate.throughput_per_s) / t_95(degrees_of_freedom(estimate)),
        None => estimate.throughput_per_s / 2.0,
    }
}

/// Degrees of freedom of that standard error. Many where the estimate does not say.
pub(crate) fn degrees_of_freedom(estimate: &Estimate) -> f64 {
    if estimate.batches > 1 { estimate.batches as f64 - 1.0 } else { f64::from(u16::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(throughput: f64, half_width: f64) -> Estimate {
        Estimate {
            throughput_per_s: throughput,
            throughput_ci_per_s: Some([throughput - half_width, throughput + half_width]),
            ..Estimate::default()
        }
    }

    fn over(points: &[(u32, f64)], half_width: f64) -> Growth {
        let steps: Vec<Estimate> =
            points.iter().map(|&(_, throughput)| step(throughput, half_width)).collect();
        let points: Vec<(u32, &Estimate)> = points.iter().map(|point| point.0).zip(&steps).collect();
        growth(&points)
    }

    fn doubling(before: f64, after: f64, half_width: f64) -> Growth {
        over(&[(8, before), (16, after)], half_width)
    }

    #[test]
    fn tells_growth_from_level_from_doubt() {
        assert_eq!(doubling(100.0, 190.0, 5.0), Growth::Grows);
        assert_eq!(doubling(100.0, 101.0, 2.0), Growth::Stopped);
        assert_eq!(doubling(100.0, 60.0, 2.0), Growth::Stopped);
        assert_eq!(doubling(100.0, 120.0, 30.0), Growth::Unclear);
    }

    #[test]
    fn significant_but_tiny_growth_is_level() {
        assert_eq!(doubling(100.0, 100.5, 0.1), Growth::Stopped);
        assert_eq!(doubling(100.0, 101.9, 0.1), Growth::Stopped);
        assert_eq!(doubling(100.0, 103.0, 0.1), Growth::Grows);
    }

    #[test]
    fn growth_is_judged_per_doubling() {
        let narrow = |after| over(&[(100, 100.0), (110, after)], 0.5);
        assert_eq!(narrow(102.0), Growth::Grows);
        assert_eq!(narrow(100.2), Growth::Stopped);
        assert_eq!(narrow(100.7), Growth::Unclear);
    }

    #[test]
    fn several_imprecise_steps_tell_what_two_do_not() {
        assert_eq!(over(&[(8, 100.0), (16, 101.0)], 10.0), Growth::Unclear);
        assert_eq!(over(&[(8, 100.0), (16, 101.0), (32, 99.0), (64, 100.0)], 10.0), Growth::Stopped);
    }

    #[test]
    fn nothing_completed() {
        assert_eq!(doubling(100.0, 0.0, 0.0), Growth::Stopped);
        assert_eq!(doubling(0.0, 0.0, 0.0), Growth::Unclear);
        assert_eq!(over(&[], 0.0), Growth::Unclear);
    }
}
