//! The studentized range: the difference between the largest and the smallest of several means, in units of the standard
//! error of one. Its quantile is how far apart two means of many must be to differ (Tukey 1953).

use statrs::function::gamma::ln_gamma;

use super::{normal_cdf, normal_density};

/// Beyond this many degrees of freedom the scatter counts as known.
const KNOWN: f64 = 5_000.0;

/// The point that the studentized range of `means` means, with `df` degrees of freedom of their scatter, exceeds with
/// this chance. Infinite for fewer than two means, or without degrees of freedom.
///
/// ```text
/// P(Q < q) = ∫ f(s) · R(q s) ds,   R(w) = k ∫ φ(z) (Φ(z) − Φ(z − w))^(k−1) dz
/// ```
/// where s is the estimated scatter over the true one (Harter 1960). Both integrals by Gauss and Legendre.
pub(crate) fn studentized_range(means: usize, df: f64, chance: f64) -> f64 {
    if means < 2 || df < 1.0 {
        return f64::INFINITY;
    }
    let exceeded = |q: f64| 1.0 - within(q, means, df);
    let (mut low, mut high) = (0.0, 2.0);
    while exceeded(high) > chance && high < 1e6 {
        (low, high) = (high, 2.0 * high);
    }
    while high - low > 1e-7 * high {
        let middle = f64::midpoint(low, high);
        if exceeded(middle) > chance { low = middle } else { high = middle }
    }
    high
}

/// The chance that the studentized range is below `q`.
fn within(q: f64, means: usize, df: f64) -> f64 {
    if df > KNOWN {
        return range_within(q, means);
    }
    // ln of the density of s = sqrt(chi² / df).
    let constant = 2.0_f64.ln() + df / 2.0 * (df / 2.0).ln() - ln_gamma(df / 2.0);
    let density = |s: f64| (constant + (df - 1.0) * s.ln() - df * s * s / 2.0).exp();
    // Nearly all of s lies within some standard deviations of 1; the deviation is about 1 / sqrt(2 df).
    let spread = 9.0 / (2.0 * df).sqrt();
    integral((1.0 - spread).max(0.0), 1.0 + spread, 24, |s| density(s) * range_within(q * s, means))
        .clamp(0.0, 1.0)
}

/// The chance that the range of `means` normal variables is below `w`.
fn range_within(w: f64, means: usize) -> f64 {
    let power = i32::try_from(means - 1).unwrap_or(i32::MAX);
    let density = |z: f64| normal_density(z) * (normal_cdf(z) - normal_cdf(z - w)).powi(power);
    (means as f64 * integral(-8.0, 8.0, 12, density)).clamp(0.0, 1.0)
}

/// The integral of a smooth function by Gauss and Legendre with eight points on each of these many panels.
fn integral(from: f64, to: f64, panels: u32, f: impl Fn(f64) -> f64) -> f64 {
    // Abramowitz and Stegun, table 25.4, n = 8: points and weights of one half.
    const POINTS: [(f64, f64); 4] = [
        (0.183_434_642_495_649_8, 0.362_683_783_378_362),
        (0.525_532_409_916_329, 0.313_706_645_877_887_3),
        (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
        (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
    ];
    let width = (to - from) / f64::from(panels);
    let panel = |number: u32| {
        let (half, middle) = (width / 2.0, from + (f64::from(number) + 0.5) * width);
        POINTS
            .iter()
            .map(|(x, weight)| weight * half * (f(middle - half * x) + f(middle + half * x)))
            .sum::<f64>()
    };
    (0..panels).map(panel).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::t_95;

    /// Published tables (Harter 1960; Pearson and Hartley): upper 5 % and 1 % points.
    #[test]
    fn agrees_with_the_tables() {
        for (means, df, chance, expected) in [
            (2, 5.0, 0.05, 3.635),
            (3, 10.0, 0.05, 3.877),
            (5, 10.0, 0.05, 4.654),
            (10, 20.0, 0.05, 5.008),
            (10, 2.0, 0.05, 13.99),
            (4, 60.0, 0.05, 3.737),
            (10, 1e9, 0.05, 4.474),
            (3, 10.0, 0.01, 5.270),
            (8, 30.0, 0.01, 5.542),
        ] {
            let found = studentized_range(means, df, chance);
            assert!(
                (found - expected).abs() < 0.003 * expected,
                "q({chance}; {means}, {df}) = {found}, not {expected}"
            );
        }
    }

    /// For two means it is Student's t on another scale.
    #[test]
    fn of_two_means_it_is_students_t() {
        for df in [1.0, 2.0, 7.0, 40.0] {
            let found = studentized_range(2, df, 0.05) / 2.0_f64.sqrt();
            assert!((found - t_95(df)).abs() < 2e-3 * t_95(df), "{df}: {found} {}", t_95(df));
        }
        assert!(
            studentized_range(1, 9.0, 0.05).is_infinite() && studentized_range(3, 0.0, 0.05).is_infinite()
        );
    }
}
