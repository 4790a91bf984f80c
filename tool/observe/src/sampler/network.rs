//! Interfaces, listening sockets and TCP's counters, of our network namespace and of the server's.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use analysis::counters::{Interface, Listener, Tcp};

use super::interfaces::InterfaceSampler;
use crate::kernel_files::{KernelPaths, Pid, read_or_empty};
use crate::netlink::NetlinkSockets;
use crate::netlink::diag::{self, States};
use crate::proc::network::{self, TcpSocket, TcpState};
use crate::topology::Topology;
use crate::topology::namespaces::Namespace;

/// Samples the network.
#[derive(Debug)]
pub(super) struct NetworkSampler {
    own_namespace: Namespace,
    own: InterfaceSampler,
    server: Option<ServerNamespace>,
}

/// The namespace of the servers of one target.
#[derive(Debug)]
struct ServerNamespace {
    namespace: Namespace,
    target: SocketAddr,
    netlink: Option<NetlinkSockets>,
    /// `None` if the namespace is our own.
    interfaces: Option<InterfaceSampler>,
}

impl NetworkSampler {
    pub(super) fn new(paths: &KernelPaths) -> Self {
        Self {
            own_namespace: Namespace::own(paths),
            own: InterfaceSampler::of_own_namespace(paths),
            server: None,
        }
    }

    /// The interfaces of our namespace, then those of the server's if that is another.
    pub(super) fn interfaces(&mut self, topology: &Topology) -> Vec<Interface> {
        let mut interfaces = self.own.sample(topology.target.ip(), topology.load_is_far);
        if let Some(others) = &mut self.server(topology).interfaces {
            interfaces.extend(others.sample(topology.target.ip(), true));
        }
        interfaces
    }

    /// TCP's counters in the server's namespace and in our own, if the load comes from it.
    pub(super) fn tcp(&mut self, topology: &Topology) -> (Tcp, Tcp) {
        let server = self.server(topology).namespace.clone();
        let generator = tcp(&self.own_namespace);
        let of_server = if server.id == self.own_namespace.id { generator } else { tcp(&server) };
        (of_server, if topology.load_is_far { Tcp::default() } else { generator })
    }

    /// The listening sockets of the server, and of the tiers behind it that live in its namespace.
    pub(super) fn listeners(&mut self, topology: &Topology) -> Vec<Listener> {
        listeners_by_port(&self.server(topology).listening(), &topology.listeners)
    }

    fn server(&mut self, topology: &Topology) -> &mut ServerNamespace {
        let own = &self.own_namespace;
        let namespace = topology.namespace.as_ref().unwrap_or(own);
        let same =
            |server: &ServerNamespace| server.namespace == *namespace && server.target == topology.target;
        let kept = self.server.take().filter(same);
        self.server.insert(kept.unwrap_or_else(|| ServerNamespace::new(namespace, topology.target, own)))
    }
}

impl ServerNamespace {
    fn new(namespace: &Namespace, target: SocketAddr, own: &Namespace) -> Self {
        let other = namespace.id != own.id;
        Self {
            namespace: namespace.clone(),
            target,
            netlink: namespace.netlink(),
            interfaces: other.then(|| InterfaceSampler::of_server_namespace(namespace)),
        }
    }

    fn listening(&mut self) -> Vec<TcpSocket> {
        let sockets = self
            .netlink
            .as_mut()
            .and_then(|netlink| diag::tcp_sockets(&mut netlink.diag, States::LISTENING).ok());
        sockets.unwrap_or_else(|| self.namespace.sockets_by_file())
    }
}

fn tcp(of: &Namespace) -> Tcp {
    let read = |name| read_or_empty(&of.net.join(name));
    network::tcp_counters(&read("snmp"), &read("netstat"))
}

/// The listeners among `sockets` whose inodes are in `owners`, one entry per port. Several on one port (SO_REUSEPORT)
/// are summed.
fn listeners_by_port(sockets: &[TcpSocket], owners: &BTreeMap<u64, Option<Pid>>) -> Vec<Listener> {
    let mut found: Vec<Listener> = Vec::new();
    for socket in sockets.iter().filter(|socket| socket.state == TcpState::Listen) {
        let Some(Some(pid)) = owners.get(&socket.inode).copied() else { continue };
        let port = socket.local.port();
        match found.iter_mut().find(|listener| listener.port == port) {
            Some(listener) => {
                listener.waiting += socket.receive_queue;
                listener.backlog += socket.backlog;
            }
            None => {
                found.push(Listener { port, pid, waiting: socket.receive_queue, backlog: socket.backlog })
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_one_port_are_one_listener() {
        let socket = |port: u16, inode, state| TcpSocket {
            local: ([0, 0, 0, 0], port).into(),
            remote: ([0, 0, 0, 0], 0).into(),
            state,
            receive_queue: 2,
            backlog: 128,
            inode,
        };
        let sockets = [
            socket(80, 1, TcpState::Listen),
            socket(80, 2, TcpState::Listen),
            socket(81, 3, TcpState::Listen),
            socket(80, 4, TcpState::Established),
            socket(82, 5, TcpState::Listen),
        ];
        let owners = [(1, Some(7)), (2, Some(8)), (4, Some(7)), (5, None)].into();
        let expected = [Listener { port: 80, pid: 7, waiting: 4, backlog: 256 }];
        assert_eq!(listeners_by_port(&sockets, &owners), expected);
    }
}
