//! Block devices.
//!
//! A device that is always busy may still serve more at once, so a busy share alone proves nothing:
//! requests must queue, the server must be what they come from, and something must wait for them. Several under way are no
//! queue where they take no longer than one by one.

use super::curve::Curve;
use super::finding::{DIRECT, EITHER, Finding, INDIRECT};
use super::waiting::{held_by, served_by};
use crate::resources::{DiskUse, Group, HostUse};
use crate::run::{DeviceEvidence as Seen, HostName, Identity, Probability, ResourceKind, Step};
use crate::thresholds::{FULL, NOT_BUSY};

/// The device is the tiers' own if they cause this share of its bytes.
const OURS: f64 = 0.3;

/// Share of the time some task on the host waited for a disk that shows waiting.
pub(super) const PRESSURE: f64 = 0.2;

/// A thread found waiting for a disk in this share of the samples waits for it most of the time.
pub(super) const WAITING_THREAD: f64 = 0.5;

/// A thread with at most this share of all waits takes turns with others.
const TURN: f64 = 0.6;

/// A single writer that waits for each flush leaves the device idle in between. The device is full when it is busy at
/// least this much and the writer hardly does anything else.
const FLUSH_BUSY: f64 = 0.5;
const FLUSH_WAITING_THREAD: f64 = 0.7;

/// A busy share is weaker evidence than processor time.
const WEAKER_THAN_CPU_TIME: f64 = 0.05;

/// With so many requests under way or more, on average, they queue, or the device serves them side by side.
const SEVERAL: f64 = 1.5;

/// Requests that take less than this many times as long as one by one do not queue; of a few under way, less than the root of how
/// many, which lies between what they take side by side and in a queue.
const QUEUED: f64 = 1.5;

/// Flushes that take this share of the time may be what is waited for. One serves all that wait for it, so how long it takes
/// does not tell whether they queue.
const FLUSHES: f64 = 0.1;

/// A light load that has at most so many under way while the device is busy asks for one after the other.
const ONE_BY_ONE: f64 = 1.5;

/// With fewer requests a second it is not known how long they take.
const COUNTED_PER_S: f64 = 1.0;

/// Where fewer threads than this wait for a disk, on average, requests do not.
const HARDLY_AWAITED: f64 = 0.1;

/// Devices that were full.
pub(super) fn full(curve: &Curve) -> Vec<Finding> {
    let Some(star) = curve.star() else { return Vec::new() };
    star.usage.disks.iter().filter_map(|disk| of_device(curve, (&disk.name, &disk.on))).collect()
}

/// The name of a device, and its host.
type Named<'a> = (&'a str, &'a HostName);

fn of_device(curve: &Curve, at: Named<'_>) -> Option<Finding> {
    let mean = |read: fn(&DiskUse) -> f64| curve.mean(|step| device(step, at).map(read));
    let (busy, in_flight) = (mean(|disk| disk.busy)?, mean(|disk| disk.in_flight)?);
    let in_turn = waits_in_turn(curve, at.1);
    let follows = curve.follows_load(|step| device(step, at).map(work));
    let waiting = waiting_thread(curve, at.1);
    let pressed = pressure(curve, at.1) >= PRESSURE;
    let ours = our_share(curve, at);
    let waits = waiting >= WAITING_THREAD || pressed || in_turn;
    let queueing = busy >= FULL && in_flight >= FULL && waits;
    let flushing =
        busy >= FLUSH_BUSY && waiting >= FLUSH_WAITING_THREAD && mean(|disk| disk.flushes_per_s)? > 0.0;
    // Others keep it busy: it is in the way only if the server was seen waiting for it.
    let foreign = ours.is_some_and(|share| share < OURS);
    if !(follows || in_turn) || !(queueing || flushing) || (foreign && waiting < WAITING_THREAD) {
        return None;
    }
    let several = in_flight >= SEVERAL;
    let sure = follows && queueing && !foreign && ours.is_some() && several;
    let flushes = mean(|disk| disk.flush)? >= FLUSHES;
    let no_queue =
        if follows && queueing && several && !flushes { side_by_side(curve, at, in_flight) } else { None };
    let finding = if no_queue.is_some() {
        or_workers(curve)
    } else {
        Finding::new(ResourceKind::Disk, if sure { DIRECT } else { INDIRECT })
    };
    let weaker = if queueing && no_queue.is_none() { WEAKER_THAN_CPU_TIME } else { 1.0 - NOT_BUSY };
    let demand = curve.demand_us(|step| device(step, at).map(|disk| disk.busy));
    let disk = Identity::Disk { name: at.0.to_owned(), on: at.1.clone() };
    let finding =
        finding.held_by(disk.clone()).about([disk]).busy(busy).weaker_by(weaker).demanding(demand).seeing(
            Seen::DiskBusy {
                disk: at.0.to_owned(),
                busy,
                in_flight,
                users: curve.star_users(),
                demand_us: demand.unwrap_or(0.0),
            },
        );
    let finding = with_details(curve, at, finding, ours);
    let finding = no_queue.into_iter().fold(finding, Finding::seeing);
    Some(if follows { finding } else { finding.seeing(Seen::SharedWrites) })
}

