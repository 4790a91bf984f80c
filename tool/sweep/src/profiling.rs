//! Samples where the processor time of the server goes and where its threads sleep, and has the functions named.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use analysis::{
    profile::{Names, Sampled, Space, ThreadsSeen, Tier, Unwinder, off_cpu, profile},
    run::{Processes, Profile, ProfileTrouble, Run},
    ticks::Tick,
};
use load::Think;
use observe::{OffCpuSampler, Profiler};

use crate::{
    driver::{DriveError, Driver},
    progress::Event,
    sweep::{Stage, SweepError},
    target::Watch,
};

/// What reads the tables of programs. The libraries for it are large, so who wants profiles brings it.
#[derive(Debug, Clone, Copy)]
pub struct ProgramTables {
    /// Names the functions that addresses lie in.
    pub names: fn(&BTreeMap<Space, BTreeSet<u64>>) -> Names,
    /// Makes what finds the callers of a sampled thread, if that is known for this processor.
    pub unwinder: fn() -> Option<Box<dyn Unwinder>>,
}

/// The longest that a load is sampled.
const LOAD_MOST: Duration = Duration::from_secs(10);

/// How long a sweep is sampled at N*: some 500 samples of a processor that is full, which tell 40 % from 45 %.
const SWEEP_MOST: Duration = Duration::from_secs(5);

/// Requests of the users before are under way for so long, microseconds.
const SETTLING_US: u64 = 300_000;

/// Sampling under way.
#[derive(Debug)]
pub(crate) struct Profiling {
    profiler: Result<Profiler, ProfileTrouble>,
    off_cpu: Option<OffCpuSampler>,
    tiers: Vec<Tier>,
    elsewhere: Vec<Processes>,
    tables: ProgramTables,
}

impl Profiling {
    /// Begins to sample the tiers that serve now, for a load.
    pub(crate) fn of_load(watch: &Watch, tables: ProgramTables) -> Self {
        Self::start(watch, LOAD_MOST, tables)
    }

    fn start(watch: &Watch, most: Duration, tables: ProgramTables) -> Self {
        let tiers: Vec<Tier> = watch.tiers().into_iter().map(tier).collect();
        let pids = tiers.iter().flat_map(|tier| &tier.pids).copied().collect();
        let profiler = Profiler::start(&pids, most, (tables.unwinder)());
        let off_cpu = OffCpuSampler::start(tiers.iter().map(|tier| tier.pids.clone()).collect(), most);
        Self { profiler, off_cpu, tiers, elsewhere: watch.tiers_elsewhere(), tables }
    }

    /// Whether there is anything that is sampled.
    fn is_under_way(&self) -> bool {
        self.profiler.is_ok() || self.off_cpu.is_some()
    }

    /// Ends it, and has the functions named while the processes still run.
    pub(crate) fn finish(self, users: u32) -> Profiled {
        let sampled = match self.profiler {
            Ok(profiler) => profiler.stop().as_living(|pid| Path::new(&format!("/proc/{pid}")).exists()),
            Err(trouble) => Sampled { troubles: vec![trouble], ..Sampled::default() },
        };
        let threads = self.off_cpu.map(OffCpuSampler::stop);
        let names = (self.tables.names)(&sampled.addresses());
        let Self { tiers, elsewhere, .. } = self;
        Profiled { users, sampled, threads, tiers, elsewhere, names, throughput_per_s: None }
    }
}

fn tier(((role, name), pids): ((analysis::counters::Role, String), Vec<u32>)) -> Tier {
    let processes = u32::try_from(pids.len()).unwrap_or(u32::MAX);
    let pid = pids.first().copied().filter(|_| processes == 1);
    Tier { processes: Processes { role, name, pid, processes, on: None }, pids: pids.into_iter().collect() }
}

/// What was sampled, with names, before it is known what the bottleneck is.
#[derive(Debug)]
pub(crate) struct Profiled {
    users: u32,
    sampled: Sampled,
    threads: Option<ThreadsSeen>,
    tiers: Vec<Tier>,
    elsewhere: Vec<Processes>,
    names: Names,
    throughput_per_s: Option<f64>,
}

impl Profiled {
    /// Adds the profile to a run.
    pub(crate) fn add_to(self, run: &mut Run) {
        let about = (&*self.tiers, &run.verdict.bottleneck);
        let mut profile: Profile = profile(self.users, &self.sampled, about, &self.names);
        profile.off_cpu = self.threads.map(|seen| off_cpu(&seen, &self.tiers));
        if !self.elsewhere.is_empty() {
            profile.troubles.push(ProfileTrouble::Elsewhere { tiers: self.elsewhere });
        }
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
    loop {
        match sampled_once(at, driver, interrupt) {
            // The others begin again.
            Err(DriveError::Again(_)) => {}
            Err(DriveError::Over(_)) => return Ok(None),
            other => return Ok(Some(other?)),
        }
    }
}

fn sampled_once(
    at: &AtSaturation<'_>,
    driver: &mut impl Driver,
    interrupt: &AtomicBool,
) -> Result<Profiled, DriveError> {
    driver.collect(SETTLING_US, interrupt)?;
    let profiling = Profiling::start(at.watch, SWEEP_MOST, at.tables);
    let ticks = match profiling.is_under_way() {
        true => driver.collect(u64::try_from(SWEEP_MOST.as_micros()).unwrap_or(u64::MAX), interrupt)?,
        false => Vec::new(),
    };
    Ok(Profiled { throughput_per_s: throughput_per_s(&ticks), ..profiling.finish(at.users) })
}

fn throughput_per_s(ticks: &[Tick]) -> Option<f64> {
    let (completed, length_us) = ticks.iter().fold((0, 0), |(completed, length_us), tick| {
        (completed + tick.completed, length_us + tick.length_us)
    });
    (length_us > 0).then(|| completed as f64 / (length_us as f64 / 1e6))
}
