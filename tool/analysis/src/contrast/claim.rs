//! Which figures are claimed to have changed.
//!
//! Throughput is the question: it is claimed to have changed where its own 95 % interval excludes 1. The other figures are
//! many, and some would exclude 1 by chance: theirs are claimed by Holm's procedure ("A simple sequentially rejective multiple
//! test procedure", Scandinavian Journal of Statistics 6, 1979), which is wrong about any of them 5 times in 100 at most.

use super::estimate::Estimate;
use super::{Figure, Ratio};

/// How often a claim may be wrong.
const CHANCE: f64 = 0.05;

/// Turns estimates into ratios, and marks those that are claimed to differ from 1.
pub(super) fn claim(found: Vec<(Figure, Estimate)>) -> Vec<Ratio> {
    let mut others: Vec<(usize, f64)> = found
        .iter()
        .enumerate()
        .filter(|(_, (figure, _))| *figure != Figure::Throughput)
        .filter_map(|(index, (_, estimate))| Some((index, estimate.chance()?)))
        .collect();
    others.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let left = others.len();
    let ranked = others.iter().enumerate();
    let holds = ranked.take_while(|(rank, (_, chance))| *chance < CHANCE / (left - rank) as f64);
    let claimed: Vec<usize> = holds.map(|(_, (index, _))| *index).collect();
    let is_claimed = |index: usize, figure: &Figure, estimate: &Estimate| match figure {
        Figure::Throughput => estimate.chance().is_some_and(|chance| chance < CHANCE),
        _ => claimed.contains(&index),
    };
    let ratio = |(index, (figure, estimate)): (usize, (Figure, Estimate))| Ratio {
        changed: is_claimed(index, &figure, &estimate) && is_allowed(&estimate),
        before: estimate.before,
        after: estimate.after,
        ratio: estimate.ratio(),
        ci: estimate.interval(),
        basis: estimate.basis,
        bound: estimate.bound,
        scatter: estimate.scatter,
        figure,
    };
    found.into_iter().enumerate().map(ratio).collect()
}

/// Whether what is only bounded can have changed in this direction.
fn is_allowed(estimate: &Estimate) -> bool {
    if estimate.log_ratio > 0.0 { estimate.bound.allows_rise() } else { estimate.bound.allows_fall() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contrast::{Basis, Bound};

    fn estimate(chance_in_errors: f64, bound: Bound) -> Estimate {
        Estimate {
            before: 1.0,
            after: 1.0,
            log_ratio: -0.01 * chance_in_errors,
            error: Some((0.01, 1e5)),
            basis: Basis::WithinRuns,
            bound,
            scatter: None,
        }
    }

    fn percentile(name: &str) -> Figure {
        Figure::ResponseTimeQuantile { percentile: name.into() }
    }

    /// Two standard errors are 4.6 %, three are 0.27 %.
    #[test]
    fn throughput_stands_alone_and_the_others_share_their_chance() {
        let all = vec![
            (Figure::Throughput, estimate(2.0, Bound::Exact)),
            (Figure::Users, estimate(2.0, Bound::Exact)),
            (percentile("p50"), estimate(3.0, Bound::Exact)),
            (percentile("p90"), estimate(2.3, Bound::Exact)),
        ];
        let changed: Vec<bool> = claim(all).iter().map(|ratio| ratio.changed).collect();
        // p50: 0.0027 < 0.05 / 3; p90: 0.021 < 0.05 / 2; N*: 0.046 < 0.05.
        assert_eq!(changed, [true, true, true, true]);
        let fewer = vec![
            (Figure::Users, estimate(2.0, Bound::Exact)),
            (percentile("p50"), estimate(2.0, Bound::Exact)),
        ];
        assert!(claim(fewer).iter().all(|ratio| !ratio.changed));
    }

    #[test]
    fn what_is_only_bounded_from_below_fell_only_where_it_was_exact_before() {
        let fell = |bound| claim(vec![(Figure::Throughput, estimate(5.0, bound))])[0].changed;
        assert_eq!(
            [Bound::Exact, Bound::AtLeast, Bound::AtMost, Bound::Unknown].map(fell),
            [true, false, true, false]
        );
    }
}
