//! Who talks to whom: a drawing, grouped by host, and its table.

mod drawing;
mod layout;

use analysis::run::{Edge, HostName, Identity, Node, NodeKind, Run, Tier, Topology};
use serde::Serialize;

use self::drawing::Drawing;
use self::layout::{Arranged, DOWN, RIGHT};
use super::table::{Cell, Column, Row, Table};
use crate::number;
use crate::sentences::holders;
use crate::words;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    reading: String,
    drawings: Vec<Drawing>,
    table: Table,
}

/// The section; `None` where the file has no topology.
pub(super) fn section(run: &Run) -> Option<Section> {
    let topology = run.topology.as_ref().filter(|topology| !topology.nodes.is_empty())?;
    let graph = graph(run, topology);
    let hidden = Arranged::new(&graph, RIGHT).hidden;
    let more = if hidden == 0 { "" } else { " The table has those for which there is no room." };
    let reading = format!(
        "From the load to the tiers behind the server, with {}. A double border marks the bottleneck; a dashed one, what \
         nobody observes.{more}",
        words::users(topology.users)
    );
    let drawings = [RIGHT, DOWN].map(|paper| Arranged::new(&graph, paper).draw());
    Some(Section { reading, drawings: drawings.into(), table: table(topology) })
}

/// What is drawn.
#[derive(Debug)]
struct Graph {
    description: String,
    nodes: Vec<Shown>,
    hosts: Vec<Host>,
    /// From, and to.
    arrows: Vec<(usize, usize)>,
}

/// A node in words.
#[derive(Debug)]
struct Shown {
    name: String,
    lines: Vec<String>,
    class: &'static str,
    is_bottleneck: bool,
    /// The place of its host.
    host: usize,
}

/// A host, or what is on no known one.
#[derive(Debug, PartialEq)]
struct Host {
    name: Option<HostName>,
    label: String,
    /// What of the host itself is the bottleneck; empty if nothing.
    mark: String,
}

fn graph(run: &Run, topology: &Topology) -> Graph {
    let several = topology.nodes.iter().any(|node| host(topology, node) != Some(None));
    let mut hosts: Vec<Host> = Vec::new();
    let mut nodes = Vec::new();
    for (place, node) in topology.nodes.iter().enumerate() {
        let on = host(topology, node);
        let found = hosts.iter().position(|host| host.name == on).unwrap_or_else(|| {
            hosts.push(Host { label: host_label(&on, several), mark: mark(run, &on), name: on });
            hosts.len() - 1
        });
        let edge = topology.edges.iter().find(|edge| edge.to == place);
        nodes.push(Shown {
            name: name(node),
            lines: lines(node, edge),
            class: class(node),
            is_bottleneck: node.is_bottleneck,
            host: found,
        });
    }
    let arrows = topology.edges.iter().flat_map(|edge| edge.from.iter().map(|from| (*from, edge.to)));
    let exists = |place: usize| place < topology.nodes.len();
    let arrows = arrows.filter(|(from, to)| exists(*from) && exists(*to)).collect();
    Graph { description: description(topology), nodes, hosts, arrows }
}

/// Where a node is: on a host, or `None` where that is not known. What is reached by a path or by loopback is where its
/// callers are.
fn host(topology: &Topology, node: &Node) -> Option<HostName> {
    match &node.is {
        NodeKind::Generator { name, .. } => Some(name.clone()),
        NodeKind::Tier(tier) => Some(tier.processes.on.clone()),
        NodeKind::Unobserved { address, .. } if address.is_within_a_host() => {
            let edge = topology.edges.iter().find(|edge| topology.nodes.get(edge.to) == Some(node))?;
            match &topology.nodes.get(*edge.from.first()?)?.is {
                NodeKind::Tier(tier) => Some(tier.processes.on.clone()),
                _ => None,
            }
        }
        NodeKind::Unobserved { .. } => None,
    }
}

fn host_label(host: &Option<HostName>, several: bool) -> String {
    match host {
        None => "elsewhere".to_owned(),
        Some(Some(name)) => name.clone(),
        Some(None) if several => "this host".to_owned(),
        Some(None) => String::new(),
    }
}

/// What of a host itself is the bottleneck, not something of one of its tiers.
fn mark(run: &Run, host: &Option<HostName>) -> String {
    let bottleneck = &run.verdict.bottleneck;
    let (Some(host), Some(identity)) = (host, &bottleneck.identity) else { return String::new() };
    let on = match identity {
        Identity::Disk { on, .. }
        | Identity::Link { on, .. }
        | Identity::Processor { on, .. }
        | Identity::Host { on }
        | Identity::OtherProcesses { on } => on,
        _ => return String::new(),
    };
    let here = on == host && run.verdict.users_at_saturation.is_some();
    if here { format!("bottleneck: {}", holders::name(identity)) } else { String::new() }
}

fn class(node: &Node) -> &'static str {
    match &node.is {
        NodeKind::Generator { .. } => "load",
        NodeKind::Tier(_) => "tier",
        NodeKind::Unobserved { .. } => "unobserved",
    }
}

fn name(node: &Node) -> String {
    match &node.is {
        NodeKind::Generator { users, .. } => words::users(*users),
        NodeKind::Tier(tier) => tier.processes.name.clone(),
        NodeKind::Unobserved { address, .. } => holders::server_address(address).into_owned(),
    }
}

/// That nobody observes what an address leads to, or that it could not be read whether it leads elsewhere.
fn not_observed(translation_unread: bool) -> Vec<String> {
    let unread = translation_unread.then_some("address translation not read");
    ["not observed"].into_iter().chain(unread).map(str::to_owned).collect()
}

