//! Statistics that know nothing of servers: distributions, intervals, trends, regressions.

pub mod batch_means;
pub(crate) mod dunnett;
pub(crate) mod mean;
pub mod mser;
pub mod normal_equations;
pub(crate) mod period;
pub(crate) mod pooling;
pub(crate) mod random;
pub(crate) mod regression;
pub(crate) mod series;
pub(crate) mod studentized_range;

mod studentized;

use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, Normal, StudentsT};

/// Two-sided 95 % point of the normal distribution.
pub(crate) const NORMAL_95: f64 = 1.959_963_984_540_054;

/// Two-sided 95 % point of Student's t with `df` degrees of freedom (at least one).
pub(crate) fn t_95(df: f64) -> f64 {
    t_two_sided(df, 0.95)
}

/// Two-sided point of Student's t that holds `confidence` of it.
pub(crate) fn t_two_sided(df: f64, confidence: f64) -> f64 {
    StudentsT::new(0.0, 1.0, df.max(1.0))
        .map_or(NORMAL_95, |student| student.inverse_cdf(0.5 + confidence / 2.0))
}

/// The chance that Student's t with `df` degrees of freedom (at least one) is below `t`.
pub(crate) fn t_cdf(df: f64, t: f64) -> f64 {
    StudentsT::new(0.0, 1.0, df.max(1.0)).map_or_else(|_| normal_cdf(t), |student| student.cdf(t))
}

/// Two-sided point of the normal distribution that holds `confidence` of it.
pub(crate) fn normal_two_sided(confidence: f64) -> f64 {
    Normal::standard().inverse_cdf(0.5 + confidence / 2.0)
}

/// The density of the normal distribution.
pub(crate) fn normal_density(z: f64) -> f64 {
    Normal::standard().pdf(z)
}

/// The chance that a normal variable is below `z`.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The chance that a chi-squared variable with `df` degrees of freedom exceeds `value`.
pub(crate) fn chi_squared_exceeds(df: f64, value: f64) -> f64 {
    ChiSquared::new(df.max(1.0)).map_or(1.0, |chi| chi.sf(value.max(0.0)))
}

/// The figure at this share of ascending figures; `None` of no figures.
pub(crate) fn at_share(ascending: &[f64], share: f64) -> Option<f64> {
    ascending.get((share * (ascending.len() as f64 - 1.0)).round() as usize).copied()
}

/// The 95 % interval of a proportion of which `hits` of `all` were seen (Wilson's score interval).
pub(crate) fn proportion_ci(hits: u64, all: u64) -> [f64; 2] {
    if all == 0 {
        return [0.0, 1.0];
    }
    let (n, p, z2) = (all as f64, hits as f64 / all as f64, NORMAL_95 * NORMAL_95);
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = NORMAL_95 * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt() / (1.0 + z2 / n);
    [(centre - half).max(0.0), (centre + half).min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_ascending_figures_is_the_nearest_of_them() {
        let at = |share: f64| at_share(&[1.0, 2.0, 3.0, 4.0, 5.0], share);
        let found = [0.0, 0.5, 0.6, 0.7, 1.0].map(at);
        assert_eq!(found, [1.0, 3.0, 3.0, 4.0, 5.0].map(Some));
        assert_eq!(at_share(&[], 0.5), None);
    }

    /// Newcombe (1998), table I: 81 of 263, 0 of 20.
    #[test]
    fn proportions_agree_with_a_publication() {
        for (hits, all, expected) in [(81, 263, [0.2553, 0.3662]), (0, 20, [0.0, 0.1611])] {
            let found = proportion_ci(hits, all);
            assert!((0..2).all(|end| (found[end] - expected[end]).abs() < 1e-4), "{found:?}");
        }
        assert_eq!(proportion_ci(0, 0), [0.0, 1.0]);
    }

    /// Published table (Fisher and Yates): two-sided 5 % points.
    #[test]
    fn agrees_with_the_table() {
        for (df, expected) in [(1.0, 12.706), (4.0, 2.776), (9.0, 2.262), (30.0, 2.042), (1e6, 1.960)] {
            assert!((t_95(df) - expected).abs() < 1e-3, "t({df}) = {}", t_95(df));
        }
        assert!((normal_two_sided(0.95) - NORMAL_95).abs() < 1e-9);
        assert!((normal_two_sided(0.99) - 2.5758).abs() < 1e-3);
        assert!((chi_squared_exceeds(1.0, 3.841) - 0.05).abs() < 1e-3);
    }
}
