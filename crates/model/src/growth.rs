//! Whether throughput still grows from one number of users to a larger one.

use crate::batch_means::standard_error;
use crate::steady::Estimate;
use crate::student::NORMAL_95;

/// What two steps say about growth between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Throughput rose, beyond doubt.
    Grows,
    /// The interval of the slope holds 0 or lies below, and excludes growth that matters.
    Stopped,
    /// The intervals are too wide to tell.
    Unclear,
}

/// Growth per doubling of users below which throughput counts as level, whatever the interval says.
const LEVEL: f64 = 0.01;

/// If the interval holds 0 but growth per doubling above this as well, the steps were too imprecise to
/// say that growth stopped.
const MATTERS: f64 = 0.10;

/// Growth of throughput per doubling of users between two steps (`from.0 < to.0`).
pub fn growth(from: (u32, &Estimate), to: (u32, &Estimate)) -> Growth {
    let (before, after) = (from.1.throughput_per_s, to.1.throughput_per_s);
    if after <= 0.0 || before <= 0.0 {
        return if before > 0.0 { Growth::Stopped } else { Growth::Unclear };
    }
    let doublings = (f64::from(to.0) / f64::from(from.0.max(1))).log2().max(f64::MIN_POSITIVE);
    let relative = |estimate: &Estimate| throughput_error(estimate) / estimate.throughput_per_s;
    let error = relative(from.1).hypot(relative(to.1));
    let per_doubling = |log_ratio: f64| (log_ratio / doublings).exp_m1();
    let log_ratio = (after / before).ln();
    let low = per_doubling(log_ratio - NORMAL_95 * error);
    let high = per_doubling(log_ratio + NORMAL_95 * error);
    match () {
        () if high <= LEVEL => Growth::Stopped,
        () if low > 0.0 => Growth::Grows,
        () if high <= MATTERS => Growth::Stopped,
        () => Growth::Unclear,
    }
}

/// Standard error of a step's throughput; half the throughput where it has no interval.
pub(crate) fn throughput_error(estimate: &Estimate) -> f64 {
    match estimate.throughput_ci_per_s {
        Some([_, high]) => standard_error(high - estimate.throughput_per_s),
        None => estimate.throughput_per_s / 2.0,
    }
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

    fn doubling(before: f64, after: f64, half_width: f64) -> Growth {
        growth((8, &step(before, half_width)), (16, &step(after, half_width)))
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
        assert_eq!(doubling(100.0, 102.0, 0.1), Growth::Grows);
    }

    #[test]
    fn growth_is_judged_per_doubling() {
        let narrow = |after| growth((100, &step(100.0, 0.5)), (110, &step(after, 0.5)));
        assert_eq!(narrow(102.0), Growth::Grows);
        assert_eq!(narrow(100.3), Growth::Stopped);
        assert_eq!(narrow(100.7), Growth::Unclear);
    }

    #[test]
    fn nothing_completed() {
        assert_eq!(doubling(100.0, 0.0, 0.0), Growth::Stopped);
        assert_eq!(doubling(0.0, 0.0, 0.0), Growth::Unclear);
    }
}
