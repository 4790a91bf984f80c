//! Block devices and network interfaces.

use super::samples::grown_where;
use crate::counters::{Counters, Disk, Interface};
use crate::run::HostName;
use crate::statistics::normal_equations::NormalEquations;

/// The use of one block device.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiskUse {
    /// Kernel name, such as `vda`.
    pub name: String,
    /// The host that it belongs to.
    pub on: HostName,
    /// Share of the time with at least one request, or a flush, under way. On a device that serves
    /// several requests at a time a share of 1 does not yet mean that it can do no more.
    pub busy: f64,
    /// Mean number of requests under way, flushes included.
    pub in_flight: f64,
    /// Share of the time spent in flushes.
    pub flush: f64,
    /// Reads under way, on average: their latency times their rate.
    pub reading: f64,
    /// Writes under way, on average.
    pub writing: f64,
    /// Reads completed per second.
    pub reads_per_s: f64,
    /// Writes completed per second.
    pub writes_per_s: f64,
    /// Flushes completed per second.
    pub flushes_per_s: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub written_bytes_per_s: f64,
    /// Time busy, microseconds, by completions of each kind of request; empty where the load has one kind.
    pub by_kind: NormalEquations,
}

/// The use of one network interface.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkUse {
    /// Kernel name, such as `eth0`.
    pub name: String,
    /// The host, or the container, that it belongs to.
    pub on: HostName,
    /// Whether the load's traffic goes through it.
    pub carries_load: bool,
    /// Bits received per second.
    pub received_bits_per_s: f64,
    /// Bits sent per second.
    pub sent_bits_per_s: f64,
    /// Link speed, bits per second, where the driver knows one.
    pub link_bits_per_s: Option<f64>,
    /// Rate of a shaper on the way out, bits per second.
    pub shaped_bits_per_s: Option<f64>,
    /// Packets the shaper delayed, per second.
    pub overlimits_per_s: f64,
    /// Packets dropped by the interface or its qdisc, per second.
    pub dropped_per_s: f64,
    /// Share of samples that found bytes waiting in the qdisc.
    pub backlogged: f64,
    /// Time that its limit is used for, microseconds, by completions of each kind of request; empty where the load has one kind.
    pub by_kind: NormalEquations,
}

impl LinkUse {
    /// The interface's use of its limit, in the direction that is closer to it: (used, capacity), bits per second.
    /// `None` where there is no limit, as on loopback.
    pub fn use_of_limit(&self) -> Option<(f64, f64)> {
        let ways = self.ways().into_iter().flatten();
        ways.max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))
    }

    /// Whether it is closer to its limit in what it sends than in what it receives.
    pub fn is_fuller_on_the_way_out(&self) -> bool {
        let [sent, received] = self.ways().map(|way| way.map(|(used, limit)| used / limit));
        sent.is_some_and(|sent| received.is_none_or(|received| sent > received))
    }

    /// What it sends, and what it receives, each with its limit where there is one, bits per second.
    fn ways(&self) -> [Option<(f64, f64)>; 2] {
        let link = self.link_bits_per_s.filter(|limit| *limit > 0.0);
        let shaped = self.shaped_bits_per_s.filter(|limit| *limit > 0.0);
        let out = [link, shaped].into_iter().flatten().min_by(f64::total_cmp);
        [out.map(|limit| (self.sent_bits_per_s, limit)), link.map(|limit| (self.received_bits_per_s, limit))]
    }
}

pub(super) fn disks(samples: &[&Counters], elapsed_us: f64) -> Vec<DiskUse> {
    let Some(last) = samples.last() else { return Vec::new() };
    last.disks.iter().map(|disk| disk_use(&disk.name, samples, elapsed_us)).collect()
}

fn disk_use(name: &str, samples: &[&Counters], elapsed_us: f64) -> DiskUse {
    let find = |sample: &Counters| sample.disks.iter().find(|disk| disk.name == name).cloned();
    let sum = |read: fn(&Disk) -> u64| grown_where(samples, find, read) as f64;
    let flush = (sum(|d| d.flush_us) / elapsed_us).min(1.0);
    let per_s = 1e6 / elapsed_us;
    DiskUse {
        name: name.to_owned(),
        on: None,
        // The kernel's busy time leaves flushes out.
        busy: (sum(|d| d.busy_us) / elapsed_us + flush).min(1.0),
        in_flight: sum(|d| d.weighted_us) / elapsed_us + flush,
        flush,
        reading: sum(|d| d.read_us) / elapsed_us,
        writing: sum(|d| d.write_us) / elapsed_us,
        reads_per_s: sum(|d| d.reads) * per_s,
        writes_per_s: sum(|d| d.writes) * per_s,
        flushes_per_s: sum(|d| d.flushes) * per_s,
        read_bytes_per_s: sum(|d| d.read_bytes) * per_s,
        written_bytes_per_s: sum(|d| d.written_bytes) * per_s,
        by_kind: NormalEquations::default(),
    }
}

pub(super) fn links(samples: &[&Counters], elapsed_us: f64) -> Vec<LinkUse> {
    let Some(last) = samples.last() else { return Vec::new() };
    last.interfaces.iter().map(|now| link_use(now, samples, elapsed_us)).collect()
}

fn link_use(now: &Interface, samples: &[&Counters], elapsed_us: f64) -> LinkUse {
    let find = |sample: &Counters| sample.interfaces.iter().find(|link| link.name == now.name).cloned();
    let per_s = |read: fn(&Interface) -> u64| grown_where(samples, find, read) as f64 / elapsed_us * 1e6;
    let backlogged =
        samples.iter().filter_map(|sample| find(sample)).filter(|l| l.qdisc_backlog_bytes > 0).count();
    LinkUse {
        name: now.name.clone(),
        on: None,
        carries_load: now.carries_load,
        received_bits_per_s: 8.0 * per_s(|l| l.received_bytes),
        sent_bits_per_s: 8.0 * per_s(|l| l.sent_bytes),
        link_bits_per_s: now.link_bits_per_s.map(|rate| rate as f64),
        shaped_bits_per_s: now.shaped_bits_per_s.map(|rate| rate as f64),
        overlimits_per_s: per_s(|l| l.shaper_overlimits),
        dropped_per_s: per_s(|l| l.dropped) + per_s(|l| l.qdisc_dropped),
        backlogged: backlogged as f64 / samples.len().max(1) as f64,
        by_kind: NormalEquations::default(),
    }
}
