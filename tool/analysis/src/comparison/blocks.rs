//! Variants measured in randomised blocks: how far apart they are, and how sure that is.
//!
//! In each round of a workload every variant is measured once, in a random order. The logarithm of what was measured is
//! the sum of a part of the variant, a part of the round, and chance:
//!
//! ```text
//! ln x(variant, round) = variant + round + chance
//! ```
//!
//! The scatter of chance is estimated from all variants together, with (variants − 1)(rounds − 1) degrees of freedom, so
//! that few rounds suffice; but only if it is the same for all, which is tested. All differences hold together by Tukey's
//! studentized range; where the scatter differs, each pair has its own (Games and Howell 1976).

use super::ratio::Ratio;
use crate::statistics::{chi_squared_exceeds, studentized_range::studentized_range};

/// Claims of a difference that are wrong, at most, of all comparisons.
const WRONG: f64 = 0.05;
/// Scatters count as different when they differ as much by chance as seldom as this.
const SCATTERS_DIFFER: f64 = 0.01;

/// Measurements of some variants, in rounds that all of them completed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blocks {
    /// Mean logarithm of each variant, less that of its rounds.
    means: Vec<f64>,
    scatter: Scatter,
    rounds: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Scatter {
    /// The same for all: half the width of every interval.
    Pooled(f64),
    /// Variance of one measurement of each variant.
    Own(Vec<f64>),
}

impl Blocks {
    /// Reads figures, one list for each variant with one figure for each round. `None` with fewer than two variants or
    /// rounds, if a figure is missing, or if one is not above 0.
    pub(crate) fn new(figures: &[Vec<f64>]) -> Option<Self> {
        let rounds = figures.first()?.len();
        let complete = figures.iter().all(|row| row.len() == rounds);
        let positive = figures.iter().flatten().all(|figure| *figure > 0.0 && figure.is_finite());
        if figures.len() < 2 || rounds < 2 || !complete || !positive {
            return None;
        }
        let logs: Vec<Vec<f64>> =
            figures.iter().map(|row| row.iter().map(|figure| figure.ln()).collect()).collect();
        let of_round =
            |round: usize| logs.iter().filter_map(|row| row.get(round)).sum::<f64>() / logs.len() as f64;
        let round_means: Vec<f64> = (0..rounds).map(of_round).collect();
        let all = mean(&round_means);
        let means: Vec<f64> = logs.iter().map(|row| mean(row)).collect();
        let residuals: Vec<Vec<f64>> = logs
            .iter()
            .zip(&means)
            .map(|(row, mean)| {
                row.iter().zip(&round_means).map(|(log, round)| log - mean - round + all).collect()
            })
            .collect();
        Some(Blocks { means, scatter: scatter(&residuals), rounds })
    }

    /// Variant `above` over variant `below`, and an interval of it; all of them hold together 95 times in 100.
    pub(crate) fn ratio(&self, above: usize, below: usize) -> Option<Ratio> {
        let difference = self.means.get(above)? - self.means.get(below)?;
        let half_width = self.half_width(above, below)?;
        Some(Ratio {
            ratio: difference.exp(),
            ci: [(difference - half_width).exp(), (difference + half_width).exp()],
        })
    }

    /// Half the width of the interval of a difference of logarithms.
    fn half_width(&self, above: usize, below: usize) -> Option<f64> {
        let (variants, rounds) = (self.means.len(), self.rounds as f64);
        match &self.scatter {
            Scatter::Pooled(half_width) => Some(*half_width),
            Scatter::Own(variances) => {
                let (one, other) = (variances.get(above)? / rounds, variances.get(below)? / rounds);
                // Welch's degrees of freedom.
                let df = (one + other).powi(2) / ((one * one + other * other) / (rounds - 1.0));
                Some(studentized_range(variants, df, WRONG) * f64::midpoint(one, other).sqrt())
            }
        }
    }
}

fn scatter(residuals: &[Vec<f64>]) -> Scatter {
    let (variants, rounds) = (residuals.len() as f64, residuals.first().map_or(0, Vec::len) as f64);
    let sum: f64 = residuals.iter().flatten().map(|residual| residual * residual).sum();
    let df = (variants - 1.0) * (rounds - 1.0);
    // The residuals of a variant hold (rounds − 1)(variants − 1) / variants degrees of freedom.
    let own_df = df / variants;
    let own: Vec<f64> = residuals.iter().map(|row| row.iter().map(|r| r * r).sum::<f64>() / own_df).collect();
    if differ(&own, own_df) {
        return Scatter::Own(own);
    }
    Scatter::Pooled(studentized_range(residuals.len(), df, WRONG) * (sum / df / rounds).sqrt())
}

