//! From raw counters to busy shares: what each resource did during one step.
//!
//! Everything here is a rate over the samples of one step, or the extreme of a gauge over them. No
//! judgement is made: that is [`crate::verdict`].

pub(crate) mod collectors;
mod connection_limits;
mod device;
mod hops;
mod host;
mod joined;
mod kinds;
mod locks;
mod meanwhile;
mod memory_limit;
mod process;
mod replaced;
mod samples;

pub use connection_limits::{PortUse, TableUse};
pub use device::{DiskUse, LinkUse};
pub use hops::{GroupKey, HopUse, Hops, LeftOut};
pub use host::{CpuUse, HostUse, Listening};
pub use joined::Observer;
pub use locks::LockUse;
pub use meanwhile::{Happened, Meanwhile};
pub use memory_limit::MemoryUse;
pub use process::{
    Average, FULL_THREAD, Group, IoLimitUse, QuotaUse, States, ThreadFamilyUse, ThreadUse, Waiters,
};
pub use replaced::{Replacement, replaced};

use crate::counters::{Counters, DatabaseSample, Role, ThreadLook};
use crate::run::HostName;

/// The use of each resource during one step. The default is "nothing was seen".
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// Time between the first and the last sample used, microseconds; 0 where nothing was seen.
    pub elapsed_us: f64,
    /// How many samples were used.
    pub samples: usize,
    /// Processes by role and name: all workers of one server are one group.
    pub groups: Vec<Group>,
    /// Processors, pressure and memory of each host, the generator's first.
    pub hosts: Vec<HostUse>,
    /// Block devices.
    pub disks: Vec<DiskUse>,
    /// Network interfaces.
    pub links: Vec<LinkUse>,
    /// Listen queues.
    pub listening: Listening,
    /// Requests outstanding at each tier.
    pub hops: Hops,
    /// The fullest table of tracked connections, if there is one.
    pub tracked: Option<TableUse>,
    /// The local ports of which most were in use towards one address, if they were counted.
    pub ports: Option<PortUse>,
    /// Limits on memory.
    pub memory_limits: Vec<MemoryUse>,
    /// The hosts, or the containers, whose limits on memory could be read: others there have none.
    pub memory_known_on: Vec<HostName>,
    /// Waits for locks in the database, if one was watched.
    pub locks: Option<LockUse>,
    /// What went on while nothing was answered, what tells most first.
    pub meanwhile: Vec<Meanwhile>,
}

impl Usage {
    /// The same with what closer looks at threads saw of those that wait at futexes, where there were any.
    #[must_use]
    pub fn with_looks(mut self, looks: &[ThreadLook]) -> Self {
        for group in &mut self.groups {
            group.waiters = process::looked_at(looks, group.role, &group.name).or(group.waiters);
        }
        self
    }

    /// The same with the requests outstanding at each tier during all of these windows, where there are several: one alone has
    /// few looks at them. `covering` gives the samples that cover a window of the monotonic clock, microseconds.
    #[must_use]
    pub fn with_hops(
        mut self,
        windows: &[(u64, u64)],
        covering: impl Fn((u64, u64)) -> Vec<Counters>,
    ) -> Self {
        let windows: Vec<(u64, u64)> = windows.iter().copied().filter(|(start, end)| start < end).collect();
        if windows.len() > 1 && self.samples > 0 {
            let counters: Vec<Vec<Counters>> = windows.iter().map(|window| covering(*window)).collect();
            let samples = counters.iter().zip(windows).map(|(all, window)| samples::covering(all, window));
            self.hops = hops::of_windows(&samples.collect::<Vec<_>>());
        }
        self
    }

    /// The same with what went on while nothing was answered, by samples that cover the windows of the step.
    #[must_use]
    pub fn with_silences(
        mut self,
        counters: &[Counters],
        windows: &[(u64, u64)],
        silences: &[(u64, u64)],
    ) -> Self {
        self.meanwhile = meanwhile::meanwhile(counters, windows, silences);
        self
    }

    /// Whether the processes under test were seen at work.
    pub fn observed(&self) -> bool {
        self.elapsed_us > 0.0 && self.tiers().next().is_some()
    }

    /// The server and the tiers behind it.
    pub fn tiers(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| group.role != Role::Generator)
    }

    /// Bytes per second that the server and the tiers behind it read from block devices; `None` where that may not be read
    /// of every one of them.
    pub fn read_from_disks_bytes_per_s(&self) -> Option<f64> {
        if self.observed() { self.tiers().map(|group| group.disk_read_bytes_per_s).sum() } else { None }
    }

    /// A host; `None` where its processors were not watched.
    pub fn host(&self, name: &HostName) -> Option<&HostUse> {
        self.hosts.iter().find(|host| host.name == *name)
    }

    /// The hosts that the server and the tiers behind it run on; where none of them was seen, all that were watched.
    pub fn tier_hosts(&self) -> impl Iterator<Item = &HostUse> {
        let of_tier = |host: &HostUse| self.tiers().any(|group| group.machine == host.name);
        let unseen = self.tiers().next().is_none();
        self.hosts.iter().filter(move |host| unseen || of_tier(host))
    }

    /// The load generator.
    pub fn generator(&self) -> Option<&Group> {
        self.groups.iter().find(|group| group.role == Role::Generator)
    }
}

/// The use of each resource in `window` (start and end, microseconds), from samples within and around it. Uses the
/// samples inside the window where they span at least half of it, and otherwise the nearest ones around it; fewer than
/// two say nothing. Of the samples of a database, those inside the window count.
pub fn usage(counters: &[Counters], database: &[DatabaseSample], window: (u64, u64)) -> Usage {
    Usage { locks: locks::lock_use(database, window), ..of_counters(counters, window) }
}

fn of_counters(counters: &[Counters], window: (u64, u64)) -> Usage {
    let samples = samples::covering(counters, window);
    let memory_limits = memory_limit::memory_limits(&samples);
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Usage::default();
    };
    let elapsed_us = last.at_us.saturating_sub(first.at_us) as f64;
    if elapsed_us <= 0.0 {
        return Usage::default();
    }
    let host = host::host(&samples, elapsed_us);
    Usage {
        elapsed_us,
        samples: samples.len(),
        groups: process::groups(&samples, elapsed_us, &host),
        disks: device::disks(&samples, elapsed_us),
        links: device::links(&samples, elapsed_us),
        listening: host::listening(&samples, elapsed_us),
        hops: hops::hops(&samples),
        tracked: connection_limits::tracked(&samples),
        ports: connection_limits::ports(&samples),
        memory_limits,
        memory_known_on: if memory_limit::are_known(&samples) { vec![None] } else { Vec::new() },
        locks: None,
        meanwhile: Vec::new(),
        hosts: vec![host],
    }
}

#[cfg(test)]
mod tests;
