//! Tests a verdict: slows one tier after the other a little while the load stays well beyond N*.
//!
//! What this shows is said in [`analysis::confirmation`]. A tier is slowed by stopping its processes for short slices of
//! about a tenth of the time ([`slowing`]).

mod slowing;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use analysis::{
    confirmation::{Block, Stretch, Trial},
    counters::Role,
    run::{LeftAlone, LeftAloneReason, Processes, Step},
    search::saturation::{Saturation, saturation},
    ticks::Tick,
};
use load::LoadError;
use observe::{KernelPaths, Stoppable};

use self::slowing::Slowing;
use crate::{
    progress::{Event, Listener},
    sweep::Driver,
};

/// How often each tier is slowed and let go again. The interval narrows with the root of this, and Student's t with it.
const BLOCKS: usize = 6;
/// The shortest stretch at one speed.
const STRETCH_MIN: Duration = Duration::from_millis(250);
/// The longest: a tier takes at most 24 of them.
const STRETCH_MAX: Duration = Duration::from_millis(1500);
/// A stretch holds this many times the response time, so that the requests under way at its start do not fill it.
const RESPONSES: f64 = 8.0;
/// The start of a stretch that is left out: requests of the one before.
const SETTLING: Duration = Duration::from_millis(60);
/// Tiers beyond these are left alone: all of them together would take minutes.
const TIERS_MAX: usize = 6;

/// Slows the tiers of a sweep in turn. `None` where there is nothing to test: throughput never stopped growing, or no more
/// users than N* are allowed.
pub(crate) fn confirm(
    driver: &mut impl Driver,
    swept: &Swept<'_>,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Option<Trial>, LoadError> {
    let Some(users) = users(swept) else { return Ok(None) };
    driver.set_users(users)?;
    let stretch = stretch(swept.steps, users);
    let (chosen, mut left_alone) = choose(&swept.tiers);
    // A queue has to build up before it can keep anybody busy.
    driver.collect(micros(stretch), interrupt)?;
    let mut trial = Trial { users, ..Trial::default() };
    for (processes, pids) in chosen {
        listener.on(&Event::Slowing { processes: processes.clone() });
        match slow(driver, &pids, stretch, interrupt)? {
            Slowed::Blocks(blocks) => trial.tiers.push((processes, blocks)),
            Slowed::LeftAlone(reason) => left_alone.push(LeftAlone { processes, reason }),
        }
    }
    trial.left_alone = left_alone;
    Ok(Some(trial))
}

/// What the sweep before found.
pub(crate) struct Swept<'a> {
    /// Its steps.
    pub(crate) steps: &'a [&'a Step],
    /// Mean think time, microseconds.
    pub(crate) think_us: f64,
    /// Most users that may be driven.
    pub(crate) users_max: u32,
    /// The processes that serve, by tier.
    pub(crate) tiers: BTreeMap<(Role, String), Vec<u32>>,
}

/// Users well beyond N*: twice as many, and so many that those who queue last several slices.
fn users(swept: &Swept<'_>) -> Option<u32> {
    let Saturation { users: Some(saturated), throughput_max_per_s, .. } =
        saturation(swept.steps, swept.think_us)
    else {
        return None;
    };
    let per_slice = throughput_max_per_s * slowing::SLICE.as_secs_f64();
    let queued = f64::from(saturated).max(3.0 * per_slice);
    let users = (f64::from(saturated) + queued).min(f64::from(swept.users_max)) as u32;
    (users > saturated).then_some(users)
}

/// How long to stay at one speed: several response times, as measured at the step nearest to so many users.
fn stretch(steps: &[&Step], users: u32) -> Duration {
    let nearest = steps.iter().min_by_key(|step| step.users.abs_diff(users));
    let response_s = nearest.map_or(0.0, |step| step.response_time_us.mean / 1e6);
    let wanted = Duration::try_from_secs_f64(RESPONSES * response_s).unwrap_or(STRETCH_MAX);
    wanted.clamp(STRETCH_MIN, STRETCH_MAX)
}

type Chosen = Vec<(Processes, Vec<u32>)>;

/// The tiers that may be slowed, and those that are left alone.
fn choose(tiers: &BTreeMap<(Role, String), Vec<u32>>) -> (Chosen, Vec<LeftAlone>) {
    let paths = KernelPaths::default();
    let stoppable = Stoppable::by_this_process(&paths);
    let (mut chosen, mut left_alone) = (Chosen::new(), Vec::new());
    for ((role, name), pids) in tiers {
        let processes = Processes {
            role: *role,
            name: name.clone(),
            pid: pids.first().copied().filter(|_| pids.len() == 1),
            processes: u32::try_from(pids.len()).unwrap_or(u32::MAX),
        };
        let refused = pids.iter().find_map(|pid| stoppable.check(*pid).err());
        match refused.or_else(|| (chosen.len() == TIERS_MAX).then_some(LeftAloneReason::NoTime)) {
            Some(reason) => left_alone.push(LeftAlone { processes, reason }),
            None => chosen.push((processes, pids.clone())),
        }
    }
    (chosen, left_alone)
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
) -> Result<Slowed, LoadError> {
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
) -> Result<(), LoadError> {
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
