//! Variants measured in randomised blocks: how far apart they are, and how sure that is.
//!
//! In each round of a workload every variant is measured once, in a random order. The logarithm of what was measured is
//! the sum of a part of the variant, a part of the round, and chance:
//!
//! ```text
//! ln x(variant, round) = variant + round + chance
//! ```
//!
//! Where chance scatters all variants alike, its scatter is estimated from all of them together, with
//! (variants - 1)(rounds - 1) degrees of freedom, so that few rounds suffice; all differences hold together by Tukey's
//! studentized range (Tukey 1953). Where it does not, each pair has the scatter of its own differences, and Student's t
//! with rounds - 1 degrees of freedom, widened for the number of pairs (Bonferroni).

use super::ratio::Ratio;
use crate::statistics::{chi_squared_exceeds, studentized_range::studentized_range, t_two_sided};

/// Claims of a difference that are wrong, at most, of all comparisons.
const WRONG: f64 = 0.05;
/// Variances that differ as much by chance in a quarter of all cases are not pooled: with few rounds the test sees little,
/// and pooling a variant that scatters more makes orders that are none.
const MAY_BE_POOLED: f64 = 0.25;
/// With fewer rounds it cannot be seen whether the variances differ.
const ROUNDS_MIN: usize = 3;

/// Measurements of some variants, in rounds that all of them completed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blocks {
    /// Logarithms, one row for each variant with one for each round.
    logs: Vec<Vec<f64>>,
    /// Half the width of every interval of a difference, if the variances may be pooled.
    pooled: Option<f64>,
}

impl Blocks {
    /// Reads figures, one row for each variant, as far as all of them completed a round. `None` with fewer than two
    /// variants or three rounds.
    pub(crate) fn of_common_rounds(figures: &[&[Option<f64>]]) -> Option<Self> {
        let rounds = figures.iter().map(|row| row.len()).max()?;
        let of = |row: &&[Option<f64>], round: usize| {
            row.get(round).copied().flatten().filter(|x| *x > 0.0 && x.is_finite())
        };
        let common: Vec<usize> =
            (0..rounds).filter(|round| figures.iter().all(|row| of(row, *round).is_some())).collect();
        if figures.len() < 2 || common.len() < ROUNDS_MIN {
            return None;
        }
        let logs = |row| common.iter().filter_map(|round| of(row, *round)).map(f64::ln).collect();
        let logs: Vec<Vec<f64>> = figures.iter().map(logs).collect();
        Some(Blocks { pooled: pooled(&logs), logs })
    }

    /// Variant `above` over variant `below`, and an interval of it; all of them hold together 95 times in 100.
    pub(crate) fn ratio(&self, above: usize, below: usize) -> Option<Ratio> {
        let (above, below) = (self.logs.get(above)?, self.logs.get(below)?);
        let differences: Vec<f64> = above.iter().zip(below).map(|(above, below)| above - below).collect();
        let difference = mean(&differences);
        let half_width = self.pooled.unwrap_or_else(|| self.own_half_width(&differences));
        let ci = [difference - half_width, difference + half_width].map(f64::exp);
        Some(Ratio { ratio: difference.exp(), ci })
    }

    fn own_half_width(&self, differences: &[f64]) -> f64 {
        let (rounds, variants) = (differences.len() as f64, self.logs.len() as f64);
        let pairs = variants * (variants - 1.0) / 2.0;
        let centre = mean(differences);
        let variance = differences.iter().map(|one| (one - centre).powi(2)).sum::<f64>() / (rounds - 1.0);
        t_two_sided(rounds - 1.0, 1.0 - WRONG / pairs) * (variance / rounds).sqrt()
    }
}

/// Half the width of the interval of each difference of means, if all variants scatter alike.
fn pooled(logs: &[Vec<f64>]) -> Option<f64> {
    let (variants, rounds) = (logs.len() as f64, logs.first()?.len());
    let round_mean = |round: usize| logs.iter().filter_map(|row| row.get(round)).sum::<f64>() / variants;
    let round_means: Vec<f64> = (0..rounds).map(round_mean).collect();
    let all = mean(&round_means);
    let squares = |row: &Vec<f64>| {
        let own = mean(row);
        row.iter().zip(&round_means).map(|(log, round)| (log - own - round + all).powi(2)).sum::<f64>()
    };
    let squares: Vec<f64> = logs.iter().map(squares).collect();
    let df = (variants - 1.0) * (rounds as f64 - 1.0);
    if differ(&squares, df / variants) {
        return None;
    }
    let variance = squares.iter().sum::<f64>() / df;
    Some(studentized_range(logs.len(), df, WRONG) * (variance / rounds as f64).sqrt())
}

/// Whether the variances of variants differ, from the squares of their residuals, each with so many degrees of freedom
/// (Bartlett 1937). Of two variants the residuals are each other's mirror image, and say nothing.
fn differ(squares: &[f64], df: f64) -> bool {
    let count = squares.len() as f64;
    let pooled = mean(squares);
    if count < 3.0 || pooled <= 0.0 {
        return false;
    }
    let logs: f64 = squares.iter().map(|squares| (squares.max(pooled * 1e-12) / pooled).ln()).sum();
    let correction = 1.0 + (count + 1.0) / (3.0 * count * df);
    chi_squared_exceeds(count - 1.0, -df * logs / correction) < MAY_BE_POOLED
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

    fn blocks(figures: &[Vec<f64>]) -> Blocks {
        let some: Vec<Vec<Option<f64>>> =
            figures.iter().map(|row| row.iter().copied().map(Some).collect()).collect();
        Blocks::of_common_rounds(&some.iter().map(Vec::as_slice).collect::<Vec<_>>()).expect("blocks")
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
        for rounds in [3, 6] {
            let wrong = (0..300)
                .filter(|_| {
                    let figures = measured(&[100.0; 10], rounds, |_| 0.05, &mut random);
                    claims(&blocks(&figures), 10) > 0
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
                claims(&blocks(&figures), 6) > 0
            })
            .count();
        assert!(wrong <= 20, "{wrong} of 200");
    }

    /// Ten variants 15 % apart with 3 % of scatter: six rounds tell nearly all neighbours apart.
    #[test]
    fn differences_are_found() {
        let mut random = Rng::with_seed(3);
        let figures: Vec<f64> = (0..10).map(|n| 1.15_f64.powi(n)).collect();
        let blocks = blocks(&measured(&figures, 6, |_| 0.03, &mut random));
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
                let blocks = blocks(&measured(&figures, 4, |_| 0.04, &mut random));
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

    /// A round that one variant missed counts for none; three must be left.
    #[test]
    fn only_rounds_that_all_completed_count() {
        let [one, other] =
            [[Some(1.0), Some(2.0), None, Some(4.0)], [Some(2.0), Some(4.0), Some(9.0), Some(8.0)]];
        let found = Blocks::of_common_rounds(&[&one, &other]).expect("three rounds");
        assert!((found.ratio(1, 0).expect("a ratio").ratio - 2.0).abs() < 1e-12);
        assert_eq!(Blocks::of_common_rounds(&[&one[..3], &other]), None);
        assert_eq!(Blocks::of_common_rounds(&[&one]), None);
        assert_eq!(Blocks::of_common_rounds(&[&one, &[Some(1.0), Some(0.0), Some(1.0), Some(1.0)]]), None);
    }
}
