//! Interfaces, listening sockets and TCP's counters.

use std::path::PathBuf;

use model::counters::{Interface, Listener, Tcp};

use crate::Topology;
use crate::proc::tcp::State;
use crate::proc::{net_dev, snmp};
use crate::roots::{Roots, read_or_empty};
use crate::topology::Namespace;

/// Reads the generator's network namespace and the server's.
#[derive(Debug)]
pub(super) struct Network {
    own: Namespace,
    class: PathBuf,
}

impl Network {
    pub(super) fn new(roots: &Roots) -> Self {
        Self { own: Namespace::own(roots), class: roots.sys.join("class/net") }
    }

    /// Interfaces of our namespace and, where it is another, of the server's.
    pub(super) fn interfaces(&mut self, topology: &Topology) -> Vec<Interface> {
        let mut interfaces = net_dev::parse(&read_or_empty(&self.own.net.join("dev")));
        for interface in &mut interfaces {
            interface.link_bits_per_s = self.link_speed(&interface.name);
        }
        if topology.namespace.id != self.own.id {
            let mut others = net_dev::parse(&read_or_empty(&topology.namespace.net.join("dev")));
            for interface in &mut others {
                interface.name = format!("{} (server's namespace)", interface.name);
            }
            interfaces.extend(others);
        }
        interfaces
    }

    /// Megabits in /sys; -1, or what a virtual device makes up, tells nothing.
    fn link_speed(&self, name: &str) -> Option<u64> {
        let directory = self.class.join(name);
        if !directory.join("device").exists() {
            return None;
        }
        let megabits: u64 = read_or_empty(&directory.join("speed")).trim().parse().ok()?;
        (megabits > 0).then(|| megabits.saturating_mul(1_000_000))
    }

    pub(super) fn tcp(&mut self, topology: &Topology) -> Tcp {
        let read = |name| read_or_empty(&topology.namespace.net.join(name));
        snmp::parse(&read("snmp"), &read("netstat"))
    }

    /// Listening sockets of the server, one entry per port.
    pub(super) fn listeners(&mut self, topology: &Topology) -> Vec<Listener> {
        let Some(pid) = topology.servers.first() else { return Vec::new() };
        let mut listeners: Vec<Listener> = Vec::new();
        let sockets = topology.namespace.sockets();
        for socket in sockets
            .iter()
            .filter(|socket| socket.state == State::Listen && topology.listeners.contains(&socket.inode))
        {
            let port = socket.local.port();
            match listeners.iter_mut().find(|listener| listener.port == port) {
                Some(listener) => {
                    listener.waiting += socket.receive_queue;
                    listener.backlog += socket.backlog;
                }
                None => listeners.push(Listener {
                    port,
                    pid: *pid,
                    waiting: socket.receive_queue,
                    backlog: socket.backlog,
                }),
            }
        }
        listeners
    }
}
