//! What would come next if the bottleneck were removed.

use super::finding::Finding;
use super::sweep::Sweep;
use super::utilisation::{Id, Use};
use crate::run::ResourceKind;
use crate::words::about;

/// A resource used less than this is too idle for its demand to be told from noise.
const MEASURABLE: f64 = 0.02;

/// A light load uses somewhat more per request than a heavy one, which is served in batches; more than
/// this factor is other work.
const DISPROPORTIONATE: f64 = 2.0;

/// The resource with the next highest demand, and the throughput at which it would be full: X / U, by
/// the utilisation law. `None` where the bottleneck itself is not known.
pub fn next(sweep: &Sweep, finding: &Finding) -> Option<String> {
    let unknown =
        matches!(finding.kind, ResourceKind::None | ResourceKind::Unknown | ResourceKind::Generator);
    if unknown || !finding.inconclusive.is_empty() {
        return None;
    }
    let throughput = sweep.mean(|point| Some(point.throughput_per_s))?;
    let next = sweep
        .mean_uses()
        .into_iter()
        .find(|seen| comes_after(finding, seen) && in_proportion(sweep, seen, throughput))?;
    Some(format!("{}, at about {} req/s.", described(sweep, &next), about(throughput / next.utilisation())))
}

/// Whether the use at the lightest step was in proportion to its throughput, as the prediction takes it
/// to be: what is used without the load would not grow with it.
fn in_proportion(sweep: &Sweep, seen: &Use, throughput: f64) -> bool {
    let Some(low) = sweep.low() else { return true };
    let then = sweep.uses(low).into_iter().find(|then| then.id == seen.id).map_or(0.0, |then| then.used);
    let expected = seen.used * low.throughput_per_s / throughput;
    then <= expected * DISPROPORTIONATE
}

/// Removing a full thread (more workers) or a quota leaves the group's processors to fill up; removing
/// full processors (more of them) leaves neither them nor the thread that ran on them.
fn comes_after(finding: &Finding, seen: &Use) -> bool {
    let freed = match finding.kind {
        ResourceKind::SingleThread => !matches!(seen.id, Id::Cpu(..)),
        ResourceKind::CpuQuota => matches!(seen.id, Id::Quota(..)),
        _ => true,
    };
    seen.utilisation() >= MEASURABLE && !(freed && finding.includes(&seen.id))
}

fn described(sweep: &Sweep, seen: &Use) -> String {
    let holder = sweep.holder(&seen.id);
    match &seen.id {
        Id::Generator => "the generator".to_owned(),
        Id::Host => "the processors of the host".to_owned(),
        Id::Cpu(..) => format!("the CPU of {holder}"),
        Id::Thread(..) => format!("a single thread of {holder}"),
        Id::Quota(..) => format!("the CPU quota of {holder}"),
        Id::IoLimit(_, _, what) => format!("the limit of {holder} on {what}"),
        Id::Disk(name) => format!("the disk {name}"),
        Id::Link(name) => format!("the link {name}"),
    }
}
