//! Interfaces, listening sockets and TCP's counters, of our network namespace and of the server's.

mod interfaces;
mod listeners;

use std::net::SocketAddr;

use analysis::counters::{Interface, Listener, Tcp};

use crate::Topology;
use crate::netlink::View;
use crate::netlink::diag::{self, States};
use crate::proc::snmp;
use crate::proc::tcp::Socket;
use crate::roots::{Roots, read_or_empty};
use crate::topology::Namespace;
use interfaces::Interfaces;

/// What is kept of the network between looks.
#[derive(Debug)]
pub(super) struct Network {
    own_namespace: Namespace,
    own: Interfaces,
    server: Option<Server>,
}

/// The namespace the server lives in, seen for one target.
#[derive(Debug)]
struct Server {
    namespace: Namespace,
    target: SocketAddr,
    view: Option<View>,
    /// Where it is not our own.
    interfaces: Option<Interfaces>,
}

impl Network {
    pub(super) fn new(roots: &Roots) -> Self {
        Self { own_namespace: Namespace::own(roots), own: Interfaces::of_our_own(roots), server: None }
    }

    /// Interfaces of our namespace, then of the server's where that is another.
    pub(super) fn interfaces(&mut self, topology: &Topology) -> Vec<Interface> {
        let mut interfaces = self.own.look(topology.target.ip());
        if let Some(others) = &mut self.server(topology).interfaces {
            interfaces.extend(others.look(topology.target.ip()));
        }
        interfaces
    }

    pub(super) fn tcp(&mut self, topology: &Topology) -> Tcp {
        let net = self.server(topology).namespace.net.clone();
        let read = |name| read_or_empty(&net.join(name));
        snmp::parse(&read("snmp"), &read("netstat"))
    }

    /// Listening sockets of the server and the tiers behind it that live in its namespace.
    pub(super) fn listeners(&mut self, topology: &Topology) -> Vec<Listener> {
        listeners::by_port(&self.server(topology).listening(), &topology.listeners)
    }

    fn server(&mut self, topology: &Topology) -> &mut Server {
        let own = &self.own_namespace;
        let namespace = topology.namespace.as_ref().unwrap_or(own);
        let same = |server: &Server| server.namespace == *namespace && server.target == topology.target;
        let kept = self.server.take().filter(same);
        self.server.insert(kept.unwrap_or_else(|| Server::new(namespace, topology.target, own)))
    }
}

impl Server {
    fn new(namespace: &Namespace, target: SocketAddr, own: &Namespace) -> Self {
        let other = namespace.id != own.id;
        Self {
            namespace: namespace.clone(),
            target,
            view: namespace.view(),
            interfaces: other.then(|| Interfaces::of_the_server(namespace)),
        }
    }

    fn listening(&mut self) -> Vec<Socket> {
        let told =
            self.view.as_mut().and_then(|view| diag::tcp_sockets(&mut view.diag, States::LISTENING).ok());
        told.unwrap_or_else(|| self.namespace.sockets_by_file())
    }
}
