//! The load generator at its own limit. It must never pass for the server.

use super::curve::Curve;
use super::finding::{DIRECT, Finding, INDIRECT};
use super::utilisation::{Use, mean_uses};
use crate::resources::{Group, QuotaUse};
use crate::run::{
    Doubt, GeneratorEvidence as Seen, GeneratorShare, Identity, Probability, ResourceKind, Step,
};
use crate::thresholds::{FULL, NOT_BUSY, THROTTLED};

/// While the generator is full as well, a resource of the server is believed to be the limit only if it is at least this
/// busy, and this much busier than the generator.
const SERVER_FULL: f64 = 0.95;
const CLEARLY_BUSIER: f64 = 0.03;

/// Stopped in enough of its quota's periods, and having used this share of the quota, the generator is limited by it.
const QUOTA_SPENT: f64 = 0.80;

/// Stopped in this share of the periods, it is limited whatever it used: the kernel hands the quota out in slices per
/// processor, and what one processor leaves over is lost to the others.
const THROTTLED_HOWEVER_SPENT: f64 = 0.30;

/// Waiting for a processor this share of the time, the generator measures its own waiting.
const WAITED_FOR_PROCESSOR: f64 = 0.30;

/// Lag that makes up this share of the mean response time is measured instead of it.
const LAG_SHARE: f64 = 0.5;

/// Whether the generator was full or stopped by a quota on the plateau, while no resource of the server
/// (the busiest being `server_busy`) was clearly fuller.
pub(super) fn limited(curve: &Curve, server_busy: f64) -> Option<Finding> {
    if let Some(finding) = throttled(curve) {
        return Some(finding);
    }
    let busy = curve.mean(|step| Some(curve.generator_busy(step)))?;
    if busy < FULL || (server_busy >= SERVER_FULL && server_busy >= busy + CLEARLY_BUSIER) {
        return None;
    }
    if let Some(one) = curve.star()?.busiest_generator() {
        let seen = Seen::OneGeneratorBusy { generator: one.name.clone(), busy };
        return Some(found(DIRECT).busy(busy).seeing(seen).seeing(beside(curve, server_busy)));
    }
    let threads = curve.generator_threads(curve.star()?.usage.generator());
    Some(
        found(DIRECT)
            .busy(busy)
            .demanding(curve.demand_us(|step| Some(curve.generator_busy(step) * threads)))
            .seeing(Seen::GeneratorBusy { busy, threads })
            .seeing(beside(curve, server_busy)),
    )
}

/// Whether the generator was held up while nothing of the server was full: what is full may be the limit, even where nothing
/// was seen to wait for it.
pub(super) fn held_up(curve: &Curve) -> Option<Finding> {
    let full = |seen: &Use| is_of_server(&seen.resource) && seen.utilisation() >= FULL;
    if mean_uses(curve).iter().any(full) {
        return None;
    }
    let waited = curve.mean(|step| Some(starved(curve, step)))?;
    let lag_us =
        curve.mean(|step| Some(latest(step).map_or(step.generator.lag_us_p99, |one| one.lag_us_p99)))?;
    let response_us = curve.mean(|step| Some(step.response_time_us.mean))?;
    if waited >= WAITED_FOR_PROCESSOR {
        let seen = Seen::GeneratorStarved { share: waited };
        return Some(found(INDIRECT).busy(waited).seeing(seen));
    }
    let late = response_us > 0.0 && lag_us >= LAG_SHARE * response_us;
    let seen = match curve.star().and_then(latest) {
        Some(one) => Seen::OneGeneratorLate { generator: one.name.clone(), lag_us, response_us },
        None => Seen::GeneratorLate { lag_us, response_us },
    };
    late.then(|| found(INDIRECT).seeing(seen))
}

/// The one of several generators that handled events latest.
fn latest(step: &Step) -> Option<&GeneratorShare> {
    let known = step.generators.iter().filter(|one| one.lag_us_p99.is_finite());
    known.max_by(|a, b| a.lag_us_p99.total_cmp(&b.lag_us_p99))
}

/// Share of its threads' time the generator was runnable but waited for a processor.
pub fn starved(curve: &Curve, step: &Step) -> f64 {
    let of_group = |group: &Group| (group.run_queue / curve.generator_threads(Some(group))).clamp(0.0, 1.0);
    step.generator_here().map_or(0.0, of_group)
}

fn throttled(curve: &Curve) -> Option<Finding> {
    let mean =
        |read: fn(&QuotaUse) -> f64| curve.mean(|step| step.generator_here()?.quota.as_ref().map(read));
    let (stopped, spent) = (mean(|q| q.throttled_periods)?, mean(|q| q.used_cores / q.cores)?);
    let limited = stopped >= THROTTLED_HOWEVER_SPENT || (stopped >= THROTTLED && spent >= QUOTA_SPENT);
    if !limited || server_spends_more(curve) {
        return None;
    }
    let seen = Seen::GeneratorThrottled { periods: stopped, cores: mean(|quota| quota.cores)? };
    Some(found(DIRECT).busy(spent).about(quota_sharers(curve)).seeing(seen))
}

/// Whether a tier is in the generator's cgroup and uses more of the quota.
fn server_spends_more(curve: &Curve) -> bool {
    curve.plateau().any(|step| {
        let Some(generator) = step.usage.generator() else { return false };
        step.usage.tiers().any(|tier| same_cgroup(tier, generator) && tier.cores >= generator.cores)
    })
}

fn quota_sharers(curve: &Curve) -> Vec<Identity> {
    let Some(step) = curve.star() else { return Vec::new() };
    let Some(generator) = step.usage.generator() else { return Vec::new() };
    let sharers = step.usage.tiers().filter(|tier| same_cgroup(tier, generator));
    sharers.map(|tier| Identity::Quota(curve.processes(tier))).collect()
}

fn same_cgroup(a: &Group, b: &Group) -> bool {
    match (&a.quota, &b.quota) {
        (Some(a_quota), Some(b_quota)) => a.machine == b.machine && a_quota.cgroup == b_quota.cgroup,
        _ => false,
    }
}

fn found(confidence: Probability) -> Finding {
    Finding::new(ResourceKind::Generator, confidence)
        .held_by(Identity::Generator)
        .about([Identity::Generator])
        .doubting(Doubt::GeneratorLimit)
}

fn is_of_server(resource: &Identity) -> bool {
    !matches!(resource, Identity::Generator | Identity::Host { .. })
}

/// The server's use of its resources while the generator was full.
fn beside(curve: &Curve, server_busy: f64) -> Seen {
    if !curve.observed() {
        return Seen::ServerNotWatched;
    }
    if server_busy >= FULL {
        return Seen::ServerBusyToo { busy: server_busy };
    }
    match mean_uses(curve).into_iter().find(|seen| is_of_server(&seen.resource)) {
        Some(seen) => {
            let busy = seen.utilisation();
            Seen::ServerBusiest { resource: seen.resource, busy, had_room: busy < NOT_BUSY }
        }
        None => Seen::ServerIdle,
    }
}
