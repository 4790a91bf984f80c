//! Ratios of two estimates, with intervals.

use crate::statistics::NORMAL_95;

/// The ratio of two estimates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    /// The first over the second: above 1 where the first is larger.
    pub(crate) ratio: f64,
    /// Its interval, [lo, hi].
    pub(crate) ci: [f64; 2],
}

/// The ratio of two independent estimates. Its logarithm is about normal, with the relative errors of both
/// (delta method), which keeps the interval above zero and the same either way round. The estimates come with 95 %
/// intervals; the ratio's is `z` standard errors wide either way.
pub(crate) fn ratio(above: (f64, [f64; 2]), below: (f64, [f64; 2]), z: f64) -> Option<Ratio> {
    let error = |(value, [_, high]): (f64, [f64; 2])| (high - value) / value / NORMAL_95;
    let valid = |(value, _): (f64, [f64; 2])| value > 0.0 && value.is_finite();
    if !valid(above) || !valid(below) {
        return None;
    }
    let ratio = above.0 / below.0;
    let spread = (z * error(above).hypot(error(below))).exp();
    Some(Ratio { ratio, ci: [ratio / spread, ratio * spread] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(value: f64, share: f64) -> (f64, [f64; 2]) {
        (value, [value * (1.0 - share), value * (1.0 + share)])
    }

    /// Whether the interval excludes 1.
    fn differ(above: (f64, [f64; 2]), below: (f64, [f64; 2])) -> bool {
        let [low, high] = ratio(above, below, NORMAL_95).unwrap().ci;
        low > 1.0 || high < 1.0
    }

    #[test]
    fn ratio_of_two_estimates() {
        let found = ratio(around(1_200.0, 0.03), around(1_000.0, 0.04), NORMAL_95).unwrap();
        assert!((found.ratio - 1.2).abs() < 1e-12);
        assert!(differ(around(1_200.0, 0.03), around(1_000.0, 0.04)));
        let [low, high] = found.ci;
        assert!((low - 1.2 * (-0.05f64).exp()).abs() < 1e-9 && (high - 1.2 * 0.05f64.exp()).abs() < 1e-9);
    }

    #[test]
    fn the_same_within_the_intervals() {
        assert!(!differ(around(1_020.0, 0.02), around(1_000.0, 0.02)));
    }

    #[test]
    fn either_way_round() {
        let (a, b) = (around(3_000.0, 0.02), around(1_000.0, 0.05));
        let (forth, back) = (ratio(a, b, NORMAL_95).unwrap(), ratio(b, a, NORMAL_95).unwrap());
        assert!((forth.ci[0] * back.ci[1] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_completed() {
        assert_eq!(ratio(around(1.0, 0.1), (0.0, [0.0, 0.0]), NORMAL_95), None);
    }

    /// Two servers that are the same: 95 % of comparisons say so.
    #[test]
    fn covers() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut noisy = || {
            around(
                1_000.0 * (1.0 + 0.02 * ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0)),
                0.02 * NORMAL_95,
            )
        };
        let same = (0..2_000).filter(|_| !differ(noisy(), noisy())).count();
        assert!((1_860..=1_940).contains(&same), "{same} of 2000");
    }
}
