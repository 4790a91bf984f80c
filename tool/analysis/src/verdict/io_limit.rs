//! A cgroup's limit on what it may ask of a block device.
//!
//! What is held back by such a limit never reaches the device, which looks idle, and whoever waits for it waits as for a
//! disk. As with a quota, the limit itself is the capacity.

use super::disk::{PRESSURE, SHARED_WRITES, WAITING_THREAD, waits_in_turn};
use super::finding::Finding;
use super::sweep::{GroupId, Sweep, group};
use super::utilisation::{Id, label};
use super::{FULL, NOT_BUSY};
use crate::resources::{Group, IoLimitUse};
use crate::run::{Confidence, ResourceKind};
use crate::words::{count, percent};

/// Of several tiers under one limit, the one that waits most holds it.
const LESS_WAITING: f64 = 0.01;

/// Groups held back by a limit on a block device.
pub(super) fn full(sweep: &Sweep) -> Vec<Finding> {
    sweep.tiers().iter().filter_map(|id| of_group(sweep, id)).collect()
}

fn of_group(sweep: &Sweep, id: &GroupId) -> Option<Finding> {
    let limit = sweep.group(id)?.io_limits.first()?;
    let of_limit = |group: &Group, read: fn(&IoLimitUse) -> f64| {
        group.io_limits.iter().find(|other| label(other) == label(limit)).map(read)
    };
    let used = sweep.mean(|point| of_limit(group(point, id)?, |limit| limit.used_per_s))?;
    let busy = sweep.mean(|point| of_limit(group(point, id)?, IoLimitUse::share))?;
    let waiting = sweep.group_mean(id, |group| group.found_disk_waiting);
    let pressure = sweep.mean(|point| Some(point.resources.host.io_pressure)).unwrap_or(0.0);
    let follows = follows(sweep, id, &label(limit));
    let waits = waiting >= WAITING_THREAD || pressure >= PRESSURE;
    if busy < FULL || !waits || !(follows || waits_in_turn(sweep)) {
        return None;
    }
    let sure = follows && waiting >= WAITING_THREAD;
    let share = |group: &Group| of_limit(group, IoLimitUse::share);
    let finding = Finding::new(ResourceKind::Disk, if sure { Confidence::High } else { Confidence::Medium })
        .held_by(sweep.group_name(id))
        .about([Id::IoLimit(id.0, id.1.clone(), label(limit))])
        .busy(busy.min(1.0))
        .weaker_by(LESS_WAITING * (1.0 - waiting))
        .demanding(sweep.demand_us(|point| share(group(point, id)?)))
        .saying(format!(
            "{} did {} {}, {} of the {} that its cgroup {} allows, at N* = {} and beyond; each request costs it {}.",
            sweep.group_name(id),
            count(used),
            label(limit),
            percent(busy),
            count(limit.limit_per_s),
            limit.cgroup,
            sweep.star_users(),
            each(sweep, used, limit)
        ));
    Some(with_details(sweep, limit, finding, follows, (waiting, pressure)))
}

/// How much of what is limited a request takes.
fn each(sweep: &Sweep, used: f64, limit: &IoLimitUse) -> String {
    let throughput = sweep.mean(|point| Some(point.throughput_per_s)).unwrap_or(0.0);
    let what = label(limit);
    let what = what.split(" a second").next().unwrap_or_default();
    format!("{} {what}", count((used / throughput * 100.0).round() / 100.0))
}

/// Whether less of the limit was used under less load.
pub(super) fn follows(sweep: &Sweep, id: &GroupId, what: &str) -> bool {
    sweep.follows_load(|point| {
        let limits = &group(point, id)?.io_limits;
        limits.iter().find(|limit| label(limit) == what).map(|limit| limit.used_per_s)
    })
}

fn with_details(
    sweep: &Sweep,
    limit: &IoLimitUse,
    mut finding: Finding,
    follows: bool,
    (waiting, pressure): (f64, f64),
) -> Finding {
    let device = |point: &super::Point| {
        point.resources.disks.iter().find(|disk| disk.name == limit.device).map(|disk| disk.busy)
    };
    if let Some(busy) = sweep.mean(device).filter(|busy| *busy < NOT_BUSY) {
        finding = finding.saying(format!(
            "The disk {} itself is busy only {}: what the limit holds back does not reach it.",
            limit.device,
            percent(busy)
        ));
    }
    let holder = finding.holder.clone();
    finding = finding.saying(format!(
        "Threads of {} were found waiting for a disk at {} of the looks; some task on the host waited for one {} of the \
         time.",
        holder,
        percent(waiting),
        percent(pressure)
    ));
    if follows { finding } else { finding.saying(SHARED_WRITES.to_owned()) }
}
