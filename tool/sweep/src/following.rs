//! Tells a listener that follows closely how measurements come along. Nobody else pays for it.

use std::sync::atomic::{AtomicBool, Ordering};

use analysis::{
    conclude::resources_alone,
    estimate::{Precision, estimate},
    run::{Resource, Step},
    search::Search,
    ticks::Tick,
};

use crate::{
    driver::{DriveError, Driver},
    progress::{Event, UnderWay},
    sweep::Stage,
    target::Watch,
};

/// How often a listener is told, microseconds of measuring: twice a second.
const TELL_US: u64 = 500_000;

/// Resources are told from at least so much time, microseconds: two samples.
const SHOWN_US: u64 = 500_000;

/// What resources are wanted of.
#[derive(Clone, Copy)]
pub(crate) enum Seen<'a> {
    /// A measurement under way.
    UnderWay(u32, &'a [Tick]),
    /// A complete one.
    Complete(&'a Step),
}

/// Collects ticks as the search asks, and tells a listener that follows closely how that comes along. The load does not
/// notice: successive collections without a change of users are consecutive.
pub(crate) fn collect(
    driver: &mut impl Driver,
    for_us: u64,
    interrupt: &AtomicBool,
    search: &Search,
    stage: &mut Stage<'_>,
) -> Result<Vec<Tick>, DriveError> {
    if !stage.listener.follows_closely() {
        return driver.collect(for_us, interrupt);
    }
    let (mut ticks, mut collected_us) = (Vec::new(), 0);
    while collected_us < for_us {
        let part = driver.collect(TELL_US.min(for_us - collected_us), interrupt)?;
        collected_us += length_us(&part);
        let over = part.is_empty();
        ticks.extend(part);
        if over || interrupt.load(Ordering::Relaxed) {
            break;
        }
        // What is complete is told of when it is added.
        if collected_us < for_us {
            tell(search, &ticks, stage);
        }
    }
    Ok(ticks)
}

fn tell(search: &Search, ticks: &[Tick], stage: &mut Stage<'_>) {
    let Some(settling) = search.settling(ticks) else { return };
    let time = search.time(length_us(ticks));
    stage.listener.on(&Event::UnderWay(Box::new(UnderWay { settling, time })));
    if let Some(resources) = (stage.resources)(Seen::UnderWay(settling.users, ticks)) {
        stage.listener.on(&Event::Resources { complete: None, resources });
    }
}

/// Tells what a complete measurement adds.
pub(crate) fn step_done(search: &Search, step: &Step, stage: &mut Stage<'_>) {
    if !stage.listener.follows_closely() {
        return;
    }
    stage.listener.on(&Event::SoFar(Box::new(search.so_far(stage.think_us))));
    if let Some(resources) = (stage.resources)(Seen::Complete(step)) {
        stage.listener.on(&Event::Resources { complete: Some(step.users), resources });
    }
}

/// The resources that were watched.
pub(crate) fn resources(watch: &Watch, seen: Seen<'_>, generator_threads: u32) -> Option<Vec<Resource>> {
    let step = match seen {
        Seen::Complete(step) => {
            let usage = watch.usage(&step.measurement, &[]);
            Step { users: step.users, generator: step.generator, usage, ..Step::default() }
        }
        Seen::UnderWay(users, ticks) => {
            let recent = ticks.get(ticks.len().saturating_sub(recent_ticks(ticks))..).unwrap_or_default();
            let usage = watch.glance(recent.first()?.start_us)?;
            Step {
                users,
                generator: estimate(users, recent, &Precision::default()).generator,
                usage,
                ..Step::default()
            }
        }
    };
    Some(resources_alone(step, generator_threads))
}

/// How much time ticks cover, microseconds.
fn length_us(ticks: &[Tick]) -> u64 {
    ticks.iter().map(|tick| tick.length_us).sum()
}

/// How many ticks at the end make the time that is shown.
fn recent_ticks(ticks: &[Tick]) -> usize {
    let mut passed_us = 0;
    let enough = ticks.iter().rev().take_while(|tick| {
        let short = passed_us < 2 * SHOWN_US;
        passed_us += tick.length_us;
        short
    });
    enough.count()
}
