//! Whether the runs of two sides took turns, and which of them are neighbours in time.
//!
//! What changes with time, such as the clock of a processor or what else runs on its host, is nearly the same for neighbours, so
//! that their ratio is free of it: paired comparison (Box, Hunter and Hunter, "Statistics for Experimenters", 2nd edition, 2005,
//! section 3.2). A drift that goes on within pairs cancels where every second one is the other way round, A B B A. Pairs have a
//! price: n of them have n - 1 degrees of freedom, two sides of n runs have 2n - 2. So whether runs are paired follows from when
//! they began and how many there are, and never from their figures: the narrower of two intervals, chosen when both are known,
//! would hold the truth less often than it says.

use super::Figure;
use super::estimate::Samples;
use super::side::Given;

/// The fewest pairs that are compared as such. Where nothing drifts, the interval from six is 15 % wider than that of the sides
/// as a whole; from four it would be 30 % wider.
pub(super) const PAIRS_MIN: usize = 6;

/// The places of the runs of each side, in the order in which they began: those of one rank are neighbours in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turns {
    before: Vec<usize>,
    after: Vec<usize>,
}

impl Turns {
    /// `None` unless the runs, two by two in the order in which they began, are one of each side; and of fewer than six pairs.
    pub(super) fn of(before: &[Given], after: &[Given]) -> Option<Self> {
        if before.len() < PAIRS_MIN {
            return None;
        }
        let mut all: Vec<(&str, bool, usize)> = places(before, false).chain(places(after, true)).collect();
        all.sort_unstable();
        // Of two that began in the same second, nobody knows which was first.
        let is_known = all.windows(2).all(|two| matches!(two, [one, other] if one.0 != other.0));
        let are_pairs = all.chunks(2).all(|pair| matches!(pair, [one, other] if one.1 != other.1));
        let of_side = |is_after: bool| -> Vec<usize> {
            all.iter().filter(|run| run.1 == is_after).map(|run| run.2).collect()
        };
        (is_known && are_pairs).then(|| Self { before: of_side(false), after: of_side(true) })
    }

    /// The figures of both sides with neighbours in time at the same place.
    pub(super) fn aligned(
        &self,
        [before, after]: [Vec<(Figure, Samples)>; 2],
    ) -> [Vec<(Figure, Samples)>; 2] {
        [in_order(before, &self.before), in_order(after, &self.after)]
    }
}

/// When each run of a side began, which side that is, and its place there.
fn places(runs: &[Given], is_after: bool) -> impl Iterator<Item = (&str, bool, usize)> {
    runs.iter().enumerate().map(move |(place, given)| (given.run.started.as_str(), is_after, place))
}

