//! The load generator at its own limit. It must never pass for the server.

use super::finding::Finding;
use super::sweep::{Point, Sweep};
use super::utilisation::Id;
use super::{FULL, NOT_BUSY};
use crate::resources::{Group, QuotaUse};
use crate::run::{Confidence, ResourceKind};
use crate::words::{cores, percent, time};

/// A server resource must be at least this busy, and this much busier than the generator, to be
/// believed while the generator is full as well.
const SERVER_FULL: f64 = 0.95;
const CLEARLY_BUSIER: f64 = 0.03;

/// Stopped in this share of its quota's periods, having used this share of the quota, the generator is
/// limited by it.
const THROTTLED: f64 = 0.10;
const QUOTA_SPENT: f64 = 0.80;

/// Stopped in this share of the periods it is limited whatever it used: the kernel hands the quota out in slices per
/// processor, and what one processor leaves over is lost to the others.
const MOSTLY_THROTTLED: f64 = 0.30;

/// Waiting for a processor this share of the time, the generator measures its own waiting.
const STARVED: f64 = 0.30;

/// Lag that makes up this share of the mean response time is measured in its stead.
const LAG_SHARE: f64 = 0.5;

/// The doubt that goes with it, and what to do.
pub(super) const MORE_PROCESSORS: &str = "The load generator was the limit, so the server may carry more: give the generator more \
                      processors (--threads, taskset), or run it on another host.";

/// Whether the generator was full or stopped by a quota on the plateau, while no resource of the server
/// (the busiest being `server_busy`) was clearly fuller.
pub(super) fn limited(sweep: &Sweep, server_busy: f64) -> Option<Finding> {
    if let Some(finding) = throttled(sweep) {
        return Some(finding);
    }
    let busy = sweep.mean(|point| Some(sweep.generator_busy(point)))?;
    if busy < FULL || (server_busy >= SERVER_FULL && server_busy >= busy + CLEARLY_BUSIER) {
        return None;
    }
    let threads = sweep.generator_threads(sweep.star()?.resources.generator());
    Some(
        found(Confidence::High)
            .busy(busy)
            .demanding(sweep.demand_us(|point| Some(sweep.generator_busy(point) * threads)))
            .saying(format!(
                "The load generator was busy {} of the time of its {} {}: it had no time left to send more.",
                percent(busy),
                cores(threads),
                if threads > 1.0 { "threads" } else { "thread" }
            ))
            .saying(beside(sweep, server_busy)),
    )
}

/// Whether the generator was held up while nothing of the server was busy.
pub(super) fn held_up(sweep: &Sweep) -> Option<Finding> {
    let waited = sweep.mean(|point| Some(starved(sweep, point)))?;
    let lag = sweep.mean(|point| Some(point.lag_us_p99))?;
    let response = sweep.mean(|point| Some(point.response_mean_us))?;
    if waited >= STARVED {
        return Some(found(Confidence::Medium).busy(waited).saying(format!(
            "The load generator waited for a processor {} of the time, while no resource of the server was full.",
            percent(waited)
        )));
    }
    (response > 0.0 && lag >= LAG_SHARE * response).then(|| {
        found(Confidence::Medium).saying(format!(
            "The load generator handled events up to {} late (99th percentile), against a mean response time of {}, \
             while no resource of the server was full.",
            time(lag),
            time(response)
        ))
    })
}

/// Share of its threads' time the generator was runnable but waited for a processor.
pub(super) fn starved(sweep: &Sweep, point: &Point) -> f64 {
    let of_group = |group: &Group| (group.run_queue / sweep.generator_threads(Some(group))).clamp(0.0, 1.0);
    point.resources.generator().map_or(0.0, of_group)
}

fn throttled(sweep: &Sweep) -> Option<Finding> {
    let mean = |read: fn(&QuotaUse) -> f64| {
        sweep.mean(|point| point.resources.generator()?.quota.as_ref().map(read))
    };
    let (stopped, spent) = (mean(|q| q.throttled_periods)?, mean(|q| q.used_cores / q.cores)?);
    let limited = stopped >= MOSTLY_THROTTLED || (stopped >= THROTTLED && spent >= QUOTA_SPENT);
    if !limited || server_spends_more(sweep) {
        return None;
    }
    Some(found(Confidence::High).busy(spent).about(quota_sharers(sweep)).saying(format!(
        "The load generator was stopped in {} of the periods of its CPU quota of {} cores.",
        percent(stopped),
        cores(mean(|quota| quota.cores)?)
    )))
}

/// Whether a tier is in the generator's cgroup and uses more of the quota.
fn server_spends_more(sweep: &Sweep) -> bool {
    sweep.plateau().any(|point| {
        let Some(generator) = point.resources.generator() else { return false };
        point.resources.tiers().any(|tier| same_cgroup(tier, generator) && tier.cores >= generator.cores)
    })
}

fn quota_sharers(sweep: &Sweep) -> Vec<Id> {
    let Some(point) = sweep.star() else { return Vec::new() };
    let Some(generator) = point.resources.generator() else { return Vec::new() };
    let sharers = point.resources.tiers().filter(|tier| same_cgroup(tier, generator));
    sharers.map(|tier| Id::Quota(tier.role, tier.name.clone())).collect()
}

fn same_cgroup(a: &Group, b: &Group) -> bool {
    match (&a.quota, &b.quota) {
        (Some(a), Some(b)) => a.cgroup == b.cgroup,
        _ => false,
    }
}

fn found(confidence: Confidence) -> Finding {
    Finding::new(ResourceKind::Generator, confidence)
        .held_by("generator")
        .about([Id::Generator])
        .doubting(MORE_PROCESSORS.to_owned())
}

fn beside(sweep: &Sweep, server_busy: f64) -> String {
    if !sweep.observed() {
        "The server could not be watched.".to_owned()
    } else if server_busy >= FULL {
        format!(
            "The server's busiest resource was {} busy as well, so which of them comes first cannot be told.",
            percent(server_busy)
        )
    } else {
        let busiest = sweep.mean_uses().into_iter().find(|seen| !matches!(seen.id, Id::Generator | Id::Host));
        match busiest {
            Some(seen) if seen.utilisation() < NOT_BUSY => {
                format!("{} had room: {} busy.", sweep.name(&seen.id), percent(seen.utilisation()))
            }
            Some(seen) => format!("{} was {} busy.", sweep.name(&seen.id), percent(seen.utilisation())),
            None => "Nothing of the server was seen to be busy.".to_owned(),
        }
    }
}
