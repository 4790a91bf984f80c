//! Requests outstanding on the connections to each tier.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::counters::{CLIENTS_MAX, Counters, Hop, Process, Role, ServerAddress};
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
    pub(super) fn of(process: &Process) -> Self {
        Self { role: process.role, name: process.name.clone(), on: None }
    }
}

/// Connections that carry one request each are replaced all the time: over a measurement, at least this share of those open at
/// a time are new. Then a connection that is open has a request.
const REPLACED: f64 = 0.5;

/// Requests outstanding at one tier, on average over the looks of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct HopUse {
    /// The processes that listen; `None` where they are on another host or may not be seen.
    pub server: Option<GroupKey>,
    /// Where the connections lead; the first address of several.
    pub address: ServerAddress,
    /// All of them.
    pub addresses: BTreeSet<ServerAddress>,
    /// Other ends of the connections, as far as they are told.
    pub clients: BTreeSet<SocketAddr>,
    /// Whether there were more of them than are told.
    pub has_more_clients: bool,
    /// The groups of processes that call it, as far as they are watched.
    pub callers: Vec<GroupKey>,
    /// Connections, those that wait to be accepted among them.
    pub connections: f64,
    /// The share of them that the look before did not see, from 0 to 1: none where they are kept, all where each carries one
    /// request.
    pub replaced: f64,
    /// Connections that wait to be accepted.
    pub unaccepted: f64,
    /// Requests that the tier has not read.
    pub unread: f64,
    /// Requests that were read and not answered.
    pub held: f64,
    /// Connections of which it is not known whether a request is held.
    pub unclear: f64,
    /// Whether address translation may lead on from here to a server that is not known, and connection tracking, which tells
    /// to which, may not be read where it is called.
    pub translation_unread: bool,
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

impl HopUse {
    /// Whether these are the connections that somebody on another host was seen to make: they lead to the same address, and
    /// have the same other ends as far as both tell. An address alone may be had by several hosts, as those of container
    /// networks are.
    fn serves(&self, called: &Self) -> bool {
        let Some(server) = &self.server else { return false };
        let elsewhere = called.callers.iter().all(|caller| caller.on != server.on);
        let same_address = !called.address.is_within_a_host() && self.addresses.contains(&called.address);
        let same_ends = self.has_more_clients || !self.clients.is_disjoint(&called.clients);
        elsewhere && same_address && same_ends
    }
}

/// Requests outstanding at every tier during a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hops {
    /// How often the connections were looked at.
    pub looks: usize,
    /// One entry per tier, or per address where the tier is not observed.
    pub tiers: Vec<HopUse>,
    /// The look of all that left out most; `None` where none left out any.
    pub left_out: Option<LeftOut>,
}

/// Addresses that one look left out, because there were more than it may tell of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Where it was made.
    pub on: HostName,
    /// How many it left out: those with fewest connections.
    pub addresses: u64,
    /// How many with connections there were in all.
    pub of: u64,
}

impl LeftOut {
    fn of(sample: &Counters) -> Option<Self> {
        let told = sample.hops.as_ref()?.iter().filter(|hop| hop.connections > 0).count() as u64;
        let addresses = sample.hops_left_out;
        (addresses > 0).then(|| Self { on: None, addresses, of: told.saturating_add(addresses) })
    }

    /// Whichever left out more, the first of equal ones.
    pub(super) fn worse(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let number = |seen: &Option<Self>| seen.as_ref().map_or(0, |seen| seen.addresses);
        if number(&other) > number(&one) { other } else { one }
    }
}

impl Hops {
    /// The same with connections that one observer saw made and another saw served as one: what is known of who calls comes
    /// from the first, and all else from the second.
    #[must_use]
    pub fn joined(mut self) -> Self {
        let all = std::mem::take(&mut self.tiers).into_iter();
        let (called, mut tiers): (Vec<HopUse>, Vec<HopUse>) =
            all.partition(|hop| hop.server.is_none() && !hop.callers.is_empty());
        for hop in called {
            match tiers.iter_mut().find(|tier| tier.serves(&hop)) {
                Some(tier) => {
                    tier.callers.extend(hop.callers);
                    tier.callers.sort();
                    tier.callers.dedup();
                }
                None => tiers.push(hop),
            }
        }
        Self { tiers, ..self }
    }
}

#[derive(Debug, Default)]
struct Sum {
    callers: BTreeSet<GroupKey>,
    address: Option<ServerAddress>,
    addresses: BTreeSet<ServerAddress>,
    clients: BTreeSet<SocketAddr>,
    has_more_clients: bool,
    connections: u64,
    opened: u64,
    unaccepted: u64,
    unread: u64,
    held: u64,
    unclear: u64,
    translation_unread: bool,
}

