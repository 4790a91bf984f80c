//! What observers elsewhere tell of their hosts before anything is measured there.

use std::collections::{BTreeMap, BTreeSet};

use agent::protocol::About;
use agent::{Asked, Observer, Patience};
use analysis::doctor::{Examined, Facts, Known};
use analysis::run::{AgentTrouble, HostName};

use super::{Agent, Elsewhere};

/// Two looks at a host, the earlier one first.
pub(crate) type Looks = [Facts; 2];

/// What was found on other hosts.
#[derive(Debug, Default)]
pub(crate) struct FoundElsewhere {
    /// What was found on each, but for what is known of it from others.
    pub(crate) hosts: Vec<Examined>,
    /// Those that told nothing, with the names of their hosts and the reasons.
    pub(crate) lost: Vec<(String, AgentTrouble)>,
}

impl Elsewhere {
    /// Has all tell the facts of their hosts, while something is done here. An agent that does not answer tells nothing.
    pub(crate) fn facts<T>(&self, meanwhile: impl FnOnce() -> T) -> (T, Vec<Option<Facts>>) {
        self.facts_by(Observer::facts, meanwhile)
    }

    /// The same of those that answer while the patience lasts.
    pub(crate) fn facts_within<T>(
        &self,
        patience: &Patience<'_>,
        meanwhile: impl FnOnce() -> T,
    ) -> (T, Vec<Option<Facts>>) {
        self.facts_by(|observer, asked| observer.facts_within(asked, patience), meanwhile)
    }

    fn facts_by<T>(
        &self,
        answer: impl Fn(&Observer, Asked) -> Option<Facts>,
        meanwhile: impl FnOnce() -> T,
    ) -> (T, Vec<Option<Facts>>) {
        let asked: Vec<Asked> = self.agents.iter().map(|agent| agent.observer.ask_for_facts()).collect();
        let done = meanwhile();
        let told = self.agents.iter().zip(asked).map(|(agent, asked)| answer(&agent.observer, asked));
        (done, told.collect())
    }

    /// What the facts of two such times show. `here` is what is known on this host, where the server's processes may have been
    /// seen.
    pub(crate) fn examined(
        &self,
        (here, sees_server): (&Looks, bool),
        [first, second]: [Vec<Option<Facts>>; 2],
    ) -> FoundElsewhere {
        let [_, generator] = here;
        // Of the machines that are known by now, the network namespaces that are.
        let mut networks: BTreeMap<HostName, BTreeSet<String>> = [(None, names(generator))].into();
        let mut found = FoundElsewhere::default();
        for (agent, looks) in self.agents.iter().zip(first.into_iter().zip(second)) {
            let (Some(first), Some(second)) = looks else {
                found.lost.push((agent.name.clone(), agent.why_lost()));
                continue;
            };
            let machine = &agent.stand.machine;
            let (is_here, is_known) = (machine.is_none(), networks.contains_key(machine));
            let of_machine = networks.entry(machine.clone()).or_default();
            let known = Known {
                machine: is_known,
                servers: agent.is_redundant() || (sees_server && is_here),
                networks: of_machine.clone(),
            };
            of_machine.extend(names(&second));
            let ours = self.pids_beside(agent.observer.about());
            let new = |facts: Facts| {
                let facts = facts.with_ours(&ours).beyond(&known);
                if is_here { facts.beside(generator) } else { facts }
            };
            found.hosts.push(Examined::by(Some(agent.name.clone()), &new(first), new(second)));
        }
        found
    }

    /// The numbers of this process and of agents, as far as they are processes of one place.
    pub(crate) fn pids_beside(&self, place: &About) -> Vec<u32> {
        let here = agent::serve::about();
        let abouts = self.agents.iter().map(|agent| agent.observer.about());
        let beside = std::iter::once(&here).chain(abouts).filter(|about| about.is_beside(place));
        beside.map(|about| about.pid).collect()
    }

    /// Why agents did not find the server, or nothing new of it, or found it by its port alone, with the names of their hosts.
    pub(crate) fn not_found(&self) -> Vec<(String, AgentTrouble)> {
        let of = |agent: &Agent| {
            let all = agent.of_the_server();
            all.map(|trouble| (agent.name.clone(), trouble)).collect::<Vec<_>>()
        };
        self.agents.iter().flat_map(of).collect()
    }
}

impl Agent {
    /// Why it does not answer.
    fn why_lost(&self) -> AgentTrouble {
        let mut troubles = self.observer.troubles().into_iter();
        troubles.next().unwrap_or(AgentTrouble::Silent { longest_s: 0.0 })
    }
}

fn names(facts: &Facts) -> BTreeSet<String> {
    facts.networks().cloned().collect()
}
