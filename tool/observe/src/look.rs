//! One look at everything: files in, [`Counters`] out.

mod io_limit;
mod machine;
mod network;
mod process;
mod quota;
mod reaped;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

use analysis::counters::{Counters, Process, Role};

use crate::clock::monotonic_us;
use crate::{Pid, Roots, Topology};
use machine::Machine;
use network::Network;
use process::ProcessLook;
use reaped::Reaped;

/// What is kept between looks.
#[derive(Debug)]
pub(crate) struct Look {
    roots: Roots,
    machine: Machine,
    network: Network,
    processes: BTreeMap<Pid, ProcessLook>,
    reaped: Reaped,
}

impl Look {
    pub(crate) fn new(roots: &Roots) -> Self {
        Self {
            roots: roots.clone(),
            machine: Machine::new(roots),
            network: Network::new(roots),
            processes: BTreeMap::new(),
            reaped: Reaped::default(),
        }
    }

    /// Reads everything once. Processes that are gone are left out.
    pub(crate) fn take(&mut self, topology: &Topology) -> Counters {
        let at_us = monotonic_us();
        let cpus = self.machine.cpus();
        let processes = self.processes(topology, &cpus.iter().map(|cpu| cpu.number).collect());
        Counters {
            at_us,
            cpus,
            disks: self.machine.disks(),
            interfaces: self.network.interfaces(topology),
            listeners: self.network.listeners(topology),
            tcp: self.network.tcp(topology),
            pressure: self.machine.pressure(),
            memory: self.machine.memory(),
            processes,
        }
    }

    fn processes(&mut self, topology: &Topology, online: &BTreeSet<u32>) -> Vec<Process> {
        let roles = roles(topology);
        self.processes.retain(|pid, _| roles.contains_key(pid));
        let mut found = Vec::with_capacity(roles.len());
        for (pid, role) in &roles {
            let look = self.processes.entry(*pid).or_insert_with(|| ProcessLook::new(&self.roots, *pid));
            match look.take(*role, online) {
                Some(seen) => found.push(seen),
                None => {
                    self.processes.remove(pid);
                }
            }
        }
        self.reaped.settle(&mut found);
        found.into_iter().map(|seen| seen.process).collect()
    }
}

fn roles(topology: &Topology) -> BTreeMap<Pid, Role> {
    let mut roles = BTreeMap::new();
    roles.extend(topology.downstream.iter().map(|pid| (*pid, Role::Downstream)));
    roles.extend(topology.servers.iter().map(|pid| (*pid, Role::Server)));
    roles.insert(std::process::id(), Role::Generator);
    roles
}
