//! What a request costs each tier, where there are several.

use super::finding::Finding;
use super::sweep::{GroupId, Sweep, group};
use crate::run::ResourceKind;
use crate::words::time;

/// Adds the CPU time of a request in each tier, the dearest first, so that people see how the work is spread.
pub(super) fn with_demands(sweep: &Sweep, finding: Finding) -> Finding {
    let of = |id: &GroupId| sweep.demand_us(|point| group(point, id).map(|group| group.cores));
    let mut demands: Vec<(f64, String)> =
        sweep.tiers().iter().filter_map(|id| Some((of(id)?, sweep.group_name(id)))).collect();
    demands.retain(|(us, _)| us.is_finite());
    if demands.len() < 2 || finding.kind == ResourceKind::Generator {
        return finding;
    }
    demands.sort_by(|a, b| b.0.total_cmp(&a.0));
    let each: Vec<String> = demands.iter().map(|(us, name)| format!("{name} {}", time(*us))).collect();
    finding.saying(format!("CPU time of a request in each tier: {}.", each.join(", ")))
}
