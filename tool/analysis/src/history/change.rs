//! Where a series changes: the energy statistic of two stretches, tested by permutations (E-divisive: Matteson and James,
//! "A nonparametric approach for multiple change point analysis of multivariate data", JASA 109, 2014).
//!
//! A stretch is divided where the distance between what comes before and after is largest, compared with the distances
//! within each. Whether so large a distance is chance is seen by shuffling the stretch. It needs no distribution, and is not
//! moved far by an outlier. Divisions are made one after the other, the largest first, until one is not significant.

use crate::statistics::random::Random;

/// The fewest values on each side of a change.
const STRETCH_MIN: usize = 2;

/// The fewest values in which a change can be found: of 8, two that differ are at one end by chance 2 times in 28.
pub const RUNS_MIN: usize = 8;

/// How often a stretch is shuffled.
const SHUFFLES: usize = 499;

/// The most values that are looked at: the latest. The time is proportional to their square.
const VALUES_MAX: usize = 400;

/// A change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    /// The first value after it.
    pub(super) at: usize,
    /// How often a distance so large is seen in shuffled values.
    pub(super) chance: f64,
}

/// Every change of a series that chance explains less often than `chance`, in order.
pub(super) fn change_points(values: &[f64], chance: f64) -> Vec<Found> {
    let skipped = values.len().saturating_sub(VALUES_MAX);
    let values = &values[skipped..];
    let mut found: Vec<Found> = Vec::new();
    let mut random = Random::seeded(1);
    while values.len() >= RUNS_MIN {
        let Some(division) = best_division(values, &found) else { break };
        let seen = chance_of(values, &found, division.distance, chance, &mut random);
        if seen >= chance {
            break;
        }
        found.push(Found { at: division.at, chance: seen });
        found.sort_by_key(|change| change.at);
    }
    found.into_iter().map(|change| Found { at: change.at + skipped, ..change }).collect()
}

/// A place to divide, and how far apart the two sides are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Division {
    at: usize,
    distance: f64,
}

/// The stretches between changes: the first value of each, and the first after it.
fn stretches(length: usize, found: &[Found]) -> Vec<(usize, usize)> {
    let starts = std::iter::once(0).chain(found.iter().map(|change| change.at));
    let ends = found.iter().map(|change| change.at).chain([length]);
    starts.zip(ends).collect()
}

/// The best division of any stretch. `None` if all are too short.
fn best_division(values: &[f64], found: &[Found]) -> Option<Division> {
    let of = |(from, to): (usize, usize)| {
        let best = divided(&values[from..to])?;
        Some(Division { at: best.at + from, ..best })
    };
    let all = stretches(values.len(), found).into_iter().filter_map(of);
    all.max_by(|a, b| a.distance.total_cmp(&b.distance))
}

/// How often values that are shuffled within their stretches are divided by as much. Stops early where that is `enough`.
fn chance_of(values: &[f64], found: &[Found], distance: f64, enough: f64, random: &mut Random) -> f64 {
    let all = (SHUFFLES + 1) as f64;
    let mut shuffled = values.to_vec();
    let mut as_large = 1;
    for _ in 0..SHUFFLES {
        for (from, to) in stretches(values.len(), found) {
            shuffle(&mut shuffled[from..to], random);
        }
        // A hair less, so that the same values in the same order count whatever the rounding.
        let reached = best_division(&shuffled, found)
            .is_some_and(|best| best.distance >= distance - 1e-9 * distance.abs());
        as_large += usize::from(reached);
        if as_large as f64 / all >= enough {
            break;
        }
    }
    as_large as f64 / all
}

fn shuffle(values: &mut [f64], random: &mut Random) {
    for last in (1..values.len()).rev() {
        values.swap(last, random.below(last + 1));
    }
}

