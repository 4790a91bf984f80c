//! A cgroup's CPU quota.

use super::finding::Finding;
use super::sweep::{GroupId, Sweep, group};
use super::utilisation::Id;
use crate::resources::{Group, QuotaUse};
use crate::run::{Confidence, ResourceKind};
use crate::words::{core_noun, cores, percent, time};

/// A quota used this far is spent: the kernel hands it out in slices per processor, and what is left in
/// them at the end of a period is lost.
const SPENT: f64 = 0.85;

/// A group stopped in fewer periods than this was stopped by bursts, not by lack of CPU time.
const THROTTLED: f64 = 0.10;

/// Stopped in this share of the periods, a group wanted more whatever its work followed.
const MOSTLY_THROTTLED: f64 = 0.50;

/// Groups stopped by their quota.
pub(super) fn full(sweep: &Sweep) -> Vec<Finding> {
    sweep.tiers().iter().filter_map(|id| of_group(sweep, id)).collect()
}

fn of_group(sweep: &Sweep, id: &GroupId) -> Option<Finding> {
    let throttled = mean(sweep, id, |quota| quota.throttled_periods)?;
    let spent = mean(sweep, id, |quota| quota.used_cores / quota.cores)?;
    // One user may spend a small quota already; stopped in most periods, the group wanted more at any load.
    let follows = throttled >= MOSTLY_THROTTLED
        || sweep.follows_load(|point| group(point, id).map(|group| group.cores));
    if throttled < THROTTLED || spent < SPENT || !follows || generator_spends_more(sweep, id) {
        return None;
    }
    let quota = sweep.group(id)?.quota.clone()?;
    let demand = sweep.demand_us(|point| group(point, id).map(|group| group.cores));
    let own = [Id::Cpu(id.0, id.1.clone()), Id::Thread(id.0, id.1.clone()), Id::Quota(id.0, id.1.clone())];
    Some(
        Finding::new(ResourceKind::CpuQuota, Confidence::High)
            .held_by(sweep.group_name(id))
            .about(own)
            .busy(spent)
            .demanding(demand)
            .saying(format!(
                "{} used {} of its CPU quota of {} {} (cgroup {}) and was stopped in {} of the periods, at N* = {} \
                 and beyond; each request costs it {} of CPU.",
                sweep.group_name(id),
                percent(spent.min(1.0)),
                cores(quota.cores),
                core_noun(quota.cores),
                quota.cgroup,
                percent(throttled),
                sweep.star_users(),
                time(demand.unwrap_or(0.0))
            ))
            .saying(format!(
                "Had it not been stopped, it would have run on up to {} more {}.",
                cores(mean(sweep, id, |quota| quota.stopped_cores).unwrap_or(0.0)),
                core_noun(quota.stopped_cores)
            )),
    )
}

/// Whether the generator is in the same cgroup and uses more of the quota than the group does.
fn generator_spends_more(sweep: &Sweep, id: &GroupId) -> bool {
    sweep.plateau().any(|point| {
        let (Some(ours), Some(generator)) = (group(point, id), point.resources.generator()) else {
            return false;
        };
        let cgroup = |group: &Group| group.quota.as_ref().map(|quota| quota.cgroup.clone());
        cgroup(generator) == cgroup(ours) && generator.cores > ours.cores
    })
}

fn mean(sweep: &Sweep, id: &GroupId, read: impl Fn(&QuotaUse) -> f64) -> Option<f64> {
    sweep.mean(|point| group(point, id)?.quota.as_ref().map(&read))
}
