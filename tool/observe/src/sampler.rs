//! Samples: files in, [`Counters`] out.

mod cgroup;
mod hops;
mod host;
mod interfaces;
mod io_limit;
mod network;
mod process;
mod quota;
mod reaped;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

use analysis::counters::{Counters, Process, Role};

use crate::clock::monotonic_us;
use crate::kernel_files::{KernelPaths, Pid};
use crate::topology::Topology;
use hops::HopSampler;
use host::HostSampler;
use network::NetworkSampler;
use process::ProcessSampler;
use reaped::ReapedChildren;

/// Takes samples, and keeps what they share.
#[derive(Debug)]
pub(crate) struct Sampler {
    paths: KernelPaths,
    host: HostSampler,
    network: NetworkSampler,
    hops: HopSampler,
    processes: BTreeMap<Pid, ProcessSampler>,
    reaped: ReapedChildren,
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
        }
    }

    /// Reads everything once. Processes that are gone are left out.
    pub(crate) fn sample(&mut self, topology: &Topology) -> Counters {
        let at_us = monotonic_us();
        let cpus = self.host.cpus();
        let processes = self.processes(topology, &cpus.iter().map(|cpu| cpu.number).collect());
        Counters {
            at_us,
            cpus,
            disks: self.host.disks(),
            interfaces: self.network.interfaces(topology),
            listeners: self.network.listeners(topology),
            tcp: self.network.tcp(topology),
            hops: self.hops.sample(topology),
            pressure: self.host.pressure(),
            memory: self.host.memory(),
            processes,
        }
    }

    fn processes(&mut self, topology: &Topology, online: &BTreeSet<u32>) -> Vec<Process> {
        let roles = roles(topology);
        self.processes.retain(|pid, _| roles.contains_key(pid));
        let mut found = Vec::with_capacity(roles.len());
        for (pid, role) in &roles {
            let sampler =
                self.processes.entry(*pid).or_insert_with(|| ProcessSampler::new(&self.paths, *pid));
            match sampler.sample(*role, online) {
                Some(sample) => found.push(sample),
                None => {
                    self.processes.remove(pid);
                }
            }
        }
        self.reaped.correct(&mut found);
        found.into_iter().map(|sample| sample.process).collect()
    }
}

fn roles(topology: &Topology) -> BTreeMap<Pid, Role> {
    let mut roles = BTreeMap::new();
    roles.extend(topology.downstream.iter().map(|pid| (*pid, Role::Downstream)));
    roles.extend(topology.servers.iter().map(|pid| (*pid, Role::Server)));
    roles.insert(std::process::id(), Role::Generator);
    roles
}
