//! Several estimates of the same thing made into one.

use crate::statistics::chi_squared_exceeds;

/// An estimate with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) error: f64,
    pub(crate) degrees_of_freedom: f64,
    /// How much it counts; any unit.
    pub(crate) weight: f64,
}

/// The pooled estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pooled {
    pub(crate) value: f64,
    pub(crate) error: f64,
    pub(crate) degrees_of_freedom: f64,
    /// By how much they disagree more than their errors allow, as a factor on every error.
    pub(crate) scale: f64,
}

/// Two estimates that disagree are taken to say as much about the disagreement as three.
const FEWEST_TO_DISAGREE: f64 = 2.0;

/// The weighted mean. Estimates that disagree more than their errors allow widen its error (Birge 1932).
/// `None` without estimates.
pub(crate) fn pooled(all: &[Estimate]) -> Option<Pooled> {
    let total: f64 = all.iter().map(|one| one.weight).sum();
    if all.is_empty() || total <= 0.0 {
        return None;
    }
    let share = |one: &Estimate| one.weight / total;
    let value: f64 = all.iter().map(|one| share(one) * one.value).sum();
    let variance: f64 = all.iter().map(|one| (share(one) * one.error).powi(2)).sum();
    let disagreement: f64 =
        all.iter().map(|one| ((one.value - value) / one.error.max(f64::MIN_POSITIVE)).powi(2)).sum();
    let between = all.len() as f64 - 1.0;
    let agree = between < 1.0 || chi_squared_exceeds(between, disagreement) > 0.01;
    let scale = if agree { 1.0 } else { (disagreement / between).max(1.0).sqrt() };
    let within = all.iter().map(|one| one.degrees_of_freedom).sum();
    Some(Pooled {
        value,
        error: variance.sqrt() * scale,
        degrees_of_freedom: if agree { within } else { between.max(FEWEST_TO_DISAGREE) },
        scale,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, error: f64) -> Estimate {
        Estimate { value, error, degrees_of_freedom: 9.0, weight: 1.0 }
    }

    #[test]
    fn estimates_that_agree_narrow_the_error() {
        let found = pooled(&[estimate(100.0, 2.0), estimate(102.0, 2.0)]).expect("two");
        assert_eq!((found.value, found.scale, found.degrees_of_freedom), (101.0, 1.0, 18.0));
        assert!((found.error - 2.0f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn estimates_that_disagree_widen_it() {
        let found = pooled(&[estimate(100.0, 1.0), estimate(110.0, 1.0)]).expect("two");
        assert_eq!((found.value, found.degrees_of_freedom), (105.0, 2.0));
        // Standard error of the mean of 100 and 110: 5.
        assert!((found.error - 5.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn nothing_says_nothing() {
        assert_eq!(pooled(&[]), None);
    }
}
