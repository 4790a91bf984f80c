//! Evidence about processors that several share, or that a quota limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Processes;

/// Evidence about processors that several share, or that a quota limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ShareEvidence {
    /// A CPU quota was spent.
    QuotaSpent {
        /// Which processes.
        of: Processes,
        /// The path of their cgroup.
        cgroup: String,
        /// The quota, in cores.
        cores: f64,
        /// Share of it that was used.
        spent: f64,
        /// Share of the periods in which the cgroup was stopped.
        stopped_periods: f64,
        /// N*.
        users: u32,
        /// CPU time, microseconds per completed request.
        demand_us: f64,
    },
    /// What the processes would have used had their quota not stopped them.
    QuotaHeldBack {
        /// Cores more.
        cores: f64,
    },
    /// Shared processors are full, mostly with the work of the server and its tiers.
    FullWithTiers {
        /// The tier that uses most.
        of: Processes,
        /// Whether there are other tiers.
        other_tiers: bool,
        /// Who uses how much.
        shares: Shares,
        /// CPU time of all tiers, microseconds per completed request.
        demand_us: f64,
    },
    /// Shared processors are full, mostly with the work of the generator.
    FullWithGenerator {
        /// Who uses how much.
        shares: Shares,
    },
    /// Shared processors are full, mostly with work that is not part of the test.
    FullWithOthers {
        /// Who uses how much.
        shares: Shares,
    },
    /// What the server would reach if it did not share its processors with the generator.
    WithoutGenerator {
        /// Completed requests per second.
        throughput_per_s: f64,
    },
    /// Most of the work belongs to no watched process, and follows the load.
    UnseenWork,
}

/// Who uses the processors that the busiest tier may use, in cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shares {
    /// All tiers together.
    pub tiers: f64,
    /// The generator, as far as it may use the same processors.
    pub generator: f64,
    /// Anything else, the kernel's own work included.
    pub others: f64,
    /// How many processors there are to share, steal deducted.
    pub available: f64,
}
