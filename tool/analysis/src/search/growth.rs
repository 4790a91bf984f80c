//! Whether throughput still grows with the number of users.

use crate::run::Step;
use crate::statistics::pooling::effective_degrees_of_freedom;
use crate::statistics::t_95;

/// Growth of throughput over steps of ascending numbers of users.
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

/// Growth over `steps`, which ascend by users.
pub fn growth(steps: &[&Step]) -> Growth {
    let completes = |step: &&Step| step.throughput_per_s > 0.0;
    match (steps.iter().any(completes), steps.last().is_some_and(completes)) {
        (true, false) => Growth::Stopped,
        (false, _) => Growth::Unclear,
        (true, true) => slope(steps).map_or(Growth::Unclear, |[low, high]| Growth::from_slope(low, high)),
    }
}

impl Growth {
    /// Reads the ends of the slope's interval, growth per doubling of users.
    fn from_slope(low: f64, high: f64) -> Self {
        match () {
            () if low > NEGLIGIBLE => Self::Grows,
            () if high <= MATTERS => Self::Stopped,
            () => Self::Unclear,
        }
    }
}

/// Whether growth ended within `steps` (ascending): at least `rungs` of them at the end show none together,
/// and no neighbours among those show any.
pub(crate) fn ended(steps: &[&Step], rungs: usize) -> bool {
    let level = |from: usize| {
        let tail = steps.get(from..).unwrap_or_default();
        growth(tail) == Growth::Stopped && tail.windows(2).all(|pair| growth(pair) != Growth::Grows)
    };
    steps.len() >= rungs && (0..=steps.len() - rungs).any(level)
}

/// The share of growth per doubling that is certain, 0 where none is.
pub(crate) fn certain_growth(steps: &[&Step]) -> f64 {
    slope(steps).map_or(0.0, |[low, _]| low.max(0.0))
}

/// 95 % interval of growth per doubling of users: weighted least squares of the logarithm of throughput on
/// the binary logarithm of users, with the errors that the steps' intervals stand for, and Student's t with the degrees of
/// freedom that those errors leave the slope.
fn slope(steps: &[&Step]) -> Option<[f64; 2]> {
    let rows: Vec<Row> = steps.iter().filter_map(|step| Row::of(step)).collect();
    let sum = |term: &dyn Fn(&Row) -> f64| rows.iter().map(|row| row.weight * term(row)).sum::<f64>();
    let weight = sum(&|_| 1.0);
    let centre = sum(&|row| row.users) / weight;
    let spread = sum(&|row| (row.users - centre).powi(2));
    let slope = sum(&|row| (row.users - centre) * row.throughput) / spread;
    let part = |row: &Row| (row.weight * ((row.users - centre) / spread).powi(2), row.degrees_of_freedom);
    let df = effective_degrees_of_freedom(&rows.iter().map(part).collect::<Vec<_>>());
    let half_width = t_95(df) / spread.sqrt();
    (slope.is_finite() && half_width.is_finite())
        .then(|| [(slope - half_width), (slope + half_width)].map(|log_ratio| log_ratio.exp_m1()))
}

/// A step as a point of that line.
struct Row {
    /// Binary logarithm.
    users: f64,
    /// Natural logarithm.
    throughput: f64,
    weight: f64,
    degrees_of_freedom: f64,
}

impl Row {
    fn of(step: &Step) -> Option<Self> {
        let (users, throughput) = (f64::from(step.users), step.throughput_per_s);
        let error = (throughput_error(step) / throughput).max(1e-9);
        (users > 0.0 && throughput > 0.0).then(|| Self {
            users: users.log2(),
            throughput: throughput.ln(),
            weight: error.powi(-2),
            degrees_of_freedom: degrees_of_freedom(step),
        })
    }
}

/// Standard error of a step's throughput; half the throughput where it has no interval.
pub(crate) fn throughput_error(step: &Step) -> f64 {
    match step.throughput_ci_per_s {
        Some([_, high]) => (high - step.throughput_per_s) / t_95(degrees_of_freedom(step)),
        None => step.throughput_per_s / 2.0,
    }
}

/// Degrees of freedom of that standard error. Many where the step does not say.
pub(crate) fn degrees_of_freedom(step: &Step) -> f64 {
    match (step.measurement.degrees_of_freedom, step.measurement.batches) {
        (df, _) if df > 0.0 => df,
        (_, batches) if batches > 1 => batches as f64 - 1.0,
        _ => f64::from(u16::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Measurement;
    use crate::statistics::NORMAL_95;

    fn step(users: u32, throughput: f64, half_width: f64) -> Step {
        Step {
            users,
            throughput_per_s: throughput,
            throughput_ci_per_s: Some([throughput - half_width, throughput + half_width]),
            ..Step::default()
        }
    }

    fn over(throughput_at: &[(u32, f64)], half_width: f64) -> Growth {
        let steps: Vec<Step> =
            throughput_at.iter().map(|&(users, throughput)| step(users, throughput, half_width)).collect();
        growth(&steps.iter().collect::<Vec<_>>())
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

    /// Two steps of five batches each: the normal distribution would call this growth.
    #[test]
    fn few_batches_leave_more_doubt() {
        let few = |users, throughput| {
            let measurement = Measurement { batches: 5, ..Measurement::default() };
            Step { measurement, ..step(users, throughput, 4.0) }
        };
        let many = |users, throughput| step(users, throughput, 4.0 * NORMAL_95 / t_95(4.0));
        let judged = |one: Step, two: Step| growth(&[&one, &two]);
        assert_eq!(judged(many(8, 100.0), many(16, 106.5)), Growth::Grows);
        assert_eq!(judged(few(8, 100.0), few(16, 106.5)), Growth::Unclear);
    }

    #[test]
    fn nothing_completed() {
        assert_eq!(doubling(100.0, 0.0, 0.0), Growth::Stopped);
        assert_eq!(doubling(0.0, 0.0, 0.0), Growth::Unclear);
        assert_eq!(over(&[], 0.0), Growth::Unclear);
    }
}
