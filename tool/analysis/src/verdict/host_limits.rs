//! Limits of a host that make requests fail, whatever the server could do: they explain failures, and decide nothing.

use crate::run::{KernelEvidence as Seen, Step};

/// This share of a table of connections, or of local ports, is all of it: entries come and go between two samples.
const ALL: f64 = 0.95;

/// What was reached during a step.
pub(crate) fn reached(step: &Step) -> Vec<Seen> {
    let killed = step.usage.memory_limits.iter().filter(|limit| limit.killed > 0);
    let killed = killed.map(|limit| Seen::KilledForMemory {
        cgroup: limit.cgroup.clone(),
        processes: limit.killed,
        users: step.users,
    });
    [tracking_table(step), ports(step)].into_iter().flatten().chain(killed).collect()
}

fn tracking_table(step: &Step) -> Option<Seen> {
    let table = step.usage.tracked?;
    let full = table.connections as f64 >= ALL * table.most as f64 && table.refused_per_s > 0.0;
    full.then_some(Seen::TrackingTableFull {
        connections: table.connections,
        most: table.most,
        refused_per_s: table.refused_per_s,
        users: step.users,
    })
}

fn ports(step: &Step) -> Option<Seen> {
    let seen = step.usage.ports?;
    (seen.used as f64 >= ALL * seen.ports as f64).then_some(Seen::PortsUsedUp {
        address: seen.address,
        is_target: seen.is_target,
        used: seen.used,
        ports: seen.ports,
        users: step.users,
    })
}