/// A device that is always busy, or as many workers as keep it so: it may serve more of them at a time.
fn or_workers(curve: &Curve) -> Finding {
    let [of_disk, of_workers] = EITHER.map(Probability::new);
    let workers = held_by(served_by(curve), Finding::new(ResourceKind::WorkerPool, of_workers));
    Finding::new(ResourceKind::Disk, of_disk).or(workers.explanation(of_workers.share()))
}

/// Evidence that requests take about as long on the plateau as under a light load that asks for one after the other: the device
/// serves them side by side. `None` where that is not so, or not known.
fn side_by_side(curve: &Curve, at: Named<'_>, in_flight: f64) -> Option<Seen> {
    let low = curve.low()?;
    let light = device(low, at).filter(|disk| disk.in_flight <= ONE_BY_ONE * disk.busy)?;
    let light_us = took_us(light)?;
    let full_us = curve.plateau().filter_map(|step| took_us(device(step, at)?)).max_by(f64::total_cmp)?;
    let queued_us = QUEUED.min(in_flight.sqrt()) * light_us;
    (full_us < queued_us).then_some(Seen::DiskServesSeveral { users: low.users, light_us, full_us })
}

/// How long a read, a write or a flush took, microseconds.
fn took_us(disk: &DiskUse) -> Option<f64> {
    each_us(disk.in_flight, work(disk))
}

/// How long each of so many a second takes with so many under way, microseconds (Little's law); `None` if there are next to none.
fn each_us(under_way: f64, per_s: f64) -> Option<f64> {
    (per_s >= COUNTED_PER_S && under_way > 0.0).then(|| under_way / per_s * 1e6)
}

/// Reads, writes and flushes per second.
fn work(disk: &DiskUse) -> f64 {
    disk.reads_per_s + disk.writes_per_s + disk.flushes_per_s
}

fn with_details(curve: &Curve, at: Named<'_>, finding: Finding, ours: Option<f64>) -> Finding {
    let mean = |read: fn(&DiskUse) -> f64| curve.mean(|step| device(step, at).map(read)).unwrap_or(0.0);
    let finding = finding.seeing(Seen::DiskWork {
        reads_per_s: mean(|disk| disk.reads_per_s),
        writes_per_s: mean(|disk| disk.writes_per_s),
        flushes_per_s: mean(|disk| disk.flushes_per_s),
        flush: mean(|disk| disk.flush),
    });
    let finding = latency(curve, at).into_iter().fold(finding, Finding::seeing);
    let finding = finding
        .seeing(Seen::DiskShare { share: ours.map(|share| share.min(1.0)) })
        .seeing(Seen::DiskAwaited { pressure: pressure(curve, at.1), thread: waiting_thread(curve, at.1) });
    let refaults_per_s = of_host(curve, at.1, |host| host.refaults_per_s);
    if refaults_per_s >= 1.0 { finding.seeing(Seen::CacheTooSmall { refaults_per_s }) } else { finding }
}

