//! Samples where the processor time of the server goes and where its threads sleep, here and at other observers, and has the
//! functions named.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use analysis::{
    profile::{HostProfile, Tier, profile},
    run::{Processes, Run},
    ticks::Tick,
};
use load::Think;

use crate::{
    driver::{DriveError, Driver},
    elsewhere::AskedProfile,
    progress::Event,
    sweep::{Stage, SweepError},
    target::Watch,
};

pub use observe::ProgramTables;

/// The longest that a load is sampled.
pub(crate) const LOAD_MOST: Duration = Duration::from_secs(10);

/// How long a sweep is sampled at N*: some 500 samples of a processor that is full, which tell 40 % from 45 %.
const SWEEP_MOST: Duration = Duration::from_secs(5);

/// Requests of the users before are under way for so long, microseconds.
const SETTLING_US: u64 = 300_000;

/// Sampling under way, here and wherever else somebody observes.
#[derive(Debug)]
pub(crate) struct Profiling {
    /// `None` where only others see tiers.
    here: Option<observe::Profiling>,
    elsewhere: Vec<AskedProfile>,
}

impl Profiling {
    /// Begins to sample the tiers that serve now, for a load that ends with a number of requests: it cannot go on after that.
    pub(crate) fn of_load(watch: &Watch, tables: ProgramTables) -> Self {
        Self::start(watch, LOAD_MOST, tables)
    }

    fn start(watch: &Watch, most: Duration, tables: ProgramTables) -> Self {
        let elsewhere = watch.elsewhere().profile(most);
        let tiers: Vec<Tier> = watch.tiers().into_iter().map(tier).collect();
        let is_here = !tiers.is_empty() || elsewhere.is_empty();
        let here = is_here.then(|| observe::Profiling::start(tiers, most, tables));
        Self { here, elsewhere }
    }

    /// Whether there is anything that is sampled, as far as is known here.
    fn is_under_way(&self) -> bool {
        !self.elsewhere.is_empty() || self.here.as_ref().is_some_and(observe::Profiling::is_under_way)
    }

    /// Ends it, and has the functions named while the processes still run. What others sampled is not waited for yet.
    pub(crate) fn finish(self, users: u32, watch: &Watch) -> Profiled {
        watch.elsewhere().end_profiles(&self.elsewhere);
        let here = self.here.map(observe::Profiling::finish);
        Profiled { users, here, elsewhere: self.elsewhere, throughput_per_s: None }
    }
}

/// A tier as it is profiled, by its role, its name and the numbers of its processes.
pub(crate) fn tier(((role, name), pids): ((analysis::counters::Role, String), Vec<u32>)) -> Tier {
    let processes = u32::try_from(pids.len()).unwrap_or(u32::MAX);
    let pid = pids.first().copied().filter(|_| processes == 1);
    Tier { processes: Processes { role, name, pid, processes, on: None }, pids: pids.into_iter().collect() }
}

/// What was sampled, with names, before it is known what the bottleneck is.
#[derive(Debug)]
pub(crate) struct Profiled {
    users: u32,
    here: Option<HostProfile>,
    elsewhere: Vec<AskedProfile>,
    throughput_per_s: Option<f64>,
}

impl Profiled {
    /// Adds the profile to a run. Others are waited for until they have told theirs, for a bounded time and until an interrupt:
    /// load is made no longer.
    pub(crate) fn add_to(self, run: &mut Run, watch: &Watch, interrupt: &AtomicBool) {
        let elsewhere = watch.elsewhere().profiles(self.elsewhere, interrupt);
        let hosts = self.here.into_iter().chain(elsewhere).collect();
        let mut profile = profile(self.users, hosts, &run.verdict.bottleneck);
        let step = run.steps.iter().find(|step| step.users == self.users);
        let before = step.map(|step| step.throughput_per_s).filter(|before| *before > 0.0);
        profile.throughput_share = self.throughput_per_s.zip(before).map(|(during, before)| during / before);
        run.profile = Some(profile);
    }
}

/// Where and with what to profile at the end of a sweep.
pub(crate) struct AtSaturation<'a> {
    pub(crate) users: u32,
    pub(crate) think: Think,
    pub(crate) watch: &'a Watch,
    pub(crate) tables: ProgramTables,
}

/// Drives so many users again and samples meanwhile: apart from the steps, so that it costs none of their throughput.
/// `None` where that was interrupted before it began, or no load can be made any longer.
pub(crate) fn profile_at(
    at: &AtSaturation<'_>,
    driver: &mut impl Driver,
    interrupt: &AtomicBool,
    stage: &mut Stage<'_>,
) -> Result<Option<Profiled>, SweepError> {
    if interrupt.load(Ordering::Relaxed) || !stage.prepare(interrupt)? {
        return Ok(None);
    }
    stage.listener.on(&Event::Profiling { users: at.users });
    driver.set_think(at.think);
    driver.set_users(at.users)?;
    let sampling = Sampling { users: at.users, most: SWEEP_MOST, watch: at.watch, tables: at.tables };
    Ok(sampling.under_load(driver, interrupt)?)
}

/// What to sample, and for how long.
pub(crate) struct Sampling<'a> {
    pub(crate) users: u32,
    pub(crate) most: Duration,
    pub(crate) watch: &'a Watch,
    pub(crate) tables: ProgramTables,
}

impl Sampling<'_> {
    /// Lets the load go on for so long and samples meanwhile: apart from what was measured before, so that it costs none of that
    /// throughput. `None` where no load can be made any longer.
    ///
    /// # Errors
    /// The load cannot be made here.
    pub(crate) fn under_load(
        &self,
        driver: &mut impl Driver,
        interrupt: &AtomicBool,
    ) -> Result<Option<Profiled>, DriveError> {
        loop {
            match self.once(driver, interrupt) {
                // The others begin again.
                Err(DriveError::Again(_)) => {}
                Err(DriveError::Over(_)) => return Ok(None),
                other => return other.map(Some),
            }
        }
    }

    fn once(&self, driver: &mut impl Driver, interrupt: &AtomicBool) -> Result<Profiled, DriveError> {
        driver.collect(SETTLING_US, interrupt)?;
        let profiling = Profiling::start(self.watch, self.most, self.tables);
        let ticks = match profiling.is_under_way() {
            true => driver.collect(u64::try_from(self.most.as_micros()).unwrap_or(u64::MAX), interrupt)?,
            false => Vec::new(),
        };
        let profiled = profiling.finish(self.users, self.watch);
        Ok(Profiled { throughput_per_s: throughput_per_s(&ticks), ..profiled })
    }
}

fn throughput_per_s(ticks: &[Tick]) -> Option<f64> {
    let (completed, length_us) = ticks.iter().fold((0, 0), |(completed, length_us), tick| {
        (completed + tick.completed, length_us + tick.length_us)
    });
    (length_us > 0).then(|| completed as f64 / (length_us as f64 / 1e6))
}
