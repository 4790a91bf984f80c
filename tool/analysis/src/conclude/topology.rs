//! Who talks to whom, at the step that the verdict is about.

use super::Context;
use crate::counters::{Role, ServerAddress};
use crate::resources::{Group, GroupKey, HopUse};
use crate::run::{
    Edge, Identity, Laws, Node, NodeKind, ResourceKind, ServerUnwatched, Step, Tier, TierLimit, TierMemory,
    Topology, Verdict,
};
use crate::verdict::{Curve, cpu_demand_us};

/// Processes that use fewer cores and that nobody is seen to call are left out.
const IDLE_CORES: f64 = 0.005;

/// The topology; `None` without steps.
pub(super) fn topology(curve: &Curve, laws: &Laws, verdict: &Verdict, context: &Context) -> Option<Topology> {
    let star = curve.star()?;
    // Where connections are many, a step may have passed without a look at them.
    let looked = |step: &&Step| step.usage.hops.looks > 0;
    let hops = Some(star).filter(looked).or_else(|| curve.steps().iter().rev().find(looked));
    let hops = hops.map_or(&[][..], |step| &step.usage.hops.tiers);
    let mut graph = Graph { nodes: Vec::new(), keys: Vec::new(), edges: Vec::new() };
    graph.add_generators(star);
    let called = |group: &&Group| group.cores > IDLE_CORES || hops.iter().any(|hop| is_part(hop, group));
    for role in [Role::Server, Role::Downstream] {
        for group in star.usage.tiers().filter(|group| group.role == role).filter(called) {
            graph.add_tier(tier(group, curve, star, laws), group.key());
        }
    }
    let has_figures = star.usage.hops.looks > 0;
    hops.iter().for_each(|hop| graph.add_edge(hop, has_figures));
    graph.reach_servers();
    if let Some(ServerUnwatched::NotLocal { address }) = context.unwatched {
        graph.add_unobserved(ServerAddress::Tcp { address });
    }
    graph.mark(verdict, star);
    Some(Topology { users: star.users, nodes: graph.nodes, edges: graph.edges })
}

fn is_part(hop: &HopUse, group: &Group) -> bool {
    let key = group.key();
    hop.server.as_ref() == Some(&key) || hop.callers.contains(&key)
}

fn tier(group: &Group, curve: &Curve, star: &Step, laws: &Laws) -> Tier {
    let processes = curve.processes(group);
    let per_request = |per_s: f64| (star.throughput_per_s > 0.0).then(|| per_s / star.throughput_per_s);
    let held = |identity: &Option<Identity>| {
        identity.as_ref().and_then(Identity::processes).is_some_and(|of| *of == processes)
    };
    let held = laws.demands.iter().filter(|demand| held(&demand.identity));
    let other = held.filter(|demand| demand.kind != ResourceKind::Cpu);
    Tier {
        containers: group.containers.clone(),
        units: group.units.clone(),
        // What the verdict says of it, which the regression over all steps may differ from.
        cpu_us_per_request: cpu_demand_us(curve, &processes).or_else(|| per_request(group.cores * 1e6)),
        cores: group.cores,
        utilization: group.busy(),
        disk_bytes_per_request: group.disk_bytes_per_s.and_then(per_request),
        memory: memory(curve, group),
        demands: other.map(|demand| TierLimit { of: demand.kind, demand_us: demand.demand_us }).collect(),
        processes,
    }
}

/// What the cgroups of processes allow them of memory, by all steps; `None` where they were not looked at for long enough, or
/// could not be read.
fn memory(curve: &Curve, group: &Group) -> Option<TierMemory> {
    let all = curve.steps().iter().flat_map(|step| &step.usage.memory_limits);
    let limits = all.filter(|limit| limit.limits(group)).map(|limit| limit.limit_bytes);
    match limits.min_by(f64::total_cmp) {
        Some(bytes) => Some(TierMemory::Limited { bytes: bytes as u64 }),
        None => {
            let is_known = curve.steps().iter().any(|step| step.usage.memory_known_on.contains(&group.on));
            is_known.then_some(TierMemory::Unlimited)
        }
    }
}

struct Graph {
    nodes: Vec<Node>,
    /// What tells the tiers among the nodes apart.
    keys: Vec<Option<GroupKey>>,
    edges: Vec<Edge>,
}