/// Whether variances differ (Bartlett 1937). Too few rounds tell nothing, and then they are taken to be the same.
fn differ(variances: &[f64], df: f64) -> bool {
    let count = variances.len() as f64;
    if df < 1.0 || count < 3.0 {
        return false;
    }
    let pooled = mean(variances);
    if pooled <= 0.0 {
        return false;
    }
    let logs: f64 = variances.iter().map(|variance| variance.max(pooled * 1e-12).ln()).sum();
    let statistic = df * (count * pooled.ln() - logs);
    let correction = 1.0 + (count + 1.0) / (3.0 * count * df);
    chi_squared_exceeds(count - 1.0, statistic / correction) < SCATTERS_DIFFER
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    /// A normal variable: the sum of twelve uniform ones.
    fn normal(random: &mut Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    /// Variants of these figures in so many rounds that drift, with this scatter.
    fn measured(
        figures: &[f64],
        rounds: usize,
        scatter: impl Fn(usize) -> f64,
        random: &mut Rng,
    ) -> Vec<Vec<f64>> {
        let drift: Vec<f64> = (0..rounds).map(|_| 0.3 * normal(random)).collect();
        let of = |(variant, figure): (usize, &f64)| {
            drift.iter().map(|drift| figure * (drift + scatter(variant) * normal(random)).exp()).collect()
        };
        figures.iter().enumerate().map(of).collect()
    }

    fn claims(blocks: &Blocks, variants: usize) -> usize {
        let pairs = (0..variants).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs
            .filter(|(a, b)| blocks.ratio(*a, *b).is_some_and(|ratio| ratio.ci[0] > 1.0 || ratio.ci[1] < 1.0))
            .count()
    }

    /// A program against itself: an order is claimed in at most 5 of 100, whatever the drift from round to round.
    #[test]
    fn the_same_ten_times_is_seldom_put_in_order() {
        let mut random = Rng::with_seed(1);
        for rounds in [2, 3, 6] {
            let wrong = (0..300)
                .filter(|_| {
                    let figures = measured(&[100.0; 10], rounds, |_| 0.05, &mut random);
                    claims(&Blocks::new(&figures).expect("blocks"), 10) > 0
                })
                .count();
            assert!(wrong <= 27, "{rounds} rounds: {wrong} of 300");
        }
    }

    /// The same where one of them scatters five times as much as the others.
    #[test]
    fn a_variant_that_scatters_more_does_not_make_orders() {
        let mut random = Rng::with_seed(2);
        let wrong = (0..200)
            .filter(|_| {
                let figures =
                    measured(&[100.0; 6], 8, |variant| if variant == 0 { 0.1 } else { 0.02 }, &mut random);
                claims(&Blocks::new(&figures).expect("blocks"), 6) > 0
            })
            .count();
        assert!(wrong <= 20, "{wrong} of 200");
    }

    /// Ten variants 15 % apart with 3 % of scatter: six rounds tell nearly all neighbours apart.
    #[test]
    fn differences_are_found() {
        let mut random = Rng::with_seed(3);
        let figures: Vec<f64> = (0..10).map(|n| 1.15_f64.powi(n)).collect();
        let blocks = Blocks::new(&measured(&figures, 6, |_| 0.03, &mut random)).expect("blocks");
        assert_eq!(claims(&blocks, 10), 45);
        let ratio = blocks.ratio(1, 0).expect("a ratio");
        assert!(ratio.ci[0] < 1.15 && ratio.ci[1] > 1.15, "{ratio:?}");
    }

    /// Every ratio is within its interval, all together, 95 times in 100.
    #[test]
    fn the_intervals_hold_together() {
        let mut random = Rng::with_seed(4);
        let figures = [100.0, 120.0, 90.0, 130.0];
        let held = (0..400)
            .filter(|_| {
                let blocks = Blocks::new(&measured(&figures, 4, |_| 0.04, &mut random)).expect("blocks");
                (0..4).all(|a| {
                    (0..4).filter(|b| *b != a).all(|b| {
                        let truth = figures[a] / figures[b];
                        blocks.ratio(a, b).is_some_and(|ratio| ratio.ci[0] <= truth && truth <= ratio.ci[1])
                    })
                })
            })
            .count();
        assert!((366..=396).contains(&held), "{held} of 400");
    }

    #[test]
    fn what_is_not_a_block_design_is_refused() {
        assert_eq!(Blocks::new(&[vec![1.0, 2.0]]), None);
        assert_eq!(Blocks::new(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(Blocks::new(&[vec![1.0, 2.0], vec![2.0]]), None);
        assert_eq!(Blocks::new(&[vec![1.0, 2.0], vec![2.0, 0.0]]), None);
    }
}
