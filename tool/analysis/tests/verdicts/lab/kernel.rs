//! What the kernel does for the servers of a synthetic sweep.

use analysis::counters::MemoryLimit;

use super::{BASE, Tier};

/// Soft interrupts that one processor handles for all requests.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Softirqs {
    pub(in super::super) cpu: u32,
    pub(in super::super) demand_us: f64,
    /// Share of the processor, whatever the load.
    pub(in super::super) background: f64,
}

/// A limit on the memory of the first tier.
#[derive(Clone, Copy)]
pub(in super::super) struct LittleMemory {
    /// Share of what a request reads that had been in memory before.
    pub(in super::super) again: f64,
    /// Bytes per second that come back whatever the load.
    pub(in super::super) background: f64,
    /// Share of the time that some task waits for memory, where the cgroup counts that.
    pub(in super::super) stalled: Option<f64>,
}

impl LittleMemory {
    /// What is counted of it so far.
    pub(super) fn limit(self, tier: Option<&Tier>, t: f64, throughput: f64) -> MemoryLimit {
        let count = |rate_per_s: f64| (BASE + rate_per_s * t / 1e6) as u64;
        let read = tier.map_or(0.0, |tier| throughput * 1e5 * tier.disk_share);
        let again = read * self.again + self.background;
        MemoryLimit {
            cgroup: "/web".to_owned(),
            pids: vec![812],
            limit_bytes: 128 << 20,
            used_bytes: (128 << 20) - 4096,
            reached: count(again / 131_072.0 + 10.0),
            refaulted_bytes: count(again),
            stalled_us: self.stalled.map(|share| count(share * 1e6)),
            ..MemoryLimit::default()
        }
    }
}
