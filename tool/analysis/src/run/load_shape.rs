//! How the load of a run was made.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GeneratorHost;

/// How the load was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadShape {
    /// When users send.
    pub loop_kind: LoopKind,
    /// Open loop: intended requests per second.
    pub rate_per_s: Option<f64>,
    /// Mean think time between a response and the next request, microseconds.
    pub think_time_us: f64,
    /// Whether a connection carries more than one request.
    pub connections: Connections,
    /// Generator threads.
    pub threads: u32,
    /// Processors the generator was confined to, if it was.
    pub generator_cpus: Option<Vec<u32>>,
    /// Processors the systems under test were confined to, if nstar confined them.
    pub system_cpus: Option<Vec<u32>>,
    /// The generators, where several made the load together; empty where this host made it alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorHost>,
}

impl LoadShape {
    /// Whether a fixed number of users waits for responses.
    pub fn is_closed(&self) -> bool {
        self.loop_kind == LoopKind::Closed
    }
}

/// When users send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoopKind {
    /// After the response to the request before, and think time.
    #[default]
    Closed,
    /// At a rate, whatever the responses.
    Open,
}

/// Whether a connection carries more than one request. In files and on the command line: `kept` or `per-request`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// One per user, kept open for as long as the server does.
    #[default]
    Kept,
    /// A new one for each request, which says `Connection: close`.
    PerRequest,
}

impl Connections {
    /// Both policies.
    pub const ALL: [Self; 2] = [Self::Kept, Self::PerRequest];

    /// The name in files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::PerRequest => "per-request",
        }
    }

    /// The policy of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
