//! What comes close to the bottleneck, and what would come next if it were removed.

use super::curve::Curve;
use super::finding::Finding;
use super::utilisation::{Use, mean_uses, uses};
use crate::run::{Confidence, Identity, NextLimit, OutcomeEvidence as Seen, Resource, ResourceKind};
use crate::thresholds::{FULL, NOT_BUSY, RIVAL_WITHIN};

/// A resource used less than this is too idle for its demand to be told from noise.
const MEASURABLE: f64 = 0.02;

/// A light load uses somewhat more per request than a heavy one, which is served in batches. More than this factor is
/// other work.
const DISPROPORTIONATE: f64 = 2.0;

/// Adds the runner-up, and lowers the confidence where it is close.
pub(super) fn with_runner_up(curve: &Curve, mut finding: Finding) -> Finding {
    let rival = mean_uses(curve)
        .into_iter()
        .filter(|rival| !finding.includes(&rival.resource))
        .max_by(|a, b| a.utilisation().total_cmp(&b.utilisation()));
    let Some(rival) = rival else { return finding };
    let busy = rival.utilisation();
    let near = finding.utilization.is_some_and(|of_finding| busy > of_finding - RIVAL_WITHIN);
    let close = (near && busy >= NOT_BUSY) || busy >= FULL;
    if close && finding.utilization.is_some() && finding.confidence == Confidence::High {
        let resource = rival.resource.clone();
        finding = finding.at_most(Confidence::Medium).seeing(Seen::CloseRival { resource, busy });
    }
    finding.runner_up = Some(Resource::from(&rival));
    finding
}

/// The resource with the next highest demand, and the throughput at which it would be full: X / U, by
/// the utilisation law. `None` where the bottleneck itself is not known.
pub fn next(curve: &Curve, finding: &Finding) -> Option<NextLimit> {
    let unknown =
        matches!(finding.kind, ResourceKind::None | ResourceKind::Unknown | ResourceKind::Generator);
    if unknown || !finding.doubts.is_empty() {
        return None;
    }
    let throughput = curve.mean(|step| Some(step.throughput_per_s))?;
    let next = mean_uses(curve)
        .into_iter()
        .find(|seen| comes_after(finding, seen) && in_proportion(curve, seen, throughput))?;
    let throughput_per_s = throughput / next.utilisation();
    Some(NextLimit::Limit { resource: next.resource, throughput_per_s })
}

/// Whether the use at the lightest step was in proportion to its throughput, as the prediction assumes. What is used
/// without the load would not grow with it.
fn in_proportion(curve: &Curve, seen: &Use, throughput: f64) -> bool {
    let Some(low) = curve.low() else { return true };
    let same = |then: &Use| then.resource == seen.resource;
    let then = uses(curve, low).into_iter().find(same).map_or(0.0, |then| then.used);
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
