//! How busy every measured resource was: the figures verdicts, demands and the report start from.

use super::sweep::{Point, Sweep, by_falling_utilisation};
use crate::counters::{IoRate, Role};
use crate::resources::{Group, IoLimitUse};
use crate::run::ResourceKind;

/// One measured resource, the same from step to step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id {
    /// The processors a group of processes may use.
    Cpu(Role, String),
    /// A group's busiest thread, where the group may use more than one processor.
    Thread(Role, String),
    /// The CPU quota a group is under.
    Quota(Role, String),
    /// What a group's cgroup may ask of a block device: `writes a second on vda`.
    IoLimit(Role, String, String),
    /// A block device.
    Disk(String),
    /// A network interface with a limit.
    Link(String),
    /// All processors of the host.
    Host,
    /// The load generator.
    Generator,
}

impl Id {
    /// What kind of resource it is.
    pub fn kind(&self) -> ResourceKind {
        match self {
            Self::Cpu(..) | Self::Host => ResourceKind::Cpu,
            Self::Thread(..) => ResourceKind::SingleThread,
            Self::Quota(..) => ResourceKind::CpuQuota,
            Self::Disk(_) | Self::IoLimit(..) => ResourceKind::Disk,
            Self::Link(_) => ResourceKind::Network,
            Self::Generator => ResourceKind::Generator,
        }
    }
}

/// How much of a resource was in use.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// Which.
    pub id: Id,
    /// In use, in `unit`.
    pub used: f64,
    /// At most.
    pub capacity: f64,
    /// `cores`, `devices`, `bits/s`, `threads`, or what a limit counts: `writes/s`, `bytes/s`.
    pub unit: &'static str,
}

impl Use {
    /// Busy share, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        let share = self.used / self.capacity;
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Every measured resource at one step, by falling utilisation.
pub(super) fn uses(sweep: &Sweep, point: &Point) -> Vec<Use> {
    let mut all = vec![generator(sweep, point)];
    all.extend(point.resources.tiers().flat_map(group));
    all.extend(host(point));
    all.extend(point.resources.disks.iter().filter(|disk| disk.in_flight > 0.0).map(|disk| Use {
        id: Id::Disk(disk.name.clone()),
        used: disk.busy,
        capacity: 1.0,
        unit: "devices",
    }));
    all.extend(links(sweep, point));
    all.sort_by(by_falling_utilisation);
    all
}

fn generator(sweep: &Sweep, point: &Point) -> Use {
    let threads = sweep.generator_threads(point.resources.generator());
    let used = sweep.generator_busy(point) * threads;
    Use { id: Id::Generator, used, capacity: threads, unit: "threads" }
}

fn group(group: &Group) -> impl Iterator<Item = Use> {
    let id = |make: fn(Role, String) -> Id| make(group.role, group.name.clone());
    let cpu = Use { id: id(Id::Cpu), used: group.cores, capacity: group.allowed_cores, unit: "cores" };
    let thread = group.busiest_thread.as_ref().filter(|_| !group.one_core()).map(|thread| Use {
        id: id(Id::Thread),
        used: thread.busy,
        capacity: 1.0,
        unit: "cores",
    });
    let quota = group.quota.as_ref().map(|quota| Use {
        id: id(Id::Quota),
        used: quota.used_cores,
        capacity: quota.cores,
        unit: "cores",
    });
    let io = group.io_limits.first().map(|limit| Use {
        id: Id::IoLimit(group.role, group.name.clone(), label(limit)),
        used: limit.used_per_s,
        capacity: limit.limit_per_s,
        unit: unit(limit.of),
    });
    [Some(cpu), thread, quota, io].into_iter().flatten()
}

/// What tells one limit of a group from another.
pub(super) fn label(limit: &IoLimitUse) -> String {
    let what = match limit.of {
        IoRate::Reads => "reads",
        IoRate::Writes => "writes",
        IoRate::ReadBytes => "bytes read",
        IoRate::WrittenBytes => "bytes written",
    };
    format!("{what} a second on {}", limit.device)
}

fn unit(of: IoRate) -> &'static str {
    match of {
        IoRate::Reads => "reads/s",
        IoRate::Writes => "writes/s",
        IoRate::ReadBytes | IoRate::WrittenBytes => "bytes/s",
    }
}

fn host(point: &Point) -> Option<Use> {
    let host = &point.resources.host;
    let capacity = host.available_cores();
    (capacity > 0.0).then(|| Use { id: Id::Host, used: host.busy_cores(), capacity, unit: "cores" })
}

fn links(sweep: &Sweep, point: &Point) -> Vec<Use> {
    let carrying = point.resources.links.iter().filter(|link| link.carries_load && sweep.limit_is_real(link));
    carrying
        .filter_map(|link| {
            let (used, capacity) = link.use_of_limit()?;
            Some(Use { id: Id::Link(link.name.clone()), used, capacity, unit: "bits/s" })
        })
        .collect()
}