impl Sum {
    /// Adds what one look counted. Counts of others may be anything.
    fn count(&mut self, hop: &Hop) {
        let counts = [
            (&mut self.connections, hop.connections),
            (&mut self.opened, hop.opened),
            (&mut self.unaccepted, hop.unaccepted),
            (&mut self.unread, hop.unread),
            (&mut self.held, hop.held),
            (&mut self.unclear, hop.unclear),
        ];
        for (sum, count) in counts {
            *sum = sum.saturating_add(count);
        }
    }
}

/// What the hops are gathered by.
type Key = (Option<GroupKey>, Option<ServerAddress>);

pub(super) fn hops(samples: &[&Counters]) -> Hops {
    of_windows(&[samples.to_vec()])
}

/// Requests outstanding during several windows of one number of users. Each look counts as much as any other.
pub(super) fn of_windows(windows: &[Vec<&Counters>]) -> Hops {
    let samples = || windows.iter().flatten().copied();
    let processes = samples().flat_map(|sample| &sample.processes);
    let names: BTreeMap<u32, GroupKey> =
        processes.map(|process| (process.pid, GroupKey::of(process))).collect();
    let looks: Vec<&Vec<Hop>> = samples().filter_map(|sample| sample.hops.as_ref()).collect();
    let owners = owners(looks.iter().copied().flatten(), &names);
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    for hop in looks.iter().copied().flatten() {
        let known = hop.server.and_then(|pid| names.get(&pid));
        let server = known.or_else(|| owners.get(&hop.address).copied()).cloned();
        let address = server.is_none().then(|| hop.address.clone());
        let sum = sums.entry((server, address)).or_default();
        sum.callers.extend(hop.callers.iter().filter_map(|pid| names.get(pid)).cloned());
        sum.address.get_or_insert_with(|| hop.address.clone());
        sum.addresses.insert(hop.address.clone());
        sum.clients.extend(&hop.clients);
        sum.has_more_clients |= hop.clients.len() == CLIENTS_MAX;
        sum.count(hop);
        sum.translation_unread |= hop.translation_unread;
    }
    let is_looked_at = |own: &&Vec<&Counters>| own.iter().any(|sample| sample.hops.is_some());
    let looked_at = windows.iter().filter(is_looked_at).count();
    let count = (looks.len().max(1) as f64, looked_at.max(1) as f64);
    let tiers = sums.into_iter().filter_map(|((server, _), sum)| mean(server, sum, count));
    let left_out = samples().map(LeftOut::of).fold(None, LeftOut::worse);
    Hops { looks: looks.len(), tiers: tiers.collect(), left_out }
}

/// Who serves at each address, in whichever look that was seen: who listens is looked for less often than what is connected.
/// Addresses at which nobody was seen to serve, or several were, are left out.
fn owners<'a>(
    hops: impl Iterator<Item = &'a Hop>,
    names: &'a BTreeMap<u32, GroupKey>,
) -> BTreeMap<&'a ServerAddress, &'a GroupKey> {
    let mut all: BTreeMap<&ServerAddress, BTreeSet<&GroupKey>> = BTreeMap::new();
    for hop in hops {
        all.entry(&hop.address).or_default().extend(hop.server.and_then(|pid| names.get(&pid)));
    }
    all.retain(|_, of| of.len() == 1);
    all.into_iter().filter_map(|(address, of)| Some((address, of.into_iter().next()?))).collect()
}

