//! Rounds that only showed how long a load has to be.

use std::collections::{BTreeMap, BTreeSet};

use crate::run::{Run, WarningKind};

/// A load this much longer than another is of another length, not merely late to end.
const LONGER: f64 = 1.25;

/// All users begin at once, and those with short requests end their first ones early. A load shorter than so many times what
/// all but a tenth of the responses take is still about its beginning, however steady it looks.
const SLOW_RESPONSES: f64 = 1.5;

/// Whether what was measured had settled, and yields an interval.
pub fn has_settled(run: &Run) -> bool {
    run.steps.iter().all(|step| {
        let slow_s = SLOW_RESPONSES * step.response_time_us.p90 / 1e6;
        step.steady && step.throughput_ci_per_s.is_some() && step.warmup_s + step.elapsed_s >= slow_s
    })
}

/// The rounds of a workload, from its runs and their rounds, that were pilots: most of their loads had not settled, and loads
/// of a later round were longer. What a load shows before it settles is no throughput.
pub fn pilots<'a>(runs: impl IntoIterator<Item = (u32, &'a Run)>) -> BTreeSet<u32> {
    let mut rounds: BTreeMap<u32, Vec<&Run>> = BTreeMap::new();
    let whole = |run: &Run| !run.warnings.iter().any(|warning| warning.kind == WarningKind::Interrupted);
    for (round, run) in runs.into_iter().filter(|(_, run)| whole(run) && run.steps.len() == 1) {
        rounds.entry(round).or_default().push(run);
    }
    let is_unsettled = |runs: &[&Run]| 2 * runs.iter().filter(|run| !has_settled(run)).count() > runs.len();
    let mut pilots = BTreeSet::new();
    let mut longest = 0.0_f64;
    for (round, runs) in rounds.iter().rev() {
        let shortest = runs.iter().map(|run| length_s(run)).fold(f64::INFINITY, f64::min);
        if is_unsettled(runs) && longest > LONGER * shortest {
            pilots.insert(*round);
        }
        longest = longest.max(shortest);
    }
    pilots
}

/// How long a load took, its beginning included, seconds.
fn length_s(run: &Run) -> f64 {
    run.steps.iter().map(|step| step.warmup_s + step.elapsed_s).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclude::{Context, Provenance, conclude};
    use crate::run::Step;

    fn load(length_s: f64, steady: bool) -> Run {
        let throughput_ci_per_s = Some([90.0, 110.0]);
        let step =
            Step { elapsed_s: length_s - 0.1, warmup_s: 0.1, steady, throughput_ci_per_s, ..Step::default() };
        conclude(vec![step], &Context::default()).into_run(Provenance::default())
    }

    #[test]
    fn rounds_before_loads_were_long_enough_are_pilots() {
        let rounds = [(0.5, false), (1.0, false), (2.0, true), (2.0, false), (2.1, true)];
        let runs: Vec<(u32, Run)> = (0..)
            .zip(rounds)
            .flat_map(|(round, (length, steady))| vec![(round, load(length, steady)); 3])
            .collect();
        let found = pilots(runs.iter().map(|(round, run)| (*round, run)));
        assert_eq!(found, BTreeSet::from([0, 1]), "what is as long as the others counts, settled or not");
    }

    /// A mix of short and long bodies: half a second shows the short bodies alone, and looks steady.
    #[test]
    fn a_load_must_be_longer_than_its_slow_responses() {
        let mut run = load(1.0, true);
        run.steps[0].response_time_us.p90 = 1.17e6;
        assert!(!has_settled(&run));
        run.steps[0].elapsed_s = 1.9;
        assert!(has_settled(&run));
    }

    /// One load that had not settled is chance; and short loads that settled are as good as long ones.
    #[test]
    fn a_round_that_mostly_settled_is_none() {
        let runs = [(0, load(0.5, true)), (0, load(0.5, false)), (1, load(1.0, true)), (1, load(1.0, true))];
        assert!(pilots(runs.iter().map(|(round, run)| (*round, run))).is_empty());
    }
}
