//! What was seen that supports a verdict: numbers and identities, one entry for each sentence of the report.

mod connections;
mod devices;
mod generator;
mod hops;
mod kernel;
mod locks;
mod processors;
mod waiting;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use connections::ConnectionEvidence;
pub use devices::DeviceEvidence;
pub use generator::GeneratorEvidence;
pub use hops::{HopEvidence, TierTime};
pub use kernel::KernelEvidence;
pub use locks::LockEvidence;
pub use processors::{Busy, CpuTimeEvidence, ProcessorEvidence, ShareEvidence, Shares, TierDemand};
pub use waiting::{TimesCompared, WaitingEvidence};

use crate::run::Identity;
use crate::ticks::ErrorCounts;

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Evidence {
    /// About processors and threads that are full.
    Processors(ProcessorEvidence),
    /// About where CPU time went.
    CpuTime(CpuTimeEvidence),
    /// About processors that several share, or that a quota limits.
    Shares(ShareEvidence),
    /// About disks, limits on them, and links.
    Devices(DeviceEvidence),
    /// About work and limits of the kernel.
    Kernel(KernelEvidence),
    /// About connections that are not accepted, or turned away.
    Connections(ConnectionEvidence),
    /// About users that wait while nothing is busy.
    Waiting(WaitingEvidence),
    /// About the tier at which requests queue.
    Hops(HopEvidence),
    /// About the locks of a database.
    Locks(LockEvidence),
    /// About the load generator.
    Generator(GeneratorEvidence),
    /// About the sweep as a whole.
    Outcome(OutcomeEvidence),
}

impl Default for Evidence {
    /// Known by words alone.
    fn default() -> Self {
        OutcomeEvidence::Told { text: String::new() }.into()
    }
}

macro_rules! evidence_from {
    ($($part:ident => $variant:ident),*) => {$(
        impl From<$part> for Evidence {
            fn from(part: $part) -> Self {
                Self::$variant(part)
            }
        }
    )*};
}

evidence_from!(
    ProcessorEvidence => Processors,
    CpuTimeEvidence => CpuTime,
    ShareEvidence => Shares,
    DeviceEvidence => Devices,
    KernelEvidence => Kernel,
    ConnectionEvidence => Connections,
    WaitingEvidence => Waiting,
    HopEvidence => Hops,
    LockEvidence => Locks,
    GeneratorEvidence => Generator,
    OutcomeEvidence => Outcome
);

/// Evidence about the sweep as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OutcomeEvidence {
    /// No request completed.
    NothingCompleted,
    /// Only one step was measured.
    OnlyStep {
        /// Its users.
        users: u32,
    },
    /// Throughput grew up to the last step.
    StillGrew {
        /// Most users that were tried.
        users: u32,
    },
    /// The steps are too uneven to tell.
    TooUneven {
        /// Most users that were tried.
        users: u32,
    },
    /// The server could not be watched.
    NotWatched {
        /// N*.
        users: u32,
    },
    /// Nothing that was watched explains the limit.
    NothingExplains {
        /// N*.
        users: u32,
        /// The highest throughput, requests per second.
        throughput_per_s: f64,
    },
    /// Work that no watched process did.
    UnwatchedWork {
        /// Cores more than under a light load.
        cores: f64,
    },
    /// The busiest resource of all.
    Busiest {
        /// The resource.
        resource: Identity,
        /// Busy share, 0 to 1.
        busy: f64,
        /// The reason why that proves nothing, if it is full.
        aside: Option<Aside>,
    },
    /// A rival was nearly as busy.
    CloseRival {
        /// The resource.
        resource: Identity,
        /// Busy share, 0 to 1.
        busy: f64,
    },
    /// Many requests failed.
    RequestsFailed {
        /// Share of the requests, 0 to 1.
        share: f64,
        /// Users of the step.
        users: u32,
        /// How they failed.
        errors: ErrorCounts,
    },
    /// A sentence of a run file from before evidence was typed, or from a newer version.
    Told {
        /// The sentence.
        text: String,
    },
}

/// Reasons why a full resource proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Aside {
    /// The server used little of it.
    OthersUsedIt {
        /// Cores that the server and its tiers used.
        tier_cores: f64,
    },
    /// It was full under a light load as well.
    WhateverTheLoad,
}
