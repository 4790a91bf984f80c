//! Limits of cgroups on memory, and what they cost during one step.

use std::collections::BTreeMap;

use super::Group;
use super::samples::growth;
use crate::counters::{Counters, MemoryLimit};
use crate::run::HostName;

/// How a limit on memory was used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryUse {
    /// The cgroup's path.
    pub cgroup: String,
    /// The host, or the container, that it is on.
    pub on: HostName,
    /// The watched processes under it, ascending.
    pub pids: Vec<u32>,
    /// The limit.
    pub limit_bytes: f64,
    /// Share of it in use, cached files included: the largest of all samples.
    pub fill: f64,
    /// Times per second that it was full, so that something was evicted.
    pub reached_per_s: f64,
    /// Processes that the kernel killed to make room.
    pub killed: u64,
    /// Bytes of files per second that were read again soon after being evicted.
    pub refaulted_bytes_per_s: f64,
    /// Bytes per second that came back from swap.
    pub swapped_in_bytes_per_s: f64,
    /// Share of the time in which some task under it waited for memory, where that is counted.
    pub stalled: Option<f64>,
}

impl MemoryUse {
    /// Whether any of these processes is under it.
    pub(crate) fn limits(&self, group: &Group) -> bool {
        self.on == group.on && group.pids.iter().any(|pid| self.pids.contains(pid))
    }
}

/// Whether at least two of the samples looked at limits, so that `memory_limits` are all there are.
pub(super) fn are_known(samples: &[&Counters]) -> bool {
    samples.iter().filter(|sample| sample.memory_limits.is_some()).count() > 1
}

/// The limits that at least two of the samples looked at.
pub(super) fn memory_limits(samples: &[&Counters]) -> Vec<MemoryUse> {
    let mut seen: BTreeMap<&str, Vec<(u64, &MemoryLimit)>> = BTreeMap::new();
    for (at_us, limits) in
        samples.iter().filter_map(|sample| Some((sample.at_us, sample.memory_limits.as_ref()?)))
    {
        limits.iter().for_each(|limit| seen.entry(&limit.cgroup).or_default().push((at_us, limit)));
    }
    seen.into_values().filter_map(|seen| memory_use(&seen)).collect()
}

fn memory_use(seen: &[(u64, &MemoryLimit)]) -> Option<MemoryUse> {
    let ((start_us, _), (end_us, last)) = (seen.first()?, seen.last()?);
    let elapsed_us = growth(*start_us, *end_us) as f64;
    let grown = |read: fn(&MemoryLimit) -> u64| {
        let pairs = seen.windows(2).map(|pair| growth(read(pair[0].1), read(pair[1].1)));
        pairs.fold(0, u64::saturating_add)
    };
    let per_s = |read: fn(&MemoryLimit) -> u64| grown(read) as f64 / elapsed_us * 1e6;
    let fill = |limit: &MemoryLimit| limit.used_bytes as f64 / limit.limit_bytes.max(1) as f64;
    let stalled = || (grown(|limit| limit.stalled_us.unwrap_or(0)) as f64 / elapsed_us).min(1.0);
    (elapsed_us > 0.0).then(|| MemoryUse {
        cgroup: last.cgroup.clone(),
        on: None,
        pids: last.pids.clone(),
        limit_bytes: last.limit_bytes as f64,
        fill: seen.iter().map(|(_, limit)| fill(limit)).fold(0.0, f64::max),
        reached_per_s: per_s(|limit| limit.reached),
        killed: grown(|limit| limit.killed),
        refaulted_bytes_per_s: per_s(|limit| limit.refaulted_bytes),
        swapped_in_bytes_per_s: per_s(|limit| limit.swapped_in_bytes),
        stalled: last.stalled_us.map(|_| stalled()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_us: u64, limits: Option<Vec<MemoryLimit>>) -> Counters {
        Counters { at_us, memory_limits: limits, ..Counters::default() }
    }

    fn limit(used_bytes: u64, refaulted_bytes: u64) -> MemoryLimit {
        MemoryLimit {
            cgroup: "/web".into(),
            pids: vec![7],
            limit_bytes: 1000,
            used_bytes,
            reached: refaulted_bytes / 100,
            refaulted_bytes,
            stalled_us: Some(refaulted_bytes * 10),
            ..MemoryLimit::default()
        }
    }

    #[test]
    fn rates_are_over_the_time_between_looks() {
        let all = [
            sample(1_000_000, Some(vec![limit(900, 5_000)])),
            sample(1_250_000, None),
            sample(3_000_000, Some(vec![limit(990, 45_000)])),
            sample(3_250_000, None),
        ];
        let found = memory_limits(&all.iter().collect::<Vec<_>>());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].fill, found[0].reached_per_s), (0.99, 200.0));
        assert_eq!((found[0].refaulted_bytes_per_s, found[0].stalled), (20_000.0, Some(0.2)));
    }

    #[test]
    fn one_look_tells_no_rate() {
        let one = sample(1_000_000, Some(vec![limit(900, 5_000)]));
        assert_eq!(memory_limits(&[&one]), []);
        assert_eq!(memory_limits(&[&one, &one]), [], "no time between them");
        assert_eq!(memory_limits(&[]), []);
    }

    #[test]
    fn there_is_no_limit_where_two_samples_could_look_and_saw_none() {
        let (none, unread) = (sample(1_000_000, Some(Vec::new())), sample(2_000_000, None));
        assert!(are_known(&[&none, &unread, &none]) && !are_known(&[&none, &unread]));
    }
}
