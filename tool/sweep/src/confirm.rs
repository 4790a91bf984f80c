//! Tests a verdict: slows one tier after the other a little while the load stays well beyond N*.
//!
//! What this shows is said in [`analysis::confirmation`]. Which tiers are slowed is decided in [`choice`], by what means in
//! [`slowing`]: by stopping processes for short slices of about a tenth of the time, by a lower CPU quota, or by a lower rate of
//! a link. Whatever it is, it is undone, also where nstar is killed or suspended ([`stand_by`]), and no two runs of nstar lower
//! the same limit at once ([`lock`]).

mod choice;
mod link;
mod lock;
mod quota;
mod slowing;
mod stand_by;
mod stopping;

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use analysis::{
    confirmation::{Block, Slowed, Stretch, Trial},
    counters::Role,
    run::{Bottleneck, LeftAlone, LeftAloneReason, Processes, Step},
    search::saturation::{Saturation, saturation},
    ticks::Tick,
};
use load::Think;
use observe::Topology;

use self::{
    choice::{Choice, Chosen, choose},
    slowing::{Held, Means, SETTLING},
    stopping::SLICE,
};
use crate::{
    conclusion::mean_us,
    driver::{DriveError, Driver},
    progress::{Event, Listener},
    sweep::{Confirming, Stage, SweepError},
};

/// How often each tier is slowed and let go again. The interval narrows with the root of this, and Student's t with it.
const BLOCKS: usize = 6;
/// The stretches of a block: full speed, slowed, slowed, full speed.
const STRETCHES: usize = 4;
/// The shortest stretch at one speed; half of it where time is short.
const STRETCH_MIN: Duration = Duration::from_millis(250);
/// The longest: a tier takes at most 24 of them.
const STRETCH_MAX: Duration = Duration::from_millis(1500);
/// A stretch holds this many times the response time, so that the requests under way at its start do not fill it; half as
/// many where time is short.
const RESPONSES: f64 = 8.0;

/// Slows the tiers of a sweep in turn. `None` where there is nothing to test: throughput never stopped growing, no more
/// users than N* are allowed, or no load can be made any longer.
pub(crate) fn confirm(
    driver: &mut impl Driver,
    swept: &Swept<'_>,
    how: Confirming,
    interrupt: &AtomicBool,
    stage: &mut Stage<'_>,
) -> Result<Option<Trial>, SweepError> {
    let Some(users) = users(swept) else { return Ok(None) };
    let begun = Instant::now();
    let Choice { mut chosen, mut left_alone, is_any_suspected } = choose(swept, how.started_only);
    // Where no tier is suspected, what one of several shows is no answer.
    let least = if is_any_suspected { 1 } else { chosen.len() };
    let (tiers, pace) = within(how.most, least..=chosen.len(), pace(&chosen, stretch(swept.steps, users)));
    let no_time = |of: Chosen| LeftAlone { tier: of.tier, reason: LeftAloneReason::NoTime };
    left_alone.extend(chosen.split_off(tiers).into_iter().map(no_time));
    if !chosen.is_empty() && !is_driven(driver, (swept.think, users), pace.stretch, interrupt)? {
        return Ok(None);
    }
    let mut trial = Trial { users, ..Trial::default() };
    let mut over = false;
    for Chosen { tier, means } in chosen {
        let outcome = if !over && stage.prepare(interrupt)? {
            stage.listener.on(&Event::Slowing { tier: tier.clone() });
            match slow(driver, &means, pace.stretch, interrupt, stage.listener) {
                Err(error @ (DriveError::Again(_) | DriveError::Over(_))) => {
                    over = matches!(error, DriveError::Over(_));
                    Outcome::LeftAlone(LeftAloneReason::NoTime)
                }
                other => other?,
            }
        } else {
            Outcome::LeftAlone(LeftAloneReason::NoTime)
        };
        match outcome {
            Outcome::Blocks(blocks) => trial.tiers.push(Slowed { tier, by: means.by(), blocks }),
            Outcome::LeftAlone(reason) => left_alone.push(LeftAlone { tier, reason }),
        }
    }
    (trial.left_alone, trial.elapsed_s) = (left_alone, begun.elapsed().as_secs_f64());
    Ok(Some(trial))
}

