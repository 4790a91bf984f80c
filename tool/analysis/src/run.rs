//! The run file, `nstar.run/1`: everything a sweep or a load found, as one value.
//!
//! Field names are a contract. Others may be added; these hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod confirmation;
mod doubt;
mod evidence;
mod generators;
mod identity;
pub(crate) mod known;
mod laws;
mod load_shape;
mod off_cpu;
mod probability;
mod profile;
mod response_time;
mod stalls;
mod step;
mod topology;
mod unwatched;
mod verdict;
mod warning;

pub use confirmation::{
    Confirmation, ConfirmationAnswer, LeftAlone, LeftAloneReason, Link, Slowable, SlowedBy, SlowedTier,
};
pub use doubt::{Doubt, LockDoubt, TellApart, Victim};
pub use evidence::{
    Aside, Busy, ConnectionEvidence, CpuTimeEvidence, DeviceEvidence, Evidence, GeneratorEvidence,
    HopEvidence, KernelEvidence, LockEvidence, OutcomeEvidence, ProcessorEvidence, ShareEvidence, Shares,
    TierDemand, TierTime, TimesCompared, WaitingEvidence,
};
pub use generators::{GeneratorHost, GeneratorLoss, GeneratorShare, GeneratorTrouble};
pub use identity::{Database, DiskLimit, HostName, Identity, Processes, ResourceKind, Unit, Words};
pub use laws::{Bounds, Demand, Laws, Models, Predicted, RequestDemand, Usl};
pub use load_shape::{Connections, LoadShape, LoopKind};
pub use off_cpu::{OffCpu, OffCpuTrouble, RunState, TierOffCpu, Wait};
pub use probability::Probability;
pub use profile::{CutShort, Function, HotFunction, Profile, ProfileTrouble, Stack, TierProfile};
pub use response_time::{PERCENTILES, Percentile, ResponseTime};
pub use stalls::{Meanwhile, Stalls};
pub use step::{
    Again, Connecting, Generator, HeldBack, InFlight, Locks, Measurement, Pauses, Replicate, Resource, Stall,
    Step, StepRequest,
};
pub use topology::{Edge, Node, NodeKind, Tier, TierLimit, TierMemory, Topology};
pub use unwatched::{
    AgentTrouble, DatabaseClient, DatabaseTrouble, HiddenFromUser, ServerUnwatched, SocketsUnread,
};
pub use verdict::{Bottleneck, Explanation, NamedThreads, NextLimit, ThreadTime, Verdict};
pub use warning::{Cause, FewerUsers, ListenQueue, Replaced, Warning, WarningKind};

use crate::ticks::{ErrorCounts, add_errors, failed_share, failures};

/// The value of [`Run::schema`].
pub const SCHEMA: &str = "nstar.run/1";

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The URL that was driven, or a scenario's name and base URL. Never holds credentials.
    pub target: String,
    /// Where the generator ran.
    pub host: Host,
    /// The other hosts on which the server, or a tier behind it, was observed; empty where there are none, and in files from
    /// before they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_hosts: Vec<ServerHost>,
    /// When the run began, RFC 3339, UTC.
    pub started: String,
    /// How long the whole run took, warm-up and pauses included, seconds.
    pub elapsed_s: f64,
    /// Version of nstar that wrote this.
    pub version: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// How the load was made.
    pub load: LoadShape,
    /// A digest of what was sent and which answers were expected, hexadecimal: runs of the same requests have the same one.
    /// Secrets that a name tells of have no part in it. Absent in files from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_digest: Option<String>,
    /// How long the generator took to look up the server's name before the load, microseconds; of several servers the longest. No
    /// response time includes it. Absent where the URL has an address, where other generators made the load, and in files from
    /// before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_lookup_us: Option<f64>,
    /// The kinds of request, where the load has several; the whole run, warm-up included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestShare>,
    /// Whether what was promised is what the database holds, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// What slowing each tier did to throughput, where that was tried (`--confirm`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// Where the processor time of each tier went, where that was asked (`--profile`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// What the commands said that prepared and reset what was measured; of each the last time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepared: Vec<Prepared>,
    /// The conclusions of a run.
    pub verdict: Verdict,
    /// One entry per number of users, ascending.
    pub steps: Vec<Step>,
    /// Who talks to whom; absent without steps, and in run files from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Operational laws.
    pub laws: Laws,
    /// Fitted models.
    pub models: Models,
    /// Reasons to distrust the run.
    pub warnings: Vec<Warning>,
}