fn in_order(mut figures: Vec<(Figure, Samples)>, places: &[usize]) -> Vec<(Figure, Samples)> {
    for (_, samples) in &mut figures {
        samples.all = places.iter().map(|place| samples.all.get(*place).copied().flatten()).collect();
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contrast::Basis;
    use crate::contrast::estimate::{Estimate, Pairing, Sample, estimate};
    use crate::contrast::tests::{began, normal, sweep};

    /// Runs that began in these minutes.
    fn runs(minutes: &[u32]) -> Vec<Given> {
        minutes.iter().map(|minute| began(sweep("a", 1_000.0, 100.0), *minute)).collect()
    }

    fn turns(before: &[u32], after: &[u32]) -> Option<Turns> {
        Turns::of(&runs(before), &runs(after))
    }

    #[test]
    fn runs_that_strictly_take_turns_are_paired_with_their_neighbours_in_time() {
        let in_order: Vec<usize> = (0..6).collect();
        let expected = Some(Turns { before: in_order.clone(), after: in_order });
        assert_eq!(turns(&[0, 2, 4, 6, 8, 10], &[1, 3, 5, 7, 9, 11]), expected, "A B A B");
        assert_eq!(turns(&[0, 3, 4, 7, 8, 11], &[1, 2, 5, 6, 9, 10]), expected, "A B B A");
        // As a shell sorts names: 1, 10, 2, ..
        let found = turns(&[0, 10, 2, 4, 6, 8], &[11, 1, 3, 5, 7, 9]);
        let places = |all: [usize; 6]| all.to_vec();
        let expected = Turns { before: places([0, 2, 3, 4, 5, 1]), after: places([1, 2, 3, 4, 5, 0]) };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn runs_that_do_not_strictly_take_turns_are_not_paired() {
        assert_eq!(turns(&[0, 1, 2, 3, 4, 5], &[6, 7, 8, 9, 10, 11]), None, "one side after the other");
        assert_eq!(turns(&[0, 1, 4, 5, 8, 9], &[2, 3, 6, 7, 10, 11]), None, "A A B B");
        assert_eq!(turns(&[0, 2, 4, 6, 8, 10], &[1, 3, 5, 7, 9, 11, 12]), None, "one more of one side");
        assert_eq!(turns(&[0, 2, 4, 6, 8], &[1, 3, 5, 7, 9]), None, "too few");
        assert_eq!(turns(&[0, 2, 4, 6, 8, 10], &[1, 3, 5, 7, 9, 10]), None, "two began together");
    }

    #[test]
    fn figures_of_neighbours_stand_at_the_same_place() {
        let turns = turns(&[0, 10, 2, 4, 6, 8], &[1, 11, 3, 5, 7, 9]).expect("turns");
        let samples = |values: [f64; 6]| {
            let all = values.iter().map(|value| Sample::of(*value, None)).collect();
            vec![(Figure::Throughput, Samples { all, at_least: false })]
        };
        let given = [samples([1.0, 6.0, 2.0, 3.0, 4.0, 5.0]), samples([1.5, 6.5, 2.5, 3.5, 4.5, 5.5])];
        let expected = [samples([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), samples([1.5, 2.5, 3.5, 4.5, 5.5, 6.5])];
        assert_eq!(turns.aligned(given), expected);
    }

    /// A host that changes while two builds are measured in turns, A B B A.
    struct Simulated {
        pairs: usize,
        /// How far starts of one server scatter, as standard deviation.
        starts: f64,
        /// How far the host wanders from one run to the next, as standard deviation.
        wanders: f64,
        /// How much slower it has become at the end, as a logarithm.
        falls: f64,
        /// Throughput of the build after over that of the build before.
        ratio: f64,
    }

    impl Simulated {
        fn samples(&self, random: &mut fastrand::Rng) -> [Samples; 2] {
            let last = (2 * self.pairs - 1) as f64;
            let (mut host, mut sides) = (0.0, [Vec::new(), Vec::new()]);
            for turn in 0..2 * self.pairs {
                let side = usize::from(turn % 4 == 1 || turn % 4 == 2);
                let build = if side == 1 { self.ratio.ln() } else { 0.0 };
                host += self.wanders * normal(random);
                let falls = self.falls * turn as f64 / last;
                let log = build + host - falls + self.starts * normal(random);
                sides[side].push(Sample::of(1_000.0 * log.exp(), None));
            }
            sides.map(|all| Samples { all, at_least: false })
        }

        fn compared(&self, random: &mut fastrand::Rng) -> [Estimate; 2] {
            let [before, after] = self.samples(random);
            [Pairing::Turns, Pairing::Apart]
                .map(|pairing| estimate(&before, &after, pairing).expect("both sides"))
        }

        /// The share of so many comparisons by pairs whose interval holds the ratio.
        fn coverage(&self, comparisons: u32) -> f64 {
            let mut random = fastrand::Rng::with_seed(7);
            let held = (0..comparisons).filter(|_| {
                let [paired, _] = self.compared(&mut random);
                let [low, high] = paired.interval().expect("an interval");
                low <= self.ratio && self.ratio <= high
            });
            held.count() as f64 / f64::from(comparisons)
        }
    }

    const STEADY: Simulated = Simulated { pairs: 8, starts: 0.01, wanders: 0.0, falls: 0.0, ratio: 0.97 };

    #[test]
    fn a_build_that_is_3_percent_slower_is_found_on_a_host_that_drifts_in_turns_alone() {
        let drifting = Simulated { falls: 0.2, ..STEADY };
        let mut random = fastrand::Rng::with_seed(5);
        let mut found = [0; 2];
        for _ in 0..200 {
            for (found, of) in found.iter_mut().zip(drifting.compared(&mut random)) {
                *found += usize::from(of.interval().is_some_and(|[_, high]| high < 1.0));
            }
        }
        let [paired, apart] = found;
        assert!(paired >= 190 && apart <= 10, "{paired} and {apart} of 200");
    }

    #[test]
    fn intervals_of_pairs_hold_the_truth_as_often_as_they_say() {
        for (name, simulated) in [
            ("nothing drifts", STEADY),
            ("the host wanders", Simulated { wanders: 0.03, ..STEADY }),
            ("the fewest pairs", Simulated { pairs: PAIRS_MIN, wanders: 0.01, ..STEADY }),
            ("a build and itself", Simulated { ratio: 1.0, wanders: 0.02, pairs: 16, ..STEADY }),
        ] {
            let coverage = simulated.coverage(4_000);
            assert!((0.93..=0.97).contains(&coverage), "{name}: {coverage}");
        }
        // A drift that goes on in one direction scatters the ratios of turns, and leaves their mean alone.
        let drifting = Simulated { falls: 0.2, ..STEADY };
        assert!(drifting.coverage(4_000) >= 0.95);
    }

    #[test]
    fn fewer_known_figures_than_six_pairs_are_compared_side_by_side() {
        let [mut before, after] = STEADY.samples(&mut fastrand::Rng::with_seed(1));
        let basis = |before: &Samples| estimate(before, &after, Pairing::Turns).map(|found| found.basis);
        before.all[0] = None;
        assert_eq!(basis(&before), Some(Basis::Turns { pairs: 7 }));
        before.all.iter_mut().take(3).for_each(|sample| *sample = None);
        assert_eq!(basis(&before), Some(Basis::BetweenRuns { before: 5, after: 8 }));
    }
}