/// What the sweep before found.
pub(crate) struct Swept<'a> {
    /// Its steps.
    pub(crate) steps: &'a [Step],
    /// What its verdict says.
    pub(crate) bottleneck: &'a Bottleneck,
    /// What users do between two requests.
    pub(crate) think: Think,
    /// Most users that may be driven.
    pub(crate) users_max: u32,
    /// The processes that serve and were found beside this one, by tier.
    pub(crate) tiers: BTreeMap<(Role, String), Vec<u32>>,
    /// Those on other hosts.
    pub(crate) elsewhere: Vec<Processes>,
    /// Who they are and where they live.
    pub(crate) topology: Topology,
}

/// Users well beyond N*: twice as many, and so many that those who queue last several slices.
fn users(swept: &Swept<'_>) -> Option<u32> {
    let steps: Vec<&Step> = swept.steps.iter().collect();
    let Saturation { users: Some(saturated), throughput_max_per_s, .. } =
        saturation(&steps, mean_us(swept.think))
    else {
        return None;
    };
    let per_slice = throughput_max_per_s * SLICE.as_secs_f64();
    let queued = f64::from(saturated).max(3.0 * per_slice);
    let users = (f64::from(saturated) + queued).min(f64::from(swept.users_max)) as u32;
    (users > saturated).then_some(users)
}

/// How long to stay at one speed: several response times, as measured at the step nearest to so many users.
fn stretch(steps: &[Step], users: u32) -> Duration {
    let nearest = steps.iter().min_by_key(|step| step.users.abs_diff(users));
    let response_s = nearest.map_or(0.0, |step| step.response_time_us.mean / 1e6);
    let wanted = Duration::try_from_secs_f64(RESPONSES * response_s).unwrap_or(STRETCH_MAX);
    wanted.clamp(STRETCH_MIN, STRETCH_MAX)
}

/// How long things take at each speed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pace {
    /// The start that is left out.
    settling: Duration,
    /// What is counted.
    stretch: Duration,
    /// The longest period in which processor time is handed out, of which what is counted is a whole number. Zero where no quota
    /// is lowered.
    grain: Duration,
}

/// The pace at which all of these can be slowed.
fn pace(chosen: &[Chosen], wanted: Duration) -> Pace {
    let means = || chosen.iter().map(|one| &one.means);
    Pace {
        settling: means().map(Means::settling).max().unwrap_or(SETTLING),
        stretch: means().map(|means| means.stretch(wanted)).max().unwrap_or(wanted),
        grain: means().filter_map(Means::period).max().unwrap_or_default(),
    }
}

/// As many tiers as there is time for, and the pace: as wanted, or with stretches half as long at least.
fn within(most: Option<Duration>, tiers: RangeInclusive<usize>, wanted: Pace) -> (usize, Pace) {
    let Some(most) = most else { return (*tiers.end(), wanted) };
    let possible = |tiers: usize| {
        let stretches = u32::try_from(tiers * BLOCKS * STRETCHES).unwrap_or(u32::MAX);
        // One more, before the first.
        let stretch = most.saturating_sub(wanted.settling * stretches) / (stretches + 1);
        (tiers, Pace { stretch: down_to(wanted.grain, stretch.min(wanted.stretch)), ..wanted })
    };
    let found = tiers.rev().map(possible).find(|(_, pace)| pace.stretch >= wanted.stretch / 2);
    found.unwrap_or((0, wanted))
}

/// The most of these periods that take no longer.
fn down_to(period: Duration, most: Duration) -> Duration {
    let periods = most.as_micros().checked_div(period.as_micros());
    periods.map_or(most, |periods| period.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX)))
}

/// Whether so many users are driven now, who do this between two requests. Where one of several generators is lost, the others
/// begin again.
fn is_driven(
    driver: &mut impl Driver,
    (think, users): (Think, u32),
    stretch: Duration,
    interrupt: &AtomicBool,
) -> Result<bool, SweepError> {
    loop {
        match begin(driver, think, users, stretch, interrupt) {
            Ok(()) => return Ok(true),
            Err(DriveError::Again(_)) => {}
            Err(DriveError::Over(_)) => return Ok(false),
            Err(DriveError::Load(error)) => return Err(error.into()),
        }
    }
}

/// Drives so many users, and waits: a queue has to build up before it can keep anybody busy.
fn begin(
    driver: &mut impl Driver,
    think: Think,
    users: u32,
    stretch: Duration,
    interrupt: &AtomicBool,
) -> Result<(), DriveError> {
    driver.set_think(think);
    driver.set_users(users)?;
    driver.collect(micros(stretch), interrupt)?;
    Ok(())
}

