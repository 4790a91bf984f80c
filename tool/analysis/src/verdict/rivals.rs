//! What comes close to the bottleneck, and what would come next if it were removed.

use super::curve::Curve;
use super::finding::Finding;
use super::utilisation::{Use, mean_uses, uses};
use crate::run::{
    Explanation, Identity, NextLimit, OutcomeEvidence as Seen, Probability, Resource, ResourceKind,
};
use crate::thresholds::{DECIDED, FULL, NOT_BUSY, RIVAL_WITHIN};

/// A resource used less than this is too idle for its demand to be told from noise.
const MEASURABLE: f64 = 0.02;

/// A light load uses somewhat more per request than a heavy one, which is served in batches. More than this factor is
/// other work.
const DISPROPORTIONATE: f64 = 2.0;

/// Resources that are full are told apart by how busy they were, as far as that is known: clock-tick accounting is good to
/// one or two per cent.
const TOLD_APART: f64 = 0.02;

/// The strongest finding among full resources, with the others as alternatives: each has a share of the probability by its
/// own odds, and by how much less it was used.
pub(super) fn most_probable(mut full: Vec<Finding>) -> Option<Finding> {
    full.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    let mut apart: Vec<Finding> = Vec::new();
    for finding in full {
        if !apart.iter().any(|stronger| stronger.is_about_the_same(&finding)) {
            apart.push(finding);
        }
    }
    let most = apart.first()?.strength;
    let odds = |finding: &Finding| finding.confidence.share() / (1.0 - finding.confidence.share());
    let weight = |finding: &Finding| odds(finding) * ((finding.strength - most) / TOLD_APART).exp();
    let all: f64 = apart.iter().map(weight).sum();
    let mut shares = apart.iter().map(|finding| finding.confidence.share() * weight(finding) / all);
    let confidence = Probability::new(shares.next()?);
    let others: Vec<Explanation> =
        apart[1..].iter().zip(shares).map(|(finding, share)| finding.explanation(share)).collect();
    let best = Finding { confidence, ..apart.into_iter().next()? };
    Some(others.into_iter().fold(best, Finding::or))
}

/// Adds the runner-up, and lowers the odds where it is close.
pub(super) fn with_runner_up(curve: &Curve, mut finding: Finding) -> Finding {
    let rival = mean_uses(curve)
        .into_iter()
        .filter(|rival| !finding.includes(&rival.resource))
        .max_by(|a, b| a.utilisation().total_cmp(&b.utilisation()));
    let Some(rival) = rival else { return finding };
    let busy = rival.utilisation();
    let near = finding.utilization.is_some_and(|of_finding| busy > of_finding - RIVAL_WITHIN);
    let close = (near && busy >= NOT_BUSY) || busy >= FULL;
    if close && finding.utilization.is_some() && finding.is_direct {
        finding = beside(finding, &rival.resource)
            .seeing(Seen::CloseRival { resource: rival.resource.clone(), busy });
    }
    finding.runner_up = Some(Resource::from(&rival));
    finding
}

/// The finding beside a rival that is nearly as busy. What the one loses the other gains, unless it has its share already.
fn beside(finding: Finding, rival: &Identity) -> Finding {
    if finding.alternatives.iter().any(|known| known.identity.as_ref() == Some(rival)) {
        return finding;
    }
    let before = finding.confidence.share();
    let finding = finding.less_sure();
    let probability = Probability::new(before - finding.confidence.share());
    finding.or(Explanation {
        kind: rival.kind(),
        identity: Some(rival.clone()),
        probability,
        ..Explanation::default()
    })
}

/// The resource with the next highest demand, and the throughput at which it would be full: X / U, by
/// the utilisation law. `None` where the bottleneck itself is not known.
pub fn next(curve: &Curve, finding: &Finding) -> Option<NextLimit> {
    let unknown =
        matches!(finding.kind, ResourceKind::None | ResourceKind::Unknown | ResourceKind::Generator);
    if unknown || !finding.doubts.is_empty() || finding.confidence < DECIDED {
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
