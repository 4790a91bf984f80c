//! Which trial comes next: a plan that grows while the experiment runs, and knows neither a clock nor a program.
//!
//! Every variant is measured in as many rounds as the file asks for. What time is left then goes where the order is still
//! open: after each round of a workload the plan is told which variants further rounds may yet put in order, and
//! only these go on, until none is left or the time is spent. The next round is one of the workload whose intervals it narrows
//! most for the time that it takes; a workload whose open variants differ little waits for those that may differ much.

use std::{collections::VecDeque, time::Duration};

use analysis::comparison::StillOpen;
use fastrand::Rng;

use crate::{
    confirming::Confirming,
    definition::{Experiment, Users, Variant, Workload},
    length::{AROUND, LONGEST_LOAD, LoadLength},
};

/// How long a sweep without a time of its own is expected to take, with a test of its verdict, until one was made.
pub const FREE_SWEEP: Duration = Duration::from_secs(90);
/// A shorter load seldom settles.
const SHORTEST_LOAD: Duration = Duration::from_millis(500);
/// A shorter sweep has no time for its steps.
const SHORTEST_SWEEP: Duration = Duration::from_millis(2_500);
/// Loads are short enough for so many rounds, if they settle. On a machine that others share, the throughput of ten seconds
/// scatters nearly as much as that of one, so that many short rounds tell more than few long ones.
const AIM_ROUNDS: u32 = 30;
/// Rounds end here at the latest.
const ROUNDS_MAX: u32 = 1_000;

/// One measured load of one variant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial<'a> {
    /// From 0.
    pub(crate) round: u32,
    pub(crate) work: &'a Workload,
    pub(crate) variant: &'a Variant,
    /// How long its load or sweep may take; `None`: as long as it needs.
    pub(crate) time: Option<Duration>,
    /// How long the test of its verdict may take, if that calls for one; zero: there is no time left; `None`: it is not tested.
    pub(crate) test: Option<Duration>,
}

/// What is still to come, as far as it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// Trials still to be made, if no more of the order is decided.
    pub trials: u32,
    /// How long they take. A sweep without a time of its own counts as [`FREE_SWEEP`] until one was made.
    pub time: Duration,
}

/// The trials of an experiment. Each round of a workload is a randomised block (Fisher 1935): a drift of the machine
/// favours no variant, and the order is the same for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Trials<'a> {
    seed: u64,
    /// Every variant gets so many.
    rounds: u32,
    /// For more of them; `None`: there are no more.
    time: Option<Duration>,
    spent: Duration,
    works: Vec<Block<'a>>,
    confirming: Confirming<'a>,
    /// What is left of the block that is being made.
    block: VecDeque<Trial<'a>>,
}

/// The blocks of one workload.
#[derive(Debug, Clone)]
struct Block<'a> {
    work: &'a Workload,
    /// Those that get further rounds.
    variants: Vec<&'a Variant>,
    /// The round that comes next.
    round: u32,
    /// How many rounds were pilots: their loads were too short, and do not count.
    pilots: u32,
    /// Whether its trials are sweeps.
    swept: bool,
    length: LoadLength<'a>,
    /// Trials that were made, and how long they took together.
    made: (u32, Duration),
    /// Whether several variants were compared and all of them are in order.
    settled: bool,
    /// How wide intervals would be after one round ([`StillOpen::scatter`]), once it is known.
    scatter: Option<f64>,
    /// Whether variants that are not in order may differ much ([`StillOpen::may_differ_much`]).
    may_differ_much: bool,
}

impl<'a> Trials<'a> {
    /// Plans an experiment. `load` is the length of each load, where that is fixed.
    pub(crate) fn new(experiment: &'a Experiment, seed: u64, load: Option<Duration>) -> Self {
        Self::planned(experiment, seed, load, false)
    }

    /// Plans an experiment whose trials are all sweeps, whatever its file says.
    pub(crate) fn of_sweeps(experiment: &'a Experiment, seed: u64) -> Self {
        Self::planned(experiment, seed, None, true)
    }

