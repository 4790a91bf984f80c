//! Several generators that make one load together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of several generators that made the load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorHost {
    /// The name of its host, with a number where another has that name too.
    pub name: String,
    /// Its threads.
    pub threads: u32,
    /// Requests of the cheapest kind that it can make per second; absent where that could not be tested.
    pub ceiling_per_s: Option<f64>,
    /// By how much its monotonic clock was ahead of that of this host when the run ended, microseconds.
    pub clock_offset_us: i64,
    /// By how much that may be wrong, microseconds.
    pub clock_error_us: f64,
    /// By how much it began a step later than asked for, at worst, microseconds by its own clock.
    #[serde(default)]
    pub started_late_us: u64,
}

/// What one of several generators did during a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorShare {
    /// Its name.
    pub name: String,
    /// Users that it had.
    pub users: u32,
    /// Requests that completed there.
    pub completed: u64,
    /// Share of its threads' time spent outside the wait for events, 0 to 1.
    pub useful_work: f64,
    /// 99th percentile of its lag in handling events, microseconds.
    pub lag_us_p99: f64,
}

/// What went wrong with one of several generators.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum GeneratorTrouble {
    /// It was lost. What was being measured was measured again without it, or the run ended.
    Lost {
        /// Users of the step; of all generators together.
        users: u32,
        /// How it was lost.
        loss: GeneratorLoss,
        /// Whether the run ended: no other generator was left, or that was asked for.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ended_run: bool,
    },
    /// After another was lost, it was to have more users than its limit on open files allows, and the run ended.
    TooFewFiles {
        /// Users that it was to have.
        users: u32,
        /// Users that the limit allows.
        allowed: u32,
    },
    /// Its limit on open files allows it fewer users than it was to have, so that all together had fewer than were asked for.
    FewerUsers {
        /// Users asked for; of all generators together.
        asked: u32,
        /// Users that all together could have.
        allowed: u32,
        /// Users that the limit allows this one.
        of_this: u32,
    },
    /// Its clock is not known well enough for all to start at one instant.
    Clock {
        /// By how much it may be wrong, microseconds.
        error_us: f64,
    },
    /// It began a step later than the others.
    StartedLate {
        /// By how much at worst, microseconds.
        late_us: u64,
    },
    /// The link of its host that carries the load was full for seconds.
    LinkFull {
        /// The name of the link.
        link: String,
        /// What it carried at worst, bits per second.
        used_bits_per_s: f64,
        /// What it can carry, bits per second.
        limit_bits_per_s: f64,
    },
    /// The CPU quota of its cgroup stopped it for seconds, time and again.
    Throttled {
        /// Processors that the quota allows.
        cores: f64,
        /// Share of its periods in which it was stopped, at worst, 0 to 1.
        periods: f64,
    },
}

impl GeneratorTrouble {
    /// Whether the run ended because of it, before all was measured.
    #[must_use]
    pub fn ended_run(&self) -> bool {
        matches!(self, Self::Lost { ended_run: true, .. } | Self::TooFewFiles { .. })
    }
}

/// Ways to lose a generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum GeneratorLoss {
    /// The command that ran it ended.
    Ended {
        /// Its exit code, if it has one.
        code: Option<i32>,
        /// Its last lines on stderr; empty where it printed nothing.
        stderr: String,
    },
    /// The stream from it broke.
    Disconnected {
        /// Why.
        reason: String,
    },
    /// It sent what no generator sends.
    Malformed,
    /// It sent more than it may.
    Flooded,
    /// Nothing came from it any more.
    Silent {
        /// For so long, seconds.
        silent_s: f64,
    },
    /// It could not go on, and said why.
    Failed {
        /// What it said.
        reason: String,
    },
}
