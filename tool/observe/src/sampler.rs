//! Samples: files in, [`Counters`] out.

pub(crate) mod cgroup;
mod connection_limits;
mod container;
mod hops;
mod host;
mod interfaces;
mod io_limit;
mod looks;
mod memory_limit;
mod network;
mod process;
mod quota;
mod reaped;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

use analysis::counters::{Counters, Listener, Process, Role, SAMPLED_THREADS_MAX, ThreadLook};
use analysis::doctor::LimitedMemory;

use crate::clock::monotonic_us;
use crate::kernel_files::{KernelPaths, Pid};
use crate::topology::Topology;
use connection_limits::ConnectionLimitSampler;
use hops::HopSampler;
use host::HostSampler;
use memory_limit::MemoryLimitSampler;
use network::NetworkSampler;
use process::ProcessSampler;
use quota::LimitedGroup;
use reaped::ReapedChildren;

/// The processors that the cgroup of a process lets it use; `None` where it has no limit.
pub(crate) fn quota_cores(paths: &KernelPaths, pid: Pid) -> Option<f64> {
    tightest_quota(paths, pid).map(|group| group.limit.cores())
}

/// The cgroup that limits the processor time of a process most; `None` where it has no limit.
pub(crate) fn tightest_quota(paths: &KernelPaths, pid: Pid) -> Option<LimitedGroup> {
    quota::limited(paths, pid)
}

/// The memory that the cgroups of a process let it use, and what of it is in use; `None` where it has no limit.
pub(crate) fn memory_in_use(paths: &KernelPaths, pid: Pid) -> Option<LimitedMemory> {
    memory_limit::in_use(paths, pid)
}

/// The listening sockets of the server, and of the tiers behind it that live in its network namespace, as they are now.
pub(crate) fn listeners(paths: &KernelPaths, topology: &Topology) -> Vec<Listener> {
    NetworkSampler::new(paths).listeners(topology)
}

/// What costs most to read, or changes slowly, is looked at no more often than this.
const SLOW_US: u64 = 1_000_000;

/// About how many threads a sample covers, of all processes together. Samples at the borders of a measurement are taken
/// whatever they cost, so that what they cost must not grow with the number of processes.
const THREADS_MAX: usize = 1_024;

/// How many threads of each process a sample covers at least: little beside all else that is read of a process.
const THREADS_MIN: usize = 2;

/// Takes samples, and keeps what they share.
#[derive(Debug)]
pub(crate) struct Sampler {
    paths: KernelPaths,
    host: HostSampler,
    network: NetworkSampler,
    hops: HopSampler,
    processes: BTreeMap<Pid, ProcessSampler>,
    reaped: ReapedChildren,
    memory_limits: MemoryLimitSampler,
    connection_limits: ConnectionLimitSampler,
    next_slow_us: u64,
    looks: usize,
}

impl Sampler {
    pub(crate) fn new(paths: &KernelPaths) -> Self {
        Self {
            paths: paths.clone(),
            host: HostSampler::new(paths),
            network: NetworkSampler::new(paths),
            hops: HopSampler::new(paths),
            processes: BTreeMap::new(),
            reaped: ReapedChildren::default(),
            memory_limits: MemoryLimitSampler::new(paths),
            connection_limits: ConnectionLimitSampler::new(paths),
            next_slow_us: 0,
            looks: 0,
        }
    }

    /// Reads everything once. Processes that are gone are left out.
    pub(crate) fn sample(&mut self, topology: &Topology) -> Counters {
        let at_us = monotonic_us();
        let cpus = self.host.cpus();
        let processes = self.processes(topology, &cpus.iter().map(|cpu| cpu.number).collect());
        let slow = at_us >= self.next_slow_us;
        if slow {
            self.next_slow_us = at_us + SLOW_US;
        }
        let (tcp, generator_tcp) = self.network.tcp(topology);
        let look = self.hops.sample(topology);
        Counters {
            at_us,
            cpus,
            disks: self.host.disks(),
            interfaces: self.network.interfaces(topology),
            listeners: self.network.listeners(topology),
            tcp,
            generator_tcp,
            hops_left_out: look.as_ref().map_or(0, |look| look.left_out),
            hops: look.map(|look| look.hops),
            pressure: self.host.pressure(),
            memory: self.host.memory(),
            memory_limits: slow.then(|| self.memory_limits.sample(topology)).flatten(),
            connection_limits: slow.then(|| self.connection_limits.sample(topology)),
            processes,
        }
    }

