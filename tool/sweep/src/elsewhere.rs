//! Observers on other hosts and in other containers, and how what they see is joined with what is seen here.
//!
//! Each has a *place*, in which it sees processes and numbers them, and a *machine*, whose processors, disks and memory it
//! sees. Several may be on one machine: two containers, or the generator in one network namespace and an agent in another.
//! What a machine has is counted once then, and so are processes that two of them see.

mod facts;
mod overlap;
mod profiles;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::thread;

use agent::protocol::About;
use agent::{Observer, Sighting, not_found};
use analysis::conclude::OutOfSight;
use analysis::counters::{Counters, Hop, ServerAddress};
use analysis::resources::{Observer as Stand, Replacement, Usage, replaced, usage};
use analysis::run::{AgentTrouble, HostName, Measurement, Processes, ServerHost};
use observe::monotonic_us;

use self::overlap::{Apart, Seen};
use crate::sweep::SweepError;
use crate::target::with_silences;

pub use agent::{BySsh, Endpoint, EndpointError};
pub(crate) use facts::FoundElsewhere;
pub(crate) use profiles::AskedProfile;

/// Where to observe besides this host.
#[derive(Debug, Clone, Default)]
pub struct Observe {
    /// The commands and hosts.
    pub endpoints: Vec<Endpoint>,
    /// How agents that are reached by ssh are run there.
    pub by_ssh: BySsh,
}

impl Observe {
    /// Starts an agent at each, all at the same time, unless interrupted meanwhile.
    pub(crate) fn start(&self, interrupt: &AtomicBool) -> Result<Elsewhere, SweepError> {
        let start = |endpoint| {
            let flag = flag_of(endpoint, "--observe");
            let started = Observer::start(endpoint, self.by_ssh, interrupt);
            started.map_err(|source| SweepError::Agent { flag, source })
        };
        let started: Vec<_> = thread::scope(|scope| {
            let starting: Vec<_> =
                self.endpoints.iter().map(|endpoint| scope.spawn(move || start(endpoint))).collect();
            let joined = starting.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let agents = started.into_iter().collect::<Result<Vec<_>, _>>()?;
        let abouts: Vec<&About> = agents.iter().map(Observer::about).collect();
        let stands = stands(&agent::serve::about(), &abouts);
        let members = self.endpoints.iter().map(|endpoint| matches!(endpoint, Endpoint::Open(_)));
        let agents =
            agents.into_iter().zip(stands).zip(members).map(|((observer, stand), is_member)| Agent {
                name: stand.place.clone().unwrap_or_else(|| observer.about().host.clone()),
                observer,
                stand,
                is_member,
                found: Found::Nothing,
                apart: Apart::default(),
                has_own: false,
                trouble: None,
                by_port: Vec::new(),
            });
        Ok(Elsewhere { agents: agents.collect(), targets: Vec::new(), behind: Vec::new() })
    }
}

/// The flag that named an endpoint: this one, or that of fleets, whose members are streams already.
pub(crate) fn flag_of(endpoint: &Endpoint, flag: &'static str) -> &'static str {
    if matches!(endpoint, Endpoint::Open(_)) { "--fleet" } else { flag }
}

/// Agents that observe.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    agents: Vec<Agent>,
    /// The addresses that the load calls.
    targets: Vec<SocketAddr>,
    /// The addresses that tiers call and that were looked for elsewhere.
    behind: Vec<SocketAddr>,
}

/// The most addresses of tiers that are looked for on other hosts than those of their callers.
const BEHIND_MAX: usize = 16;

/// Connections of the last so many microseconds count when it is looked which addresses tiers call.
const RECENT_US: u64 = 3_000_000;

/// A sample arrives within this time, microseconds.
const ON_ITS_WAY_US: u64 = 500_000;

#[derive(Debug)]
struct Agent {
    /// The name of its host, for people.
    name: String,
    observer: Observer,
    stand: Stand,
    /// Whether nobody named it, so that it need not have found anything.
    is_member: bool,
    found: Found,
    /// What it alone tells of its machine.
    apart: Apart,
    /// Whether it ever told what no other observer does.
    has_own: bool,
    /// Why none of the processes it sees is used, if so.
    trouble: Option<AgentTrouble>,
    /// Addresses that the load calls, and where there processes listen that are behind them by nothing but the port.
    by_port: Vec<(SocketAddr, SocketAddr)>,
}

/// What an agent found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// Any of the servers that the load calls.
    Servers,
    /// No server, and tiers that those on other hosts call.
    Tiers,
}

impl Elsewhere {
    /// Has the processes behind the addresses watched. Returns whether any are that are not among those here.
    pub(crate) fn watch(&mut self, addresses: &[SocketAddr], here: &[Counters]) -> bool {
        self.targets = addresses.to_vec();
        for agent in &mut self.agents {
            let sightings = agent.observer.watch(addresses, &[]);
            agent.by_port = by_port(&agent.stand, addresses, &sightings);
            let any = sightings.iter().any(Result::is_ok);
            agent.found = if any { Found::Servers } else { Found::Nothing };
            agent.trouble = not_found(&sightings).map(|reason| AgentTrouble::ServerNotFound { reason });
        }
        self.tell_apart(here, now());
        let is_seen =
            self.agents.iter().any(|agent| agent.found == Found::Servers && agent.trouble.is_none());
        if is_seen {
            // Of a fleet all observe that are there, on whichever machines.
            let others =
                self.agents.iter_mut().filter(|agent| agent.is_member && agent.found == Found::Nothing);
            others.for_each(|agent| agent.trouble = None);
        }
        is_seen
    }

