//! What was concluded: N*, what stops the server there, and how sure that is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Doubt, Evidence, Identity, Probability, Resource, ResourceKind, ResponseTime, Words, known};
use crate::thresholds::LISTED;

/// The conclusions of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// N*: the smallest number of users that reaches 95 % of the maximum throughput.
    pub users_at_saturation: Option<u32>,
    /// 95 % interval of N*, [lo, hi].
    pub users_at_saturation_ci: Option<[u32; 2]>,
    /// Crossing of the asymptotes, (R(1) + Z) * X_max.
    pub knee_users: Option<f64>,
    /// Whether throughput was seen to stop growing. If not, the maximum is a lower bound.
    pub bounded: bool,
    /// Maximum throughput, completed requests per second.
    pub throughput_max_per_s: f64,
    /// 95 % interval of it, [lo, hi].
    pub throughput_max_ci_per_s: [f64; 2],
    /// Response time at N* (at the last step if not bounded).
    pub response_time_at_saturation_us: ResponseTime,
    /// The resource that stops the server there.
    pub bottleneck: Bottleneck,
    /// Reasons not to rely on the answer, one sentence each; empty where there are none.
    pub inconclusive: Vec<Words>,
    /// The same as data, one entry for each sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known::each_or_default")]
    pub doubts: Vec<Doubt>,
    /// The limit that would come next if the bottleneck were removed, one sentence.
    pub next: Option<Words>,
    /// The same as data.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known::or_default")]
    pub next_limit: Option<NextLimit>,
}

impl Verdict {
    /// Whether the answer can be relied on. A bottleneck that is `unknown` does not make it inconclusive:
    /// N* and the throughput stand without their cause.
    pub fn is_conclusive(&self) -> bool {
        self.doubts.is_empty()
    }
}

/// The limit that would come next if the bottleneck were removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NextLimit {
    /// The next resource to be full.
    Limit {
        /// The resource.
        resource: Identity,
        /// Where it would be full, requests per second.
        throughput_per_s: f64,
    },
    /// A sentence of a run file from before this was typed, or from a newer version.
    Told {
        /// The sentence.
        text: String,
    },
}

/// The resource that stops the server, with evidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The name of the process or device, such as `nginx (pid 812)` or `vda`; empty where there is none.
    pub holder: Words,
    /// The process or device itself; absent where there is none, and in run files from before identities were typed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known::or_default")]
    pub identity: Option<Identity>,
    /// Busy share at N*, 0 to 1 of what the holder could use.
    pub utilization: Option<f64>,
    /// Service demand on it, microseconds per completed request.
    pub demand_us: Option<f64>,
    /// Evidence in sentences with numbers, most telling first.
    pub evidence: Vec<Words>,
    /// The same as data, one entry for each sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known::each_or_default")]
    pub findings: Vec<Evidence>,
    /// The threads that spent the holder's CPU time, if CPU time is what it lacks and the names are informative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<ThreadTime>,
    /// The next most utilised resource.
    pub runner_up: Option<Resource>,
    /// How many requests it serves at a time, where nothing is busy and that is what users wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_a_time: Option<u32>,
    /// How probable it is that this is the bottleneck; 0 where nothing is claimed.
    pub confidence: Probability,
    /// What else it may be, most probable first, with at least 1 % each. What is missing to 1 in all is something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Explanation>,
}

/// One of several explanations of why throughput stops growing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The name of the process or device; empty where there is none.
    pub holder: Words,
    /// The process or device itself; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known::or_default")]
    pub identity: Option<Identity>,
    /// How many requests it serves at a time, where that is part of the explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_a_time: Option<u32>,
    /// How probable it is.
    pub probability: Probability,
}

/// A process's CPU time by the names of its threads, at N* and the steps beyond it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadTime {
    /// Threads of one name with at least 1 % of it, most first.
    pub names: Vec<NamedThreads>,
    /// Share that is in no entry, 0 to 1: threads that came and went between two samples or were too many to be
    /// sampled, children that ended, names with less than 1 %.
    pub rest: f64,
}

impl ThreadTime {
    /// The share that is in no entry, if it is large enough to be listed.
    pub fn listed_rest(&self) -> Option<f64> {
        Some(self.rest).filter(|rest| *rest >= LISTED)
    }
}

/// Threads of one name, of all processes that hold the bottleneck.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedThreads {
    /// The kernel's short name of them; `worker-*` stands for `worker-1`, `worker-2` and so on.
    pub name: String,
    /// Most of them in any one sample.
    pub threads: u64,
    /// Share of the CPU time, 0 to 1.
    pub share: f64,
    /// Microseconds of CPU time per completed request.
    pub demand_us: Option<f64>,
}