    /// Looks at which futexes the threads of the servers wait for: those that the last sample found.
    pub(crate) fn look(&mut self) -> ThreadLook {
        self.looks = self.looks.wrapping_add(1);
        let processes = self.processes.values().map(ProcessSampler::to_look_at);
        let servers = processes.filter(|process| process.role != Role::Generator).collect();
        ThreadLook { at_us: monotonic_us(), processes: looks::look(servers, self.looks) }
    }

    fn processes(&mut self, topology: &Topology, online: &BTreeSet<u32>) -> Vec<Process> {
        let roles = roles(topology);
        self.processes.retain(|pid, _| roles.contains_key(pid));
        for pid in roles.keys() {
            self.processes.entry(*pid).or_insert_with(|| ProcessSampler::new(&self.paths, *pid));
        }
        let counts = self.processes.iter_mut().map(|(pid, sampler)| (sampler.list_threads(), *pid));
        let shares = shares(counts.collect());
        let mut found = Vec::with_capacity(roles.len());
        self.processes.retain(|pid, sampler| {
            let of = roles.get(pid).zip(shares.get(pid));
            let sample = of.and_then(|(role, most)| sampler.sample(*role, online, *most));
            let is_there = sample.is_some();
            found.extend(sample);
            is_there
        });
        self.reaped.correct(&mut found);
        found.into_iter().map(|sample| sample.process).collect()
    }
}

/// How many threads of each process a sample covers, by how many it has.
fn shares(mut counts: Vec<(usize, Pid)>) -> BTreeMap<Pid, usize> {
    counts.sort_unstable();
    let wanted: Vec<usize> = counts.iter().map(|(count, _)| (*count).min(SAMPLED_THREADS_MAX)).collect();
    let shares = looks::allotted(&wanted, THREADS_MAX);
    counts.into_iter().zip(shares).map(|((_, pid), share)| (pid, share.max(THREADS_MIN))).collect()
}

fn roles(topology: &Topology) -> BTreeMap<Pid, Role> {
    let mut roles = BTreeMap::new();
    roles.extend(topology.downstream.iter().map(|pid| (*pid, Role::Downstream)));
    let serves = if topology.is_behind { Role::Downstream } else { Role::Server };
    roles.extend(topology.servers.iter().map(|pid| (*pid, serves)));
    if !topology.load_is_far {
        let generators = topology.generators.iter().copied().chain([std::process::id()]);
        roles.extend(generators.map(|pid| (pid, Role::Generator)));
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_makes_the_load_is_no_server_nor_one_of_the_others() {
        let topology = Topology::unseen(([127, 0, 0, 1], 80).into()).with_generators(vec![7, 8]);
        let makes_load = |pid: &Pid| roles(&topology).get(pid) == Some(&Role::Generator);
        assert!([7, 8, std::process::id()].iter().all(makes_load));
        let far = topology.clone().with_far_load();
        assert!(roles(&far).is_empty(), "nobody does here");
        let behind = Topology { servers: vec![9], is_behind: true, ..far };
        assert_eq!(roles(&behind), [(9, Role::Downstream)].into(), "the load does not call it");
    }

    /// Samples at borders are taken whatever they cost.
    #[test]
    fn what_a_sample_costs_does_not_grow_with_the_processes() {
        let of = |counts: &[usize]| shares(counts.iter().copied().zip(1..).collect());
        assert_eq!(of(&[10_000, 1, 30]), [(1, 256), (2, 2), (3, 30)].into(), "few are not cut short");
        let many = of(&[300; 40]);
        assert!(many.values().all(|share| (25..=26).contains(share)), "{many:?}");
        let uneven = of(&[&[4; 30][..], &[500; 10]].concat());
        assert_eq!((uneven[&1], uneven[&40], uneven.values().sum::<usize>()), (4, 91, 1_024), "{uneven:?}");
        let forked = of(&[1; 5_000]);
        assert_eq!((forked.len(), forked.values().max()), (5_000, Some(&THREADS_MIN)));
    }

    #[test]
    fn what_costs_most_is_looked_at_once_a_second() {
        let tree = cgroup::fake::Tree::new("");
        let mut sampler = Sampler::new(&tree.paths());
        let topology = Topology::unseen(([127, 0, 0, 1], 80).into());
        let mut looked = || {
            let sample = sampler.sample(&topology);
            (sample.memory_limits.is_some(), sample.connection_limits.is_some())
        };
        assert_eq!([looked(), looked(), looked()], [(true, true), (false, false), (false, false)]);
    }
}
