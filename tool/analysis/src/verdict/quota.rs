//! A cgroup's CPU quota.

use super::curve::{Curve, group};
use super::finding::{DIRECT, Finding};
use super::processor::{cpu_demand_us, follows_load, own_resources};
use crate::resources::{Group, QuotaUse};
use crate::run::{Identity, Processes, ResourceKind, ShareEvidence as Seen};
use crate::thresholds::THROTTLED;

/// A quota used this far is spent: the kernel hands it out in slices per processor, and what is left in
/// them at the end of a period is lost.
const SPENT: f64 = 0.85;

/// Processes stopped in this share of the periods wanted more, whatever their work followed.
const THROTTLED_AT_ANY_LOAD: f64 = 0.50;

/// Processes stopped by their quota.
pub(super) fn full(curve: &Curve) -> Vec<Finding> {
    curve.tiers().iter().filter_map(|of| of_processes(curve, of)).collect()
}

fn of_processes(curve: &Curve, of: &Processes) -> Option<Finding> {
    let throttled = mean(curve, of, |quota| quota.throttled_periods)?;
    let spent = mean(curve, of, |quota| quota.used_cores / quota.cores)?;
    // One user may spend a small quota already; processes stopped in most periods wanted more at any load.
    let follows = throttled >= THROTTLED_AT_ANY_LOAD || follows_load(curve, of);
    if throttled < THROTTLED || spent < SPENT || !follows || generator_spends_more(curve, of) {
        return None;
    }
    let quota = curve.group(of)?.quota.clone()?;
    let demand = cpu_demand_us(curve, of);
    Some(
        Finding::new(ResourceKind::CpuQuota, DIRECT)
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
            })
            .seeing(Seen::QuotaHeldBack {
                cores: mean(curve, of, |quota| quota.stopped_cores).unwrap_or(0.0),
            }),
    )
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

fn mean(curve: &Curve, of: &Processes, read: impl Fn(&QuotaUse) -> f64) -> Option<f64> {
    curve.mean(|step| group(step, of)?.quota.as_ref().map(&read))
}
