//! What each kind of request costs of tiers and devices, where a load has several.

use std::collections::BTreeMap;

use crate::laws::by_kind::demands;
use crate::run::{Identity, RequestDemand, RequestShare, Step, Words};
use crate::search::saturation::Saturation;
use crate::statistics::normal_equations::NormalEquations;
use crate::thresholds::{LOADED, NEGLIGIBLE_US};
use crate::ticks::KINDS_APART;
use crate::verdict::Curve;

/// The demands of each kind, by its place in the scenario, on those resources of which any is known: over all steady steps
/// with enough throughput for what is done without requests not to show.
pub(super) fn of_kinds(curve: &Curve, saturation: &Saturation) -> Vec<Vec<RequestDemand>> {
    let least_per_s = LOADED * saturation.throughput_max_per_s;
    let loaded = curve.steps().iter().filter(|step| step.steady && step.throughput_per_s >= least_per_s);
    let mut sums: BTreeMap<Identity, NormalEquations> = BTreeMap::new();
    for (resource, own) in loaded.flat_map(|step| of_step(curve, step)) {
        sums.entry(resource).or_default().merge(own);
    }
    let mut kinds: Vec<Vec<RequestDemand>> = Vec::new();
    for (resource, sums) in &sums {
        let found = demands(sums);
        kinds.resize_with(kinds.len().max(found.len()), Vec::new);
        if found.iter().flatten().all(|demand| demand.demand_us < NEGLIGIBLE_US) {
            continue;
        }
        for (kind, found) in kinds.iter_mut().zip(found) {
            kind.extend(found.map(|demand| RequestDemand {
                kind: resource.kind(),
                holder: Words::default(),
                identity: Some(resource.clone()),
                demand_us: demand.demand_us,
                demand_ci_us: demand.interval_us(),
            }));
        }
    }
    kinds
}

/// The tiers, disks and links of a step with what they were used for by each kind.
fn of_step<'a>(
    curve: &'a Curve,
    step: &'a Step,
) -> impl Iterator<Item = (Identity, &'a NormalEquations)> + 'a {
    let usage = &step.usage;
    let tiers = usage.tiers().map(|group| (Identity::Processes(curve.processes(group)), &group.by_kind));
    let disks = usage
        .disks
        .iter()
        .map(|disk| (Identity::Disk { name: disk.name.clone(), on: disk.on.clone() }, &disk.by_kind));
    let links = usage
        .links
        .iter()
        .filter(|link| link.carries_load && curve.limit_is_real(link))
        .map(|link| (Identity::Link { name: link.name.clone(), on: link.on.clone() }, &link.by_kind));
    tiers.chain(disks).chain(links)
}

/// The kinds with what each costs. Those that were counted together with others have no cost of their own.
pub(super) fn with_demands(
    mut requests: Vec<RequestShare>,
    demands: Vec<Vec<RequestDemand>>,
) -> Vec<RequestShare> {
    let apart = usize::from(KINDS_APART);
    let alone = if requests.len() > apart + 1 { apart } else { requests.len() };
    for (request, demands) in requests.iter_mut().zip(demands).take(alone) {
        request.demands = demands;
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Role;
    use crate::resources::{Group, Usage};
    use crate::run::Processes;
    use crate::statistics::random::Random;
    use crate::verdict::Shape;

    /// Windows of two kinds, which cost so much of a server, with a known seed.
    fn sums(costs: [f64; 2], seed: u64) -> NormalEquations {
        let mut random = Random::seeded(seed);
        let mut sums = NormalEquations::default();
        for _ in 0..30 {
            let counts = [80.0 + random.below(40) as f64, 10.0 + random.below(20) as f64];
            sums.add(counts[0] * costs[0] + counts[1] * costs[1], &counts);
        }
        sums
    }

    fn step(users: u32, throughput_per_s: f64, costs: [f64; 2]) -> Step {
        let group = |role, name: &str, costs| Group {
            role,
            name: name.into(),
            pids: vec![7],
            by_kind: sums(costs, users.into()),
            ..Group::default()
        };
        let tiers = vec![
            group(Role::Generator, "nstar", [1.0, 1.0]),
            group(Role::Server, "web", costs),
            group(Role::Downstream, "db", [0.0, 2.0 * costs[1]]),
        ];
        let usage = Usage { groups: tiers, elapsed_us: 1e6, ..Usage::default() };
        Step { users, throughput_per_s, steady: true, usage, ..Step::default() }
    }

    fn found(steps: Vec<Step>) -> Vec<Vec<RequestDemand>> {
        let curve = Curve::new(steps, Shape::default(), None);
        of_kinds(&curve, &Saturation { throughput_max_per_s: 1_000.0, ..Saturation::default() })
    }

    fn web(name: &str, role: Role) -> Identity {
        Identity::Processes(Processes { role, name: name.into(), pid: Some(7), processes: 1, on: None })
    }

    #[test]
    fn kinds_cost_what_loaded_steps_show() {
        let kinds = found(vec![
            step(1, 200.0, [500.0, 500.0]),
            step(2, 600.0, [40.0, 300.0]),
            step(4, 1_000.0, [40.0, 300.0]),
            Step { steady: false, ..step(8, 1_000.0, [900.0, 900.0]) },
        ]);
        let of = |kind: usize, identity: &Identity| {
            let demands = &kinds[kind];
            let own = demands.iter().find(|demand| demand.identity.as_ref() == Some(identity));
            own.expect("its demand").demand_us.round()
        };
        let (server, behind) = (web("web", Role::Server), web("db", Role::Downstream));
        assert_eq!([of(0, &server), of(1, &server)], [40.0, 300.0]);
        assert_eq!([of(0, &behind), of(1, &behind)], [0.0, 600.0]);
        assert!(kinds.iter().all(|demands| demands.len() == 2), "not of the generator: {kinds:?}");
        assert_eq!(found(vec![step(1, 200.0, [40.0, 300.0])]), Vec::<Vec<RequestDemand>>::new());
    }

    #[test]
    fn kinds_that_were_counted_together_have_no_cost_of_their_own() {
        let demands = |kinds: usize| {
            let one = RequestDemand {
                kind: crate::run::ResourceKind::Cpu,
                holder: Words::default(),
                identity: None,
                demand_us: 1.0,
                demand_ci_us: [0.0, 2.0],
            };
            let requests = vec![RequestShare::default(); kinds];
            let with = with_demands(requests, vec![vec![one]; usize::from(KINDS_APART) + 1]);
            with.iter().filter(|request| !request.demands.is_empty()).count()
        };
        assert_eq!([2, 33, 34, 200].map(demands), [2, 33, 32, 32]);
    }
}