    fn planned(experiment: &'a Experiment, seed: u64, load: Option<Duration>, all_swept: bool) -> Self {
        let swept: Vec<&Workload> = experiment.works.iter().filter(|work| is_sweep(work)).collect();
        let confirming = Confirming::new(experiment, &swept, least(experiment));
        let time = experiment.time.map(|time| time.saturating_sub(confirming.left()));
        let shares = Shares { experiment, time };
        let length = |work: &Workload, swept: bool| {
            let time = load.filter(|_| !swept).or_else(|| shares.time_each(work, swept));
            LoadLength::new(time, swept || load.is_some() || !experiment.compares())
        };
        let is_swept = |work: &Workload| all_swept || is_sweep(work);
        let works = experiment.works.iter().map(|work| Block {
            work,
            swept: is_swept(work),
            length: length(work, is_swept(work)),
            variants: experiment.variants.iter().collect(),
            round: 0,
            pilots: 0,
            made: (0, Duration::ZERO),
            settled: false,
            scatter: None,
            may_differ_much: true,
        });
        Trials {
            seed,
            rounds: experiment.rounds,
            time: experiment.time.filter(|_| experiment.compares()),
            spent: Duration::ZERO,
            works: works.collect(),
            confirming,
            block: VecDeque::new(),
        }
    }

