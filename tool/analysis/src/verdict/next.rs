//! What would come next if the bottleneck were removed.

use super::finding::Finding;
use super::sweep::Sweep;
use super::utilisation::{Use, mean_uses, uses};
use crate::run::{Identity, NextLimit, ResourceKind};

/// A resource used less than this is too idle for its demand to be told from noise.
const MEASURABLE: f64 = 0.02;

/// A light load uses somewhat more per request than a heavy one, which is served in batches. More than this factor is
/// other work.
const DISPROPORTIONATE: f64 = 2.0;

/// The resource with the next highest demand, and the throughput at which it would be full: X / U, by
/// the utilisation law. `None` where the bottleneck itself is not known.
pub fn next(sweep: &Sweep, finding: &Finding) -> Option<NextLimit> {
    let unknown =
        matches!(finding.kind, ResourceKind::None | ResourceKind::Unknown | ResourceKind::Generator);
    if unknown || !finding.doubts.is_empty() {
        return None;
    }
    let throughput = sweep.mean(|step| Some(step.throughput_per_s))?;
    let next = mean_uses(sweep)
        .into_iter()
        .find(|seen| comes_after(finding, seen) && in_proportion(sweep, seen, throughput))?;
    let throughput_per_s = throughput / next.utilisation();
    Some(NextLimit::Limit { resource: next.resource, throughput_per_s })
}

/// Whether the use at the lightest step was in proportion to its throughput, as the prediction assumes. What is used
/// without the load would not grow with it.
fn in_proportion(sweep: &Sweep, seen: &Use, throughput: f64) -> bool {
    let Some(low) = sweep.low() else { return true };
    let same = |then: &Use| then.resource == seen.resource;
    let then = uses(sweep, low).into_iter().find(same).map_or(0.0, |then| then.used);
    let expected = seen.used * low.throughput_per_s / throughput;
    then <= expected * DISPROPORTIONATE
}

/// Removing a full thread (more workers) or a quota leaves the group's processors to fill up; removing
/// full processors (more of them) leaves neither them nor the thread that ran on them.
fn comes_after(finding: &Finding, seen: &Use) -> bool {
    let freed = match finding.kind {
        ResourceKind::SingleThread => !matches!(seen.resource, Identity::Processes(_)),
        ResourceKind::CpuQuota => matches!(seen.resource, Identity::Quota(_)),
        _ => true,
    };
    seen.utilisation() >= MEASURABLE && !(freed && finding.includes(&seen.resource))
}
