//! Tells one explanation of a verdict from another: drives two loads in turn and compares their response times.
//!
//! What this shows is said in [`analysis::tell_apart`].

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use analysis::{
    tell_apart::{Pair, Plan, Side, Trial},
    ticks::Tick,
};
use load::Think;

use crate::driver::{DriveError, Driver};

/// Most pairs that are measured.
const PAIRS_MAX: usize = 12;
/// With time for fewer, none is measured.
const PAIRS_MIN: u64 = 5;
/// The experiment takes at most one part in so many of the time that the steps took.
const SHARE: u64 = 3;
/// The same where the fewest pairs take longer than that: a verdict that was not tried is worse than one that came later.
const SHARE_MOST: u64 = 2;
/// A stretch of one load holds about so many requests of each user.
const REQUESTS: f64 = 8.0;
/// The shortest stretch, microseconds.
const STRETCH_US_MIN: f64 = 150_000.0;
/// The least time at the start of a stretch that is left out, microseconds: requests of the one before.
const SETTLING_US: f64 = 30_000.0;
/// Users who begin together meet until their pauses have spread them: what so many requests of each take is left out too.
const SPREADING: f64 = 3.0;
/// How long to wait for requests of the users before, microseconds: a connection that found no room tries again after 1 s,
/// and then after another 2 s.
const DRAINING_US_MAX: u64 = 3_200_000;

/// Makes the experiment in a part of the time that the steps took, microseconds; in less where it is decided before, or would not
/// be in the end. Where the verdict is open still, it is gone on with for as long again. `None` where the time is too short,
/// or when interrupted.
pub(crate) fn tell_apart(
    driver: &mut impl Driver,
    plan: Plan,
    steps_us: u64,
    interrupt: &AtomicBool,
    is_open: &dyn Fn(&Trial) -> bool,
) -> Result<Option<Trial>, DriveError> {
    let stretch = Stretch::new(&plan);
    let Some(most_us) = stretch.most_us(steps_us) else { return Ok(None) };
    stretch.drain(driver, plan.sides()[0], interrupt)?;
    let pairs_most =
        usize::try_from(most_us / stretch.pair_us()).map_or(PAIRS_MAX, |most| most.min(PAIRS_MAX));
    let mut trial = Trial { plan, pairs: Vec::new() };
    let is_enough = |trial: &Trial| trial.is_decided() || trial.is_futile(pairs_most);
    let is_over = |trial: &Trial| !is_open(trial) || trial.tells_no_more() || trial.is_futile(2 * pairs_most);
    let made = stretch.pairs(driver, &mut trial, pairs_most, interrupt, &is_enough)?
        && stretch.pairs(driver, &mut trial, pairs_most, interrupt, &is_over)?;
    Ok(made.then_some(trial))
}

/// How long to stay at one load.
struct Stretch {
    settling_us: u64,
    spreading_us: u64,
    length_us: u64,
}

impl Stretch {
    fn new(plan: &Plan) -> Self {
        let cycle_us = plan.alone_us + plan.think_us;
        let spreading_us = if plan.users > 1 { SPREADING * cycle_us } else { 0.0 };
        Self {
            settling_us: plan.alone_us.max(SETTLING_US) as u64,
            spreading_us: spreading_us as u64,
            length_us: (REQUESTS * cycle_us).max(STRETCH_US_MIN) as u64,
        }
    }

    fn pair_us(&self) -> u64 {
        2 * (self.settling_us + self.length_us) + self.spreading_us
    }

    /// How long the experiment may take beside steps that took so long, microseconds; `None` where that is too short for it.
    fn most_us(&self, steps_us: u64) -> Option<u64> {
        let least_us = self.pair_us().saturating_mul(PAIRS_MIN);
        (least_us <= steps_us / SHARE_MOST).then_some(least_us.max(steps_us / SHARE))
    }

    /// Adds so many pairs, or fewer where these are enough. Whether that was not interrupted.
    fn pairs(
        &self,
        driver: &mut impl Driver,
        trial: &mut Trial,
        most: usize,
        interrupt: &AtomicBool,
        is_enough: &dyn Fn(&Trial) -> bool,
    ) -> Result<bool, DriveError> {
        let [first, second] = trial.plan.sides();
        for _ in 0..most {
            if is_enough(trial) {
                break;
            }
            let first_us = self.mean_us(driver, first, interrupt)?;
            let second_us = self.mean_us(driver, second, interrupt)?;
            if interrupt.load(Ordering::Relaxed) {
                return Ok(false);
            }
            // A stretch in which nobody was answered says nothing.
            trial
                .pairs
                .extend(first_us.zip(second_us).map(|(first_us, second_us)| Pair { first_us, second_us }));
        }
        Ok(true)
    }

