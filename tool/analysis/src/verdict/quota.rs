//! A cgroup's CPU quota.

use super::curve::{Curve, group};
use super::finding::{DIRECT, Finding, INDIRECT};
use super::processor::{cpu_demand_us, follows_load, own_resources};
use crate::resources::{Group, QuotaUse};
use crate::run::{HostName, Identity, Probability, Processes, ResourceKind, ShareEvidence as Seen};
use crate::thresholds::THROTTLED;

/// A quota used this far is spent: the kernel hands it out in slices per processor, and what is left in
/// them at the end of a period is lost.
const SPENT: f64 = 0.85;

/// A quota used this far is spent though it hardly stops anybody: a runtime that works on as many processors as the quota
/// is worth (as Go, Java and .NET set themselves to) cannot use more of it than there is.
const SPENT_UNSTOPPED: f64 = 0.97;

/// Use of a quota that stops nobody ranks behind that of processors and threads: what fills those as well is named by them.
const UNSTOPPED_IS_WEAKER_BY: f64 = 0.25;

/// Processes stopped in this share of the periods wanted more, whatever their work followed.
const THROTTLED_AT_ANY_LOAD: f64 = 0.50;

/// Processes that spend their quota. One that several tiers share is one limit, and named by the tier that uses most of it.
pub(super) fn full(curve: &Curve) -> Vec<Finding> {
    let used = |of: &Processes| curve.group_mean(of, |group| group.cores);
    let mut tiers = curve.tiers();
    tiers.sort_by(|a, b| used(b).total_cmp(&used(a)));
    let (mut found, mut named) = (Vec::new(), Vec::new());
    for of in &tiers {
        let cgroup = cgroup_of(curve, of);
        let Some(finding) = of_processes(curve, of).filter(|_| !named.contains(&cgroup)) else { continue };
        let sharers = tiers.iter().filter(|other| *other != of && cgroup_of(curve, other) == cgroup);
        found.push(finding.about(sharers.cloned().map(Identity::Quota)));
        named.push(cgroup);
    }
    found
}

/// The host, the path and the size of the quota that processes are under. Those who look from within a container all see `/`.
fn cgroup_of(curve: &Curve, of: &Processes) -> Option<([HostName; 2], String, f64)> {
    let group = curve.group(of)?;
    let quota = group.quota.as_ref()?;
    Some(([group.machine.clone(), group.on.clone()], quota.cgroup.clone(), quota.cores))
}

fn of_processes(curve: &Curve, of: &Processes) -> Option<Finding> {
    let throttled = mean(curve, of, |quota| quota.throttled_periods)?;
    let spent = spent(curve, of)?;
    // One user may spend a small quota already; processes stopped in most periods wanted more at any load.
    let follows = throttled >= THROTTLED_AT_ANY_LOAD || follows_load(curve, of);
    let confidence = spent_surely(throttled, spent)?;
    if !follows || generator_spends_more(curve, of) {
        return None;
    }
    let quota = curve.group(of)?.quota.clone()?;
    let demand = cpu_demand_us(curve, of);
    let finding = Finding::new(ResourceKind::CpuQuota, confidence)
        .held_by(Identity::Quota(of.clone()))
        .about(own_resources(of))
        .busy(spent)
        .demanding(demand)
        .seeing(Seen::QuotaSpent {
            of: of.clone(),
            cgroup: quota.cgroup,
            cores: quota.cores,
            spent: spent.min(1.0),
            stopped_periods: throttled,
            users: curve.star_users(),
            demand_us: demand.unwrap_or(0.0),
        });
    if confidence < DIRECT {
        return Some(finding.weaker_by(UNSTOPPED_IS_WEAKER_BY));
    }
    let stopped_cores = mean(curve, of, |quota| quota.stopped_cores).unwrap_or(0.0);
    Some(finding.seeing(Seen::QuotaHeldBack { cores: stopped_cores }))
}

/// How probable it is that a quota is the limit which stops processes in this share of its periods, and of which this share is
/// used; `None` where it has room. That processes want more is counted where they are stopped, and inferred where they are not.
fn spent_surely(throttled: f64, spent: f64) -> Option<Probability> {
    if throttled >= THROTTLED && spent >= SPENT {
        return Some(DIRECT);
    }
    (spent >= SPENT_UNSTOPPED).then_some(INDIRECT)
}

/// Whether the generator is in the same cgroup and uses more of the quota than the processes do.
fn generator_spends_more(curve: &Curve, of: &Processes) -> bool {
    curve.plateau().any(|step| {
        let (Some(ours), Some(generator)) = (group(step, of), step.usage.generator()) else {
            return false;
        };
        let cgroup = |group: &Group| group.quota.as_ref().map(|quota| quota.cgroup.clone());
        cgroup(generator) == cgroup(ours) && generator.cores > ours.cores
    })
}

/// The share of their quota that processes use; `None` where they have none.
pub(super) fn spent(curve: &Curve, of: &Processes) -> Option<f64> {
    mean(curve, of, |quota| quota.used_cores / quota.cores)
}

fn mean(curve: &Curve, of: &Processes, read: impl Fn(&QuotaUse) -> f64) -> Option<f64> {
    curve.mean(|step| group(step, of)?.quota.as_ref().map(&read))
}
