//! One step of a run: what was measured with one number of users.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Identity, ResourceKind, ResponseTime, Unit, Words};
use crate::ticks::{ErrorCounts, ErrorRates};

/// One number of users (or, in an open loop, one rate).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Users in the closed loop.
    pub users: u32,
    /// Length of the measured part, warm-up removed, seconds.
    pub elapsed_s: f64,
    /// Seconds dropped as warm-up.
    pub warmup_s: f64,
    /// Requests completed in the measured part.
    pub completed: u64,
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// 95 % interval of it, [lo, hi]; absent where the step was too short to give one.
    pub throughput_ci_per_s: Option<[f64; 2]>,
    /// Response times.
    pub response_time_us: ResponseTime,
    /// Errors by kind.
    pub errors: ErrorCounts,
    /// The same per second; empty in run files from before it was counted.
    #[serde(default)]
    pub errors_per_s: ErrorRates,
    /// Whether the step reached a steady state.
    pub steady: bool,
    /// Little's law: (N - X (R + Z)) / N.
    pub little_gap: f64,
    /// Body bytes received per second.
    pub received_bytes_per_s: f64,
    /// Body bytes sent per second; 0 in run files from before it was counted.
    #[serde(default)]
    pub sent_bytes_per_s: f64,
    /// Resources by falling utilisation.
    pub resources: Vec<Resource>,
    /// Who waited for whom in the database, where one was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Locks>,
    /// The generator's account of itself.
    pub generator: Generator,
}

/// What a database told of its locks during a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Locks {
    /// Transactions that waited for a lock which another held, on average.
    pub waiting: f64,
    /// Sessions at work, those that waited among them, on average.
    pub at_work: f64,
    /// Share of the looks that found somebody waiting, 0 to 1.
    pub contended: f64,
    /// How often it was asked.
    pub looks: u64,
}

/// The generator's account of itself during a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// Share of its threads' time spent outside the wait for events, 0 to 1.
    pub useful_work: f64,
    /// 99th percentile of its lag in handling events, microseconds.
    pub lag_us_p99: f64,
    /// Share of its cores' time its threads waited for a processor, 0 to 1.
    pub run_queue_wait: f64,
    /// Share of time its cgroup kept it stopped, 0 to 1.
    pub throttled: f64,
}

/// One resource's use during a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// What kind.
    pub kind: ResourceKind,
    /// What people call whoever holds it: a process or a device.
    pub holder: Words,
    /// The resource itself; absent in run files from before identities were typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Busy share, 0 to 1 of what the holder could use.
    pub utilization: f64,
    /// How much is in use, in `unit`.
    pub used: f64,
    /// What `used` is at most.
    pub capacity: f64,
    /// Unit of `used` and `capacity`.
    pub unit: Unit,
}
