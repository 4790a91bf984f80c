//! Evidence about processors: those that are full, those that several share, and where their time went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Processes;

/// Evidence about processors and threads that are full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ProcessorEvidence {
    /// How busy processes are, and what a request costs them.
    CpuBusy {
        /// The processes.
        of: Processes,
        /// How busy, and of what.
        busy: Busy,
        /// N*.
        users: u32,
        /// CPU time, microseconds per completed request.
        demand_us: f64,
    },
    /// Every thread that has work is full, and there are fewer of them than cores.
    TooFewThreads {
        /// Cores that the processes may use.
        cores: u64,
        /// Threads that are full.
        threads: u64,
    },
    /// One thread is full while other cores are free.
    ThreadFull {
        /// Cores that the processes may use.
        cores: u64,
        /// The kernel's short name of the thread; may be empty.
        thread: String,
        /// Its number.
        tid: u32,
        /// Cores that the other threads used together.
        others_cores: f64,
    },
    /// A thread was runnable in nearly every sample.
    NeverAsleep {
        /// Share of the samples that found it running or waiting to run.
        runnable: f64,
        /// How many samples there were.
        #[serde(rename = "looks")]
        samples: u64,
    },
    /// An interpreter that lets one thread of a process compute at a time.
    GlobalLock {
        /// The interpreter, such as `python3.11`.
        program: String,
        /// Cores that the process may use.
        cores: u64,
    },
    /// Threads that never use more than one core together, as behind a global lock.
    OneThreadAtATime {
        /// Threads that worked.
        threads: u64,
        /// Cores that they may use.
        cores: u64,
        /// Share of the samples that found one of them running or waiting to run.
        #[serde(default)]
        runnable: f64,
        /// How many samples there were; 0 in run files from before they were counted.
        #[serde(default)]
        samples: u64,
    },
}

/// Fewer cores than this are next to nothing.
const NEXT_TO_NOTHING: f64 = 0.05;

impl ProcessorEvidence {
    /// Whether a single thread did nearly all the work of its processes.
    pub fn is_of_one_thread(&self) -> bool {
        matches!(self, Self::ThreadFull { others_cores, .. } if *others_cores < NEXT_TO_NOTHING)
    }
}

/// How busy processes are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "kebab-case")]
pub enum Busy {
    /// Of all the cores that they may use.
    Cores {
        /// Busy share, 0 to 1.
        share: f64,
        /// How many cores.
        cores: u64,
    },
    /// Of one core, in each of several threads.
    EachThread {
        /// Busy share, 0 to 1.
        share: f64,
        /// How many threads.
        threads: u64,
    },
    /// Of one core, all of it in one thread.
    OneThread {
        /// Busy share, 0 to 1.
        share: f64,
    },
    /// Of one core, in a thread that interrupts hold up.
    OneThreadAndInterrupts {
        /// Busy share, 0 to 1.
        share: f64,
    },
    /// All threads together, one at a time.
    OneAtATime {
        /// Cores in use.
        cores: f64,
    },
}

/// Evidence about processors that several share, or that a quota limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ShareEvidence {
    /// A CPU quota was spent.
    QuotaSpent {
        /// The processes.
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
    /// CPU time that the processes would have used had their quota not stopped them.
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
        /// Use of the processors by group.
        shares: Shares,
        /// CPU time of all tiers, microseconds per completed request.
        demand_us: f64,
    },
    /// Shared processors are full, mostly with the work of the generator.
    FullWithGenerator {
        /// Use of the processors by group.
        shares: Shares,
    },
    /// Shared processors are full, mostly with work that is not part of the test.
    FullWithOthers {
        /// Use of the processors by group.
        shares: Shares,
    },
    /// The throughput that the server would reach if it did not share its processors with the generator.
    WithoutGenerator {
        /// Completed requests per second.
        throughput_per_s: f64,
    },
    /// Most of the work belongs to no watched process, and follows the load.
    UnseenWork,
}

/// Use of the processors that the busiest tier may use, in cores.
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

/// Evidence about where CPU time went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CpuTimeEvidence {
    /// Use under less load.
    GrewWithLoad {
        /// Users of the lighter step; 0 before the load began.
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
        /// The processes.
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
    /// Threads named after a garbage collector ran while nobody was answered.
    CollectorThreads {
        /// The processes.
        of: Processes,
        /// The name of the threads.
        name: String,
        /// Cores that they used, on average.
        cores: f64,
    },
    /// Processes that work on one core at a time worked while nobody was answered.
    WorkedInPauses {
        /// The processes.
        of: Processes,
        /// Cores that they used, on average.
        cores: f64,
    },
    /// The cost of a request in each tier.
    CpuByTier {
        /// The tiers, the dearest first.
        tiers: Vec<TierDemand>,
    },
}

/// The cost of a request in one tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierDemand {
    /// The tier.
    pub of: Processes,
    /// CPU time, microseconds per completed request.
    pub demand_us: f64,
}