    /// Whether nobody observes anywhere else.
    pub(crate) fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// Has what tiers call, and nobody has been seen to serve, looked for wherever somebody observes. It takes a moment where
    /// there is something new to look for.
    pub(crate) fn follow(&mut self, here: &[Counters]) {
        let new = self.unserved(here);
        if new.is_empty() {
            return;
        }
        self.behind.extend(new);
        for agent in &mut self.agents {
            agent.look_behind(&self.targets, &self.behind);
        }
        self.tell_apart(here, now());
    }

    /// Finds out what each alone tells of its machine within a window. `here` is what was seen beside this process.
    fn tell_apart(&mut self, here: &[Counters], window: (u64, u64)) {
        let mut told: Vec<(HostName, Seen)> = vec![(None, Seen::of(here))];
        let mut agents: Vec<&mut Agent> = self.agents.iter_mut().collect();
        // Whoever has seen most tells first: others may see the same tiers without those that call them, or that they call.
        agents.sort_by_cached_key(|agent| Reverse(agent.names_so_far()));
        for agent in agents {
            let seen = agent.seen(window);
            if seen.is_empty() {
                continue;
            }
            let others = told.iter().filter(|(machine, _)| *machine == agent.stand.machine);
            let others: Vec<&Seen> = others.map(|(_, seen)| seen).collect();
            agent.keep_apart(seen.apart_from(&others));
            told.push((agent.stand.machine.clone(), seen));
        }
    }

    /// Addresses that tiers were seen to call lately, and nobody was seen to serve or has been asked for yet.
    fn unserved(&self, here: &[Counters]) -> Vec<SocketAddr> {
        // What is still on its way is not waited for.
        let until_us = monotonic_us().saturating_sub(ON_ITS_WAY_US);
        let recent = (until_us.saturating_sub(RECENT_US), until_us);
        let there: Vec<Counters> =
            self.agents.iter().flat_map(|agent| agent.observer.between(recent)).collect();
        let new: BTreeSet<SocketAddr> = there.iter().chain(here).flat_map(unserved).collect();
        let new = new.into_iter().filter(|address| !self.behind.contains(address));
        new.take(BEHIND_MAX.saturating_sub(self.behind.len())).collect()
    }

    /// Has samples taken now, and does not wait for them.
    pub(crate) fn sample(&self) {
        self.agents.iter().for_each(|agent| agent.observer.sample());
    }

    /// Starts or stops closer looks at threads.
    pub(crate) fn look_closely(&self, closely: bool) {
        self.agents.iter().for_each(|agent| agent.observer.look_closely(closely));
    }

