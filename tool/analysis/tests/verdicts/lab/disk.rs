//! The disk of a synthetic sweep.

use analysis::counters::Disk;
use analysis::laws::mva::Station;

use super::BASE;

/// What makes a disk.
#[derive(Clone, Copy)]
pub(in super::super) struct Platter {
    pub(in super::super) demand_us: f64,
    pub(in super::super) flush_share: f64,
    /// Busy with other work than the server's, whatever the load.
    pub(in super::super) background: f64,
    /// So many requests are served side by side.
    pub(in super::super) at_once: u32,
}

impl Default for Platter {
    fn default() -> Self {
        Self { demand_us: 0.0, flush_share: 0.0, background: 0.0, at_once: 1 }
    }
}

impl Platter {
    /// Where requests queue for it.
    pub(super) fn station(self) -> Station {
        let demand_us = self.demand_us / (1.0 - self.background.min(0.9));
        Station::Queue { demand_us, servers: self.at_once }
    }

    /// What is counted of it so far.
    pub(super) fn counted(self, t: f64, users: u32, throughput: f64) -> Disk {
        let most = f64::from(self.at_once);
        let served = throughput * self.demand_us / 1e6 + self.background;
        let busy = served.min(1.0);
        let flush = busy * self.flush_share;
        let queue = if served >= 0.9 * most { f64::from(users).clamp(most, 8.0 * most) } else { served };
        let count = |rate_per_s: f64| (BASE + rate_per_s * t / 1e6) as u64;
        let background = self.background * 2_000.0;
        Disk {
            name: "vda".to_owned(),
            reads: count(throughput * (1.0 - self.flush_share) + background),
            read_bytes: count((throughput + background) * 1e5),
            writes: count(throughput * self.flush_share),
            flushes: count(throughput * self.flush_share),
            flush_us: count(flush * 1e6),
            busy_us: count((busy - flush) * 1e6),
            weighted_us: count((queue - flush).max(0.0) * 1e6),
            read_us: count((queue - flush).max(0.0) * (1.0 - self.flush_share) * 1e6),
            write_us: count((queue - flush).max(0.0) * self.flush_share * 1e6),
            ..Disk::default()
        }
    }
}
