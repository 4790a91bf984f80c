//! How busy every measured resource was: the figures that verdicts, demands and the report start from.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::curve::Curve;
use super::softirq;
use crate::counters::IoRate;
use crate::resources::{Group, HostUse, IoLimitUse};
use crate::run::{DiskLimit, Identity, Processes, Resource, Step, Unit, Words};

/// How much of a resource was in use.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// The resource.
    pub resource: Identity,
    /// How much was in use, in `unit`.
    pub used: f64,
    /// How much there is.
    pub capacity: f64,
    /// The unit of both.
    pub unit: Unit,
}

impl Use {
    /// Busy share, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        let share = self.used / self.capacity;
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl From<&Use> for Resource {
    fn from(seen: &Use) -> Self {
        Self {
            kind: seen.resource.kind(),
            holder: Words::default(),
            identity: Some(seen.resource.clone()),
            utilization: seen.utilisation(),
            used: seen.used,
            capacity: seen.capacity,
            unit: seen.unit.clone(),
        }
    }
}

/// Every measured resource at one step, by falling utilisation.
pub fn uses(curve: &Curve, step: &Step) -> Vec<Use> {
    let mut all = vec![generator(curve, step)];
    all.extend(step.usage.tiers().flat_map(|group| of_group(curve, group)));
    all.extend(step.usage.hosts.iter().filter_map(host));
    all.extend(step.usage.hosts.iter().flat_map(softirqs));
    all.extend(step.usage.disks.iter().filter(|disk| disk.in_flight > 0.0).map(|disk| Use {
        resource: Identity::Disk { name: disk.name.clone(), on: disk.on.clone() },
        used: disk.busy,
        capacity: 1.0,
        unit: Unit::Devices,
    }));
    all.extend(links(curve, step));
    all.sort_by(by_falling_utilisation);
    all
}

/// Every measured resource on the plateau, by falling mean utilisation.
pub fn mean_uses(curve: &Curve) -> Vec<Use> {
    let mut sums: BTreeMap<Identity, (Use, f64)> = BTreeMap::new();
    for seen in curve.plateau().flat_map(|step| uses(curve, step)) {
        let (sum, count) =
            sums.entry(seen.resource.clone()).or_insert_with(|| (Use { used: 0.0, ..seen.clone() }, 0.0));
        sum.used += seen.used;
        sum.capacity = seen.capacity;
        *count += 1.0;
    }
    let mut means: Vec<Use> =
        sums.into_values().map(|(sum, count)| Use { used: sum.used / count, ..sum }).collect();
    means.sort_by(by_falling_utilisation);
    means
}

fn by_falling_utilisation(a: &Use, b: &Use) -> Ordering {
    b.utilisation().total_cmp(&a.utilisation()).then_with(|| a.resource.cmp(&b.resource))
}

fn generator(curve: &Curve, step: &Step) -> Use {
    let threads = curve.generator_threads(step.generator_here());
    let used = curve.generator_busy(step) * threads;
    Use { resource: Identity::Generator, used, capacity: threads, unit: Unit::Threads }
}

fn of_group(curve: &Curve, group: &Group) -> impl Iterator<Item = Use> {
    let of = curve.processes(group);
    let cpu = Use {
        resource: Identity::Processes(of.clone()),
        used: group.cores,
        capacity: group.allowed_cores,
        unit: Unit::Cores,
    };
    let thread = group.busiest_thread.as_ref().filter(|_| !group.one_core()).map(|thread| Use {
        resource: Identity::Thread(of.clone()),
        used: thread.busy,
        capacity: 1.0,
        unit: Unit::Cores,
    });
    let quota = group.quota.as_ref().map(|quota| Use {
        resource: Identity::Quota(of.clone()),
        used: quota.used_cores,
        capacity: quota.cores,
        unit: Unit::Cores,
    });
    let io = group.io_limits.first().map(|limit| Use {
        resource: Identity::IoLimit(io_limit(of, limit)),
        used: limit.used_per_s,
        capacity: limit.limit_per_s,
        unit: unit(limit.of),
    });
    [Some(cpu), thread, quota, io].into_iter().flatten()
}

/// The identity of a limit that processes are under.
pub(super) fn io_limit(of: Processes, limit: &IoLimitUse) -> DiskLimit {
    DiskLimit { of, rate: limit.of, device: limit.device.clone() }
}

fn unit(of: IoRate) -> Unit {
    match of {
        IoRate::Reads => Unit::ReadsPerSecond,
        IoRate::Writes => Unit::WritesPerSecond,
        IoRate::ReadBytes | IoRate::WrittenBytes => Unit::BytesPerSecond,
    }
}

fn host(host: &HostUse) -> Option<Use> {
    let capacity = host.available_cores();
    (capacity > 0.0).then(|| Use {
        resource: Identity::Host { on: host.name.clone() },
        used: host.busy_cores(),
        capacity,
        unit: Unit::Cores,
    })
}

/// Processors whose time mostly goes to soft interrupts, as far as it does.
fn softirqs(host: &HostUse) -> impl Iterator<Item = Use> {
    host.cpus.iter().filter(|cpu| softirq::is_mostly(cpu)).map(|cpu| Use {
        resource: Identity::Processor { number: cpu.number, on: host.name.clone() },
        used: cpu.softirq,
        capacity: 1.0 - cpu.steal,
        unit: Unit::Cores,
    })
}

fn links(curve: &Curve, step: &Step) -> Vec<Use> {
    let carrying = step.usage.links.iter().filter(|link| link.carries_load && curve.limit_is_real(link));
    carrying
        .filter_map(|link| {
            let (used, capacity) = link.use_of_limit()?;
            let resource = Identity::Link { name: link.name.clone(), on: link.on.clone() };
            Some(Use { resource, used, capacity, unit: Unit::BitsPerSecond })
        })
        .collect()
}
