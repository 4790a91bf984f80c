//! What slowing each tier a little did to the throughput of all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Processes;

/// A test of the verdict: the load stayed well beyond N* while one tier after the other was slowed a little.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmation {
    /// Users meanwhile.
    pub users: u32,
    /// How long it took, seconds; 0 in files from before it was kept.
    #[serde(default)]
    pub elapsed_s: f64,
    /// The tiers that were slowed, most decisive first.
    pub tiers: Vec<SlowedTier>,
    /// Tiers that were left alone, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<LeftAlone>,
    /// What this says of the verdict.
    pub answer: ConfirmationAnswer,
}

/// A tier that was slowed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowedTier {
    /// Its processes.
    pub processes: Processes,
    /// The share of the time for which they were stopped, 0 to 1.
    pub stopped_share: f64,
    /// Relative change of throughput for a small relative change of the tier's speed: near 1 where the tier is the
    /// bottleneck, near 0 where it has slack.
    pub elasticity: f64,
    /// 95 % interval of it, [lo, hi].
    pub elasticity_ci: [f64; 2],
}

/// A tier that was not slowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftAlone {
    /// Its processes.
    pub processes: Processes,
    /// The reason.
    pub reason: LeftAloneReason,
}

/// Reasons not to stop a process, not even for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftAloneReason {
    /// It belongs to another user.
    OtherUser,
    /// A debugger holds it.
    Debugged,
    /// Somebody has stopped it already.
    Stopped,
    /// It runs in the foreground of a terminal, whose shell would take it for suspended.
    Foreground,
    /// It was not started by nstar, which asks nobody before it stops what is its own.
    NotStarted,
    /// It is nstar itself, or what nstar runs under.
    Ours,
    /// It runs on another host, or in a container of its own.
    Elsewhere,
    /// It has ended.
    Ended,
    /// The system did not allow it.
    NotAllowed,
    /// There was no time left, or the test was interrupted.
    NoTime,
}

/// What the test says of the verdict.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ConfirmationAnswer {
    /// Throughput follows the speed of the bottleneck's holder, and of no other tier as much.
    Confirmed,
    /// It follows another tier, and not the holder.
    Elsewhere {
        /// That tier.
        processes: Processes,
    },
    /// It follows this tier, and the verdict named none.
    Found {
        /// The tier.
        processes: Processes,
    },
    /// It follows several tiers, the holder among them.
    Shared,
    /// It follows none that was slowed: requests wait for something that goes on while processes are stopped.
    Nothing,
    /// The intervals are too wide, or the holder was left alone.
    #[default]
    Open,
}
