//! Block devices.
//!
//! A device that is always busy may still serve more at once, so a busy share alone proves nothing:
//! requests must queue, the server must be what they come from, and something must wait for them.

use super::finding::Finding;
use super::sweep::{Point, Sweep};
use super::utilisation::Id;
use super::{FULL, NOT_BUSY};
use crate::resources::{DiskUse, Group};
use crate::run::{Confidence, ResourceKind};
use crate::words::{count, percent, time};

/// The tiers must cause this share of the device's bytes for it to be theirs.
const OURS: f64 = 0.3;

/// Share of the time some task on the host waited for a disk that shows waiting.
pub(super) const PRESSURE: f64 = 0.2;

/// A thread found waiting for a disk at this share of the looks waits for it most of the time.
pub(super) const WAITING_THREAD: f64 = 0.5;

/// With at most this share of the waits of all, a thread waits in turn with others.
const TURN: f64 = 0.6;

/// One writer that waits for each flush leaves the device idle in between; it is full when the device
/// is busy at least this much and the writer hardly does anything else.
const FLUSH_BUSY: f64 = 0.5;
const FLUSH_WAITING_THREAD: f64 = 0.7;

/// A busy share is weaker evidence than processor time.
const WEAKER: f64 = 0.05;

/// Why a disk may be as busy with one user as with many, and still be what they wait for.
pub(super) const SHARED_WRITES: &str = "It was so with fewer users too, and threads took turns at waiting: one write serves all who wait for it, so that more \
     users get more done by as many writes, until no more can wait at a time.";

/// Devices that were full.
pub(super) fn full(sweep: &Sweep) -> Vec<Finding> {
    let Some(star) = sweep.star() else { return Vec::new() };
    star.resources.disks.iter().filter_map(|disk| of_device(sweep, &disk.name)).collect()
}

fn of_device(sweep: &Sweep, name: &str) -> Option<Finding> {
    let mean = |read: fn(&DiskUse) -> f64| sweep.mean(|point| device(point, name).map(read));
    let (busy, in_flight) = (mean(|disk| disk.busy)?, mean(|disk| disk.in_flight)?);
    let work = |disk: &DiskUse| disk.reads_per_s + disk.writes_per_s + disk.flushes_per_s;
    let in_turn = waits_in_turn(sweep);
    let follows = sweep.follows_load(|point| device(point, name).map(work));
    let waiting = waiting_thread(sweep);
    let pressed = sweep.mean(|point| Some(point.resources.host.io_pressure)).unwrap_or(0.0) >= PRESSURE;
    let ours = our_share(sweep, name);
    let waits = waiting >= WAITING_THREAD || pressed || in_turn;
    let queueing = busy >= FULL && in_flight >= FULL && waits;
    let flushing =
        busy >= FLUSH_BUSY && waiting >= FLUSH_WAITING_THREAD && mean(|disk| disk.flushes_per_s)? > 0.0;
    // Others keep it busy: it is in the way only if the server was seen waiting for it.
    let foreign = ours.is_some_and(|share| share < OURS);
    if !(follows || in_turn) || !(queueing || flushing) || (foreign && waiting < WAITING_THREAD) {
        return None;
    }
    let sure = follows && queueing && !foreign && ours.is_some() && in_flight >= 1.5;
    let confidence = if sure { Confidence::High } else { Confidence::Medium };
    let demand = sweep.demand_us(|point| device(point, name).map(|disk| disk.busy));
    let finding = Finding::new(ResourceKind::Disk, confidence)
        .held_by(name)
        .about([Id::Disk(name.to_owned())])
        .busy(busy)
        .weaker_by(if queueing { WEAKER } else { 1.0 - NOT_BUSY })
        .demanding(demand)
        .saying(format!(
            "The disk {name} is busy {} with {} requests under way on average, at N* = {} and beyond; each request \
             of a user costs it {}.",
            percent(busy),
            count(in_flight),
            sweep.star_users(),
            time(demand.unwrap_or(0.0))
        ));
    let finding = with_details(sweep, name, finding, ours);
    Some(if follows { finding } else { finding.saying(SHARED_WRITES.to_owned()) })
}

fn with_details(sweep: &Sweep, name: &str, finding: Finding, ours: Option<f64>) -> Finding {
    let mean = |read: fn(&DiskUse) -> f64| sweep.mean(|point| device(point, name).map(read)).unwrap_or(0.0);
    let mut finding = finding.saying(format!(
        "It did {} reads, {} writes and {} flushes per second; flushes took {} of the time.",
        count(mean(|disk| disk.reads_per_s)),
        count(mean(|disk| disk.writes_per_s)),
        count(mean(|disk| disk.flushes_per_s)),
        percent(mean(|disk| disk.flush))
    ));
    finding = finding.saying(match ours {
        Some(share) => format!("The server and its tiers caused {} of its bytes.", percent(share.min(1.0))),
        None => {
            "How much of that the server and its tiers caused may not be read without permission.".to_owned()
        }
    });
    let pressure = sweep.mean(|point| Some(point.resources.host.io_pressure)).unwrap_or(0.0);
    finding = finding.saying(format!(
        "Some task waited for a disk {} of the time, and one thread of the server or its tiers was found waiting \
         for it at {} of the looks.",
        percent(pressure),
        percent(waiting_thread(sweep))
    ));
    let refaults = sweep.mean(|point| Some(point.resources.host.refaults_per_s)).unwrap_or(0.0);
    if refaults >= 1.0 {
        finding = finding.saying(format!(
            "{} file pages per second were read again soon after being evicted: the page cache is too small for the \
             files asked for.",
            count(refaults)
        ));
    }
    finding
}

/// Share of the device's bytes that the tiers caused; `None` where their bytes may not be read, and for
/// a device that only flushed.
fn our_share(sweep: &Sweep, name: &str) -> Option<f64> {
    let ours = sweep.mean(|point| {
        let known: Vec<f64> = point.resources.tiers().filter_map(|group| group.disk_bytes_per_s).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    })?;
    let all = sweep
        .mean(|point| device(point, name).map(|disk| disk.read_bytes_per_s + disk.written_bytes_per_s))?;
    (all > 0.0).then(|| ours / all)
}

fn waiting_thread(sweep: &Sweep) -> f64 {
    let most =
        |point: &Point| point.resources.tiers().map(|group| group.disk_waiting_thread).fold(0.0, f64::max);
    sweep.mean(|point| Some(most(point))).unwrap_or(0.0)
}

/// Whether threads of the tiers took turns at waiting for a disk, some of them nearly always: one write that serves all
/// who wait for it (group commit) asks no more of a disk for many users than for one. A thread of its own that writes
/// whatever the load, such as a checkpointer, does not take turns.
pub(super) fn waits_in_turn(sweep: &Sweep) -> bool {
    let turns = |group: &Group| {
        group.found_disk_waiting >= WAITING_THREAD
            && group.disk_waiting_thread <= TURN * group.found_disk_waiting
    };
    sweep.tiers().iter().any(|id| sweep.group(id).is_some_and(turns))
}

fn device<'a>(point: &'a Point, name: &str) -> Option<&'a DiskUse> {
    point.resources.disks.iter().find(|disk| disk.name == name)
}
