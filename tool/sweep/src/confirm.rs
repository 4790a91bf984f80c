//! Tests a verdict: slows one tier after the other a little while the load stays well beyond N*.
//!
//! What this shows is said in [`analysis::confirmation`]. A tier is slowed by stopping its processes for short slices of
//! about a tenth of the time ([`slowing`]).

mod slowing;

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use analysis::{
    confirmation::{Block, Stretch, Trial},
    counters::Role,
    run::{Bottleneck, Identity, LeftAlone, LeftAloneReason, Processes, Step},
    search::saturation::{Saturation, saturation},
    ticks::Tick,
};
use load::Think;
use observe::{KernelPaths, Stoppable};

use self::slowing::Slowing;
use crate::{
    conclusion::mean_us,
    driver::{DriveError, Driver},
    progress::Event,
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
/// The start of a stretch that is left out: requests of the one before.
const SETTLING: Duration = Duration::from_millis(60);
/// Tiers beyond these are left alone: all of them together would take minutes.
const TIERS_MAX: usize = 6;

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
    let (mut chosen, mut left_alone) = choose(swept, how.started_only);
    // Where no tier is suspected, what one of several shows is no answer.
    let least = if suspects(swept.bottleneck).is_empty() { chosen.len() } else { 1 };
    let (tiers, stretch) = within(how.most, least..=chosen.len(), stretch(swept.steps, users));
    let no_time = |(processes, _)| LeftAlone { processes, reason: LeftAloneReason::NoTime };
    left_alone.extend(chosen.split_off(tiers).into_iter().map(no_time));
    let mut trial = Trial { users, ..Trial::default() };
    if !chosen.is_empty() {
        // Where one of several generators is lost, the others begin again.
        while let Err(error) = begin(driver, swept.think, users, stretch, interrupt) {
            match error {
                DriveError::Again(_) => {}
                DriveError::Over(_) => return Ok(None),
                DriveError::Load(error) => return Err(error.into()),
            }
        }
    }
    let mut over = false;
    for (processes, pids) in chosen {
        let slowed = if !over && stage.prepare(interrupt)? {
            stage.listener.on(&Event::Slowing { processes: processes.clone() });
            match slow(driver, &pids, stretch, interrupt) {
                Err(error @ (DriveError::Again(_) | DriveError::Over(_))) => {
                    over = matches!(error, DriveError::Over(_));
                    Slowed::LeftAlone(LeftAloneReason::NoTime)
                }
                other => other?,
            }
        } else {
            Slowed::LeftAlone(LeftAloneReason::NoTime)
        };
        match slowed {
            Slowed::Blocks(blocks) => trial.tiers.push((processes, blocks)),
            Slowed::LeftAlone(reason) => left_alone.push(LeftAlone { processes, reason }),
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
}

/// Users well beyond N*: twice as many, and so many that those who queue last several slices.
fn users(swept: &Swept<'_>) -> Option<u32> {
    let steps: Vec<&Step> = swept.steps.iter().collect();
    let Saturation { users: Some(saturated), throughput_max_per_s, .. } =
        saturation(&steps, mean_us(swept.think))
    else {
        return None;
    };
    let per_slice = throughput_max_per_s * slowing::SLICE.as_secs_f64();
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

/// As many tiers as there is time for, and how long to stay at one speed: as long as wanted, or as half of that at least.
fn within(most: Option<Duration>, tiers: RangeInclusive<usize>, wanted: Duration) -> (usize, Duration) {
    let Some(most) = most else { return (*tiers.end(), wanted) };
    let possible = |tiers: usize| {
        let stretches = u32::try_from(tiers * BLOCKS * STRETCHES).unwrap_or(u32::MAX);
        // One more, before the first.
        (tiers, (most.saturating_sub(SETTLING * stretches) / (stretches + 1)).min(wanted))
    };
    let found = tiers.rev().map(possible).find(|(_, stretch)| *stretch >= wanted / 2);
    found.unwrap_or((0, wanted))
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

type Chosen = Vec<(Processes, Vec<u32>)>;

/// The tiers that may be slowed, the suspected ones first, and those that are left alone.
fn choose(swept: &Swept<'_>, started_only: bool) -> (Chosen, Vec<LeftAlone>) {
    let paths = KernelPaths::default();
    let stoppable = Stoppable::by_this_process(&paths);
    let check = |pid: &u32| match started_only {
        true => stoppable.check_started(*pid).and_then(|()| stoppable.check(*pid)),
        false => stoppable.check(*pid),
    };
    let mut tiers: Chosen = swept.tiers.iter().map(tier).collect();
    let suspects = suspects(swept.bottleneck);
    let rank = |of: &Processes| {
        suspects.iter().position(|one| (one.role, &one.name, &one.on) == (of.role, &of.name, &of.on))
    };
    tiers.sort_by_key(|(processes, _)| rank(processes).unwrap_or(suspects.len()));
    let elsewhere = swept.elsewhere.iter().cloned();
    let elsewhere = elsewhere.map(|processes| LeftAlone { processes, reason: LeftAloneReason::Elsewhere });
    let (mut chosen, mut left_alone) = (Chosen::new(), elsewhere.collect::<Vec<_>>());
    for (processes, pids) in tiers {
        let refused = pids.iter().find_map(|pid| check(pid).err());
        match refused.or_else(|| (chosen.len() == TIERS_MAX).then_some(LeftAloneReason::NoTime)) {
            Some(reason) => left_alone.push(LeftAlone { processes, reason }),
            None => chosen.push((processes, pids)),
        }
    }
    (chosen, left_alone)
}

fn tier(((role, name), pids): (&(Role, String), &Vec<u32>)) -> (Processes, Vec<u32>) {
    let processes = Processes {
        role: *role,
        name: name.clone(),
        pid: pids.first().copied().filter(|_| pids.len() == 1),
        processes: u32::try_from(pids.len()).unwrap_or(u32::MAX),
        on: None,
    };
    (processes, pids.clone())
}

/// The tiers that may hold the bottleneck, the most probable first.
fn suspects(bottleneck: &Bottleneck) -> Vec<&Processes> {
    let others = bottleneck.alternatives.iter().map(|other| &other.identity);
    let all = std::iter::once(&bottleneck.identity).chain(others);
    all.filter_map(|identity| identity.as_ref().and_then(Identity::processes)).collect()
}

enum Slowed {
    Blocks(Vec<Block>),
    LeftAlone(LeftAloneReason),
}

/// Measures a tier at full speed and slowed, A B B A and so on, so that drift meets both alike.
fn slow(
    driver: &mut impl Driver,
    pids: &[u32],
    stretch: Duration,
    interrupt: &AtomicBool,
) -> Result<Slowed, DriveError> {
    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        let mut block = Block::default();
        let mut shares = [0.0; 2];
        add(&mut block.full, driver, stretch, interrupt)?;
        for share in &mut shares {
            let slowing = match Slowing::start(pids) {
                Ok(slowing) => slowing,
                Err(reason) => return Ok(Slowed::LeftAlone(reason)),
            };
            add(&mut block.slowed, driver, stretch, interrupt)?;
            *share = slowing.finish();
        }
        add(&mut block.full, driver, stretch, interrupt)?;
        if interrupt.load(Ordering::Relaxed) {
            return Ok(Slowed::LeftAlone(LeftAloneReason::NoTime));
        }
        block.stopped_share = shares.iter().sum::<f64>() / 2.0;
        blocks.push(block);
    }
    Ok(Slowed::Blocks(blocks))
}

/// Measures one stretch, without its start.
fn add(
    to: &mut Stretch,
    driver: &mut impl Driver,
    stretch: Duration,
    interrupt: &AtomicBool,
) -> Result<(), DriveError> {
    driver.collect(micros(SETTLING), interrupt)?;
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
        let wanted = Duration::from_millis(250);
        let of = |most_s: Option<f64>, tiers| within(most_s.map(Duration::from_secs_f64), tiers, wanted);
        let within = |most_s| of(most_s, 1..=3);
        assert_eq!(of(Some(10.0), 3..=3), (0, wanted), "all or none");
        assert_eq!(within(None), (3, wanted));
        assert_eq!(within(Some(60.0)), (3, wanted));
        for (most_s, expected) in [(15.0, 3), (10.0, 2), (5.0, 1), (4.0, 0), (0.0, 0)] {
            let (tiers, stretch) = within(Some(most_s));
            assert_eq!(tiers, expected, "{most_s} s");
            let stretches = (tiers * BLOCKS * STRETCHES) as f64;
            let takes_s = stretches * (stretch + SETTLING).as_secs_f64() + stretch.as_secs_f64();
            assert!(tiers == 0 || (takes_s <= most_s && stretch >= wanted / 2), "{takes_s} of {most_s} s");
        }
    }
}
