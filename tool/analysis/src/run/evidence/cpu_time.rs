//! Evidence about where CPU time went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Processes;

/// Evidence about where CPU time went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CpuTimeEvidence {
    /// What was used under less load.
    GrewWithLoad {
        /// Users of the lighter step.
        users: u32,
        /// Cores used there.
        cores: f64,
    },
    /// Share of the CPU time that was spent in the kernel.
    KernelTime {
        /// The share, 0 to 1.
        share: f64,
    },
    /// Threads that waited for a processor.
    RunQueue {
        /// How many, on average.
        threads: f64,
    },
    /// CPU time of children that came and went.
    ShortLivedChildren {
        /// Share of the CPU time, 0 to 1.
        share: f64,
    },
    /// Threads of one name had most of the CPU time.
    ThreadsOfOneName {
        /// Which processes.
        of: Processes,
        /// The name of the threads.
        name: String,
        /// How many of them; absent where samples left too many threads out to tell.
        threads: Option<u64>,
        /// Share of the CPU time, 0 to 1.
        share: f64,
        /// CPU time, microseconds per completed request.
        demand_us: f64,
    },
    /// Most CPU time was spent in threads that samples left out.
    ThreadsLeftOut {
        /// Share of the CPU time, 0 to 1.
        share: f64,
        /// How many threads the processes have.
        threads: u64,
    },
    /// Most CPU time was spent in threads that came and went.
    ShortLivedThreads {
        /// Share of the CPU time, 0 to 1.
        share: f64,
    },
    /// What a request costs each tier.
    CpuByTier {
        /// The tiers, the dearest first.
        tiers: Vec<TierDemand>,
    },
}

/// What a request costs one tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierDemand {
    /// The tier.
    pub of: Processes,
    /// CPU time, microseconds per completed request.
    pub demand_us: f64,
}