    /// What each saw while something was measured. `here` is what was seen beside this process then.
    pub(crate) fn usages(&mut self, here: &[Counters], measurement: &Measurement) -> Vec<Usage> {
        self.tell_apart(here, measurement.window);
        self.told(measurement)
    }

    fn told(&self, measurement: &Measurement) -> Vec<Usage> {
        self.agents.iter().map(|agent| agent.usage(measurement)).collect()
    }

    /// The tiers that they see within a window.
    pub(crate) fn tiers(&self, window: (u64, u64)) -> Vec<Processes> {
        let usages = self.told(&Measurement { window, ..Measurement::default() });
        let groups = usages.iter().flat_map(Usage::tiers);
        let processes = groups.map(|group| Processes {
            role: group.role,
            name: group.name.clone(),
            pid: group.pids.first().copied().filter(|_| group.pids.len() == 1),
            processes: u32::try_from(group.pids.len()).unwrap_or(u32::MAX),
            on: group.on.clone(),
        });
        processes.collect()
    }

    /// The machines, but for this one, on which they found the server or a tier behind it; each once.
    pub(crate) fn machines(&self) -> Vec<ServerHost> {
        let mut found: Vec<ServerHost> = Vec::new();
        for agent in self.agents.iter().filter(|agent| agent.found != Found::Nothing) {
            let Some(name) = &agent.stand.machine else { continue };
            if found.iter().all(|known| known.name != *name) {
                let host = agent.observer.about().machine.clone();
                found.push(ServerHost { name: name.clone(), host });
            }
        }
        found
    }

    /// What each may not see of the host that it runs on. Where another sees the same processes it is that one's to tell.
    pub(crate) fn out_of_sight(&self) -> Vec<OutOfSight> {
        let used = self.agents.iter().filter(|agent| !agent.is_redundant());
        let of = used.map(|agent| {
            let (sockets, mut tiers) = agent.observer.unseen();
            let others = self.agents.iter().filter(|other| !std::ptr::eq(*other, agent));
            let others: Vec<_> = others.collect();
            tiers.retain(|tier| !others.iter().any(|other| other.serves(tier, &agent.stand)));
            OutOfSight { on: agent.stand.place.clone(), sockets, tiers }
        });
        of.collect()
    }

    /// Whether any sees who serves an address of this machine.
    pub(crate) fn is_served_here(&self, address: &ServerAddress) -> bool {
        self.agents.iter().any(|agent| agent.serves(address, &Stand::default()))
    }

    /// The servers and tiers elsewhere that took the place of others that ended.
    pub(crate) fn replaced(&self) -> Vec<Replacement> {
        let used = self.agents.iter().filter(|agent| !agent.is_redundant());
        let of = |agent: &Agent| {
            let all = agent.observer.read(replaced).into_iter();
            let own = all.filter(|one| !agent.apart.shares(&one.before.name));
            own.map(|one| one.on(&agent.stand.place)).collect::<Vec<_>>()
        };
        used.flat_map(of).collect()
    }

    /// What they did not tell, each with the name of its host.
    pub(crate) fn troubles(&self) -> Vec<(String, AgentTrouble)> {
        let of = |agent: &Agent| {
            let all = agent.of_the_server().chain(agent.observer.troubles());
            all.map(|trouble| (agent.name.clone(), trouble)).collect::<Vec<_>>()
        };
        self.agents.iter().flat_map(of).collect()
    }
}

impl Agent {
    /// The processes that serve and those behind them where it runs, as far as any were found.
    fn seen(&self, window: (u64, u64)) -> Seen {
        if self.found == Found::Nothing { Seen::default() } else { Seen::of(&self.observer.between(window)) }
    }

    /// How many names all of them had so far.
    fn names_so_far(&self) -> usize {
        if self.found == Found::Nothing { 0 } else { self.observer.read(Seen::of).names() }
    }

