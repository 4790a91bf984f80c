//! Who talks to whom, and where.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HostName, Processes, ResourceKind};
use crate::counters::{Container, ServerAddress};

/// Who talks to whom: the load, the server, the tiers behind it, and what these call without anybody observing it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// Users of the step that the figures are of.
    pub users: u32,
    /// Generators first, then the server, then what is behind it.
    pub nodes: Vec<Node>,
    /// Connections from some nodes to another.
    pub edges: Vec<Edge>,
}

/// One of those who talk to each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// What it is.
    #[serde(flatten)]
    pub is: NodeKind,
    /// Whether the bottleneck is here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bottleneck: bool,
}

/// Kinds of nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NodeKind {
    /// A generator of the load.
    Generator {
        /// Its name where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: HostName,
        /// Its users.
        users: u32,
    },
    /// Processes of one name and role: the server, or a tier behind it.
    Tier(Box<Tier>),
    /// An address that is called, and whose processes nobody observes.
    Unobserved {
        /// The address.
        address: ServerAddress,
        /// Whether address translation may lead on from there to a tier that is observed: connection tracking, which would tell,
        /// could not be read where it is called.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        translation_unread: bool,
    },
}

/// The server, or a tier behind it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tier {
    /// Its processes, and their host.
    pub processes: Processes,
    /// The containers that they run in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
    /// The services of the init system that they run in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<String>,
    /// Processor time per completed request from N* on, microseconds, as in the verdict. In the laws of the run it is that of all
    /// steps, by regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_request: Option<f64>,
    /// Processors in use.
    pub cores: f64,
    /// The same as a share of those that they may use, 0 to 1.
    pub utilization: f64,
    /// Bytes read from and written to block devices per completed request; absent where that may not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes_per_request: Option<f64>,
    /// What their cgroups allow them of memory; absent where that was not looked at for long enough or could not be read, and in
    /// files from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<TierMemory>,
    /// Other limits that they hold, such as a single thread, with what a completed request costs of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<TierLimit>,
}

/// What the cgroups of a tier allow it of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TierMemory {
    /// As much as the host has.
    Unlimited,
    /// So much: the tightest limit of any of its processes.
    Limited {
        /// Bytes.
        bytes: u64,
    },
}

/// What a request costs of something that a tier holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierLimit {
    /// The kind of resource.
    pub of: ResourceKind,
    /// Microseconds of it per completed request, as in the laws of the run.
    pub demand_us: f64,
}

/// The connections that lead to one node, counted together whoever made them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// Those who call, by their places among the nodes.
    pub from: Vec<usize>,
    /// What is called.
    pub to: usize,
    /// The address; of several the first. Absent where no connection was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<ServerAddress>,
    /// Connections on average; absent where they were not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<f64>,
    /// Requests outstanding on them on average, the least and the most that it can have been; absent where they were not
    /// looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<[f64; 2]>,
}
