//! Times in which nothing was answered, and what went on meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HostName, Processes};

/// Times in which requests were under way and nothing was answered, beyond what chance explains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// Users of the step.
    pub users: u32,
    /// Share of its time, 0 to 1.
    pub share: f64,
    /// The longest, seconds.
    pub longest_s: f64,
    /// How many there were.
    pub times: u64,
    /// What went on meanwhile.
    pub meanwhile: Meanwhile,
}

/// What went on while nothing was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Meanwhile {
    /// Processes were kept stopped, because their cgroup had used up its CPU quota.
    Throttled {
        /// Processes in it.
        of: Processes,
        /// The cgroup's path.
        cgroup: String,
        /// Share of that time, 0 to 1.
        share: f64,
    },
    /// Threads named after a garbage collector worked.
    Collected {
        /// Their processes.
        of: Processes,
        /// Their name.
        threads: String,
        /// Cores that they used then.
        cores: f64,
    },
    /// Some task waited for memory: until some was reclaimed, or came back.
    MemoryAwaited {
        /// The host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: HostName,
        /// Share of that time, 0 to 1.
        share: f64,
    },
    /// A disk was at work, or some task waited for one.
    DiskAwaited {
        /// The host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: HostName,
        /// The disk; absent where it is not known which.
        device: Option<String>,
        /// Share of that time, 0 to 1.
        share: f64,
    },
    /// A runtime that collects garbage in its working threads went on working.
    WorkedOn {
        /// Its processes.
        of: Processes,
        /// Share of that time, 0 to 1.
        share: f64,
    },
    /// Nothing of all that was seen.
    NothingSeen,
    /// The server was not watched.
    NotWatched,
}