/// The mean over so many looks, made in so many windows. Windows without a look are left out, as connections opened in them were
/// not counted.
fn mean(server: Option<GroupKey>, sum: Sum, (looks, windows): (f64, f64)) -> Option<HopUse> {
    let connections = sum.connections as f64 / looks;
    let one_request_each = sum.opened as f64 >= (REPLACED * connections).max(1.0) * windows;
    let unclear = sum.unclear as f64 / looks;
    let (held, unclear) = if one_request_each { (unclear, 0.0) } else { (0.0, unclear) };
    Some(HopUse {
        server,
        address: sum.address?,
        addresses: sum.addresses,
        clients: sum.clients,
        has_more_clients: sum.has_more_clients,
        callers: sum.callers.into_iter().collect(),
        connections,
        replaced: (sum.opened as f64 / sum.connections.max(1) as f64).min(1.0),
        unaccepted: sum.unaccepted as f64 / looks,
        unread: sum.unread as f64 / looks,
        held: sum.held as f64 / looks + held,
        unclear,
        translation_unread: sum.translation_unread,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{Observer, Usage};

    fn process(pid: u32, name: &str, role: Role) -> Process {
        Process { pid, name: name.to_owned(), role, ..Process::default() }
    }

    fn hop(port: u16, server: Option<u32>, held: u64, unclear: u64, opened: u64) -> Hop {
        let address = ServerAddress::Tcp { address: ([127, 0, 0, 1], port).into() };
        let connections = held + unclear + 1;
        let (callers, empty) = (vec![1], Hop::without_connections(address));
        Hop { server, callers, connections, opened, unread: 1, held, unclear, ..empty }
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
    fn looks_of_several_measurements_count_alike_and_opened_connections_for_each() {
        let held = |held, opened| look(Some(vec![hop(81, Some(2), held, 3, opened)]));
        let [few, many] = [[held(1, 2), held(1, 0)], [held(4, 2), held(6, 0)]];
        let windows = [few.iter().collect::<Vec<_>>(), many.iter().collect()];
        let found = of_windows(&windows);
        let app = &found.tiers[0];
        assert_eq!((found.looks, app.connections, app.held, app.unclear), (4, 7.0, 3.0, 3.0));
        let as_one = of_windows(&[windows.concat()]);
        assert_eq!(as_one.tiers[0].unclear, 0.0, "four of seven were opened anew, but in twice the time");
    }

    /// Windows that no look met made it seem that too few connections were opened for each to carry one request.
    #[test]
    fn windows_without_a_look_do_not_say_how_many_connections_were_opened() {
        let [seen, unseen] = [look(Some(vec![hop(81, Some(2), 0, 3, 4)])), look(None)];
        let found = of_windows(&[vec![&seen], vec![&unseen], vec![&unseen]]);
        let app = &found.tiers[0];
        assert_eq!((found.looks, app.held, app.unclear), (1, 3.0, 0.0));
    }

    #[test]
    fn looks_before_it_was_known_who_listens_count_for_who_does() {
        let samples = [look(Some(vec![hop(81, None, 4, 0, 0)])), look(Some(vec![hop(81, Some(2), 2, 0, 0)]))];
        let found = hops(&samples.iter().collect::<Vec<_>>());
        let [app] = found.tiers.as_slice() else { panic!("{found:#?}") };
        assert_eq!((app.server.as_ref().map(|of| of.name.as_str()), app.held), (Some("app"), 3.0));
    }

    /// What hosts saw of the connections to a database on one of them.
    #[test]
    fn what_one_host_calls_and_another_serves_is_one() {
        let on = |name: &str, on: &str| GroupKey {
            role: Role::Downstream,
            name: name.into(),
            on: Some(on.to_owned()),
        };
        let seen = |address: &str, server: Option<GroupKey>, callers: Vec<GroupKey>, clients: &[u16]| {
            let address = ServerAddress::Tcp { address: address.parse().unwrap() };
            HopUse {
                server,
                addresses: [address.clone()].into(),
                address,
                callers,
                clients: clients.iter().map(|port| ([10, 0, 0, 2], *port).into()).collect(),
                has_more_clients: false,
                connections: 4.0,
                replaced: 0.0,
                unaccepted: 0.0,
                unread: 0.0,
                held: 1.0,
                unclear: 0.0,
                translation_unread: false,
            }
        };
        let (app, db) = (on("app", "web"), on("postgres", "db"));
        let joined = |called: HopUse, served: HopUse| {
            let hops = Hops { looks: 3, tiers: vec![called, served], left_out: None }.joined();
            hops.tiers.into_iter().map(|hop| (hop.server, hop.callers, hop.held)).collect::<Vec<_>>()
        };
        let at = "10.0.0.7:5432";
        let called = seen(at, None, vec![app.clone()], &[40_001, 40_002]);
        let mut served = HopUse { held: 2.0, ..seen(at, Some(db.clone()), Vec::new(), &[40_002, 50_000]) };
        let one = [(Some(db.clone()), vec![app.clone()], 2.0)];
        assert_eq!(joined(called.clone(), served.clone()), one);
        served.clients.clear();
        assert_eq!(joined(called.clone(), served.clone()).len(), 2, "another host with the same address");
        served.has_more_clients = true;
        assert_eq!(joined(called, served.clone()), one, "it has too many clients to tell of all");
        let loopback = seen("127.0.0.1:5432", None, vec![app.clone()], &[40_001]);
        served.addresses.insert(loopback.address.clone());
        assert_eq!(joined(loopback, served).len(), 2, "every host has loopback");
        let beside = seen(at, None, vec![on("app", "db")], &[40_001]);
        let served = seen(at, Some(db), Vec::new(), &[40_001]);
        assert_eq!(joined(beside, served).len(), 2, "that host's own observer knows better");
    }

    /// A host that translates its address to that of a container tells both, and how the clients see themselves.
    #[test]
    fn what_one_host_calls_by_an_address_that_another_translates_is_one() {
        let tcp = |address: &str| ServerAddress::Tcp { address: address.parse().unwrap() };
        let here = |on: &str, mut hops: Vec<Hop>| {
            hops.iter_mut().for_each(|hop| hop.callers.retain(|_| hop.server.is_none()));
            let mut seen = super::hops(&[&look(Some(hops))]);
            let keys = seen.tiers.iter_mut().flat_map(|tier| tier.server.iter_mut().chain(&mut tier.callers));
            keys.for_each(|key| key.on = Some(on.to_owned()));
            seen.tiers
        };
        let published = tcp("10.0.0.9:8080");
        let clients = vec![SocketAddr::from(([10, 0, 0, 2], 40_001))];
        let called = Hop { address: published.clone(), clients: clients.clone(), ..hop(0, None, 4, 0, 0) };
        let masqueraded = vec![([172, 17, 0, 1], 1025).into()];
        let served = Hop { address: tcp("172.17.0.2:80"), clients: masqueraded, ..hop(0, Some(2), 3, 0, 0) };
        let known_as =
            Hop { address: published, clients, connections: 0, unread: 0, ..hop(0, Some(2), 0, 0, 0) };
        let joined = |db: Vec<Hop>| {
            let tiers = [here("web", vec![called.clone()]), here("db", db)].concat();
            Hops { looks: 1, tiers, left_out: None }.joined().tiers
        };
        let apart = joined(vec![served.clone()]);
        assert_eq!(apart.len(), 2, "nothing tells that they are the same");
        let one = joined(vec![served, known_as]);
        let [tier] = one.as_slice() else { panic!("{one:#?}") };
        assert_eq!((tier.connections, tier.held, tier.callers.len()), (4.0, 3.0, 1));
        assert_eq!(tier.address, tcp("172.17.0.2:80"), "where it listens");
    }

    #[test]
    fn the_look_that_left_out_most_addresses_is_told_and_stays_so_where_hosts_are_joined() {
        let left_out = |addresses| {
            let unused = Hop { connections: 0, unread: 0, ..hop(83, None, 0, 0, 0) };
            let hops = Some(vec![hop(81, Some(2), 4, 0, 0), hop(82, None, 2, 0, 0), unused]);
            Counters { hops_left_out: addresses, ..look(hops) }
        };
        assert_eq!(hops(&[&left_out(0), &look(None)]).left_out, None);
        let most = |all: [u64; 3]| {
            let samples = all.map(left_out);
            hops(&samples.iter().collect::<Vec<_>>()).joined()
        };
        let seen = most([1, 7, 3]);
        assert_eq!(seen.left_out, Some(LeftOut { on: None, addresses: 7, of: 9 }));
        let web = Observer { place: Some("web".into()), ..Observer::default() };
        let of_two = |here: Hops, there: Hops| {
            let there = Usage { hops: there, ..Usage::default() }.seen_by(&web);
            Usage { hops: here, ..Usage::default() }.joined_with(there).hops.left_out
        };
        let on_web = LeftOut { on: Some("web".into()), addresses: 8, of: 10 };
        assert_eq!(of_two(seen.clone(), most([8, 0, 0])), Some(on_web));
        assert_eq!(of_two(seen.clone(), most([0, 2, 0])), seen.left_out);
        let lie = left_out(u64::MAX);
        assert_eq!(hops(&[&lie]).left_out.map(|seen| seen.of), Some(u64::MAX), "whatever an agent says");
    }

    #[test]
    fn counts_that_an_observer_made_up_do_not_overflow() {
        let counts = || {
            let most = u64::MAX;
            let one = hop(81, Some(2), 0, 0, most);
            Hop { connections: most, unaccepted: most, unread: most, held: most, unclear: most, ..one }
        };
        let samples = [look(Some(vec![counts()])), look(Some(vec![counts()]))];
        let tier = hops(&samples.iter().collect::<Vec<_>>()).tiers.remove(0);
        assert_eq!((tier.replaced, tier.connections), (1.0, u64::MAX as f64 / 2.0));
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

    #[test]
    fn connections_are_replaced_by_the_look() {
        let replaced = |opened: [u64; 2]| {
            let looks = opened.map(|opened| look(Some(vec![hop(81, Some(2), 3, 0, opened)])));
            hops(&looks.iter().collect::<Vec<_>>()).tiers.remove(0).replaced
        };
        let each_look = [[0, 0], [0, 2], [4, 4]].map(replaced);
        assert_eq!(each_look, [0.0, 0.25, 1.0], "of four connections");
        let none = look(Some(vec![Hop { connections: 0, ..hop(81, Some(2), 0, 0, 0) }]));
        assert_eq!(hops(&[&none]).tiers[0].replaced, 0.0);
    }
}
