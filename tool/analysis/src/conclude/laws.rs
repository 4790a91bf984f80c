//! Operational laws over the run, and the models fitted to it: bounds, mean value analysis, the universal scalability law.

use std::collections::BTreeMap;

use super::Context;
use crate::laws::demands::{self, demand};
use crate::laws::mva::{Station, mva};
use crate::laws::usl::usl;
use crate::laws::{Little, bounds, is_tested, lost_in_failures, worse_little};
use crate::run::{Demand, Identity, Laws, Models, Predicted, ResourceKind, Step, Words};
use crate::search::saturation::Saturation;
use crate::thresholds::NEGLIGIBLE_US;
use crate::verdict::{Curve, uses};

/// Mean value analysis walks through every number of users; beyond this many they show nothing new.
const USERS_MAX: u32 = 100_000;

pub(super) fn laws(curve: &Curve, context: &Context) -> Laws {
    let tested = curve.steps().iter().filter(|step| is_tested(&context.load, step));
    let checks: Vec<Little> = tested.map(|step| worse_little(step, context.load.think_time_us)).collect();
    let lost = |step: &&Step| context.load.is_closed() && lost_in_failures(step);
    Laws {
        little_holds: checks.iter().all(Little::holds),
        little_gap_max: checks.iter().map(|check| check.gap.abs()).fold(0.0, f64::max),
        little_untested: curve.steps().iter().filter(lost).map(|step| step.users).collect(),
        demands: demands(curve),
    }
}

/// The demand on every measured resource, largest share of its capacity first.
fn demands(curve: &Curve) -> Vec<Demand> {
    let mut seen_at: BTreeMap<Identity, (Vec<demands::StepUse>, f64)> = BTreeMap::new();
    for step in curve.steps() {
        for seen in uses(curve, step) {
            // Devices and links have no servers to count: their demand is on the whole of them.
            let (used, capacity) = match seen.resource.kind() {
                ResourceKind::Network | ResourceKind::Disk => (seen.utilisation(), 1.0),
                _ => (seen.used, seen.capacity),
            };
            let entry = seen_at.entry(seen.resource).or_default();
            entry.0.push(demands::StepUse { throughput_per_s: step.throughput_per_s, used });
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

fn of_resource(resource: &Identity, uses: &[demands::StepUse], capacity: f64) -> Option<Demand> {
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

pub(super) fn models(curve: &Curve, laws: &Laws, saturation: &Saturation, context: &Context) -> Models {
    if !context.load.is_closed() {
        return Models::default();
    }
    let think_us = context.load.think_time_us;
    let alone = curve.alone().filter(|step| step.completed > 0);
    let alone_us = alone.map(|step| step.response_time_us.mean);
    let steps: Vec<&Step> = curve.steps().iter().collect();
    Models {
        bounds: alone_us.map(|us| bounds(us, think_us, saturation.throughput_max_per_s)),
        mva: alone_us.and_then(|us| predicted(curve, laws, think_us, us)),
        usl: usl(&steps),
    }
}

/// Predictions from the measured demands at the numbers of users that were measured. The part of one user's response
/// time that no demand accounts for is a delay. `None` where no demand of the server is known.
fn predicted(curve: &Curve, laws: &Laws, think_us: f64, alone_us: f64) -> Option<Vec<Predicted>> {
    if !curve.observed() {
        return None;
    }
    let mut stations = stations(curve, laws);
    let accounted: f64 = stations
        .iter()
        .map(|station| match station {
            Station::Queue { demand_us, .. } | Station::Delay { demand_us } => demand_us,
        })
        .sum();
    stations.push(Station::Delay { demand_us: (alone_us - accounted).max(0.0) });
    let users: Vec<u32> = curve.steps().iter().map(|step| step.users).filter(|n| *n <= USERS_MAX).collect();
    let all = mva(&stations, think_us, users.iter().copied().max()?);
    Some(all.into_iter().filter(|step| users.contains(&step.users)).collect())
}

/// One queue per tier, device and generator. A tier that is bound to one thread has one server,
/// whatever else it may use.
fn stations(curve: &Curve, laws: &Laws) -> Vec<Station> {
    let demand = |resource: &Identity| {
        let same = laws.demands.iter().find(|demand| demand.identity.as_ref() == Some(resource));
        same.map(|demand| demand.demand_us)
    };
    let mut stations = Vec::new();
    for seen in curve.star().map(|step| uses(curve, step)).unwrap_or_default() {
        let servers = match &seen.resource {
            Identity::Processes(of) => curve.servers_of(of),
            Identity::Disk { .. } | Identity::Link { .. } | Identity::IoLimit(_) => 1,
            Identity::Generator => seen.capacity.round().max(1.0) as u32,
            _ => continue,
        };
        let Some(demand_us) = demand(&seen.resource) else { continue };
        stations.push(Station::Queue { demand_us, servers });
    }
    stations
}
