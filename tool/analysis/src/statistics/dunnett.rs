//! The largest difference between one mean, the baseline, and several others, in units of its standard error (Dunnett
//! 1955).

use super::studentized::{integral, over_scatter, point_beyond};
use super::{normal_cdf, normal_density};

/// The point that the largest of `others` differences to one baseline exceeds either way with this chance, all means
/// having as many observations, with `df` degrees of freedom of their scatter. Infinite without others, or without
/// degrees of freedom.
///
/// ```text
/// P(D < d) = ∫ f(s) ∫ φ(z) (Φ(z + √2 d s) − Φ(z − √2 d s))^others dz ds
/// ```
/// where z is the mean of the baseline and s the estimated scatter over the true one (Dunnett 1964).
pub(crate) fn dunnett(others: usize, df: f64, chance: f64) -> f64 {
    if others == 0 || df < 1.0 {
        return f64::INFINITY;
    }
    point_beyond(chance, |d| 1.0 - over_scatter(df, |s| within(d * s, others)))
}

/// The chance that no difference exceeds `d` either way, the scatter being known.
fn within(d: f64, others: usize) -> f64 {
    let power = i32::try_from(others).unwrap_or(i32::MAX);
    let reach = std::f64::consts::SQRT_2 * d;
    let density = |z: f64| normal_density(z) * (normal_cdf(z + reach) - normal_cdf(z - reach)).powi(power);
    integral(-8.0, 8.0, 12, density).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::t_95;

    /// Published table (Dunnett 1964): two-sided 5 % and 1 % points.
    #[test]
    fn agrees_with_the_tables() {
        for (others, df, chance, expected) in [
            (2, 5.0, 0.05, 3.03),
            (2, 10.0, 0.05, 2.57),
            (3, 20.0, 0.05, 2.54),
            (5, 10.0, 0.05, 2.99),
            (9, 1e9, 0.05, 2.69),
            (2, 10.0, 0.01, 3.53),
        ] {
            let found = dunnett(others, df, chance);
            assert!(
                (found - expected).abs() < 0.006,
                "d({chance}; {others}, {df}) = {found}, not {expected}"
            );
        }
    }

    /// With one other it is Student's t.
    #[test]
    fn of_one_other_it_is_students_t() {
        for df in [1.0, 2.0, 7.0, 40.0] {
            assert!((dunnett(1, df, 0.05) - t_95(df)).abs() < 2e-3 * t_95(df), "{df}");
        }
        assert!(dunnett(0, 9.0, 0.05).is_infinite() && dunnett(2, 0.0, 0.05).is_infinite());
    }
}
