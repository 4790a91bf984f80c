//! A cgroup's limit on what it may ask of a block device.
//!
//! What such a limit holds back never reaches the device, which looks idle, while whoever waits for the limit seems to
//! wait for the disk. As with a quota, the limit itself is the capacity.

use super::curve::{Curve, group};
use super::disk::{PRESSURE, WAITING_THREAD, device, pressure, waits_in_turn};
use super::finding::{DIRECT, Finding, INDIRECT};
use super::{shared, utilisation};
use crate::resources::{Group, IoLimitUse};
use crate::run::{DeviceEvidence as Seen, DiskLimit, Identity, Processes, ResourceKind, Step};
use crate::thresholds::{FULL, NOT_BUSY};

/// Of several tiers under one limit, the one that waits most holds it.
const LESS_WAITING: f64 = 0.01;

/// Processes held back by a limit on a block device.
pub(super) fn full(curve: &Curve) -> Vec<Finding> {
    curve.tiers().iter().filter_map(|of| of_processes(curve, of)).collect()
}

fn of_processes(curve: &Curve, of: &Processes) -> Option<Finding> {
    let seen = curve.group(of)?.io_limits.first()?;
    let limit = utilisation::io_limit(of.clone(), seen);
    let busy = mean(curve, &limit, IoLimitUse::share)?;
    let waiting = curve.group_mean(of, |group| group.found_disk_waiting);
    let host = shared::machine(curve, of);
    let pressure = pressure(curve, &host);
    let follows = follows_load(curve, &limit);
    let waits = waiting >= WAITING_THREAD || pressure >= PRESSURE;
    if busy < FULL || !waits || !(follows || waits_in_turn(curve, &host)) {
        return None;
    }
    let sure = follows && waiting >= WAITING_THREAD;
    let identity = Identity::IoLimit(limit.clone());
    let finding = Finding::new(ResourceKind::Disk, if sure { DIRECT } else { INDIRECT })
        .held_by(identity.clone())
        .about([identity])
        .busy(busy.min(1.0))
        .weaker_by(LESS_WAITING * (1.0 - waiting))
        .demanding(curve.demand_us(|step| used(step, &limit, IoLimitUse::share)))
        .seeing(limit_used(curve, &limit, seen, busy));
    Some(with_details(curve, &limit, finding, follows, (waiting, pressure)))
}

fn limit_used(curve: &Curve, limit: &DiskLimit, seen: &IoLimitUse, share: f64) -> Seen {
    let used_per_s = mean(curve, limit, |limit| limit.used_per_s).unwrap_or(0.0);
    let throughput_per_s = curve.mean(|step| Some(step.throughput_per_s)).unwrap_or(0.0);
    let per_request = used_per_s / throughput_per_s;
    Seen::IoLimitUsed {
        limit: limit.clone(),
        cgroup: seen.cgroup.clone(),
        used_per_s,
        limit_per_s: seen.limit_per_s,
        share,
        users: curve.star_users(),
        per_request: if per_request.is_finite() { per_request } else { 0.0 },
    }
}

fn mean(curve: &Curve, limit: &DiskLimit, read: fn(&IoLimitUse) -> f64) -> Option<f64> {
    curve.mean(|step| used(step, limit, read))
}

fn used(step: &Step, limit: &DiskLimit, read: fn(&IoLimitUse) -> f64) -> Option<f64> {
    let same = |other: &&IoLimitUse| other.of == limit.rate && other.device == limit.device;
    let of_group = |group: &Group| group.io_limits.iter().find(same).map(read);
    group(step, &limit.of).and_then(of_group)
}

/// Whether less of the limit was used under less load.
pub(super) fn follows_load(curve: &Curve, limit: &DiskLimit) -> bool {
    curve.follows_load(|step| used(step, limit, |limit| limit.used_per_s))
}

fn with_details(
    curve: &Curve,
    limit: &DiskLimit,
    mut finding: Finding,
    follows: bool,
    (threads, pressure): (f64, f64),
) -> Finding {
    let host = shared::machine(curve, &limit.of);
    let busy = |step: &Step| device(step, (&limit.device, &host)).map(|disk| disk.busy);
    if let Some(busy) = curve.mean(busy).filter(|busy| *busy < NOT_BUSY) {
        finding = finding.seeing(Seen::DiskNotBusy { disk: limit.device.clone(), busy });
    }
    finding = finding.seeing(Seen::IoLimitAwaited { of: limit.of.clone(), threads, pressure });
    if follows { finding } else { finding.seeing(Seen::SharedWrites) }
}