/// How long reads, writes and flushes took; `None` if there were next to none.
fn latency(curve: &Curve, at: Named<'_>) -> Option<Seen> {
    let mean = |read: fn(&DiskUse) -> f64| curve.mean(|step| device(step, at).map(read)).unwrap_or(0.0);
    let read_us = each_us(mean(|disk| disk.reading), mean(|disk| disk.reads_per_s));
    let write_us = each_us(mean(|disk| disk.writing), mean(|disk| disk.writes_per_s));
    let flush_us = each_us(mean(|disk| disk.flush), mean(|disk| disk.flushes_per_s));
    let any = [read_us, write_us, flush_us].iter().any(Option::is_some);
    any.then_some(Seen::DiskLatency { read_us, write_us, flush_us })
}

/// Share of the device's bytes that the tiers caused; `None` where their bytes may not be read, and for a device that
/// only flushed.
fn our_share(curve: &Curve, at: Named<'_>) -> Option<f64> {
    let ours = curve.mean(|step| {
        let known: Vec<f64> = tiers_on(step, at.1).filter_map(|group| group.disk_bytes_per_s).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    })?;
    let all =
        curve.mean(|step| device(step, at).map(|disk| disk.read_bytes_per_s + disk.written_bytes_per_s))?;
    (all > 0.0).then(|| ours / all)
}

/// Whether others keep this device busy, whatever the load: the tiers cause little of its traffic, and none of their threads
/// waits for it. A database that nobody watches may cause the rest where that grows with the users.
pub(super) fn is_of_others(curve: &Curve, resource: &Identity) -> bool {
    let Identity::Disk { name, on } = resource else { return false };
    let at = (name.as_str(), on);
    let waiting = |step: &Step| tiers_on(step, on).map(|group| group.found_disk_waiting).sum::<f64>();
    let awaited = curve.mean(|step| Some(waiting(step))).unwrap_or(1.0);
    let is_unread = |step: &Step| tiers_on(step, on).any(|group| group.disk_bytes_per_s.is_none());
    awaited < HARDLY_AWAITED
        && !curve.steps().iter().any(is_unread)
        && our_share(curve, at).is_some_and(|share| share < OURS)
        && !curve.follows_load(|step| device(step, at).map(work))
}

fn of_host(curve: &Curve, on: &HostName, read: fn(&HostUse) -> f64) -> f64 {
    curve.mean(|step| step.usage.host(on).map(read)).unwrap_or(0.0)
}

/// Share of the time that some task of a host waited for a disk.
pub(super) fn pressure(curve: &Curve, on: &HostName) -> f64 {
    of_host(curve, on, |host| host.io_pressure)
}

pub(super) fn tiers_on<'a>(step: &'a Step, on: &HostName) -> impl Iterator<Item = &'a Group> {
    step.usage.tiers().filter(move |group| group.machine == *on)
}

fn waiting_thread(curve: &Curve, on: &HostName) -> f64 {
    let most = |step: &Step| tiers_on(step, on).map(|group| group.disk_waiting_thread).fold(0.0, f64::max);
    curve.mean(|step| Some(most(step))).unwrap_or(0.0)
}

/// Whether threads of the tiers on a host took turns at waiting for a disk, and one of them nearly always waited. One write that
/// serves all waiting threads (group commit) asks no more of a disk for many users than for one. A thread of its own
/// that writes whatever the load, such as a checkpointer, does not take turns.
pub(super) fn waits_in_turn(curve: &Curve, on: &HostName) -> bool {
    let turns = |group: &Group| {
        group.machine == *on
            && group.found_disk_waiting >= WAITING_THREAD
            && group.disk_waiting_thread <= TURN * group.found_disk_waiting
    };
    curve.tiers().iter().any(|id| curve.group(id).is_some_and(turns))
}

pub(super) fn device<'a>(step: &'a Step, (name, on): Named<'_>) -> Option<&'a DiskUse> {
    step.usage.disks.iter().find(|disk| disk.name == name && disk.on == *on)
}
