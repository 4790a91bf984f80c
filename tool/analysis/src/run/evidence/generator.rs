//! Evidence about the load generator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Identity;

/// Evidence about the load generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum GeneratorEvidence {
    /// Its threads were busy.
    GeneratorBusy {
        /// Busy share, 0 to 1.
        busy: f64,
        /// Threads that it can make use of.
        threads: f64,
    },
    /// The threads of one of several were busy.
    OneGeneratorBusy {
        /// Its name.
        generator: String,
        /// Busy share, 0 to 1.
        busy: f64,
    },
    /// One of several handled events late.
    OneGeneratorLate {
        /// Its name.
        generator: String,
        /// 99th percentile of its lag, microseconds.
        lag_us: f64,
        /// Mean response time of all, microseconds.
        response_us: f64,
    },
    /// It waited for a processor.
    GeneratorStarved {
        /// Share of the time, 0 to 1.
        share: f64,
    },
    /// It handled events late.
    GeneratorLate {
        /// 99th percentile of its lag, microseconds.
        lag_us: f64,
        /// Mean response time, microseconds.
        response_us: f64,
    },
    /// Its CPU quota stopped it.
    GeneratorThrottled {
        /// Share of the quota's periods, 0 to 1.
        periods: f64,
        /// The quota, in cores.
        cores: f64,
    },
    /// It ran out of descriptors or local ports.
    GeneratorOutOfPorts {
        /// Users of the step.
        users: u32,
    },
    /// The server was not watched.
    ServerNotWatched,
    /// A resource of the server was full as well.
    ServerBusyToo {
        /// Its busy share.
        busy: f64,
    },
    /// The busiest resource of the server.
    ServerBusiest {
        /// The resource.
        resource: Identity,
        /// Its busy share.
        busy: f64,
        /// Whether that leaves room.
        had_room: bool,
    },
    /// No resource of the server was seen to be busy.
    ServerIdle,
}
