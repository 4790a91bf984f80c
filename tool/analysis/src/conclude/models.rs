//! Models fitted to the steps: bounds, mean value analysis, the universal scalability law.

use super::Context;
use crate::estimate::Estimate;
use crate::laws::bounds;
use crate::laws::mva::{Station, mva};
use crate::laws::usl::usl;
use crate::run::{Identity, Laws, Models, Predicted};
use crate::search::saturation::Saturation;
use crate::verdict::{Sweep, uses};

/// Mean value analysis walks through every number of users; beyond this many they show nothing new.
const USERS_MAX: u32 = 100_000;

pub(super) fn models(
    estimates: &[(u32, &Estimate)],
    sweep: &Sweep,
    laws: &Laws,
    saturation: &Saturation,
    context: &Context,
) -> Models {
    if !context.closed() {
        return Models::default();
    }
    let think_us = context.load.think_time_us;
    let alone = sweep.points().first().filter(|point| point.users == 1 && point.completed > 0);
    Models {
        bounds: alone.map(|point| bounds(point.response_mean_us, think_us, saturation.throughput_max_per_s)),
        mva: alone.and_then(|point| predicted(sweep, laws, think_us, point.response_mean_us)),
        usl: usl(estimates).map(|fit| fit.law),
    }
}

/// What the measured demands predict at the numbers of users that were measured. The part of one user's response time
/// that no demand accounts for is a delay. `None` where no demand of the server is known.
fn predicted(sweep: &Sweep, laws: &Laws, think_us: f64, alone_us: f64) -> Option<Vec<Predicted>> {
    if !sweep.observed() {
        return None;
    }
    let mut stations = stations(sweep, laws);
    let accounted: f64 = stations
        .iter()
        .map(|station| match station {
            Station::Queue { demand_us, .. } | Station::Delay { demand_us } => demand_us,
        })
        .sum();
    stations.push(Station::Delay { demand_us: (alone_us - accounted).max(0.0) });
    let users: Vec<u32> =
        sweep.points().iter().map(|point| point.users).filter(|n| *n <= USERS_MAX).collect();
    let all = mva(&stations, think_us, users.iter().copied().max()?);
    Some(all.into_iter().filter(|step| users.contains(&step.users)).collect())
}

/// One queue per tier, device and generator. A tier that is bound to one thread has one server,
/// whatever else it may use.
fn stations(sweep: &Sweep, laws: &Laws) -> Vec<Station> {
    let demand = |resource: &Identity| {
        let same = laws.demands.iter().find(|demand| demand.identity.as_ref() == Some(resource));
        same.map(|demand| demand.demand_us)
    };
    let mut stations = Vec::new();
    for seen in sweep.star().map(|point| uses(sweep, point)).unwrap_or_default() {
        let servers = match &seen.resource {
            Identity::Processes(of) => sweep.servers_of(of),
            Identity::Disk { .. } | Identity::Link { .. } | Identity::IoLimit(_) => 1,
            Identity::Generator => seen.capacity.round().max(1.0) as u32,
            _ => continue,
        };
        let Some(demand_us) = demand(&seen.resource) else { continue };
        stations.push(Station::Queue { demand_us, servers });
    }
    stations
}
