//! The studentized range: the difference between the largest and the smallest of several means, in units of the standard
//! error of one. Its quantile is how far apart two means of many must be to differ (Tukey 1953).

use super::studentized::{integral, over_scatter, point_beyond};
use super::{normal_cdf, normal_density};

/// The point that the studentized range of `means` means, with `df` degrees of freedom of their scatter, exceeds with
/// this chance. Infinite for fewer than two means, or without degrees of freedom.
///
/// ```text
/// P(Q < q) = ∫ f(s) · R(q s) ds,   R(w) = k ∫ φ(z) (Φ(z) − Φ(z − w))^(k−1) dz
/// ```
/// where s is the estimated scatter over the true one (Harter 1960).
pub(crate) fn studentized_range(means: usize, df: f64, chance: f64) -> f64 {
    if means < 2 || df < 1.0 {
        return f64::INFINITY;
    }
    point_beyond(chance, |q| 1.0 - over_scatter(df, |s| range_within(q * s, means)))
}

/// The chance that the range of `means` normal variables is below `w`.
fn range_within(w: f64, means: usize) -> f64 {
    let power = i32::try_from(means - 1).unwrap_or(i32::MAX);
    let density = |z: f64| normal_density(z) * (normal_cdf(z) - normal_cdf(z - w)).powi(power);
    (means as f64 * integral(-8.0, 8.0, 12, density)).clamp(0.0, 1.0)
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
