//! Soft interrupts: the kernel's work on packets that arrive, which no process is charged with.
//!
//! The processor that a network card or a virtual link interrupts does this work for all connections, however many threads
//! the server has. It is the limit if that processor is full, mostly of soft interrupts, while the tiers have room.

use super::curve::Curve;
use super::finding::{DIRECT, Finding};
use crate::resources::{CpuUse, Group};
use crate::run::{HostName, Identity, KernelEvidence as Seen, Processes, ResourceKind, Step};
use crate::thresholds::{FULL, NOT_BUSY};

/// Soft interrupts that take this share of a processor's busy time are most of its work. On a loopback interface they run
/// within the calls of whoever sends, and take less than that.
const MOSTLY: f64 = 0.6;

/// Of a processor that is less busy, it does not matter what it does.
const WORTH_TELLING: f64 = 0.1;

/// What runs on the processor besides may be a tier, whose own use says more about it.
const WEAKER_THAN_OWN_USE: f64 = 0.02;

/// Whether most of the work of a processor is soft interrupts.
pub(super) fn is_mostly(cpu: &CpuUse) -> bool {
    cpu.busy >= WORTH_TELLING && cpu.softirq >= MOSTLY * cpu.busy
}

/// Processors that were full of soft interrupts while the tiers had room.
pub(super) fn full(curve: &Curve) -> Vec<Finding> {
    let (Some(star), Some(tier)) = (curve.star(), fullest_tier(curve)) else { return Vec::new() };
    if tier.1 >= FULL {
        return Vec::new();
    }
    let hosts = star.usage.hosts.iter().filter(|host| could_be_spread(curve, &host.name));
    let processors = hosts.flat_map(|host| host.cpus.iter().map(|cpu| (&host.name, cpu.number)));
    processors.filter_map(|processor| of_processor(curve, processor, &tier)).collect()
}

/// A host, and the number of one of its processors.
type Numbered<'a> = (&'a HostName, u32);

fn of_processor(curve: &Curve, at: Numbered<'_>, (of, tier_busy): &(Processes, f64)) -> Option<Finding> {
    let mean = |read: fn(&CpuUse) -> f64| curve.mean(|step| processor(step, at).map(read));
    let (busy, softirq) = (mean(CpuUse::busy_of_available)?, mean(CpuUse::softirq_of_available)?);
    let used = |step: &Step| processor(step, at).map(|cpu| cpu.softirq);
    if busy < FULL || softirq < MOSTLY * busy || !curve.follows_load(used) {
        return None;
    }
    let demand_us = curve.demand_us(used).filter(|us| us.is_finite());
    let holder = Identity::Processor { number: at.1, on: at.0.clone() };
    let finding = Finding::new(ResourceKind::Softirq, DIRECT)
        .held_by(holder.clone())
        .about([holder])
        .busy(busy)
        .weaker_by(WEAKER_THAN_OWN_USE)
        .demanding(demand_us)
        .seeing(Seen::SoftirqsFull {
            processor: at.1,
            busy,
            softirq,
            users: curve.star_users(),
            demand_us: demand_us.unwrap_or(0.0),
        })
        .seeing(Seen::TiersHadRoom { of: of.clone(), busy: *tier_busy });
    let (dropped_per_s, squeezes_per_s) =
        (mean(|cpu| cpu.packets_dropped_per_s)?, mean(|cpu| cpu.squeezes_per_s)?);
    let left = dropped_per_s + squeezes_per_s >= 1.0;
    let finding =
        if left { finding.seeing(Seen::PacketsLeft { dropped_per_s, squeezes_per_s }) } else { finding };
    let processors = with_room(curve, at.0);
    Some(if processors > 0 { finding.seeing(Seen::SpreadSoftirqs { processors }) } else { finding })
}

/// Whether some processor of the host has room, or all are full of soft interrupts alike. Where the others are full of something else,
/// that is in the way as well.
fn could_be_spread(curve: &Curve, on: &HostName) -> bool {
    let mostly = |cpu: &CpuUse| cpu.softirq_of_available() >= MOSTLY;
    let hosts = || curve.plateau().filter_map(|step| step.usage.host(on));
    with_room(curve, on) > 0 || hosts().flat_map(|host| &host.cpus).all(mostly)
}

/// How many processors of a host had room all over the plateau.
fn with_room(curve: &Curve, on: &HostName) -> u64 {
    let Some(host) = curve.star().and_then(|star| star.usage.host(on)) else { return 0 };
    let busy = |number: u32| curve.mean(|step| processor(step, (on, number)).map(CpuUse::busy_of_available));
    let room = host.cpus.iter().filter(|cpu| busy(cpu.number).is_some_and(|busy| busy < NOT_BUSY));
    room.count() as u64
}

/// The tier that uses most of what it may, its processors or one thread of its own, and that share.
fn fullest_tier(curve: &Curve) -> Option<(Processes, f64)> {
    let share = |of: &Processes| curve.group_mean(of, busiest_share);
    let tiers = curve.tiers().into_iter().map(|of| (share(&of), of));
    tiers.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(busy, of)| (of, busy))
}

fn busiest_share(group: &Group) -> f64 {
    group.busiest_thread.as_ref().map_or(0.0, |thread| thread.busy).max(group.busy())
}

fn processor<'a>(step: &'a Step, (on, number): Numbered<'_>) -> Option<&'a CpuUse> {
    step.usage.host(on)?.cpus.iter().find(|cpu| cpu.number == number)
}