    /// Waits for the requests of the users before: some may still be trying to connect to a server that was overloaded.
    fn drain(&self, driver: &mut impl Driver, side: Side, interrupt: &AtomicBool) -> Result<(), DriveError> {
        set(driver, side)?;
        let mut waited_us = 0;
        while waited_us < DRAINING_US_MAX && !interrupt.load(Ordering::Relaxed) {
            let ticks = driver.collect(self.settling_us, interrupt)?;
            waited_us += self.settling_us;
            if ticks.last().and_then(|tick| tick.generator.in_flight).is_none_or(|requests| requests <= 1) {
                break;
            }
        }
        Ok(())
    }

    /// The mean response time of a load, microseconds, if any request was answered.
    fn mean_us(
        &self,
        driver: &mut impl Driver,
        side: Side,
        interrupt: &AtomicBool,
    ) -> Result<Option<f64>, DriveError> {
        set(driver, side)?;
        let spreading_us = if side.users > 1 { self.spreading_us } else { 0 };
        driver.collect(self.settling_us + spreading_us, interrupt)?;
        let ticks = driver.collect(self.length_us, interrupt)?;
        // Counts of others may be anything.
        let sum = |read: fn(&Tick) -> u64| ticks.iter().map(read).fold(0, u64::saturating_add) as f64;
        let (answered, sum_ns) = (sum(|tick| tick.completed), sum(|tick| tick.response_time_ns_sum));
        Ok((answered > 0.0).then(|| sum_ns / answered / 1e3))
    }
}