    /// Lays down what it alone tells. Whether that ever was anything is told at the end.
    fn keep_apart(&mut self, apart: Apart) {
        self.has_own |= !apart.is_nothing();
        self.trouble = (!self.has_own).then_some(AgentTrouble::Redundant);
        self.apart = apart;
    }

    /// Whether another observer sees the same processes, so that only that one is listened to.
    fn is_redundant(&self) -> bool {
        matches!(self.trouble, Some(AgentTrouble::Redundant))
    }

    /// What to tell of how it found the server, or why it did not.
    fn of_the_server(&self) -> impl Iterator<Item = AgentTrouble> + '_ {
        let by_port = self.by_port.iter().filter(|_| !self.is_redundant());
        let by_port = by_port.map(|(address, at)| AgentTrouble::ByPort { address: *address, at: *at });
        self.trouble.clone().into_iter().chain(by_port)
    }

    /// Whether it sees who serves an address that somebody sees called who stands there.
    fn serves(&self, address: &ServerAddress, from: &Stand) -> bool {
        // Of loopback and unix sockets every namespace has its own.
        let is_reached = self.stand.machine == from.machine
            && (self.stand.place == from.place || !address.is_within_a_host());
        let served = |sample: &Counters| {
            sample.hops.iter().flatten().any(|hop| hop.server.is_some() && hop.address == *address)
        };
        is_reached && !self.is_redundant() && self.observer.read(|samples| samples.iter().any(served))
    }

    /// Has what tiers on other hosts call looked for.
    fn look_behind(&mut self, targets: &[SocketAddr], behind: &[SocketAddr]) {
        let sightings = self.observer.watch(targets, behind);
        if !sightings.is_empty() {
            self.by_port = by_port(&self.stand, targets, &sightings);
        }
        let found = sightings.iter().skip(targets.len()).any(Result::is_ok);
        if self.found != Found::Nothing {
            return;
        }
        if found {
            (self.found, self.trouble) = (Found::Tiers, None);
        } else if self.trouble.is_some() {
            self.trouble = Some(AgentTrouble::NothingCalled { addresses: behind.to_vec() });
        }
    }

    fn usage(&self, measurement: &Measurement) -> Usage {
        let between = |window| self.apart.only(self.observer.between(window));
        let seen = usage(&between(measurement.window), &[], measurement.window);
        let windows = measurement.all_windows();
        let looks = windows.iter().flat_map(|window| self.observer.looks_between(*window));
        let seen = seen.with_looks(&looks.collect::<Vec<_>>());
        let seen = seen.with_hops(&measurement.counted_windows(), between);
        let seen = with_silences(seen, measurement, between);
        let seen = seen.with_kinds(&measurement.kinds, between);
        let seen = seen.seen_by(&self.stand);
        // Where others see the same, only what they do not see of the machine is added.
        if self.apart.is_nothing() {
            Usage { hosts: seen.hosts, disks: seen.disks, ..Usage::default() }
        } else {
            seen
        }
    }
}

/// The addresses whose processes an agent found by nothing but the port, with where these listen. Loopback is a machine's own,
/// and every other has the same.
fn by_port(stand: &Stand, addresses: &[SocketAddr], sightings: &[Sighting]) -> Vec<(SocketAddr, SocketAddr)> {
    let is_elsewhere = stand.machine.is_some();
    let found = addresses.iter().zip(sightings).filter_map(|(address, seen)| {
        let seen = seen.as_ref().ok()?;
        let alone = seen.by_port || (is_elsewhere && address.ip().to_canonical().is_loopback());
        alone.then_some((*address, seen.at))
    });
    found.collect()
}

/// This moment, as a window.
fn now() -> (u64, u64) {
    let now_us = monotonic_us();
    (now_us, now_us)
}

/// Addresses that tiers call and that no process was seen to serve.
fn unserved(sample: &Counters) -> Vec<SocketAddr> {
    let hops = sample.hops.iter().flatten();
    let open = hops.filter(|hop| hop.server.is_none() && !hop.callers.is_empty());
    let address = |hop: &Hop| match hop.address {
        ServerAddress::Tcp { address } if !hop.address.is_within_a_host() => Some(address),
        _ => None,
    };
    open.filter_map(address).collect()
}

