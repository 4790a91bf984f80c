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
    run::{Bottleneck, LeftAlone, LeftAloneReason, Processes, Slowable, Step},
    search::saturation::{Saturation, saturation},
    ticks::Tick,
};
use load::Think;
use observe::Topology;

use self::{
    choice::{Choice, Chosen, choose},
    slowing::{Means, SETTLING, Slows},
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
/// More new processes than one for this many that were slowed would make up for them. One that comes now and then, to tidy up,
/// is no reason to say nothing.
const MANY_CAME: usize = 10;

/// Slows the tiers of a sweep in turn. `None` where there is nothing to test: throughput never stopped growing, no more
/// users than N* are allowed, or no load can be made any longer. A tier that did not keep its processes meanwhile is left alone.
pub(crate) fn confirm(
    driver: &mut impl Driver,
    swept: &Swept<'_>,
    how: Confirming,
    interrupt: &AtomicBool,
    stage: &mut Stage<'_>,
) -> Result<Option<Trial>, SweepError> {
    let Some(users) = users(swept) else { return Ok(None) };
    let begun = Instant::now();
    let planned = under_load(driver, swept, (users, how), interrupt)?;
    let Some(Planned { chosen, mut left_alone, stretch }) = planned else { return Ok(None) };
    let mut trial = Trial { users, ..Trial::default() };
    let mut over = false;
    for Chosen { tier, means } in chosen {
        let outcome = if !over && stage.prepare(interrupt)? {
            stage.listener.on(&Event::Slowing { tier: tier.clone() });
            match slow(driver, &means, stretch, interrupt, stage.listener) {
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
            Outcome::Blocks(_) if has_more_processes(swept, &tier, &means) => {
                left_alone.push(LeftAlone { tier, reason: LeftAloneReason::ProcessesChanged });
            }
            Outcome::Blocks(blocks) => trial.tiers.push(Slowed { tier, by: means.by(), blocks }),
            Outcome::LeftAlone(reason) => left_alone.push(LeftAlone { tier, reason }),
        }
    }
    (trial.left_alone, trial.elapsed_s) = (left_alone, begun.elapsed().as_secs_f64());
    Ok(Some(trial))
}

/// The numbers of processes, by tier.
pub(crate) type Tiers = BTreeMap<(Role, String), Vec<u32>>;

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
    /// The processes that serve now and were found beside this one.
    pub(crate) tiers: &'a dyn Fn() -> Tiers,
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

/// What is slowed, for how long at one speed, and what is left alone.
struct Planned {
    chosen: Vec<Chosen>,
    left_alone: Vec<LeftAlone>,
    stretch: Duration,
}

/// Drives so many users, and chooses from the processes that there are then: a server may start more of them for more users, and
/// one that goes on while the others are stopped makes up for them. Where there is nothing to slow, nothing is driven. `None` where
/// no load can be made any longer.
fn under_load(
    driver: &mut impl Driver,
    swept: &Swept<'_>,
    (users, how): (u32, Confirming),
    interrupt: &AtomicBool,
) -> Result<Option<Planned>, SweepError> {
    let before = plan(swept, users, how);
    if before.chosen.is_empty() {
        return Ok(Some(before));
    }
    let is_driven = is_driven(driver, (swept.think, users), before.stretch, interrupt)?;
    Ok(is_driven.then(|| plan(swept, users, how)))
}

/// Chooses from the processes that there are now, as far as there is time.
fn plan(swept: &Swept<'_>, users: u32, how: Confirming) -> Planned {
    let Choice { mut chosen, mut left_alone, is_any_suspected } = choose(swept, how.started_only);
    // Where no tier is suspected, what one of several shows is no answer.
    let least = if is_any_suspected { 1 } else { chosen.len() };
    let (tiers, pace) = within(how.most, least..=chosen.len(), pace(&chosen, stretch(swept.steps, users)));
    let no_time = |of: Chosen| LeftAlone { tier: of.tier, reason: LeftAloneReason::NoTime };
    left_alone.extend(chosen.split_off(tiers).into_iter().map(no_time));
    Planned { chosen, left_alone, stretch: pace.stretch }
}

/// Whether so many processes came to a tier whose others were stopped that what they did matters: it was not slowed.
fn has_more_processes(swept: &Swept<'_>, tier: &Slowable, means: &Means) -> bool {
    let Means::Stopping(pids) = means else { return false };
    let Processes { role, name, .. } = &tier.processes;
    let tiers = (swept.tiers)();
    let now = tiers.get(&(*role, name.clone()));
    let came = now.into_iter().flatten().filter(|pid| !pids.contains(pid)).count();
    came * MANY_CAME > pids.len()
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
    slows: &impl Slows,
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
            let slowing = match slows.start() {
                Ok(slowing) => slowing,
                Err(reason) => return Ok(Outcome::LeftAlone(reason)),
            };
            add(&mut block.slowed, driver, times, interrupt)?;
            // What was over before this told it to be, as where nstar was suspended, slowed the tier for no known time.
            let Some(lasted) = slows.finish(slowing) else {
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
    use std::{
        cell::Cell,
        process::{Child, Command},
    };

    use analysis::{
        confirmation,
        run::{ConfirmationAnswer, Identity, ResourceKind, SlowedBy, Verdict},
    };

    use super::*;

    /// The time of a slice, microseconds.
    const TICK_US: u64 = 10_000;
    /// How much slower the tiers become in a second.
    const SLOWER_PER_S: f64 = 0.01;

    /// Two tiers behind one another in virtual time. Throughput is that of the slower one.
    struct Chain<'a> {
        /// Requests per second of each, and the share of the time for which it is stopped.
        tiers: [(f64, &'a Cell<f64>); 2],
        now_us: u64,
        completed: f64,
    }

    impl Driver for Chain<'_> {
        fn set_users(&mut self, _: u32) -> Result<(), DriveError> {
            Ok(())
        }

        fn set_think(&mut self, _: Think) {}

        fn collect(&mut self, for_us: u64, _: &AtomicBool) -> Result<Vec<Tick>, DriveError> {
            let each = self.tiers.iter().map(|(per_s, stopped)| per_s * (1.0 - stopped.get()));
            let per_s = each.fold(f64::INFINITY, f64::min);
            let mut ticks = Vec::new();
            for _ in 0..for_us / TICK_US {
                let before = self.completed.floor();
                let speed = 1.0 - SLOWER_PER_S * self.now_us as f64 / 1e6;
                self.completed += per_s * speed * TICK_US as f64 / 1e6;
                self.now_us += TICK_US;
                let completed = (self.completed.floor() - before) as u64;
                ticks.push(Tick { length_us: TICK_US, completed, ..Tick::default() });
            }
            Ok(ticks)
        }
    }

    /// A tier to be stopped for a tenth of the time.
    struct ByTenth<'a>(&'a Cell<f64>);

    /// One that is, until this is dropped.
    struct Slower<'a>(&'a Cell<f64>);

    impl<'a> Slows for ByTenth<'a> {
        type Slowing = Slower<'a>;

        fn start(&self) -> Result<Slower<'a>, LeftAloneReason> {
            self.0.set(0.1);
            Ok(Slower(self.0))
        }

        fn finish(&self, slowing: Slower<'a>) -> Option<f64> {
            Some(slowing.0.get())
        }
    }

    impl Drop for Slower<'_> {
        fn drop(&mut self) {
            self.0.set(0.0);
        }
    }

    fn processes(name: &str) -> Processes {
        Processes { role: Role::Server, name: name.into(), pid: None, processes: 1, on: None }
    }

    /// What slowing either tier shows, the one behind being the slower.
    fn slowed_in_turn() -> Trial {
        let [front, back] = [Cell::new(0.0), Cell::new(0.0)];
        let mut chain = Chain { tiers: [(20_000.0, &front), (10_000.0, &back)], now_us: 0, completed: 0.0 };
        let mut slowed = |name: &str, tier: &Cell<f64>| {
            let times = [SETTLING, STRETCH_MIN];
            let outcome = in_blocks(&mut chain, &ByTenth(tier), times, &AtomicBool::new(false));
            let Ok(Outcome::Blocks(blocks)) = outcome else { panic!("{name} was left alone") };
            Slowed { tier: processes(name).into(), by: SlowedBy::Stopping, blocks }
        };
        let tiers = vec![slowed("front", &front), slowed("back", &back)];
        Trial { users: 16, tiers, ..Trial::default() }
    }

    #[test]
    fn throughput_follows_the_tier_that_holds_it_and_not_one_with_slack() {
        let trial = slowed_in_turn();
        let shown = |index: usize| confirmation::slowed_tier(&trial.tiers[index]).expect("enough blocks");
        let (front, back) = (shown(0), shown(1));
        assert!(front.elasticity.abs() < 0.05 && front.elasticity_ci[1] < 0.1, "{front:?}");
        assert!((back.elasticity - 1.0).abs() < 0.05 && back.elasticity_ci[0] > 0.9, "{back:?}");
        let elsewhere = ConfirmationAnswer::Elsewhere(processes("back").into());
        for (holder, expected) in [("back", ConfirmationAnswer::Confirmed), ("front", elsewhere)] {
            let mut verdict = Verdict::default();
            verdict.bottleneck.kind = ResourceKind::Lock;
            verdict.bottleneck.identity = Some(Identity::Processes(processes(holder)));
            assert_eq!(confirmation::confirm(&mut verdict, &trial).answer, expected, "{holder}");
        }
    }

    /// A process that only sleeps, until this is dropped.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            Self(Command::new("sleep").arg("60").spawn().unwrap())
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    /// A load that only knows whether it was made.
    struct Load<'a>(&'a Cell<bool>);

    impl Driver for Load<'_> {
        fn set_users(&mut self, _: u32) -> Result<(), DriveError> {
            self.0.set(true);
            Ok(())
        }

        fn set_think(&mut self, _: Think) {}

        fn collect(&mut self, _: u64, _: &AtomicBool) -> Result<Vec<Tick>, DriveError> {
            Ok(Vec::new())
        }
    }

    /// Workers that a server started for the load went on while its others were stopped, and it was said to have slack.
    #[test]
    fn what_a_server_starts_for_the_load_is_slowed_too() {
        let (workers, is_made) = ([Sleeper::start(), Sleeper::start()], Cell::new(false));
        let came = Cell::new(None);
        let tiers = || {
            let now = if is_made.get() { &workers[..] } else { &workers[..1] };
            let pids = now.iter().map(|worker| worker.0.id()).chain(came.get()).collect();
            Tiers::from([((Role::Server, "php-fpm".to_owned()), pids)])
        };
        let (bottleneck, steps) = (Bottleneck::default(), [Step::default()]);
        let swept = Swept {
            steps: &steps,
            bottleneck: &bottleneck,
            think: Think::None,
            users_max: 64,
            tiers: &tiers,
            elsewhere: Vec::new(),
            topology: Topology::unseen(([127, 0, 0, 1], 80).into()),
        };
        let how = Confirming { always: true, most: None, started_only: true };
        let planned = under_load(&mut Load(&is_made), &swept, (16, how), &AtomicBool::new(false));
        let Planned { chosen, left_alone, .. } = planned.unwrap().expect("a load");
        let [Chosen { tier, means: means @ Means::Stopping(pids) }] = &chosen[..] else {
            panic!("{chosen:?}, {left_alone:?}");
        };
        assert_eq!((pids.len(), tier.processes.processes), (2, 2));
        assert!(!has_more_processes(&swept, tier, means));
        // As if it had ended one of them meanwhile: the other was slowed.
        is_made.set(false);
        assert!(!has_more_processes(&swept, tier, means));
        // As if it had started another.
        came.set(Some(u32::MAX));
        assert!(has_more_processes(&swept, tier, means));
        let many = Means::Stopping((1..=10).chain(workers.iter().map(|worker| worker.0.id())).collect());
        assert!(!has_more_processes(&swept, tier, &many), "one more of many, to tidy up");
    }

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