impl Graph {
    fn add(&mut self, is: NodeKind, key: Option<GroupKey>) -> usize {
        self.nodes.push(Node { is, is_bottleneck: false });
        self.keys.push(key);
        self.nodes.len() - 1
    }

    fn add_generators(&mut self, star: &Step) {
        for one in &star.generators {
            self.add(NodeKind::Generator { name: Some(one.name.clone()), users: one.users }, None);
        }
        if star.generators.is_empty() {
            self.add(NodeKind::Generator { name: None, users: star.users }, None);
        }
    }

    fn add_tier(&mut self, tier: Tier, key: GroupKey) {
        self.add(NodeKind::Tier(Box::new(tier)), Some(key));
    }

    /// Adds the connections that lead to one tier or address.
    fn add_edge(&mut self, hop: &HopUse, has_figures: bool) {
        let from: Vec<usize> = match hop.callers.is_empty() {
            true => self.generators().collect(),
            false => hop.callers.iter().filter_map(|caller| self.place(caller)).collect(),
        };
        let to = match &hop.server {
            Some(server) => self.place(server),
            None => Some(self.add_called(hop.address.clone(), hop.translation_unread)),
        };
        // A tier may call itself, which says nothing of how it stands to others.
        let Some(to) = to else { return };
        let from: Vec<usize> = from.into_iter().filter(|from| *from != to).collect();
        if from.is_empty() {
            return;
        }
        self.edges.push(Edge {
            from,
            to,
            address: Some(hop.address.clone()),
            connections: has_figures.then_some(hop.connections),
            outstanding: has_figures.then(|| [hop.outstanding(), hop.outstanding_at_most()]),
        });
    }

    /// Adds an address that nobody observes.
    fn add_called(&mut self, address: ServerAddress, translation_unread: bool) -> usize {
        self.add(NodeKind::Unobserved { address, translation_unread }, None)
    }

    /// Adds what the load calls, where nobody observes it.
    fn add_unobserved(&mut self, address: ServerAddress) {
        let to = self.add_called(address.clone(), false);
        let from = self.generators().collect();
        self.edges.push(Edge { from, to, address: Some(address), connections: None, outstanding: None });
    }

    /// Has the load reach every process that serves: a socket is found with one of those that share it.
    fn reach_servers(&mut self) {
        let reached = |to: usize| self.edges.iter().any(|edge| edge.to == to);
        let serves = |key: &Option<GroupKey>| key.as_ref().is_some_and(|key| key.role == Role::Server);
        let servers = self.keys.iter().enumerate().filter(|(_, key)| serves(key)).map(|(place, _)| place);
        let left: Vec<usize> = servers.filter(|place| !reached(*place)).collect();
        let from: Vec<usize> = self.generators().collect();
        self.edges.extend(left.into_iter().map(|to| Edge {
            from: from.clone(),
            to,
            address: None,
            connections: None,
            outstanding: None,
        }));
    }