    /// The trial that comes next.
    pub(crate) fn next(&mut self) -> Option<Trial<'a>> {
        while self.block.is_empty() {
            let place = self.due().or_else(|| self.worth_more())?;
            let block = &mut self.works[place];
            self.block = block.trials(self.seed, place);
            block.round += 1;
        }
        let trial = self.block.pop_front()?;
        let test = self.confirming.time_for(&trial.work.name, &trial.variant.name, trial.round);
        Some(Trial { test: test.filter(|_| is_sweep(trial.work)), ..trial })
    }

    /// The workload (its place) whose next round is one of those that the file asks for: that with the fewest.
    fn due(&self) -> Option<usize> {
        let is_due = |block: &Block<'_>| block.counted() < self.rounds && !block.variants.is_empty();
        let due = self.works.iter().enumerate().filter(|(_, block)| is_due(block));
        due.min_by_key(|(_, block)| block.counted()).map(|(place, _)| place)
    }

    /// The workload (its place) for whose open variants there is time for one more round: of those whose variants may differ much,
    /// if there are such, that whose intervals it narrows most for its time, so that the sum of all widths falls fastest. Where
    /// that is not known, that on which the least time was spent.
    fn worth_more(&self) -> Option<usize> {
        let time = self.time?;
        let fits = |block: &Block<'_>| {
            block.variants.len() > 1 && block.round < ROUNDS_MAX && self.spent + block.cost() <= time
        };
        let mut open: Vec<_> = self.works.iter().enumerate().filter(|(_, block)| fits(block)).collect();
        if open.iter().any(|(_, block)| block.may_differ_much) {
            open.retain(|(_, block)| block.may_differ_much);
        }
        let gains: Option<Vec<f64>> = open.iter().map(|(_, block)| block.gain_per_s()).collect();
        let best = match gains {
            Some(gains) => open.iter().zip(gains).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(one, _)| one),
            None => open.iter().min_by_key(|(_, block)| block.made.1),
        };
        best.map(|(place, _)| *place)
    }

    /// Takes note of a trial that was made, or tried, and of how long that took.
    pub(crate) fn made(&mut self, trial: &Trial<'_>, took: Duration) {
        self.spent += took;
        if let Some(block) = self.block_of(trial) {
            block.made = (block.made.0 + 1, block.made.1 + took);
            block.length.made(took);
        }
    }

    /// Takes note of the throughput of a load (by the speed of the processors, where that is known), and of whether it was long
    /// enough to settle. Where most of a round were not, it
    /// may be broken off, and is made again of longer loads: this is returned.
    pub(crate) fn settled(&mut self, trial: &Trial<'a>, throughput_per_s: f64, settled: bool) -> bool {
        let (last, share) = (self.block.is_empty(), self.share_of_what_is_left(trial));
        let Some(block) = self.block_of(trial) else { return false };
        block.length.note(&trial.variant.name, throughput_per_s, settled);
        let again = block.length.lengthen(block.variants.len(), share);
        if again {
            block.pilots += 1;
            self.block.clear();
        } else if last {
            block.length.keep(share);
        }
        again
    }

    /// The time that each trial of this one's workload may take which is still due, if those of the round of this one are made
    /// again: an equal share, or up to twice that if the other workloads leave so much.
    fn share_of_what_is_left(&self, trial: &Trial<'_>) -> Option<Duration> {
        let left = self.time?.saturating_sub(self.spent + self.confirming.left());
        let due =
            |block: &Block<'_>| self.rounds.saturating_sub(block.counted()) * block.variants.len() as u32;
        let own = self.works.iter().find(|block| block.work.name == trial.work.name)?;
        let others = || self.works.iter().filter(|block| block.work.name != trial.work.name);
        let own_due = due(own) + own.variants.len() as u32;
        let equal = left.checked_div(own_due + others().map(due).sum::<u32>())?;
        let needed = others().map(|block| block.cost_each() * due(block)).sum();
        let rest = left.saturating_sub(needed).checked_div(own_due)?;
        Some(equal.max(rest.min(2 * equal)))
    }

    fn block_of(&mut self, trial: &Trial<'_>) -> Option<&mut Block<'a>> {
        self.works.iter_mut().find(|block| block.work.name == trial.work.name)
    }

    /// Takes note of a test of the verdict of a trial, and of how much of the trial's time that took. Others take less without.
    pub(crate) fn tested(&mut self, trial: &Trial<'_>, took: Duration) {
        self.confirming.tested(&trial.work.name, &trial.variant.name, took);
        if let Some(block) = self.block_of(trial) {
            block.made.1 = block.made.1.saturating_sub(took);
        }
    }

    /// Whether the trial that came last completed a block.
    pub(crate) fn block_is_complete(&self) -> bool {
        self.block.is_empty()
    }

    /// Gives further rounds of a workload to the open variants alone, once every variant had those that the file asks for.
    pub(crate) fn keep_open(&mut self, trial: &Trial<'_>, open: &StillOpen) {
        let rounds = self.rounds;
        if let Some(block) = self.block_of(trial).filter(|block| block.counted() >= rounds) {
            block.scatter = open.scatter;
            block.may_differ_much = open.may_differ_much;
            block.settled = open.variants.is_empty() && block.variants.len() > 1;
            self.retain(&trial.work.name, |variant| open.variants.iter().any(|one| one == variant));
        }
    }

    /// The time that is left over because every order is settled; `None` if none is, or too little for another trial.
    pub(crate) fn left_over(&self) -> Option<Duration> {
        let left = self.time?.saturating_sub(self.spent);
        let cost = self.works.iter().map(Block::cost_each).max()?;
        (left >= cost && self.works.iter().all(|block| block.settled)).then_some(left)
    }

    /// Makes no more trials of a variant on a workload; of all workloads if its name is empty.
    pub(crate) fn leave_out(&mut self, variant: &str, work: &str) {
        self.retain(work, |name| name != variant);
        self.confirming.leave_out(variant, work);
        let is_other = |trial: &Trial<'_>| {
            trial.variant.name != variant || (!work.is_empty() && trial.work.name != work)
        };
        self.block.retain(is_other);
    }

    fn retain(&mut self, work: &str, keep: impl Fn(&str) -> bool) {
        for block in self.works.iter_mut().filter(|block| work.is_empty() || block.work.name == work) {
            block.variants.retain(|variant| keep(&variant.name));
        }
    }

    /// What is still to come.
    pub(crate) fn forecast(&self) -> Forecast {
        let mut ahead = self.clone();
        let (mut trials, mut time) = (0, Duration::ZERO);
        let mut tests = Some(self.confirming.left());
        while let Some(trial) = ahead.next() {
            // All tests are made in the rounds that come first.
            let tests = tests.take_if(|_| trial.test.is_some()).unwrap_or_default();
            let block = ahead.works.iter().find(|block| block.work.name == trial.work.name);
            let cost = block.map_or(AROUND, Block::cost_each);
            trials += 1;
            time += cost + tests;
            ahead.made(&trial, cost);
            ahead.spent += tests;
        }
        Forecast { trials, time }
    }

    /// How long the least number of rounds takes, if each trial is as short as can be; `None` if the time is enough.
    pub(crate) fn too_short(&self) -> Option<Duration> {
        let needed_for = |block: &Block<'_>| block.shortest() * self.rounds * block.variants.len() as u32;
        let needed = self.works.iter().map(needed_for).sum();
        self.time.filter(|time| *time < needed).map(|_| needed)
    }
}

