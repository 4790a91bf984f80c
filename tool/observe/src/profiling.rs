//! A profile of some tiers: their processor time, and where their threads sleep, sampled together and named on this host.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use analysis::profile::{HostProfile, Names, Sampled, Space, Tier, Unwinder};
use analysis::run::ProfileTrouble;

use crate::off_cpu::OffCpuSampler;
use crate::profiler::Profiler;

/// What reads the tables of programs. The libraries for it are large, so who wants profiles brings it.
#[derive(Debug, Clone, Copy)]
pub struct ProgramTables {
    /// Names the functions that addresses lie in.
    pub names: fn(&BTreeMap<Space, BTreeSet<u64>>) -> Names,
    /// Makes what finds the callers of a sampled thread, if that is known for this processor.
    pub unwinder: fn() -> Option<Box<dyn Unwinder>>,
}

/// Sampling under way.
#[derive(Debug)]
pub struct Profiling {
    profiler: Result<Profiler, ProfileTrouble>,
    off_cpu: Option<OffCpuSampler>,
    tiers: Vec<Tier>,
    tables: ProgramTables,
}

impl Profiling {
    /// Begins to sample these tiers, and what their processes start, for at most this long.
    #[must_use]
    pub fn start(tiers: Vec<Tier>, most: Duration, tables: ProgramTables) -> Self {
        let pids = tiers.iter().flat_map(|tier| &tier.pids).copied().collect();
        let profiler = Profiler::start(&pids, most, (tables.unwinder)());
        let off_cpu = OffCpuSampler::start(tiers.iter().map(|tier| tier.pids.clone()).collect(), most);
        Self { profiler, off_cpu, tiers, tables }
    }

    /// Whether there is anything that is sampled.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.profiler.is_ok() || self.off_cpu.is_some()
    }

    /// Ends it, and has the functions named while the processes still run.
    #[must_use]
    pub fn finish(self) -> HostProfile {
        let sampled = match self.profiler {
            Ok(profiler) => profiler.stop().as_living(|pid| Path::new(&format!("/proc/{pid}")).exists()),
            Err(trouble) => Sampled { troubles: vec![trouble], ..Sampled::default() },
        };
        let threads = self.off_cpu.map(OffCpuSampler::stop);
        let names = (self.tables.names)(&sampled.addresses());
        HostProfile::new(&sampled, &self.tiers, &names, threads.as_ref())
    }

    /// Ends it, and forgets what was sampled.
    pub fn abandon(self) {
        if let Ok(profiler) = self.profiler {
            drop(profiler.stop());
        }
        drop(self.off_cpu.map(OffCpuSampler::stop));
    }
}
