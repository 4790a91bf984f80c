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
use load::{LoadError, Think};

use crate::sweep::Driver;

/// Most pairs that are measured.
const PAIRS_MAX: usize = 12;
/// With time for fewer, none is measured.
const PAIRS_MIN: u64 = 5;
/// A stretch of one load holds about so many requests of each user.
const REQUESTS: f64 = 8.0;
/// The shortest stretch, microseconds.
const STRETCH_US_MIN: f64 = 150_000.0;
/// The least time at the start of a stretch that is left out, microseconds: requests of the one before.
const SETTLING_US: f64 = 30_000.0;
/// How long to wait for requests of the users before, microseconds: a connection that found no room tries again after 1 s,
/// and then after another 2 s.
const DRAINING_US_MAX: u64 = 3_200_000;

/// Makes the experiment in at most this time, microseconds. `None` where that is too short, or when interrupted.
pub(crate) fn tell_apart(
    driver: &mut impl Driver,
    plan: Plan,
    most_us: u64,
    interrupt: &AtomicBool,
) -> Result<Option<Trial>, LoadError> {
    let stretch = Stretch::new(&plan);
    if stretch.pair_us().saturating_mul(PAIRS_MIN) > most_us {
        return Ok(None);
    }
    let [first, second] = plan.sides();
    stretch.drain(driver, first, interrupt)?;
    let (mut trial, mut spent_us) = (Trial { plan, pairs: Vec::new() }, 0);
    while trial.pairs.len() < PAIRS_MAX && spent_us + stretch.pair_us() <= most_us && !trial.is_decided() {
        let first_us = stretch.mean_us(driver, first, interrupt)?;
        let second_us = stretch.mean_us(driver, second, interrupt)?;
        if interrupt.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // A stretch in which nobody was answered says nothing.
        trial.pairs.extend(first_us.zip(second_us).map(|(first_us, second_us)| Pair { first_us, second_us }));
        spent_us += stretch.pair_us();
    }
    Ok(Some(trial))
}

/// How long to stay at one load.
struct Stretch {
    settling_us: u64,
    length_us: u64,
}

impl Stretch {
    fn new(plan: &Plan) -> Self {
        let length_us = (REQUESTS * (plan.alone_us + plan.think_us)).max(STRETCH_US_MIN);
        Self { settling_us: plan.alone_us.max(SETTLING_US) as u64, length_us: length_us as u64 }
    }

    fn pair_us(&self) -> u64 {
        2 * (self.settling_us + self.length_us)
    }

    /// Waits for the requests of the users before: some may still be trying to connect to a server that was overloaded.
    fn drain(&self, driver: &mut impl Driver, side: Side, interrupt: &AtomicBool) -> Result<(), LoadError> {
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
    ) -> Result<Option<f64>, LoadError> {
        set(driver, side)?;
        driver.collect(self.settling_us, interrupt)?;
        let ticks = driver.collect(self.length_us, interrupt)?;
        let sum = |read: fn(&Tick) -> u64| ticks.iter().map(read).sum::<u64>() as f64;
        let (answered, sum_ns) = (sum(|tick| tick.completed), sum(|tick| tick.response_time_ns_sum));
        Ok((answered > 0.0).then(|| sum_ns / answered / 1e3))
    }
}

fn set(driver: &mut impl Driver, Side { users, think_us }: Side) -> Result<(), LoadError> {
    driver.set_think(Think::Exponential(Duration::from_secs_f64(think_us / 1e6)));
    driver.set_users(users)
}