impl<'a> Block<'a> {
    /// How many rounds were begun that count.
    fn counted(&self) -> u32 {
        self.round - self.pilots
    }

    /// The trials of the next round, in an order of its own.
    fn trials(&mut self, seed: u64, place: usize) -> VecDeque<Trial<'a>> {
        self.length.begin_round();
        let (work, round, time) = (self.work, self.round, self.length.time());
        let mut variants = self.variants.clone();
        // Of each block, whatever came before: an experiment that goes on makes the same.
        let mut random = Rng::with_seed(seed ^ (u64::from(round) << 32 | place as u64));
        random.shuffle(&mut variants);
        variants.into_iter().map(|variant| Trial { round, work, variant, time, test: None }).collect()
    }

    /// How long a trial takes, by those that were made.
    fn cost_each(&self) -> Duration {
        match self.made.0 {
            0 => self.length.time().unwrap_or(if self.swept { FREE_SWEEP } else { LONGEST_LOAD }) + AROUND,
            made if self.swept => self.made.1 / made,
            // Those before may have been shorter.
            made => (self.made.1 / made).max(self.length.cost()),
        }
    }

    /// By how much one more round narrows the intervals, for each second that it takes: w(n) = scatter / sqrt(n), and its
    /// derivative. `None` where the scatter is not known.
    fn gain_per_s(&self) -> Option<f64> {
        let (rounds, cost_s) = (f64::from(self.counted()), self.cost().as_secs_f64());
        Some(self.scatter? / (2.0 * rounds.powf(1.5) * cost_s.max(f64::MIN_POSITIVE)))
    }

    fn cost(&self) -> Duration {
        self.cost_each() * self.variants.len() as u32
    }

    /// How long the shortest trial takes.
    fn shortest(&self) -> Duration {
        let shortest = if self.swept { SHORTEST_SWEEP } else { SHORTEST_LOAD };
        shortest.min(self.length.time().unwrap_or(shortest)) + AROUND
    }
}

fn is_sweep(work: &Workload) -> bool {
    matches!(work.users, Users::Swept(_))
}

fn shortest_of(work: &Workload) -> Duration {
    if is_sweep(work) { SHORTEST_SWEEP } else { SHORTEST_LOAD }
}

/// How long the rounds take that the file asks for, if each trial is as short as can be.
fn least(experiment: &Experiment) -> Duration {
    let trials =
        u32::try_from(experiment.variants.len()).unwrap_or(u32::MAX).saturating_mul(experiment.rounds);
    experiment.works.iter().map(|work| (shortest_of(work) + AROUND).saturating_mul(trials)).sum()
}

/// The time of an experiment that goes to its trials.
#[derive(Clone, Copy)]
struct Shares<'a> {
    experiment: &'a Experiment,
    time: Option<Duration>,
}

impl Shares<'_> {
    /// An equal share of it for each trial of so many rounds.
    fn share(&self, rounds: u32) -> Option<Duration> {
        let trials = rounds as usize * self.experiment.works.len() * self.experiment.variants.len();
        Some(self.time? / u32::try_from(trials.max(1)).unwrap_or(u32::MAX))
    }

    /// The time that each trial of a workload may take. Loads are short, so that there are enough rounds to compare
    /// them by; but as long as requests may take, if there is time for that in the rounds that the file asks for.
    fn time_each(&self, work: &Workload, swept: bool) -> Option<Duration> {
        let Self { experiment, .. } = *self;
        let whole = self.share(experiment.rounds)?.saturating_sub(AROUND);
        if swept {
            return Some(whole.max(SHORTEST_SWEEP));
        }
        let rounds =
            if experiment.compares() { experiment.rounds.max(AIM_ROUNDS) } else { experiment.rounds };
        let slow = work.timeout.unwrap_or_default().min(whole);
        let short = self.share(rounds)?.saturating_sub(AROUND);
        Some(short.min(LONGEST_LOAD).max(slow).max(SHORTEST_LOAD))
    }
}