/// Where agents stand, seen from here.
fn stands(here: &About, agents: &[&About]) -> Vec<Stand> {
    let mut names = BTreeSet::new();
    let mut known: Vec<(&About, Stand)> = vec![(here, Stand::default())];
    for about in agents {
        let stand = stand(about, &known, &mut names);
        known.push((about, stand));
    }
    known.into_iter().skip(1).map(|(_, stand)| stand).collect()
}

fn stand(about: &About, known: &[(&About, Stand)], names: &mut BTreeSet<String>) -> Stand {
    let same_machine =
        |other: &&(&About, Stand)| !about.boot_id.is_empty() && other.0.boot_id == about.boot_id;
    let same_place = |other: &&(&About, Stand)| other.0.process_namespace == about.process_namespace;
    let machine = known.iter().find(same_machine);
    let place = known.iter().filter(same_machine).find(same_place);
    let mut name = || Some(unused(&about.host, names));
    let place: HostName = match place {
        Some((_, stand)) => stand.place.clone(),
        None => name(),
    };
    match machine {
        Some((_, first)) => Stand { place, machine: first.machine.clone(), is_second: true },
        None => Stand { machine: place.clone(), place, is_second: false },
    }
}

/// The name, with a number where another has it already.
pub(crate) fn unused(name: &str, names: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !names.contains(name));
    let free = free.unwrap_or_default();
    names.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use agent::protocol::{Listens, NotFound};

    use super::*;

    fn about(host: &str, boot_id: &str, process_namespace: &str) -> About {
        About {
            host: host.into(),
            boot_id: boot_id.into(),
            process_namespace: process_namespace.into(),
            is_root: true,
            pid: 1,
            ..About::default()
        }
    }

    fn seen_from_here(agents: &[About]) -> Vec<(Option<String>, Option<String>, bool)> {
        let stands = stands(&about("laptop", "a", "1"), &agents.iter().collect::<Vec<_>>());
        stands.into_iter().map(|stand| (stand.place, stand.machine, stand.is_second)).collect()
    }

    #[test]
    fn a_machine_is_counted_once_however_many_observe_it() {
        let on = |name: &str| Some(name.to_owned());
        let agents = [
            about("laptop", "a", "1"),
            about("web", "a", "2"),
            about("db", "b", "1"),
            about("db", "b", "1"),
            about("pod", "b", "7"),
            about("db", "c", "1"),
        ];
        assert_eq!(
            seen_from_here(&agents),
            [
                (None, None, true),
                (on("web"), None, true),
                (on("db"), on("db"), false),
                (on("db"), on("db"), true),
                (on("pod"), on("db"), true),
                (on("db-2"), on("db-2"), false),
            ]
        );
    }

    #[test]
    fn what_an_agent_found_by_its_port_alone_is_told_and_so_is_loopback_of_another_machine() {
        let [named, loopback, at] =
            ["10.0.0.3:80", "127.0.0.1:81", "0.0.0.0:80"].map(|text| text.parse::<SocketAddr>().unwrap());
        let listens = |at, by_port| Ok(Listens { at, by_port });
        let told = [listens(at, true), listens(loopback, false)];
        let here = Stand::default();
        let there = Stand { machine: Some("web".into()), place: Some("web".into()), is_second: false };
        assert_eq!(by_port(&here, &[named, loopback], &told), [(named, at)]);
        assert_eq!(by_port(&there, &[named, loopback], &told), [(named, at), (loopback, loopback)]);
        let others = [Err(NotFound::NotLocal(named)), listens(named, false)];
        assert!(by_port(&there, &[named, named], &others).is_empty());
        assert!(by_port(&there, &[named], &[]).is_empty(), "it did not answer");
    }

    #[test]
    fn machines_that_do_not_say_which_they_are_are_taken_for_several() {
        let found = seen_from_here(&[about("one", "", "1"), about("two", "", "1")]);
        assert!(found.iter().all(|(place, machine, is_second)| place == machine && !is_second), "{found:?}");
    }
}