fn set(driver: &mut impl Driver, Side { users, think_us }: Side) -> Result<(), DriveError> {
    driver.set_think(Think::Exponential(Duration::from_secs_f64(think_us / 1e6)));
    driver.set_users(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers after 10 ms, and after 20 ms for the first 40 ms of several users, who began together.
    #[derive(Default)]
    struct Together {
        users: u32,
        since_us: u64,
    }

    impl Driver for Together {
        fn set_users(&mut self, users: u32) -> Result<(), DriveError> {
            (self.users, self.since_us) = (users, 0);
            Ok(())
        }

        fn set_think(&mut self, _: Think) {}

        fn collect(&mut self, for_us: u64, _: &AtomicBool) -> Result<Vec<Tick>, DriveError> {
            let ticks = (0..for_us / 5_000).map(|slice| {
                let begins = self.users > 1 && self.since_us + slice * 5_000 < 40_000;
                let response_ns = if begins { 20_000_000 } else { 10_000_000 };
                Tick { length_us: 5_000, completed: 1, response_time_ns_sum: response_ns, ..Tick::default() }
            });
            let ticks = ticks.collect();
            self.since_us += for_us;
            Ok(ticks)
        }
    }

    /// A lock behind a proxy was called a pool of three, 94 %: its steps were done within 27 s, the experiment needed 9.2 s, and
    /// was not made.
    #[test]
    fn steps_that_were_done_soon_leave_time_for_an_experiment() {
        let stretch = Stretch::new(&Plan::new(3.0, [60_500.0, 20_000.0, 0.0]).expect("three users"));
        let least_us = stretch.pair_us() * PAIRS_MIN;
        assert!((9_000_000..9_500_000).contains(&least_us), "{least_us}");
        assert_eq!(stretch.most_us(27_000_000), Some(least_us));
        assert_eq!(stretch.most_us(45_000_000), Some(15_000_000), "there is time for more");
        assert_eq!(stretch.most_us(18_000_000), None, "it would take longer than half as long as the steps");
    }

    /// Sixty users of twenty workers behind a delay began in one instant, met at the workers, and it was called a lock.
    #[test]
    fn users_who_begin_together_are_given_time_to_spread() {
        let plan = Plan::new(4.0, [10_000.0, 2_500.0, 0.0]).expect("four users");
        let made =
            tell_apart(&mut Together::default(), plan, 60_000_000, &AtomicBool::new(false), &|_| false);
        let trial = made.expect("it runs").expect("it is long enough");
        assert!(trial.pairs.iter().all(|pair| pair.first_us == pair.second_us), "{trial:?}");
        assert_eq!(trial.result().and_then(|result| result.told()), Some(false));
    }

    /// Tells of more requests than there can be.
    struct Liar;

    impl Driver for Liar {
        fn set_users(&mut self, _: u32) -> Result<(), DriveError> {
            Ok(())
        }

        fn set_think(&mut self, _: Think) {}

        fn collect(&mut self, _: u64, _: &AtomicBool) -> Result<Vec<Tick>, DriveError> {
            let (completed, response_time_ns_sum) = (u64::MAX, u64::MAX);
            let tick = Tick { length_us: 5_000, completed, response_time_ns_sum, ..Tick::default() };
            Ok(vec![tick; 4])
        }
    }

    #[test]
    fn counts_that_a_generator_made_up_do_not_overflow() {
        let plan = Plan::new(4.0, [10_000.0, 2_500.0, 0.0]).expect("four users");
        let made = tell_apart(&mut Liar, plan, 60_000_000, &AtomicBool::new(false), &|_| false);
        let trial = made.expect("it runs").expect("it is long enough");
        assert!(trial.pairs.iter().all(|pair| pair.first_us == pair.second_us), "{trial:?}");
    }

    /// Answers one user after 45 ms, and several after so much more, microseconds, or every other time a little more.
    #[derive(Default)]
    struct Longer {
        users: u32,
        by_us: u64,
        scatter_us: u64,
        turns: u64,
    }

    impl Driver for Longer {
        fn set_users(&mut self, users: u32) -> Result<(), DriveError> {
            self.users = users;
            self.turns += u64::from(users > 1);
            Ok(())
        }

        fn set_think(&mut self, _: Think) {}

        fn collect(&mut self, for_us: u64, _: &AtomicBool) -> Result<Vec<Tick>, DriveError> {
            let longer_us = self.by_us + self.scatter_us * (self.turns % 2);
            let response_us = if self.users > 1 { 45_000 + longer_us } else { 45_000 };
            let tick = Tick {
                length_us: 5_000,
                completed: 1,
                response_time_ns_sum: response_us * 1_000,
                ..Tick::default()
            };
            Ok((0..for_us / 5_000).map(|_| tick.clone()).collect())
        }
    }

    /// Two users may wait for 3 ms at a lock that is held for 20 ms, and at a processor that works for 15 ms.
    #[test]
    fn pairs_that_fit_both_explanations_are_not_gone_on_with() {
        let plan = Plan::new(2.25, [45_000.0, 20_000.0, 15_000.0]).expect("two users");
        let pairs = |by_us: u64| {
            let mut driver = Longer { by_us, ..Longer::default() };
            let made = tell_apart(&mut driver, plan, 60_000_000, &AtomicBool::new(false), &|_| false);
            let trial = made.expect("it runs").expect("it is long enough");
            (trial.pairs.len(), trial.result().and_then(|result| result.told()))
        };
        assert_eq!(pairs(3_000), (6, None));
        let (made, told) = pairs(8_000);
        assert!(made < 6 && told == Some(true), "{made} pairs, {told:?}");
    }

    /// Pairs that leave the verdict open are followed by others, unless these would tell no more.
    #[test]
    fn a_verdict_that_is_open_gets_the_time_again() {
        let pairs = |processor_us: f64, [by_us, scatter_us]: [u64; 2], is_open: &dyn Fn(&Trial) -> bool| {
            let plan = Plan::new(2.25, [45_000.0, 20_000.0, processor_us]).expect("two users");
            let mut driver = Longer { by_us, scatter_us, ..Longer::default() };
            let made = tell_apart(&mut driver, plan, 60_000_000, &AtomicBool::new(false), is_open);
            made.expect("it runs").expect("it is long enough").pairs.len()
        };
        let once = pairs(0.0, [1_500, 2_000], &|_| false);
        assert_eq!(pairs(0.0, [1_500, 2_000], &|trial| trial.pairs.len() <= once), once + 1);
        let all = pairs(0.0, [1_500, 2_000], &|_| true);
        assert!((once + 1..=once + PAIRS_MAX).contains(&all), "{all} after {once}");
        assert!(pairs(15_000.0, [3_000, 0], &|_| true) < 6 + PAIRS_MAX, "either explanation fits");
    }
}