/// What came of slowing a tier.
enum Outcome {
    Blocks(Vec<Block>),
    LeftAlone(LeftAloneReason),
}

/// Slows a tier, and tells of what could not be put back.
fn slow(
    driver: &mut impl Driver,
    means: &Means,
    stretch: Duration,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Outcome, DriveError> {
    let held = match means.hold() {
        Ok(held) => held,
        Err(reason) => return Ok(Outcome::LeftAlone(reason)),
    };
    let outcome = in_blocks(driver, &held, [means.settling(), means.stretch(stretch)], interrupt);
    if let Some(limit) = held.not_put_back() {
        listener.on(&Event::NotPutBack(limit));
    }
    outcome
}

/// Measures a tier at full speed and slowed, A B B A and so on, so that drift meets both alike.
fn in_blocks(
    driver: &mut impl Driver,
    held: &Held<'_>,
    times: [Duration; 2],
    interrupt: &AtomicBool,
) -> Result<Outcome, DriveError> {
    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        let mut block = Block::default();
        let mut shares = [0.0; 2];
        add(&mut block.full, driver, times, interrupt)?;
        for share in &mut shares {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(Outcome::LeftAlone(LeftAloneReason::NoTime));
            }
            let slowing = match held.start() {
                Ok(slowing) => slowing,
                Err(reason) => return Ok(Outcome::LeftAlone(reason)),
            };
            add(&mut block.slowed, driver, times, interrupt)?;
            // What was over before this told it to be, as where nstar was suspended, slowed the tier for no known time.
            let Some(lasted) = slowing.finish() else {
                return Ok(Outcome::LeftAlone(LeftAloneReason::NoTime));
            };
            *share = lasted;
        }
        add(&mut block.full, driver, times, interrupt)?;
        block.stopped_share = shares.iter().sum::<f64>() / 2.0;
        blocks.push(block);
    }
    // What was cut short counts for nothing.
    Ok(match interrupt.load(Ordering::Relaxed) {
        true => Outcome::LeftAlone(LeftAloneReason::NoTime),
        false => Outcome::Blocks(blocks),
    })
}

/// Measures one stretch, without its start.
fn add(
    to: &mut Stretch,
    driver: &mut impl Driver,
    [settling, stretch]: [Duration; 2],
    interrupt: &AtomicBool,
) -> Result<(), DriveError> {
    driver.collect(micros(settling), interrupt)?;
    for Tick { completed, length_us, .. } in driver.collect(micros(stretch), interrupt)? {
        to.completed += completed;
        to.length_us += length_us;
    }
    Ok(())
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_time_is_short_stretches_are_shorter_and_then_tiers_are_fewer() {
        let wanted = Pace { settling: SETTLING, stretch: Duration::from_millis(250), grain: Duration::ZERO };
        let of = |most_s: Option<f64>, tiers| within(most_s.map(Duration::from_secs_f64), tiers, wanted);
        let within = |most_s| of(most_s, 1..=3);
        assert_eq!(of(Some(10.0), 3..=3), (0, wanted), "all or none");
        assert_eq!(within(None), (3, wanted));
        assert_eq!(within(Some(60.0)), (3, wanted));
        for (most_s, expected) in [(15.0, 3), (10.0, 2), (5.0, 1), (4.0, 0), (0.0, 0)] {
            let (tiers, Pace { settling, stretch, .. }) = within(Some(most_s));
            assert_eq!(tiers, expected, "{most_s} s");
            let stretches = (tiers * BLOCKS * STRETCHES) as f64;
            let takes_s = stretches * (stretch + settling).as_secs_f64() + stretch.as_secs_f64();
            let fits = takes_s <= most_s && stretch >= wanted.stretch / 2;
            assert!(tiers == 0 || fits, "{takes_s} of {most_s} s");
        }
    }

    #[test]
    fn where_time_is_short_stretches_with_a_quota_are_still_whole_periods() {
        let ms = Duration::from_millis;
        let wanted = Pace { settling: ms(100), stretch: ms(400), grain: ms(100) };
        // 24 times 100 ms to settle, and 25 stretches of 388 ms at most.
        let (tiers, pace) = within(Some(ms(12_100)), 1..=1, wanted);
        assert_eq!((tiers, pace.stretch), (1, ms(300)));
        // Of 196 ms at most: one period is less than half of what is wanted.
        assert_eq!(within(Some(ms(7_300)), 1..=1, wanted), (0, wanted));
    }
}
