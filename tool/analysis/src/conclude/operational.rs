//! Operational laws over the run.

use std::collections::BTreeMap;

use super::warnings::checked_by_little;
use super::{Context, Observed};
use crate::laws::demands::{self, demand};
use crate::laws::{little, lost_in_failures};
use crate::run::{Demand, Identity, Laws, ResourceKind, Words};
use crate::verdict::{Sweep, uses};

/// A demand below this many microseconds cannot be told from the operating system's own work.
const NEGLIGIBLE_US: f64 = 0.01;

pub(super) fn laws(steps: &[&Observed], sweep: &Sweep, context: &Context) -> Laws {
    let checks: Vec<_> = steps
        .iter()
        .filter(|step| checked_by_little(step, context))
        .map(|step| little(step.users, &step.estimate, context.load.think_time_us))
        .collect();
    let lost = |step: &&&Observed| {
        context.closed() && lost_in_failures(step.estimate.completed, &step.estimate.errors)
    };
    Laws {
        little_holds: checks.iter().all(|check| check.holds()),
        little_gap_max: checks.iter().map(|check| check.gap.abs()).fold(0.0, f64::max),
        little_untested: steps.iter().filter(lost).map(|step| step.users).collect(),
        demands: demands(sweep),
    }
}

/// The demand on every measured resource, largest share of its capacity first.
fn demands(sweep: &Sweep) -> Vec<Demand> {
    let mut seen_at: BTreeMap<Identity, (Vec<demands::Use>, f64)> = BTreeMap::new();
    for point in sweep.points() {
        for seen in uses(sweep, point) {
            // Devices and links have no servers to count: their demand is on the whole of them.
            let (used, capacity) = match seen.resource.kind() {
                ResourceKind::Network | ResourceKind::Disk => (seen.utilisation(), 1.0),
                _ => (seen.used, seen.capacity),
            };
            let entry = seen_at.entry(seen.resource).or_default();
            entry.0.push(demands::Use { throughput_per_s: point.throughput_per_s, used });
            entry.1 = capacity;
        }
    }
    let mut found: Vec<Demand> = seen_at
        .iter()
        .filter_map(|(resource, (uses, capacity))| of_resource(resource, uses, *capacity))
        .collect();
    found.sort_by(|a, b| a.throughput_limit_per_s.total_cmp(&b.throughput_limit_per_s));
    found
}

fn of_resource(resource: &Identity, uses: &[demands::Use], capacity: f64) -> Option<Demand> {
    let fit = demand(uses)?;
    let limit = fit.throughput_limit_per_s(capacity);
    (fit.demand_us >= NEGLIGIBLE_US && fit.demand_us.is_finite() && limit.is_finite()).then(|| Demand {
        kind: resource.kind(),
        holder: Words::default(),
        identity: Some(resource.clone()),
        demand_us: fit.demand_us,
        demand_ci_us: fit.demand_ci_us.filter(|ci| ci.iter().all(|end| end.is_finite())),
        throughput_limit_per_s: limit,
    })
}
