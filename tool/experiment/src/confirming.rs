//! How much of an experiment's time goes into testing verdicts by slowing tiers: each variant is tested once on each workload,
//! in the first of the rounds that the file asks for in which its verdict calls for it, while there is time for tests.

use std::{collections::BTreeSet, time::Duration};

use crate::definition::{Confirm, Experiment, Workload};

/// The part of the time that is kept for tests where only doubtful verdicts are tested. What they leave goes to more rounds.
const PART: u32 = 10;
/// The same where all are.
const PART_OF_ALL: u32 = 3;
/// What one may take at least, while there is so much time left: enough for two tiers.
const LEAST: Duration = Duration::from_secs(10);
/// With less than this for all of them none is made: not even one tier can be slowed.
const USEFUL: Duration = Duration::from_secs(5);
/// What a test may take where the experiment gives itself no time.
const WITHOUT_TIME: Duration = Duration::from_secs(30);

/// The tests that are still to come.
#[derive(Debug, Clone)]
pub(crate) struct Confirming<'a> {
    /// The time for them.
    left: Duration,
    rounds: u32,
    /// What was not tested yet: workload and variant.
    open: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Confirming<'a> {
    /// Plans the tests of these workloads, whose trials take so long in all at least.
    pub(crate) fn new(experiment: &'a Experiment, swept: &[&'a Workload], trials_min: Duration) -> Self {
        let tested = swept.iter().filter(|_| experiment.confirm != Confirm::Never);
        let variants = |work: &&'a Workload| {
            let work = work.name.as_str();
            experiment.variants.iter().map(move |variant| (work, variant.name.as_str()))
        };
        let open: BTreeSet<_> = tested.flat_map(variants).collect();
        let part = if experiment.confirm == Confirm::Always { PART_OF_ALL } else { PART };
        let left = match experiment.time {
            _ if open.is_empty() => Duration::ZERO,
            Some(time) => (time / part).min(time.saturating_sub(trials_min)),
            None => WITHOUT_TIME * number(open.len()),
        };
        let left = if left < USEFUL { Duration::ZERO } else { left };
        Confirming { left, rounds: experiment.rounds, open }
    }

    /// How long the test of a variant may take; zero where there is no time left, and `None` where it is not to be tested.
    pub(crate) fn time_for(&self, work: &str, variant: &str, round: u32) -> Option<Duration> {
        let share = self.left / number(self.open.len().max(1));
        let due = round < self.rounds && self.open.contains(&(work, variant));
        due.then(|| share.max(LEAST).min(self.left))
    }

    /// How long all tests may take that are still to come.
    pub(crate) fn left(&self) -> Duration {
        if self.open.is_empty() { Duration::ZERO } else { self.left }
    }

    /// Takes note of a test, and of how long it took.
    pub(crate) fn tested(&mut self, work: &str, variant: &str, took: Duration) {
        self.left = self.left.saturating_sub(took);
        self.open.retain(|open| *open != (work, variant));
    }

    /// Expects no test of a variant any more; on no workload if its name is empty.
    pub(crate) fn leave_out(&mut self, variant: &str, work: &str) {
        self.open.retain(|open| open.1 != variant || (!work.is_empty() && open.0 != work));
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::document::{Disk, read};

    const SWEPT: &str = r#"
        title = "x"
        time = "5m"
        axis = { engine = ["threads", "epoll", "uring", "poll"] }
        [[work]]
        url = "http://127.0.0.1:1/${engine}"
        users = [1, 64]
    "#;

    fn experiment(changes: &[(&str, &str)]) -> Experiment {
        let text = changes.iter().fold(SWEPT.to_owned(), |text, (from, to)| text.replace(from, to));
        read(Path::new("mine.toml"), &text, &Disk).expect("an experiment")
    }

    fn planned(experiment: &Experiment) -> Confirming<'_> {
        Confirming::new(experiment, &[&experiment.works[0]], Duration::from_secs(60))
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_variant_is_tested_once_while_there_is_time_for_tests() {
        let experiment = experiment(&[]);
        let mut planned = planned(&experiment);
        assert_eq!(planned.left(), s(30));
        // A share of four would be too little for a test.
        assert_eq!(planned.time_for("", "epoll", 0), Some(s(10)));
        planned.tested("", "epoll", s(8));
        assert_eq!(planned.time_for("", "epoll", 1), None);
        assert_eq!(planned.time_for("", "uring", 2), Some(s(10)));
        planned.tested("", "uring", s(16));
        assert_eq!(planned.time_for("", "poll", 1), Some(s(6)));
        planned.tested("", "poll", s(9));
        assert_eq!(
            planned.time_for("", "threads", 1),
            Some(Duration::ZERO),
            "it is told that no time was left"
        );
        assert_eq!(planned.time_for("", "threads", 3), None, "further rounds are for the order");
        planned.leave_out("threads", "");
        assert_eq!((planned.time_for("", "threads", 0), planned.left()), (None, Duration::ZERO));
    }

    #[test]
    fn the_file_says_which_verdicts_are_tested() {
        let never = experiment(&[("time", "confirm = false\ntime")]);
        assert_eq!((planned(&never).left(), planned(&never).time_for("", "poll", 0)), (Duration::ZERO, None));
        let always = experiment(&[("time", "confirm = true\ntime")]);
        assert_eq!(planned(&always).time_for("", "poll", 0), Some(s(25)));
        let short = experiment(&[("5m", "40s")]);
        assert_eq!(
            planned(&short).time_for("", "poll", 0),
            Some(Duration::ZERO),
            "too short for a single tier"
        );
        let few = experiment(&[("5m", "65s")]);
        assert_eq!(planned(&few).left(), s(5), "the trials have what they need");
        let alone = experiment(&[
            ("time = \"5m\"", ""),
            ("axis = { engine = [\"threads\", \"epoll\", \"uring\", \"poll\"] }", ""),
            ("${engine}", ""),
        ]);
        assert_eq!(planned(&alone).time_for("", "", 0), Some(WITHOUT_TIME));
    }
}
