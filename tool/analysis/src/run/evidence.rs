//! What was seen that supports a verdict: numbers and identities, one entry for each sentence of the report.

mod cpu_time;
mod devices;
mod generator;
mod locks;
mod outcome;
mod processors;
mod shares;
mod waiting;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cpu_time::{CpuTimeEvidence, TierDemand};
pub use devices::DeviceEvidence;
pub use generator::GeneratorEvidence;
pub use locks::LockEvidence;
pub use outcome::{Aside, OutcomeEvidence};
pub use processors::{Busy, ProcessorEvidence};
pub use shares::{ShareEvidence, Shares};
pub use waiting::WaitingEvidence;

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
    /// About users that wait while nothing is busy.
    Waiting(WaitingEvidence),
    /// About the locks of a database.
    Locks(LockEvidence),
    /// About the load generator.
    Generator(GeneratorEvidence),
    /// About the sweep as a whole.
    Outcome(OutcomeEvidence),
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
    WaitingEvidence => Waiting,
    LockEvidence => Locks,
    GeneratorEvidence => Generator,
    OutcomeEvidence => Outcome
);