/// What is told of a node below its name.
fn lines(node: &Node, edge: Option<&Edge>) -> Vec<String> {
    let mut lines = match &node.is {
        NodeKind::Generator { .. } => vec!["load generator".to_owned()],
        NodeKind::Tier(tier) => tier_lines(tier),
        NodeKind::Unobserved { translation_unread, .. } => not_observed(*translation_unread),
    };
    if let Some(edge) = edge {
        let tier = matches!(node.is, NodeKind::Tier(_));
        lines.extend(
            edge.address.as_ref().filter(|_| tier).map(|at| holders::server_address(at).into_owned()),
        );
        lines.extend(edge.connections.map(|number| format!("{} connections", number::quantity(number))));
        lines.extend(edge.outstanding.map(|requests| format!("{} requests there", outstanding(requests))));
    }
    lines
}

fn tier_lines(tier: &Tier) -> Vec<String> {
    let cost = tier.cpu_us_per_request.map(|us| format!("CPU {} a request", number::time(us)));
    let busy = format!("busy {}", number::percent(tier.utilization));
    [Some(runs_as(tier)), cost, Some(busy)].into_iter().flatten().collect()
}

/// The container or service of a tier, and otherwise its processes.
fn runs_as(tier: &Tier) -> String {
    holders::runs_in(&tier.containers, &tier.units).unwrap_or_else(|| match tier.processes.pid {
        Some(pid) => format!("pid {pid}"),
        None => format!("{} processes", number::count(tier.processes.processes.into())),
    })
}

/// `3`; `3–5` where it is not known of all connections whether there is a request on them.
fn outstanding([least, most]: [f64; 2]) -> String {
    let (least, most) = (number::quantity(least), number::quantity(most));
    if least == most { least } else { format!("{least}–{most}") }
}

/// The graph in sentences, for people who do not see it.
fn description(topology: &Topology) -> String {
    let named = |place: &usize| {
        topology.nodes.get(*place).map_or_else(String::new, |node| match &node.is {
            NodeKind::Generator { .. } => "the load".to_owned(),
            _ => name(node),
        })
    };
    let said = topology.edges.iter().map(|edge| {
        let from: Vec<String> = edge.from.iter().map(named).collect();
        format!("{} calls {}.", words::capitalised(&from.join(" and ")), named(&edge.to))
    });
    let marked = topology.nodes.iter().filter(|node| node.is_bottleneck);
    let marked = marked.map(|node| format!("The bottleneck is {}.", name(node)));
    said.chain(marked).collect::<Vec<_>>().join(" ")
}

fn table(topology: &Topology) -> Table {
    let rows = topology.nodes.iter().enumerate().map(|(place, node)| Row {
        marked: node.is_bottleneck,
        cells: cells(topology, node, topology.edges.iter().find(|edge| edge.to == place)),
    });
    Table {
        id: "topology-table".into(),
        caption: "Who talks to whom, and what a request costs each".into(),
        columns: [
            vec![
                Column::words("Name"),
                Column::words("Where"),
                Column::words("Called by"),
                Column::words("At"),
            ],
            ["Connections", "Requests there", "Busy", "CPU per request"].map(Column::numeric).into(),
        ]
        .into_iter()
        .flatten()
        .collect(),
        rows: rows.collect(),
    }
}

fn cells(topology: &Topology, node: &Node, edge: Option<&Edge>) -> Vec<Cell> {
    let callers = edge.map(|edge| {
        let names = edge.from.iter().filter_map(|place| topology.nodes.get(*place)).map(name);
        names.collect::<Vec<_>>().join(", ")
    });
    let at = edge.and_then(|edge| edge.address.as_ref()).map(|at| holders::server_address(at).into_owned());
    let or_missing = |text: Option<String>| text.map_or_else(Cell::missing, Cell::words);
    let tier = match &node.is {
        NodeKind::Tier(tier) => Some(tier),
        _ => None,
    };
    let figure = |name, value: Option<f64>, text: fn(f64) -> String| {
        value.map_or_else(Cell::missing, |value| Cell::figure(name, value, text(value)))
    };
    let requests = edge.and_then(|edge| edge.outstanding);
    vec![
        Cell::words(name(node)),
        Cell::words(place(node)),
        or_missing(callers),
        or_missing(at),
        figure("connections", edge.and_then(|edge| edge.connections), number::quantity),
        requests
            .map_or_else(Cell::missing, |range| Cell::figure("outstanding", range[0], outstanding(range))),
        figure("utilization", tier.map(|tier| tier.utilization), number::percent),
        figure("cpu_us_per_request", tier.and_then(|tier| tier.cpu_us_per_request), number::time),
    ]
}

/// Host, container or service, and processes.
fn place(node: &Node) -> String {
    match &node.is {
        NodeKind::Generator { name, .. } => {
            ["load generator"].into_iter().chain(name.as_deref()).collect::<Vec<_>>().join(" on ")
        }
        NodeKind::Unobserved { translation_unread, .. } => not_observed(*translation_unread).join(", "),
        NodeKind::Tier(tier) => {
            let runs_as = runs_as(tier);
            match &tier.processes.on {
                Some(host) => format!("{runs_as} on {host}"),
                None => runs_as,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_observes_says_whether_translation_was_read() {
        assert_eq!(not_observed(false), ["not observed"]);
        assert_eq!(not_observed(true), ["not observed", "address translation not read"]);
    }
}