/// A host, such as that of the generator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Online processors.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub processor: String,
}

/// A host on which the server, or a tier behind it, was observed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerHost {
    /// Its name, which resources of the host have after `on`.
    pub name: String,
    /// The host.
    #[serde(flatten)]
    pub host: Host,
}

/// One of several kinds of request, as asked and as it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestShare {
    /// Its name in the scenario.
    pub name: String,
    /// Its weight as a share of all weights, 0 to 1.
    pub asked_share: f64,
    /// Its share of the requests that completed, 0 to 1.
    pub share: f64,
    /// How many completed.
    pub completed: u64,
    /// How often another kind took its turn, because the user had kept nothing for this kind.
    pub replaced: u64,
    /// What one of them costs of each tier, disk and link, as far as the run tells; empty in files from before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<RequestDemand>,
}

/// A comparison of what clients were promised with what a system holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Whether every promise was kept and every refusal explained.
    pub holds: bool,
    /// The comparison in sentences with numbers, as the system states it.
    pub text: String,
    /// The same as data; empty in files from before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Count>,
}

/// What a command said that prepared or reset what was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prepared {
    /// Whether it ran before each step, to make what it finds the same; otherwise before all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
    /// The program, as the experiment names it.
    pub program: String,
    /// What it said in words; empty if nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What it counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Count>,
}

/// Something that a command of an experiment counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// The name of the count, such as `bookings acknowledged`.
    pub name: String,
    /// How many there were.
    pub value: u64,
}

impl Run {
    /// Whether any request completed.
    pub fn completed_any(&self) -> bool {
        self.steps.iter().any(|step| step.completed > 0)
    }

    /// Failed requests as a share of all that ended, 0 to 1; 0 where none ended.
    pub fn failed_share(&self) -> f64 {
        let completed = self.steps.iter().map(|step| step.completed).fold(0, u64::saturating_add);
        failed_share(completed, failures(&self.errors()))
    }

    /// Failed requests of all steps by kind.
    pub fn errors(&self) -> ErrorCounts {
        errors(&self.steps)
    }

    /// The step that the verdict is about: the one measured nearest to N*, or the last one without N*. `None` without
    /// steps.
    pub fn verdict_step(&self) -> Option<&Step> {
        verdict_step(&self.steps, self.verdict.users_at_saturation)
    }
}

/// The step measured nearest to N*, or the last one without N*. `None` without steps.
pub fn verdict_step(steps: &[Step], users_at_saturation: Option<u32>) -> Option<&Step> {
    let near = users_at_saturation.and_then(|users| nearest(steps, users));
    near.and_then(|index| steps.get(index)).or(steps.last())
}

/// The index of the step whose number of users is nearest to this one, by ratio; of two as near, that with more users.
/// `None` without steps.
pub(crate) fn nearest(steps: &[Step], users: u32) -> Option<usize> {
    let apart = |step: &Step| (f64::from(step.users.max(1)) / f64::from(users.max(1))).ln().abs();
    let nearer = |a: &usize, b: &usize| {
        let (one, other) = (&steps[*a], &steps[*b]);
        apart(one).total_cmp(&apart(other)).then(other.users.cmp(&one.users))
    };
    (0..steps.len()).min_by(nearer)
}

/// Failed requests of several steps by kind.
pub(crate) fn errors(steps: &[Step]) -> ErrorCounts {
    let mut all = ErrorCounts::new();
    steps.iter().for_each(|step| add_errors(&mut all, &step.errors));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(users: &[u32]) -> Vec<Step> {
        users.iter().map(|&users| Step { users, ..Step::default() }).collect()
    }

    #[test]
    fn nearest_by_ratio() {
        let measured = steps(&[1, 32, 64, 128]);
        let near = |users| nearest(&measured, users).map(|index| measured[index].users);
        assert_eq!([57, 40, 32, 4_000, 0].map(near), [64, 32, 32, 128, 1].map(Some));
        assert_eq!(nearest(&steps(&[4, 16]), 8), Some(1), "as near, so that with more users");
        assert_eq!(nearest(&[], 3), None);
    }
}
