//! Processes that several observers of one machine see. Each process counts once, as the first observer sees it; what a later
//! one sees besides counts as well.

use std::collections::{BTreeMap, BTreeSet};

use analysis::counters::{Counters, Hop, Process, Role, Tcp};

/// What a process is known by in every namespace of its machine: when it started, and its name. Numbers differ.
type Known = (u64, String);

/// The processes that serve, as one observer saw them in some time.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    all: BTreeSet<Known>,
    /// Those in half of the samples at least. Another observer, which samples at other moments, misses none of these.
    lasting: BTreeSet<Known>,
}

impl Seen {
    pub(super) fn of(samples: &[Counters]) -> Self {
        let processes = samples.iter().flat_map(|sample| &sample.processes);
        let mut counts = BTreeMap::<Known, usize>::new();
        for process in processes.filter(|process| process.role != Role::Generator) {
            *counts.entry(known(process)).or_default() += 1;
        }
        let lasting = counts.iter().filter(|(_, count)| **count * 2 >= samples.len());
        let lasting = lasting.map(|(known, _)| known.clone()).collect();
        Self { all: counts.into_keys().collect(), lasting }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many names they have: a server forks any number of workers.
    pub(super) fn names(&self) -> usize {
        self.all.iter().map(|(_, name)| name).collect::<BTreeSet<_>>().len()
    }

    /// What of these is left for this observer to tell, where others of the machine tell what they see.
    pub(super) fn apart_from(&self, others: &[&Self]) -> Apart {
        let is_seen = |known: &&Known| others.iter().any(|other| other.all.contains(*known));
        let shared = self.all.iter().filter(is_seen).map(|(_, name)| name.clone()).collect();
        let own = self.lasting.iter().filter(|known| !is_seen(known)).cloned().collect();
        Apart { shared, own }
    }
}

/// What one observer alone tells.
#[derive(Debug, Clone, Default)]
pub(super) struct Apart {
    /// Names of processes that others tell of.
    shared: BTreeSet<String>,
    /// Processes that no other sees, some of such a name perhaps: two containers may run the same program.
    own: BTreeSet<Known>,
}

impl Apart {
    /// Whether others see all that this one sees.
    pub(super) fn is_nothing(&self) -> bool {
        self.own.is_empty() && !self.shared.is_empty()
    }

    /// Whether others tell of processes of this name.
    pub(super) fn shares(&self, name: &str) -> bool {
        self.shared.contains(name)
    }

    /// Samples without the processes that others tell of, and what belongs to these alone.
    pub(super) fn only(&self, mut samples: Vec<Counters>) -> Vec<Counters> {
        if !self.shared.is_empty() {
            samples.iter_mut().for_each(|sample| self.cut(sample));
        }
        samples
    }

    fn cut(&self, sample: &mut Counters) {
        let others: BTreeSet<u32> =
            sample.processes.iter().filter(|process| self.is_of_others(process)).map(|one| one.pid).collect();
        sample.processes.retain(|process| !others.contains(&process.pid));
        sample.listeners.retain(|listener| !others.contains(&listener.pid));
        if let Some(hops) = &mut sample.hops {
            hops.retain_mut(|hop| is_left(hop, &others));
        }
        if let Some(limits) = &mut sample.memory_limits {
            let is_left = |pid: &u32| !others.contains(pid);
            limits.retain(|limit| limit.pids.is_empty() || limit.pids.iter().any(is_left));
        }
        // Whoever tells of the server tells of its network namespace too.
        if sample.processes.iter().all(|process| process.role != Role::Server) {
            sample.interfaces.clear();
            sample.tcp = Tcp::default();
        }
    }

    fn is_of_others(&self, process: &Process) -> bool {
        let serves = process.role != Role::Generator;
        serves && self.shares(&process.name) && !self.own.contains(&known(process))
    }
}

fn known(process: &Process) -> Known {
    (process.started_ticks, process.name.clone())
}

/// Takes the processes of others out of connections. Whether an end of them is left.
fn is_left(hop: &mut Hop, others: &BTreeSet<u32>) -> bool {
    let has_no_end = hop.server.is_none() && hop.callers.is_empty();
    hop.server = hop.server.filter(|pid| !others.contains(pid));
    hop.callers.retain(|pid| !others.contains(pid));
    has_no_end || hop.server.is_some() || !hop.callers.is_empty()
}

#[cfg(test)]
mod tests {
    use analysis::counters::{MemoryLimit, ServerAddress};

