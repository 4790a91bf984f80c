//! What is looked at, and what could not be for want of a right.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A thing that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Files that a process may open.
    OpenFiles,
    /// Limits of cgroups on processors.
    Quota,
    /// Limits of cgroups on memory.
    Memory,
    /// Processors that a process may run on.
    Placement,
    /// Whether a server was built without optimisation.
    DebugServer,
    /// How long the listen queues of the server itself may be.
    Backlog,
    /// Local ports.
    Ports,
    /// Connections that have ended and hold their port.
    TimeWait,
    /// The limit on all listen queues.
    ListenQueue,
    /// The queue of handshakes.
    SynQueue,
    /// The table of tracked connections.
    Tracking,
    /// Links, and what they take off the processors.
    Links,
    /// Packets dropped from a full queue.
    PacketsDropped,
    /// Governors of the processors' speed.
    Governor,
    /// Idle states of processors.
    IdleStates,
    /// Which processors share a core or a node of memory.
    Cores,
    /// Time that the hypervisor took.
    Steal,
    /// Swap.
    Swapping,
    /// Large pages.
    HugePages,
    /// Other processes at work.
    Neighbours,
    /// The source of the clock.
    Clock,
}

/// What a check is about, so that it is made once where several observe the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// A machine.
    Machine,
    /// A network namespace.
    Network,
    /// The processes of the server, or of the generator.
    Processes,
}

impl Check {
    pub(super) fn scope(self) -> Scope {
        match self {
            Self::OpenFiles
            | Self::Quota
            | Self::Memory
            | Self::Placement
            | Self::DebugServer
            | Self::Backlog => Scope::Processes,
            Self::Ports
            | Self::TimeWait
            | Self::ListenQueue
            | Self::SynQueue
            | Self::Tracking
            | Self::Links => Scope::Network,
            Self::PacketsDropped
            | Self::Governor
            | Self::IdleStates
            | Self::Cores
            | Self::Steal
            | Self::Swapping
            | Self::HugePages
            | Self::Neighbours
            | Self::Clock => Scope::Machine,
        }
    }
}

/// A check that could not be made for want of a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmade {
    /// The check.
    pub check: Check,
    /// The number of the kernel's error, if the kernel gave one.
    pub os_error: Option<i32>,
}
