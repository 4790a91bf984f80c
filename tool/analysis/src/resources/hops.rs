//! Requests outstanding on the connections to each tier.

use std::collections::{BTreeMap, BTreeSet};

use crate::counters::{Counters, Hop, Process, Role, ServerAddress};
use crate::run::HostName;

/// What tells one group of processes from all others.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKey {
    /// Their role in the measurement.
    pub role: Role,
    /// The kernel's short name of them.
    pub name: String,
    /// The host, or the container, that they run on.
    pub on: HostName,
}

impl GroupKey {
    fn of(process: &Process) -> Self {
        Self { role: process.role, name: process.name.clone(), on: None }
    }
}

/// Connections that carry one request each are replaced all the time: over a step, at least this share of those open at
/// a time are new. Then a connection that is open has a request.
const REPLACED: f64 = 0.5;

/// Requests outstanding at one tier, on average over the looks of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct HopUse {
    /// The processes that listen; `None` where they are on another host or may not be seen.
    pub server: Option<GroupKey>,
    /// Where the connections lead; the first address of several.
    pub address: ServerAddress,
    /// The groups of processes that call it, as far as they are watched.
    pub callers: Vec<GroupKey>,
    /// Connections, those that wait to be accepted among them.
    pub connections: f64,
    /// Connections that wait to be accepted.
    pub unaccepted: f64,
    /// Requests that the tier has not read.
    pub unread: f64,
    /// Requests that were read and not answered.
    pub held: f64,
    /// Connections of which it is not known whether a request is held.
    pub unclear: f64,
}

impl HopUse {
    /// The fewest requests that can have been outstanding.
    pub fn outstanding(&self) -> f64 {
        self.unread + self.held
    }

    /// The most requests that can have been outstanding.
    pub fn outstanding_at_most(&self) -> f64 {
        self.outstanding() + self.unclear
    }
}

/// Requests outstanding at every tier during a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hops {
    /// How often the connections were looked at.
    pub looks: usize,
    /// One entry per tier, or per address where the tier is not observed.
    pub tiers: Vec<HopUse>,
}

#[derive(Debug, Default)]
struct Sum {
    callers: BTreeSet<GroupKey>,
    address: Option<ServerAddress>,
    connections: u64,
    opened: u64,
    unaccepted: u64,
    unread: u64,
    held: u64,
    unclear: u64,
}

/// What the hops are gathered by.
type Key = (Option<GroupKey>, Option<ServerAddress>);

pub(super) fn hops(samples: &[&Counters]) -> Hops {
    let processes = samples.iter().flat_map(|sample| &sample.processes);
    let names: BTreeMap<u32, GroupKey> =
        processes.map(|process| (process.pid, GroupKey::of(process))).collect();
    let looks: Vec<&Vec<Hop>> = samples.iter().filter_map(|sample| sample.hops.as_ref()).collect();
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    for hop in looks.iter().copied().flatten() {
        let server = hop.server.and_then(|pid| names.get(&pid)).cloned();
        let address = server.is_none().then(|| hop.address.clone());
        let sum = sums.entry((server, address)).or_default();
        sum.callers.extend(hop.callers.iter().filter_map(|pid| names.get(pid)).cloned());
        sum.address.get_or_insert_with(|| hop.address.clone());
        sum.connections += hop.connections;
        sum.opened += hop.opened;
        sum.unaccepted += hop.unaccepted;
        sum.unread += hop.unread;
        sum.held += hop.held;
        sum.unclear += hop.unclear;
    }
    let count = looks.len().max(1) as f64;
    let tiers = sums.into_iter().filter_map(|((server, _), sum)| mean(server, sum, count));
    Hops { looks: looks.len(), tiers: tiers.collect() }
}

fn mean(server: Option<GroupKey>, sum: Sum, looks: f64) -> Option<HopUse> {
    let connections = sum.connections as f64 / looks;
    let one_request_each = sum.opened as f64 >= (REPLACED * connections).max(1.0);
    let unclear = sum.unclear as f64 / looks;
    let (held, unclear) = if one_request_each { (unclear, 0.0) } else { (0.0, unclear) };
    Some(HopUse {
        server,
        address: sum.address?,
        callers: sum.callers.into_iter().collect(),
        connections,
        unaccepted: sum.unaccepted as f64 / looks,
        unread: sum.unread as f64 / looks,
        held: sum.held as f64 / looks + held,
        unclear,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    fn process(pid: u32, name: &str, role: Role) -> Process {
        Process { pid, name: name.to_owned(), role, ..Process::default() }
    }

    fn hop(port: u16, server: Option<u32>, held: u64, unclear: u64, opened: u64) -> Hop {
        let address = ServerAddress::Tcp { address: ([127, 0, 0, 1], port).into() };
        let connections = held + unclear + 1;
        Hop {
            address,
            server,
            callers: vec![1],
            connections,
            opened,
            unaccepted: 0,
            unread: 1,
            held,
            unclear,
        }
    }

    fn look(hops: Option<Vec<Hop>>) -> Counters {
        let processes = vec![
            process(1, "nginx", Role::Server),
            process(2, "app", Role::Downstream),
            process(3, "app", Role::Downstream),
        ];
        Counters { processes, hops, ..Counters::default() }
    }

    #[test]
    fn addresses_of_one_tier_are_summed_and_looks_averaged() {
        let samples = [
            look(Some(vec![hop(81, Some(2), 4, 0, 0), hop(82, Some(3), 2, 0, 0), hop(83, None, 8, 0, 0)])),
            look(None),
            look(Some(vec![hop(81, Some(2), 2, 0, 0)])),
        ];
        let found = hops(&samples.iter().collect::<Vec<_>>());
        assert_eq!((found.looks, found.tiers.len()), (2, 2));
        let (remote, app) = (&found.tiers[0], &found.tiers[1]);
        assert_eq!(app.server, Some(GroupKey::of(&process(2, "app", Role::Downstream))));
        assert_eq!(app.callers, [GroupKey::of(&process(1, "nginx", Role::Server))]);
        assert_eq!((app.held, app.unread, app.outstanding()), (4.0, 1.5, 5.5));
        assert_eq!((remote.server.as_ref(), remote.held), (None, 4.0));
    }

    #[test]
    fn a_connection_for_one_request_has_one() {
        let kept = [look(Some(vec![hop(81, Some(2), 0, 6, 0)])), look(Some(vec![hop(81, Some(2), 0, 6, 1)]))];
        let tier = hops(&kept.iter().collect::<Vec<_>>()).tiers.remove(0);
        assert_eq!((tier.outstanding(), tier.outstanding_at_most()), (1.0, 7.0));
        let replaced =
            [look(Some(vec![hop(81, Some(2), 0, 6, 0)])), look(Some(vec![hop(81, Some(2), 0, 6, 5)]))];
        let tier = hops(&replaced.iter().collect::<Vec<_>>()).tiers.remove(0);
        assert_eq!((tier.outstanding(), tier.outstanding_at_most()), (7.0, 7.0));
    }
}