    use super::*;

    fn process(pid: u32, started_ticks: u64, name: &str, role: Role) -> Process {
        Process { pid, started_ticks, name: name.into(), role, ..Process::default() }
    }

    fn web(pid: u32) -> Process {
        process(pid, 100, "web", Role::Server)
    }

    fn db(pid: u32) -> Process {
        process(pid, 200, "postgres", Role::Downstream)
    }

    fn sample(processes: Vec<Process>) -> Counters {
        Counters { processes, ..Counters::default() }
    }

    fn seen(processes: Vec<Process>) -> Seen {
        Seen::of(&[sample(processes)])
    }

    fn pids(samples: &[Counters]) -> Vec<u32> {
        samples.iter().flat_map(|sample| &sample.processes).map(|process| process.pid).collect()
    }

    #[test]
    fn a_tier_that_only_the_second_of_two_observers_sees_is_counted() {
        // One in the container of the server, and one beside the containers, where it has another number.
        let (inside, beside) = (seen(vec![web(1)]), seen(vec![web(812), db(813)]));
        let apart = beside.apart_from(&[&inside]);
        assert!(!apart.is_nothing());
        assert!(apart.shares("web") && !apart.shares("postgres"));
        assert_eq!(pids(&apart.only(vec![sample(vec![web(812), db(813)])])), [813]);
        assert!(inside.apart_from(&[&beside]).is_nothing(), "the other way round");
        let [one, other] = [seen(vec![web(1)]), seen(vec![db(2)])];
        assert!(beside.apart_from(&[&one, &other]).is_nothing(), "together they see all of it");
    }

    #[test]
    fn who_sees_nothing_of_what_others_see_tells_all_of_it() {
        let apart = seen(vec![db(3)]).apart_from(&[&seen(vec![web(1)]), &Seen::default()]);
        assert!(!apart.is_nothing());
        assert_eq!(pids(&apart.only(vec![sample(vec![db(3)])])), [3]);
        assert!(!Seen::default().apart_from(&[&seen(vec![web(1)])]).is_nothing(), "who found nothing");
    }

    #[test]
    fn of_two_containers_of_one_program_both_are_counted() {
        let other = || process(900, 300, "web", Role::Server);
        let apart = seen(vec![web(812), other()]).apart_from(&[&seen(vec![web(1)])]);
        assert_eq!(pids(&apart.only(vec![sample(vec![web(812), other()])])), [900]);
    }

    #[test]
    fn a_process_that_one_of_two_observers_missed_makes_no_tier_of_its_own() {
        let brief = process(950, 400, "web", Role::Server);
        let samples = [sample(vec![web(812)]), sample(vec![web(812), brief]), sample(vec![web(812)])];
        let apart = Seen::of(&samples).apart_from(&[&seen(vec![web(1)])]);
        assert!(apart.is_nothing());
        assert_eq!(pids(&apart.only(samples.to_vec())), [0u32; 0]);
    }

    #[test]
    fn connections_and_limits_stay_with_the_ends_that_are_left() {
        let hop = |port: u16, server, callers: &[u32]| {
            let address = ServerAddress::Tcp { address: ([10, 0, 0, 3], port).into() };
            Hop { server, callers: callers.to_vec(), ..Hop::without_connections(address) }
        };
        let limit = |pids: &[u32]| MemoryLimit { pids: pids.to_vec(), ..MemoryLimit::default() };
        let mut both = sample(vec![web(812), db(813)]);
        let to_cache = hop(6379, None, &[812]);
        both.hops = Some(vec![hop(80, Some(812), &[]), hop(5432, Some(813), &[812]), to_cache]);
        both.memory_limits = Some(vec![limit(&[812]), limit(&[812, 813])]);
        both.tcp.listen_overflows = 7;
        let apart = seen(vec![web(812), db(813)]).apart_from(&[&seen(vec![web(1)])]);
        let left = apart.only(vec![both.clone()]).remove(0);
        assert_eq!(left.hops, Some(vec![hop(5432, Some(813), &[])]));
        assert_eq!(left.memory_limits, Some(vec![limit(&[812, 813])]));
        assert_eq!(left.tcp, Tcp::default(), "the first tells of the server's network");
        assert_eq!(Apart::default().only(vec![both.clone()]), [both]);
    }
}
