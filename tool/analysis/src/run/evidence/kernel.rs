//! Evidence about what the kernel does for the server, and about its limits.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Processes;

/// Evidence about work and limits of the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum KernelEvidence {
    /// A processor is full, mostly of soft interrupts.
    SoftirqsFull {
        /// Its number.
        processor: u32,
        /// Busy share of it, 0 to 1.
        busy: f64,
        /// Share of it that went to soft interrupts, part of `busy`.
        softirq: f64,
        /// N*.
        users: u32,
        /// Soft interrupts on it, microseconds per completed request.
        demand_us: f64,
    },
    /// Packets that the processor could not handle in time.
    PacketsLeft {
        /// Packets per second dropped from its full queue.
        dropped_per_s: f64,
        /// Polls per second that ended with packets left.
        squeezes_per_s: f64,
    },
    /// The server and its tiers had room meanwhile.
    TiersHadRoom {
        /// The busiest of them.
        of: Processes,
        /// Busy share of the processors that it may use, or of one for its busiest thread, whichever is larger.
        busy: f64,
    },
    /// Advice to spread soft interrupts over processors.
    SpreadSoftirqs {
        /// Processors with room.
        processors: u64,
    },
    /// The memory of a cgroup is full, and what was evicted is read again.
    MemoryLimitFull {
        /// The processes under it.
        of: Processes,
        /// The cgroup's path.
        cgroup: String,
        /// The limit, bytes.
        limit_bytes: f64,
        /// Share of it in use, 0 to 1.
        fill: f64,
        /// Times per second that something was evicted to make room.
        reached_per_s: f64,
        /// N*.
        users: u32,
    },
    /// What was read again for want of memory.
    ReadAgain {
        /// Bytes per second that came back soon after they were evicted, from files or from swap.
        bytes_per_s: f64,
        /// The same per completed request.
        bytes_per_request: f64,
        /// The same as a share of all bytes that the processes read from block devices and wrote to them; absent where
        /// that may not be read.
        share: Option<f64>,
    },
    /// The processes waited for it.
    MemoryAwaited {
        /// Their threads that waited for a disk, on average.
        threads: f64,
        /// Share of the samples that found such a thread.
        found: f64,
        /// Share of the time in which some task waited for memory, where that is counted for the cgroup.
        stalled: Option<f64>,
    },
    /// No room for more tracked connections.
    TrackingTableFull {
        /// Most connections that were tracked.
        connections: u64,
        /// How many may be.
        most: u64,
        /// Packets dropped and connections given up, per second.
        refused_per_s: f64,
        /// Users of the step.
        users: u32,
    },
    /// No local ports left towards an address.
    PortsUsedUp {
        /// The address.
        address: SocketAddr,
        /// Whether it is the address that the generator calls, and not one that the server or a tier behind it calls.
        is_target: bool,
        /// Ports in use, or held after their connections ended.
        used: u64,
        /// How many there are.
        ports: u64,
        /// Users of the step.
        users: u32,
    },
    /// The kernel killed processes to make room in memory.
    KilledForMemory {
        /// The cgroup whose memory was full.
        cgroup: String,
        /// How many processes.
        processes: u64,
        /// Users of the step.
        users: u32,
    },
    /// Memory that the host still had.
    HostMemoryLeft {
        /// Share of its memory, 0 to 1.
        share: f64,
    },
}
