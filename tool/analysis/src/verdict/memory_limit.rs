//! A cgroup's limit on memory: what it evicts has to be read again from a disk.
//!
//! A cgroup that reads files fills its memory with them whatever its limit, so a full one proves nothing, nor do a few pages
//! that come back. The limit is in the way if most of what the processes do with disks is to read again what was evicted,
//! and waiting for that is most of what they do.

use super::curve::{Curve, group, host_of};
use super::disk::WAITING_THREAD;
use super::finding::{DIRECT, Finding, INDIRECT};
use super::shared::machine;
use super::utilisation;
use super::waiting::at_a_time;
use crate::resources::{DiskUse, Group, MemoryUse};
use crate::run::{HostName, Identity, KernelEvidence as Seen, Processes, ResourceKind, Step};

/// A cgroup this full has no room: the kernel evicts before the last page is taken.
const FULL_OF_MEMORY: f64 = 0.95;

/// Something is evicted all the time, not only when the cache fills.
const REACHED_PER_S: f64 = 1.0;

/// What is read again is most of the bytes, reads are most of the disks' time, and threads that wait for a disk are most
/// of those that serve requests, each from this share on.
const MOST: f64 = 0.5;

/// Processes that write no more than this share of what they read again wait for reads: a flush may take twenty times as
/// long as a read of a page.
const FEW_WRITES: f64 = 0.05;

/// From here on, and where the cgroup's own account of waiting agrees if there is one, it is beyond doubt.
const NEARLY_ALL: f64 = 0.8;
const STALLED: f64 = 0.2;

/// The finding, if a tier waits for what its cgroup had no memory to keep. In a run whose data is meant to come from a disk, the
/// disk is what is asked about.
pub(super) fn read_again(curve: &Curve) -> Option<Finding> {
    if curve.cold() {
        return None;
    }
    let found = curve.tiers().into_iter().filter_map(|of| of_processes(curve, &of));
    found.max_by(|a, b| a.strength.total_cmp(&b.strength))
}

fn of_processes(curve: &Curve, of: &Processes) -> Option<Finding> {
    let mean = |read: fn(&MemoryUse) -> f64| curve.mean(|step| limit(step, of).map(read));
    let (fill, reached_per_s) = (mean(|limit| limit.fill)?, mean(|limit| limit.reached_per_s)?);
    let bytes_per_s = mean(came_back)?;
    let share = share_of_bytes(curve, of, bytes_per_s);
    let (threads, found) =
        (curve.group_mean(of, waiting_threads), curve.group_mean(of, |g| g.found_disk_waiting));
    let waits = found >= WAITING_THREAD && threads >= MOST * at_a_time(curve).unwrap_or(1.0);
    let follows = curve.follows_load(|step| limit(step, of).map(came_back));
    let evicts = fill >= FULL_OF_MEMORY && reached_per_s >= REACHED_PER_S;
    let for_reads = writes_little(curve, of, bytes_per_s)
        || reads_take_most_of_the_disks_time(curve, &machine(curve, of));
    if !evicts || !for_reads || share.is_some_and(|share| share < MOST) || !waits || !follows {
        return None;
    }
    let stalled = curve.mean(|step| limit(step, of)?.stalled);
    let sure = share.is_some_and(|share| share >= NEARLY_ALL)
        && found >= NEARLY_ALL
        && stalled.is_none_or(|stalled| stalled >= STALLED);
    let seen = curve.star().and_then(|star| limit(star, of));
    let throughput_per_s = curve.mean(|step| Some(step.throughput_per_s))?;
    let finding = Finding::new(ResourceKind::Memory, if sure { DIRECT } else { INDIRECT })
        .held_by(Identity::Processes(of.clone()))
        .about(busy_with_it(curve, of))
        .busy(fill)
        .weaker_by(1.0 - found)
        .seeing(Seen::MemoryLimitFull {
            of: of.clone(),
            cgroup: seen.map(|seen| seen.cgroup.clone()).unwrap_or_default(),
            limit_bytes: mean(|limit| limit.limit_bytes)?,
            fill: fill.min(1.0),
            reached_per_s,
            users: curve.star_users(),
        })
        .seeing(Seen::ReadAgain { bytes_per_s, bytes_per_request: bytes_per_s / throughput_per_s, share })
        .seeing(Seen::MemoryAwaited { threads, found, stalled });
    Some(with_room_on_the_host(curve, of, finding))
}

fn with_room_on_the_host(curve: &Curve, of: &Processes, finding: Finding) -> Finding {
    match curve.mean(|step| host_of(step, of)?.memory_available) {
        Some(share) => finding.seeing(Seen::HostMemoryLeft { share }),
        None => finding,
    }
}

fn limit<'a>(step: &'a Step, of: &Processes) -> Option<&'a MemoryUse> {
    let group = group(step, of)?;
    step.usage.memory_limits.iter().find(|limit| limit.limits(group))
}

fn came_back(limit: &MemoryUse) -> f64 {
    limit.refaulted_bytes_per_s + limit.swapped_in_bytes_per_s
}

/// What came back as a share of what the processes read and wrote. Reading ahead brings in more than is asked for, so it may
/// be more than all.
fn share_of_bytes(curve: &Curve, of: &Processes, bytes_per_s: f64) -> Option<f64> {
    let all = curve.mean(|step| group(step, of)?.disk_bytes_per_s)?;
    Some(if all > 0.0 { (bytes_per_s / all).min(1.0) } else { 0.0 })
}

fn writes_little(curve: &Curve, of: &Processes, read_again_per_s: f64) -> bool {
    let written = |group: &Group| Some(group.disk_bytes_per_s? - group.disk_read_bytes_per_s?);
    let written_per_s = curve.mean(|step| written(group(step, of)?));
    written_per_s.is_some_and(|written_per_s| written_per_s <= FEW_WRITES * read_again_per_s)
}

/// Threads that waited for a disk, on average.
fn waiting_threads(group: &Group) -> f64 {
    group.states.disk * f64::from(group.threads) * group.processes as f64
}

/// Whether reads take most of the time that requests spend at disks. A commit waits for writes.
fn reads_take_most_of_the_disks_time(curve: &Curve, on: &HostName) -> bool {
    let disks =
        |step: &'_ Step| step.usage.disks.iter().filter(|disk| disk.on == *on).cloned().collect::<Vec<_>>();
    let sum = |read: fn(&DiskUse) -> f64| {
        curve.mean(|step| Some(disks(step).iter().map(read).sum())).unwrap_or(0.0)
    };
    let reading = sum(|disk| disk.reading);
    reading > 0.0 && reading >= MOST * (reading + sum(|disk| disk.writing) + sum(|disk| disk.flush))
}

/// The disks, and the limits on them, that are busy because of it.
fn busy_with_it(curve: &Curve, of: &Processes) -> Vec<Identity> {
    let host = machine(curve, of);
    let disks = curve.star().into_iter().flat_map(|star| &star.usage.disks).filter(|disk| disk.on == host);
    let limits = curve.group(of).into_iter().flat_map(|group| &group.io_limits);
    let disks = disks.map(|disk| Identity::Disk { name: disk.name.clone(), on: disk.on.clone() });
    disks.chain(limits.map(|limit| Identity::IoLimit(utilisation::io_limit(of.clone(), limit)))).collect()
}
