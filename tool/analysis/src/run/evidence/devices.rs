//! Evidence about disks, limits on them, and links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{DiskLimit, Processes};

/// Evidence about disks, limits on them, and links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DeviceEvidence {
    /// How busy a disk is, and what a request costs it.
    DiskBusy {
        /// Kernel name.
        disk: String,
        /// Busy share, 0 to 1.
        busy: f64,
        /// Requests under way, on average.
        in_flight: f64,
        /// N*.
        users: u32,
        /// Time of the disk, microseconds per completed request.
        demand_us: f64,
    },
    /// The work of the disk.
    DiskWork {
        /// Reads per second.
        reads_per_s: f64,
        /// Writes per second.
        writes_per_s: f64,
        /// Flushes per second.
        flushes_per_s: f64,
        /// Share of the time that flushes took.
        flush: f64,
    },
    /// How long the disk took for each, queueing included; absent for what it did not do.
    DiskLatency {
        /// A read, microseconds.
        read_us: Option<f64>,
        /// A write, microseconds.
        write_us: Option<f64>,
        /// A flush, microseconds.
        flush_us: Option<f64>,
    },
    /// The disk takes about as long for each of several requests at a time as for one after the other.
    DiskServesSeveral {
        /// Users of the light load that asks for one after the other.
        users: u32,
        /// How long a read, a write or a flush took with them, microseconds.
        light_us: f64,
        /// How long it took at most at N* and beyond, microseconds.
        full_us: f64,
    },
    /// How much of the disk's work the tiers caused.
    DiskShare {
        /// Share of its bytes, 0 to 1; absent where that may not be read.
        share: Option<f64>,
    },
    /// Waits for the disk.
    DiskAwaited {
        /// Share of the time that some task on the host waited for a disk.
        pressure: f64,
        /// Share of the samples that found one thread of the tiers waiting.
        thread: f64,
    },
    /// The page cache is too small for the files asked for.
    CacheTooSmall {
        /// File pages per second that were read again soon after they were evicted.
        refaults_per_s: f64,
    },
    /// One write serves several users, so the disk is as busy with few users as with many.
    SharedWrites,
    /// How much of a limit on a disk was used.
    IoLimitUsed {
        /// The limit.
        limit: DiskLimit,
        /// The cgroup's path.
        cgroup: String,
        /// Use per second.
        used_per_s: f64,
        /// The limit, per second.
        limit_per_s: f64,
        /// The share of it that was used.
        share: f64,
        /// N*.
        users: u32,
        /// Use per request.
        per_request: f64,
    },
    /// The disk behind the limit is not busy.
    DiskNotBusy {
        /// Kernel name.
        disk: String,
        /// Busy share, 0 to 1.
        busy: f64,
    },
    /// Waits under the limit.
    IoLimitAwaited {
        /// The processes.
        of: Processes,
        /// Share of the samples that found threads of theirs waiting for a disk.
        threads: f64,
        /// Share of the time that some task on the host waited for a disk.
        pressure: f64,
    },
    /// How full a link is, and what a request costs it.
    LinkBusy {
        /// Kernel name.
        link: String,
        /// Bits per second carried.
        used_bits_per_s: f64,
        /// Bits per second that it carries at most.
        limit_bits_per_s: f64,
        /// The share in use.
        busy: f64,
        /// N*.
        users: u32,
        /// Time of the link, microseconds per completed request.
        demand_us: f64,
    },
    /// The queue of a link.
    LinkQueue {
        /// Packets delayed per second.
        delayed_per_s: f64,
        /// Packets dropped per second.
        dropped_per_s: f64,
        /// Share of the samples that found bytes in it.
        backlogged: f64,
    },
}