/// The division of a stretch with the largest distance
///
/// ```text
/// Q = mn/(m+n) · (2/(mn) Σ|x−y| − Σ|x−x'|/C(m,2) − Σ|y−y'|/C(n,2))
/// ```
/// where m values x come before it and n values y after. `None` if there is no room for one.
fn divided(values: &[f64]) -> Option<Division> {
    let count = values.len();
    if count < 2 * STRETCH_MIN {
        return None;
    }
    let to_all = |value: f64, others: &[f64]| others.iter().map(|other| (value - other).abs()).sum::<f64>();
    // Nothing is before at first: all distances are among those after.
    let mut after: f64 = (0..count).map(|index| to_all(values[index], &values[index + 1..])).sum();
    let (mut before, mut between) = (0.0, 0.0);
    let mut best: Option<Division> = None;
    for at in 1..=count - STRETCH_MIN {
        let moved = values[at - 1];
        let (to_before, to_after) = (to_all(moved, &values[..at - 1]), to_all(moved, &values[at..]));
        before += to_before;
        after -= to_after;
        between += to_after - to_before;
        let (m, n) = (at as f64, (count - at) as f64);
        let pairs = |count: f64| count * (count - 1.0) / 2.0;
        if at < STRETCH_MIN {
            continue;
        }
        let energy = 2.0 / (m * n) * between - before / pairs(m) - after / pairs(n);
        let distance = m * n / (m + n) * energy;
        if best.is_none_or(|best| distance > best.distance) {
            best = Some(Division { at, distance });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(values: &[f64]) -> Vec<usize> {
        change_points(values, 0.05).iter().map(|change| change.at).collect()
    }

    /// Two zeros and two ones: 2/(2·2)·4 − 0 − 0 = 2, times 2·2/4.
    #[test]
    fn the_distance_is_that_of_the_formula() {
        assert_eq!(divided(&[0.0, 0.0, 1.0, 1.0]), Some(Division { at: 2, distance: 2.0 }));
        assert_eq!(divided(&[0.0, 0.0, 1.0]), None);
        // By the formula in full, for any values.
        let values = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.3];
        let best = divided(&values).expect("a division");
        let sum = |a: &[f64], b: &[f64]| -> f64 {
            a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs())).sum()
        };
        let energy = |at: usize| {
            let (a, b) = values.split_at(at);
            let (m, n) = (a.len() as f64, b.len() as f64);
            let within = |s: &[f64], count: f64| sum(s, s) / 2.0 / (count * (count - 1.0) / 2.0);
            m * n / (m + n) * (2.0 / (m * n) * sum(a, b) - within(a, m) - within(b, n))
        };
        let expected = (2..=5).map(energy).fold(f64::NEG_INFINITY, f64::max);
        assert!((best.distance - expected).abs() < 1e-9 && (energy(best.at) - expected).abs() < 1e-9);
    }

    #[test]
    fn steps_are_found_where_they_are() {
        let ripple = |index: usize| (index * 7 % 5) as f64 * 0.1;
        let level = |index: usize| match index {
            0..12 => 10.0,
            12..24 => 5.0,
            _ => 12.0,
        };
        let values: Vec<f64> = (0..36).map(|index| level(index) + ripple(index)).collect();
        assert_eq!(places(&values), [12, 24]);
        // The two latest runs of twenty are enough.
        let values: Vec<f64> =
            (0..20).map(|index| if index < 18 { 10.0 } else { 9.0 } + ripple(index)).collect();
        assert_eq!(places(&values), [18]);
    }

    #[test]
    fn one_outlier_is_no_change() {
        let mut values: Vec<f64> = (0..20).map(|index| 10.0 + (index * 7 % 5) as f64 * 0.1).collect();
        values[9] = 5.0;
        assert_eq!(places(&values), [0; 0]);
    }

    #[test]
    fn too_few_or_equal_values_show_nothing() {
        assert_eq!(places(&[]), [0; 0]);
        assert_eq!(places(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0]), [0; 0]);
        assert_eq!(places(&[4.0; 30]), [0; 0]);
    }

    /// Noise alone, normal and with a heavy tail: a change is found as often as is said.
    #[test]
    fn noise_shows_no_change() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut found = 0;
        for number in 0..400 {
            let mut value = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            let values: Vec<f64> =
                (0..24).map(|_| value()).map(|v| if number % 2 == 0 { v } else { v.powi(3) }).collect();
            found += usize::from(!change_points(&values, 0.05).is_empty());
        }
        // 20 are expected; 33 or more would be seen once in 300 times.
        assert!(found <= 32, "{found} of 400");
    }
}
