//! Observers on other hosts and in other containers, and how what they see is joined with what is seen here.
//!
//! Each has a *place*, in which it sees processes and numbers them, and a *machine*, whose processors, disks and memory it
//! sees. Several may be on one machine: two containers, or the generator in one network namespace and an agent in another.
//! What a machine has is counted once then, and so are processes that two of them see.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use agent::protocol::About;
use agent::{Endpoint, Observer, not_found};
use analysis::counters::{Process, Role};
use analysis::resources::{Observer as Stand, Usage, usage};
use analysis::run::{AgentTrouble, HostName, Processes};
use observe::monotonic_us;

use crate::sweep::SweepError;

/// Where to observe besides this host.
#[derive(Debug, Clone, Default)]
pub struct Observe {
    /// The commands and hosts.
    pub endpoints: Vec<Endpoint>,
    /// Whether agents that are reached by ssh are to see everything there.
    pub with_sudo: bool,
}

impl Observe {
    /// Starts an agent at each.
    pub(crate) fn start(&self) -> Result<Elsewhere, SweepError> {
        let start = |endpoint| {
            let flag = flag_of(endpoint, "--observe");
            Observer::start(endpoint, self.with_sudo).map_err(|source| SweepError::Agent { flag, source })
        };
        let agents = self.endpoints.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let abouts: Vec<&About> = agents.iter().map(Observer::about).collect();
        let stands = stands(&agent::serve::about(), &abouts);
        let members = self.endpoints.iter().map(|endpoint| matches!(endpoint, Endpoint::Open(_)));
        let agents =
            agents.into_iter().zip(stands).zip(members).map(|((observer, stand), is_member)| Agent {
                name: stand.place.clone().unwrap_or_else(|| observer.about().host.clone()),
                observer,
                stand,
                is_member,
                found: false,
                trouble: None,
            });
        Ok(Elsewhere { agents: agents.collect() })
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
}

#[derive(Debug)]
struct Agent {
    /// The name of its host, for people.
    name: String,
    observer: Observer,
    stand: Stand,
    /// Whether nobody named it, so that it need not have found anything.
    is_member: bool,
    /// Whether it found any of the servers.
    found: bool,
    /// Why none of the processes it sees is used, if so.
    trouble: Option<AgentTrouble>,
}

impl Elsewhere {
    /// Has the processes behind the addresses watched. Returns whether any are that are not among those here.
    pub(crate) fn watch(&mut self, addresses: &[SocketAddr], here: &[Process]) -> bool {
        // Each has to know which processes those before it have found.
        let mut seen = vec![(None, servers(here))];
        for agent in &mut self.agents {
            let sightings = agent.observer.watch(addresses);
            agent.found = sightings.iter().any(Result::is_ok);
            agent.trouble = not_found(&sightings).map(|reason| AgentTrouble::ServerNotFound { reason });
            let servers = agent.servers();
            let known = seen.iter().filter(|(machine, _)| *machine == agent.stand.machine);
            if known.into_iter().any(|(_, others)| !others.is_disjoint(&servers)) {
                agent.trouble = Some(AgentTrouble::Redundant);
            }
            seen.push((agent.stand.machine.clone(), servers));
        }
        let is_seen = self.agents.iter().any(|agent| agent.found && agent.trouble.is_none());
        if is_seen {
            // Of a fleet all observe that are there, on whichever machines.
            let others = self.agents.iter_mut().filter(|agent| agent.is_member && !agent.found);
            others.for_each(|agent| agent.trouble = None);
        }
        is_seen
    }

    /// Has samples taken now, and does not wait for them.
    pub(crate) fn sample(&self) {
        self.agents.iter().for_each(|agent| agent.observer.sample());
    }

    /// Starts or stops closer looks at threads.
    pub(crate) fn look_closely(&self, closely: bool) {
        self.agents.iter().for_each(|agent| agent.observer.look_closely(closely));
    }

    /// What each saw within a window, with what looks at threads within some windows saw.
    pub(crate) fn usages(&self, window: (u64, u64), looked: &[(u64, u64)]) -> Vec<Usage> {
        self.agents.iter().map(|agent| agent.usage(window, looked)).collect()
    }

    /// The tiers that they see within a window.
    pub(crate) fn tiers(&self, window: (u64, u64)) -> Vec<Processes> {
        let usages = self.agents.iter().map(|agent| agent.usage(window, &[])).collect::<Vec<_>>();
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

    /// What they did not tell, each with the name of its host.
    pub(crate) fn troubles(&self) -> Vec<(String, AgentTrouble)> {
        let of = |agent: &Agent| {
            let all = agent.trouble.clone().into_iter().chain(agent.observer.troubles());
            all.map(|trouble| (agent.name.clone(), trouble)).collect::<Vec<_>>()
        };
        self.agents.iter().flat_map(of).collect()
    }
}

impl Agent {
    /// The processes that serve where it runs, as far as any were found.
    fn servers(&self) -> BTreeSet<Known> {
        if !self.found {
            return BTreeSet::new();
        }
        let now_us = monotonic_us();
        let sample = self.observer.between((now_us, now_us)).pop();
        sample.map(|sample| servers(&sample.processes)).unwrap_or_default()
    }

    fn usage(&self, window: (u64, u64), looked: &[(u64, u64)]) -> Usage {
        let seen = usage(&self.observer.between(window), &[], window);
        let looks = looked.iter().flat_map(|window| self.observer.looks_between(*window));
        let seen = seen.with_looks(&looks.collect::<Vec<_>>()).seen_by(&self.stand);
        // Where another observer sees the same, only what it does not see of the machine is added.
        let known = matches!(self.trouble, Some(AgentTrouble::Redundant));
        if known { Usage { hosts: seen.hosts, disks: seen.disks, ..Usage::default() } } else { seen }
    }
}

/// What a process is known by in every namespace of its machine: when it started, and its name. Numbers differ.
type Known = (u64, String);

fn servers(processes: &[Process]) -> BTreeSet<Known> {
    let serves = processes.iter().filter(|process| process.role == Role::Server);
    serves.map(|process| (process.started_ticks, process.name.clone())).collect()
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
    use super::*;

    fn about(host: &str, boot_id: &str, process_namespace: &str) -> About {
        About {
            host: host.into(),
            boot_id: boot_id.into(),
            process_namespace: process_namespace.into(),
            is_root: true,
            pid: 1,
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
    fn machines_that_do_not_say_which_they_are_are_taken_for_several() {
        let found = seen_from_here(&[about("one", "", "1"), about("two", "", "1")]);
        assert!(found.iter().all(|(place, machine, is_second)| place == machine && !is_second), "{found:?}");
    }
}