impl Trial<'_> {
    /// What it is called in messages: `epoll, 100 KB, round 2`.
    pub(crate) fn name(&self, experiment: &Experiment) -> String {
        let several = experiment.compares() || experiment.rounds > 1;
        let round = if several { format!("round {}", self.round + 1) } else { String::new() };
        let parts = [self.variant.name.as_str(), self.work.name.as_str(), round.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        path::Path,
    };

    use super::*;
    use crate::document::{Disk, read};

    fn experiment(time: &str) -> Experiment {
        let text = r#"
            title = "x"
            time = "TIME"
            rounds = 2
            axis = { engine = ["threads", "epoll", "uring", "poll"] }
            [[work]]
            name = "few"
            url = "http://127.0.0.1:1/${engine}"
            users = 4
            [[work]]
            name = "many"
            url = "http://127.0.0.1:1/${engine}"
            users = 64
        "#;
        read(Path::new("mine.toml"), &text.replace("TIME", time), &Disk).expect("an experiment")
    }

    /// All trials, each of which takes as long as it may and a second more; `open` tells after each block which variants
    /// go on.
    fn all<'a>(
        trials: &mut Trials<'a>,
        open: impl Fn(&Trial<'a>) -> Option<&'static [&'static str]>,
    ) -> Vec<Trial<'a>> {
        let mut all = Vec::new();
        while let Some(trial) = trials.next() {
            trials.made(&trial, trial.time.expect("a time") + Duration::from_secs(1));
            if let (true, Some(open)) = (trials.block_is_complete(), open(&trial)) {
                let variants = open.iter().map(|variant| String::from(*variant)).collect();
                trials.keep_open(&trial, &StillOpen { variants, ..StillOpen::default() });
            }
            all.push(trial);
        }
        all
    }

    #[test]
    fn every_block_has_every_variant_once_in_an_order_of_its_own() {
        let experiment = experiment("1s");
        let made = all(&mut Trials::new(&experiment, 7, None), |_| None);
        // There is no time for more rounds than two.
        assert_eq!(made.len(), 16);
        let mut orders = BTreeSet::new();
        for block in made.chunks(4) {
            let order: Vec<&str> = block.iter().map(|trial| trial.variant.name.as_str()).collect();
            assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 4, "{order:?}");
            assert!(block.iter().all(|trial| trial.work.name == block[0].work.name));
            orders.insert(order);
        }
        assert!(orders.len() > 1, "{orders:?}");
        let names = |all: &[Trial<'_>]| all.iter().map(|trial| trial.name(&experiment)).collect::<Vec<_>>();
        assert_eq!(names(&all(&mut Trials::new(&experiment, 7, None), |_| None)), names(&made));
    }

    #[test]
    fn time_that_is_left_makes_more_rounds() {
        let experiment = experiment("2m");
        let mut trials = Trials::new(&experiment, 1, None);
        // Blocks of four trials of 1.7 s, of which 1.2 s go to what is around a load.
        assert_eq!(trials.clone().next().and_then(|trial| trial.time), Some(SHORTEST_LOAD));
        let forecast = trials.forecast();
        assert_eq!((forecast.trials, forecast.time), (68, Duration::from_millis(68 * 1_700)));
        // Each took 1.5 s.
        let made = all(&mut trials, |_| None);
        assert_eq!(made.len(), 80);
        assert_eq!(trials.too_short(), None);
        assert!(trials.spent <= Duration::from_secs(120));
    }

    /// Sweeps that had no time of their own began without a word of how long they would take.
    #[test]
    fn sweeps_without_a_time_are_taken_for_what_the_first_ones_took() {
        let mut experiment = experiment("8m");
        experiment.time = None;
        experiment.works.truncate(1);
        let mut trials = Trials::of_sweeps(&experiment, 1);
        let before = trials.forecast();
        assert_eq!(before.time, (FREE_SWEEP + AROUND) * before.trials);
        let first = trials.next().expect("a trial");
        trials.made(&first, Duration::from_secs(20));
        let after = trials.forecast();
        assert_eq!((after.trials, after.time), (before.trials - 1, Duration::from_secs(20) * after.trials));
    }

    #[test]
    fn time_for_tests_is_told_and_goes_to_more_rounds_where_there_are_none() {
        let mut experiment = experiment("8m");
        experiment.works[1].users = Users::Swept(vec!["1".into(), "64".into()]);
        let mut trials = Trials::new(&experiment, 1, None);
        let (tests, all) = (trials.confirming.left(), Duration::from_secs(480));
        assert_eq!(tests, all / 10);
        let forecast = trials.forecast().time;
        assert!(forecast <= all && forecast > all - Duration::from_secs(120), "{forecast:?}");
        let mut times = Vec::new();
        while let Some(trial) = trials.next() {
            let time = trial.time.expect("a time") + AROUND;
            let test = trial.test.filter(|_| trial.variant.name == "poll").unwrap_or_default();
            trials.made(&trial, time + test);
            times.extend(trial.test.filter(|_| trial.variant.name == "poll"));
            if !test.is_zero() {
                trials.tested(&trial, test);
            }
            assert!(trial.test.is_none() || (trial.round < 2 && trial.work.name == "many"));
        }
        // A quarter of the time for four variants, in the first round alone.
        assert_eq!(times, [tests / 4]);
        assert!(trials.spent <= all && trials.spent > all * 9 / 10, "{:?}", trials.spent);
    }

    /// How long the loads of a workload are, in milliseconds, if those of "few" settle from some length on and each takes
    /// so long beside.
    fn lengths(settles_from: Duration, around: Duration) -> Vec<(String, u32, u128)> {
        let experiment = experiment("2m");
        let mut trials = Trials::new(&experiment, 1, None);
        let mut lengths = Vec::new();
        while let Some(trial) = trials.next() {
            let time = trial.time.expect("a time");
            trials.made(&trial, time + around);
            let short = time.as_secs_f64().min(settles_from.as_secs_f64());
            trials.settled(&trial, 100.0 * short, trial.work.name == "many" || time >= settles_from);
            lengths.push((trial.work.name.clone(), trial.round, time.as_millis()));
        }
        lengths
    }

    #[test]
    fn a_round_of_loads_that_are_too_short_is_broken_off_and_made_of_longer_ones() {
        let all = lengths(Duration::from_secs(2), Duration::from_millis(100));
        let of = |work: &str, length: u128| all.iter().filter(|one| one.0 == work && one.2 == length).count();
        // Three of four tell it; there are two rounds at least.
        assert_eq!([500, 1_000].map(|length| of("few", length)), [3, 3]);
        assert!(of("few", 2_000) >= 8 && of("few", 2_000) % 4 == 0, "{all:?}");
        let first = all.iter().find(|one| one.0 == "few" && one.2 == 2_000).expect("long ones");
        assert_eq!(first.1, 2, "pilots are rounds of their own");
        // The other workload does as well with short ones, and has more rounds in as much time.
        assert_eq!(of("many", 500), all.iter().filter(|one| one.0 == "many").count());
        let spent = |work: &str| all.iter().filter(|one| one.0 == work).map(|one| one.2 + 100).sum::<u128>();
        assert!(spent("many").abs_diff(spent("few")) <= 4 * 2_100, "{all:?}");
        assert!(of("many", 500) > 2 * of("few", 2_000), "{all:?}");
    }

    #[test]
    fn loads_that_never_settle_are_as_long_as_may_be() {
        let all = lengths(Duration::MAX, Duration::from_millis(100));
        let mut few: Vec<u128> = all.iter().filter(|one| one.0 == "few").map(|one| one.2).collect();
        few.dedup();
        // An equal share of two rounds of 16 trials is 7.5 s, but the other workload is content with half a second.
        assert_eq!(few, [500, 1_000, 2_000, 4_000, 8_000]);
        let spent: u128 = all.iter().map(|one| one.2 + 100).sum();
        assert!(spent <= 120_000, "{spent}");
    }

    #[test]
    fn rounds_go_to_what_is_open() {
        let experiment = experiment("2m");
        let made = all(&mut Trials::new(&experiment, 1, None), |trial| match trial.work.name.as_str() {
            "few" => Some(&["epoll", "uring"]),
            _ => Some(&[]),
        });
        let count = |work: &str, variant: &str| {
            let is_it = |trial: &&Trial<'_>| trial.work.name == work && trial.variant.name == variant;
            made.iter().filter(is_it).count()
        };
        assert_eq!((count("few", "threads"), count("many", "epoll")), (2, 2));
        assert!(count("few", "epoll") > 15 && count("few", "epoll") == count("few", "uring"));
    }

    /// How many trials each of the two workloads gets in four minutes, if all of its variants stay open and each block of it tells
    /// this of them.
    fn shared_out(told: impl Fn(&str, usize) -> StillOpen) -> (usize, usize) {
        let experiment = experiment("4m");
        let mut trials = Trials::new(&experiment, 1, None);
        let variants: Vec<String> = experiment.variants.iter().map(|variant| variant.name.clone()).collect();
        let mut made = BTreeMap::from([("few", 0), ("many", 0)]);
        while let Some(trial) = trials.next() {
            trials.made(&trial, Duration::from_secs(1));
            let made = made.get_mut(trial.work.name.as_str()).expect("a workload");
            *made += 1;
            if trials.block_is_complete() {
                trials.keep_open(
                    &trial,
                    &StillOpen { variants: variants.clone(), ..told(&trial.work.name, *made) },
                );
            }
        }
        (made["few"], made["many"])
    }

    /// Ten models told apart on small bodies kept as many rounds as on large ones, whose throughput scatters more.
    #[test]
    fn more_rounds_go_to_what_scatters_more() {
        let (few, many) = shared_out(|work, _| StillOpen {
            scatter: Some(if work == "few" { 0.08 } else { 0.01 }),
            ..StillOpen::default()
        });
        // n goes with the scatter to the power of two thirds: four times as many.
        assert!((3.5..4.5).contains(&(few as f64 / many as f64)), "{few} and {many}");
    }

    /// Five models within a few percent of each other took the rounds that others needed, of which one may be 15 % slower.
    #[test]
    fn variants_that_differ_little_wait_for_those_that_may_differ_much() {
        let open =
            |much: bool| StillOpen { scatter: Some(0.05), may_differ_much: much, ..StillOpen::default() };
        // After the two rounds that the file asks for.
        let (few, many) = shared_out(|work, _| open(work == "few"));
        assert!(few > 200 && many == 8, "{few} and {many}");
        // What is found out frees the rest of the time for all.
        let (few, many) = shared_out(|work, made| open(work == "few" && made < 80));
        assert!(few.abs_diff(many) <= 8, "{few} and {many}");
    }

    #[test]
    fn nothing_open_ends_it_before_its_time() {
        let experiment = experiment("2m");
        let mut trials = Trials::new(&experiment, 1, None);
        assert_eq!(all(&mut trials, |_| Some(&[])).len(), 16);
        assert_eq!(trials.left_over(), Some(Duration::from_secs(120) - trials.spent));
        // Nor is there anything to compare a single variant with.
        let mut alone = Trials::new(&experiment, 1, None);
        assert_eq!(all(&mut alone, |_| Some(&["poll"])).len(), 16);
        assert_eq!(alone.left_over(), None);
    }

    #[test]
    fn what_fails_is_left_out_of_all_that_comes() {
        let experiment = experiment("1s");
        let mut trials = Trials::new(&experiment, 1, None);
        trials.leave_out("poll", "");
        trials.leave_out("uring", "few");
        let made = all(&mut trials, |_| None);
        assert_eq!(made.len(), 10);
        assert!(made.iter().all(|trial| trial.variant.name != "poll"));
    }

    #[test]
    fn time_that_is_too_short_is_told_with_what_is_needed() {
        let (short, load) = (experiment("10s"), experiment("10m"));
        let needed = Trials::new(&short, 1, None).too_short();
        assert_eq!(needed, Some(Duration::from_millis(16 * 1_700)));
        // Loads are no longer than they need be, unless requests are slow.
        let time = |experiment: &Experiment| Trials::new(experiment, 1, None).next().and_then(|one| one.time);
        assert_eq!(time(&load), Some(Duration::from_millis(1_300)));
        let mut slow = load;
        slow.works[0].timeout = Some(Duration::from_secs(20));
        assert_eq!(time(&slow), Some(Duration::from_secs(20)));
        assert_eq!(
            Trials::new(&slow, 1, Some(Duration::from_secs(3))).next().and_then(|one| one.time),
            Some(Duration::from_secs(3))
        );
    }
}
