//! Which workload is measured on which variant, in which order, and for how long.

use std::time::Duration;

use fastrand::Rng;

use crate::definition::{Experiment, Variant, Workload};

/// Time per trial for starting programs, stopping them, and the first request.
const AROUND: Duration = Duration::from_millis(1_200);
/// A shorter trial shows nothing.
const SHORTEST: Duration = Duration::from_secs(1);

/// One measured load of one variant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial<'a> {
    /// From 0.
    pub(crate) round: u32,
    pub(crate) work: &'a Workload,
    pub(crate) variant: &'a Variant,
}

/// All trials in order: round by round, in each round every workload, and for each workload every variant.
///
/// Each round of a workload is a randomised block (Fisher 1935): a drift of the machine favours no variant, and the
/// order is the same for the same seed.
pub(crate) fn trials(experiment: &Experiment, seed: u64) -> Vec<Trial<'_>> {
    let mut random = Rng::with_seed(seed);
    let mut all = Vec::new();
    for round in 0..experiment.rounds {
        for work in &experiment.works {
            let mut variants: Vec<&Variant> = experiment.variants.iter().collect();
            random.shuffle(&mut variants);
            all.extend(variants.into_iter().map(|variant| Trial { round, work, variant }));
        }
    }
    all
}

/// The time that each trial may take.
pub(crate) fn time_each(total: Duration, trials: usize) -> Duration {
    let share = total / u32::try_from(trials.max(1)).unwrap_or(u32::MAX);
    share.saturating_sub(AROUND).max(SHORTEST)
}

impl Trial<'_> {
    /// What it is called in messages: `epoll, 100 KB, round 2`.
    pub(crate) fn name(&self, rounds: u32) -> String {
        let round = if rounds > 1 { format!("round {}", self.round + 1) } else { String::new() };
        let parts = [self.variant.name.as_str(), self.work.name.as_str(), round.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;
    use crate::document::{Disk, read};

    fn experiment() -> Experiment {
        let text = r#"
            title = "x"
            rounds = 2
            axis = { engine = ["threads", "epoll", "uring", "poll"] }
            [[work]]
            name = "few"
            url = "http://127.0.0.1:1/"
            users = 4
            [[work]]
            name = "many"
            url = "http://127.0.0.1:1/"
            users = 64
        "#;
        read(Path::new("mine.toml"), text, &Disk).expect("an experiment")
    }

    #[test]
    fn every_block_has_every_variant_once_in_an_order_of_its_own() {
        let experiment = experiment();
        let all = trials(&experiment, 7);
        let blocks: Vec<_> = all.chunks(4).collect();
        assert_eq!(blocks.len(), 4);
        let mut orders = BTreeSet::new();
        for block in &blocks {
            let order: Vec<&str> = block.iter().map(|trial| trial.variant.name.as_str()).collect();
            assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 4, "{order:?}");
            assert!(block.iter().all(|trial| trial.work.name == block[0].work.name));
            orders.insert(order);
        }
        assert!(orders.len() > 1, "{orders:?}");
        let again: Vec<String> = trials(&experiment, 7).iter().map(|trial| trial.name(2)).collect();
        assert_eq!(again, all.iter().map(|trial| trial.name(2)).collect::<Vec<_>>());
    }

    #[test]
    fn the_time_is_shared_out() {
        assert_eq!(time_each(Duration::from_secs(300), 80), Duration::from_millis(2_550));
        assert_eq!(time_each(Duration::from_secs(10), 80), SHORTEST);
    }
}