    fn generators(&self) -> impl Iterator<Item = usize> + use<'_> {
        let is = |node: &Node| matches!(node.is, NodeKind::Generator { .. });
        self.nodes.iter().enumerate().filter(move |(_, node)| is(node)).map(|(place, _)| place)
    }

    fn place(&self, of: &GroupKey) -> Option<usize> {
        self.keys.iter().position(|key| key.as_ref() == Some(of))
    }

    /// Marks where the bottleneck is, as far as it is at one of the nodes.
    fn mark(&mut self, verdict: &Verdict, star: &Step) {
        let bottleneck = &verdict.bottleneck;
        let Some(identity) = &bottleneck.identity else { return };
        if matches!(bottleneck.kind, ResourceKind::None | ResourceKind::Unknown) {
            return;
        }
        let busiest = star.busiest_generator().map(|one| &one.name);
        let has_port = |to: usize, port: u16| {
            let here = |address: &ServerAddress| matches!(address, ServerAddress::Tcp { address } if address.port() == port);
            self.edges.iter().any(|edge| edge.to == to && edge.address.as_ref().is_some_and(here))
        };
        let is_here = |place: usize, node: &Node| match (&node.is, identity) {
            (NodeKind::Generator { name, .. }, Identity::Generator) => name.as_ref() == busiest,
            (NodeKind::Unobserved { address, .. }, Identity::Upstream { address: at, .. }) => address == at,
            (NodeKind::Tier(tier), Identity::ListenQueue { port }) => {
                tier.processes.role == Role::Server && has_port(place, *port)
            }
            (NodeKind::Tier(tier), identity) => identity.processes() == Some(&tier.processes),
            _ => false,
        };
        let marks: Vec<bool> =
            self.nodes.iter().enumerate().map(|(place, node)| is_here(place, node)).collect();
        self.nodes.iter_mut().zip(marks).for_each(|(node, is)| node.is_bottleneck = is);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{Hops, MemoryUse, Usage};
    use crate::run::{Bottleneck, Demand, GeneratorShare, HostName, Processes};
    use crate::verdict::Shape;

    fn group(role: Role, name: &str, cores: f64) -> Group {
        Group { role, name: name.into(), cores, allowed_cores: 2.0, pids: vec![7], ..Group::default() }
    }

    fn hop(server: Option<&Group>, port: u16, callers: &[&Group]) -> HopUse {
        HopUse {
            server: server.map(Group::key),
            address: ServerAddress::Tcp { address: ([10, 0, 0, 7], port).into() },
            addresses: [].into(),
            clients: [].into(),
            has_more_clients: false,
            callers: callers.iter().map(|group| group.key()).collect(),
            connections: 8.0,
            replaced: 0.0,
            unaccepted: 0.0,
            unread: 1.0,
            held: 2.0,
            unclear: 0.5,
            translation_unread: server.is_none(),
        }
    }

    fn found(step: Step, bottleneck: Bottleneck, context: &Context) -> Topology {
        let curve = Curve::new(vec![step], Shape::default(), None);
        let verdict = Verdict { bottleneck, ..Verdict::default() };
        topology(&curve, &Laws::default(), &verdict, context).unwrap()
    }

    #[test]
    fn tiers_are_joined_by_their_connections() {
        let [web, worker, app, idle] = [
            group(Role::Server, "web", 0.5),
            group(Role::Server, "worker", 0.2),
            group(Role::Downstream, "app", 1.0),
            group(Role::Downstream, "cron", 0.0),
        ];
        let tiers = vec![
            hop(Some(&web), 80, &[]),
            hop(Some(&app), 81, &[&worker, &web]),
            hop(None, 5432, &[&app]),
            hop(Some(&app), 81, &[&app]),
        ];
        let usage = Usage {
            elapsed_us: 1e6,
            groups: vec![web, worker, app, idle],
            hops: Hops { looks: 3, tiers, left_out: None },
            ..Usage::default()
        };
        let step = Step { users: 4, throughput_per_s: 100.0, usage, ..Step::default() };
        let of =
            Processes { role: Role::Downstream, name: "app".into(), pid: Some(7), processes: 1, on: None };
        let bottleneck = Bottleneck {
            kind: ResourceKind::SingleThread,
            identity: Some(Identity::Thread(of)),
            ..Bottleneck::default()
        };
        let topology = found(step, bottleneck, &Context::default());
        let name = |node: &Node| match &node.is {
            NodeKind::Generator { users, .. } => format!("{users} users"),
            NodeKind::Tier(tier) => tier.processes.name.clone(),
            NodeKind::Unobserved { translation_unread, .. } => format!("unobserved {translation_unread}"),
        };
        let names: Vec<String> = topology.nodes.iter().map(name).collect();
        assert_eq!(names, ["4 users", "web", "worker", "app", "unobserved true"], "what is idle is left out");
        let edges: Vec<_> = topology.edges.iter().map(|edge| (edge.from.clone(), edge.to)).collect();
        assert_eq!(edges, [(vec![0], 1), (vec![2, 1], 3), (vec![3], 4), (vec![0], 2)]);
        assert_eq!(
            (topology.edges[1].connections, topology.edges[1].outstanding),
            (Some(8.0), Some([3.0, 3.5]))
        );
        assert_eq!(topology.edges[3].connections, None, "nobody saw them");
        let marked = topology.nodes.iter().filter(|node| node.is_bottleneck).map(name);
        assert_eq!(marked.collect::<Vec<_>>(), ["app"]);
        let NodeKind::Tier(app) = &topology.nodes[3].is else { panic!("{:?}", topology.nodes[3]) };
        assert_eq!((app.cpu_us_per_request, app.utilization), (Some(10_000.0), 0.5));
    }

    #[test]
    fn what_a_request_costs_a_tier_is_what_the_verdict_says_and_not_the_regression() {
        let app = group(Role::Server, "app", 1.0);
        let usage = Usage { elapsed_us: 1e6, groups: vec![app.clone()], ..Usage::default() };
        let step = Step { users: 4, throughput_per_s: 100.0, usage, ..Step::default() };
        let curve = Curve::new(vec![step], Shape::default(), None);
        let processes = curve.processes(&app);
        let regressed = Demand {
            kind: ResourceKind::Cpu,
            holder: "app".to_owned().into(),
            identity: Some(Identity::Processes(processes.clone())),
            demand_us: 13_000.0,
            demand_ci_us: None,
            throughput_limit_per_s: 150.0,
        };
        let laws = Laws { demands: vec![regressed], ..Laws::default() };
        let found = topology(&curve, &laws, &Verdict::default(), &Context::default()).unwrap();
        let costs: Vec<Option<f64>> = found
            .nodes
            .iter()
            .filter_map(|node| match &node.is {
                NodeKind::Tier(tier) => Some(tier.cpu_us_per_request),
                _ => None,
            })
            .collect();
        assert_eq!(costs, [Some(10_000.0)]);
        assert_eq!(costs, [cpu_demand_us(&curve, &processes)]);
    }

    #[test]
    fn the_memory_of_a_tier_is_limited_unlimited_or_not_known() {
        let memory = |known_on: &[HostName], limits: &[(u32, f64)]| {
            let limit = |(pid, limit_bytes): &(u32, f64)| MemoryUse {
                pids: vec![*pid],
                limit_bytes: *limit_bytes,
                ..MemoryUse::default()
            };
            let usage = Usage {
                elapsed_us: 6e6,
                groups: vec![group(Role::Server, "web", 0.5)],
                memory_limits: limits.iter().map(limit).collect(),
                memory_known_on: known_on.to_vec(),
                ..Usage::default()
            };
            let step = Step { users: 4, usage, ..Step::default() };
            let topology = found(step, Bottleneck::default(), &Context::default());
            topology.nodes.into_iter().find_map(|node| match node.is {
                NodeKind::Tier(tier) => tier.memory,
                _ => None,
            })
        };
        let limited = |bytes| Some(TierMemory::Limited { bytes });
        assert_eq!(memory(&[None], &[(7, 2e9), (7, 1e9), (8, 5e8)]), limited(1_000_000_000));
        assert_eq!(memory(&[None], &[(8, 5e8)]), Some(TierMemory::Unlimited));
        assert_eq!(memory(&[], &[]), None, "there was no time for two looks, or nothing could be read");
        assert_eq!(memory(&[Some("db".into())], &[]), None, "that was another host");
    }

    #[test]
    fn the_load_of_several_generators_goes_to_an_address_that_nobody_observes() {
        let one = |name: &str, users, useful_work| GeneratorShare {
            name: name.into(),
            users,
            useful_work,
            ..GeneratorShare::default()
        };
        let step = Step { users: 8, generators: vec![one("a", 6, 0.5), one("b", 2, 0.9)], ..Step::default() };
        let address = ([192, 0, 2, 7], 443).into();
        let context =
            Context { unwatched: Some(ServerUnwatched::NotLocal { address }), ..Context::default() };
        let bottleneck = Bottleneck {
            kind: ResourceKind::Generator,
            identity: Some(Identity::Generator),
            ..Bottleneck::default()
        };
        let topology = found(step, bottleneck, &context);
        let marks: Vec<bool> = topology.nodes.iter().map(|node| node.is_bottleneck).collect();
        assert_eq!(marks, [false, true, false], "the busiest generator");
        let address = ServerAddress::Tcp { address };
        assert_eq!(topology.nodes[2].is, NodeKind::Unobserved { address, translation_unread: false });
        assert_eq!((topology.edges[0].from.as_slice(), topology.edges[0].to), (&[0, 1][..], 2));
    }
}
