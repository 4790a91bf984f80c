//! What cgroups may ask of block devices, and what they asked during one step.

use std::collections::BTreeMap;

use crate::counters::{IoRate, Process};
use crate::resources::samples::growth;

/// How much of one cgroup's limit on a block device was used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IoLimitUse {
    /// The cgroup's path.
    pub cgroup: String,
    /// Kernel name of the device.
    pub device: String,
    /// The kind of use that is limited.
    pub of: IoRate,
    /// Use by the whole cgroup, per second.
    pub used_per_s: f64,
    /// The limit, a second.
    pub limit_per_s: f64,
}

impl IoLimitUse {
    /// Share of the limit that was used; bursts may take it above one.
    pub fn share(&self) -> f64 {
        self.used_per_s / self.limit_per_s
    }
}

/// The limits seen so far, by cgroup, device and what is limited.
#[derive(Debug, Default)]
pub(super) struct IoLimits(BTreeMap<(String, String, IoRate), Seen>);

#[derive(Debug, Default)]
struct Seen {
    per_s: u64,
    last: Option<u64>,
    grown: u64,
}

impl IoLimits {
    /// Adds the limits of one process in one sample. Those of its cgroup's other processes count the same.
    pub(super) fn add_sample(&mut self, process: &Process) {
        for limit in &process.io_limits {
            let key = (limit.cgroup.clone(), limit.device.clone(), limit.of);
            let seen = self.0.entry(key).or_default();
            let last = seen.last.unwrap_or(limit.done);
            seen.grown = seen.grown.saturating_add(growth(last, limit.done));
            (seen.per_s, seen.last) = (limit.per_s, Some(limit.done.max(last)));
        }
    }

    /// The use of each limit, the fullest first.
    pub(super) fn uses(&self, elapsed_us: f64) -> Vec<IoLimitUse> {
        let used = |((cgroup, device, of), seen): (&(String, String, IoRate), &Seen)| IoLimitUse {
            cgroup: cgroup.clone(),
            device: device.clone(),
            of: *of,
            used_per_s: seen.grown as f64 / elapsed_us * 1e6,
            limit_per_s: seen.per_s as f64,
        };
        let mut all: Vec<IoLimitUse> = self.0.iter().filter(|(_, seen)| seen.per_s > 0).map(used).collect();
        all.sort_by(|a, b| b.share().total_cmp(&a.share()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::IoLimit;

    fn process(per_s: u64, done: u64) -> Process {
        let limit =
            |device: &str, per_s| IoLimit { device: device.to_owned(), per_s, done, ..IoLimit::default() };
        Process { io_limits: vec![limit("vda", per_s), limit("vdb", 4000)], ..Process::default() }
    }

    #[test]
    fn processes_of_one_cgroup_count_once_and_the_fullest_limit_comes_first() {
        let mut limits = IoLimits::default();
        for done in [700, 700, 720, 719, 750] {
            // One process may be sampled a little earlier than another.
            limits.add_sample(&process(100, done));
        }
        let uses = limits.uses(500_000.0);
        assert_eq!(uses.iter().map(|used| used.device.as_str()).collect::<Vec<_>>(), ["vda", "vdb"]);
        assert!((uses[0].share() - 1.0).abs() < 1e-9, "{uses:?}");
    }

    #[test]
    fn a_limit_of_nothing_is_none() {
        let mut limits = IoLimits::default();
        limits.add_sample(&process(0, 5));
        assert_eq!(limits.uses(1e6).len(), 1);
        assert_eq!(IoLimits::default().uses(1e6), []);
    }
}
