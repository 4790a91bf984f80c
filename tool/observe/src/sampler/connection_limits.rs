//! Samples of what limits connections in our network namespace and in the server's: tracked connections, local ports.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use analysis::counters::{ConnectionLimits, PortsHeld, Tracked};

use crate::clock::{monotonic_us, own_thread_cpu_us};
use crate::kernel_files::{KernelPaths, read_or_empty};
use crate::netlink::NetlinkSockets;
use crate::netlink::diag::{self, States};
use crate::proc::network::{self, TcpSocket};
use crate::topology::Topology;
use crate::topology::namespaces::Namespace;

/// Ports are counted by address once so many of them, one in this many, are in use altogether.
const WORTH_COUNTING: u64 = 2;

/// Counting them may take at most one part in this many of a processor.
const SHARE: u64 = 250;

/// Samples both namespaces.
#[derive(Debug)]
pub(super) struct ConnectionLimitSampler {
    paths: KernelPaths,
    own: OfNamespace,
    server: Option<OfNamespace>,
}

#[derive(Debug)]
struct OfNamespace {
    namespace: Namespace,
    local_ports: Option<(u16, u16)>,
    netlink: Option<NetlinkSockets>,
    next_count_us: u64,
}

impl ConnectionLimitSampler {
    pub(super) fn new(paths: &KernelPaths) -> Self {
        Self { paths: paths.clone(), own: OfNamespace::new(paths, Namespace::own(paths)), server: None }
    }

    /// The limits of our own namespace, then those of the server's if that is another.
    pub(super) fn sample(&mut self, topology: &Topology) -> Vec<ConnectionLimits> {
        let most = self.most_tracked();
        let own = self.own.sample(most, topology);
        let mut limits = vec![ConnectionLimits { of_server: topology.load_is_far, ..own }];
        let server = topology.namespace.as_ref().filter(|server| server.id != self.own.namespace.id);
        match server {
            None => self.server = None,
            Some(namespace) => {
                let kept = self.server.take().filter(|kept| kept.namespace == *namespace);
                let of = kept.unwrap_or_else(|| OfNamespace::new(&self.paths, namespace.clone()));
                // Where the load is far, our own namespace is nobody's.
                limits.retain(|limits| !limits.of_server);
                limits.push(ConnectionLimits {
                    of_server: true,
                    ..self.server.insert(of).sample(most, topology)
                });
            }
        }
        limits
    }

    /// The limit of all namespaces that have none of their own.
    fn most_tracked(&self) -> u64 {
        read_or_empty(&self.paths.proc.join("sys/net/netfilter/nf_conntrack_max")).trim().parse().unwrap_or(0)
    }
}

impl OfNamespace {
    fn new(paths: &KernelPaths, namespace: Namespace) -> Self {
        Self {
            local_ports: namespace.local_ports(paths),
            netlink: namespace.netlink(),
            namespace,
            next_count_us: 0,
        }
    }

    fn sample(&mut self, most_tracked: u64, topology: &Topology) -> ConnectionLimits {
        let read = |name| read_or_empty(&self.namespace.net.join(name));
        let sockstat = read("sockstat");
        let time_wait = network::time_wait(&sockstat);
        let tracked = network::tracked(&read("stat/nf_conntrack"));
        let local_ports = self.local_ports.map_or(0, |(first, last)| u64::from(last - first) + 1);
        let held = time_wait.saturating_add(network::in_use(&sockstat));
        let many = local_ports > 0 && held >= local_ports / WORTH_COUNTING;
        ConnectionLimits {
            of_server: false,
            tracked: tracked.map(|tracked| Tracked { most: most_tracked, ..tracked }),
            time_wait,
            local_ports,
            most_ports: if many { self.most_ports(topology) } else { None },
        }
    }

    /// The address towards which most local ports are in use or held; `None` if the last count was too recent for
    /// what it cost, or the kernel does not tell.
    fn most_ports(&mut self, topology: &Topology) -> Option<PortsHeld> {
        let (now_us, cpu_us) = (monotonic_us(), own_thread_cpu_us());
        if now_us < self.next_count_us {
            return None;
        }
        let sockets = diag::tcp_sockets(&mut self.netlink.as_mut()?.diag, States::HOLDING).ok()?;
        let most = most_ports(&sockets, self.local_ports?);
        self.next_count_us = now_us + own_thread_cpu_us().saturating_sub(cpu_us).saturating_mul(SHARE);
        most.map(|(address, ports)| PortsHeld { address, is_target: topology.is_called_at(address), ports })
    }
}

fn most_ports(sockets: &[TcpSocket], (first, last): (u16, u16)) -> Option<(SocketAddr, u64)> {
    let mut counts: BTreeMap<SocketAddr, u64> = BTreeMap::new();
    for socket in sockets.iter().filter(|socket| (first..=last).contains(&socket.local.port())) {
        *counts.entry(socket.remote).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, ports)| *ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::network::TcpState;
    use crate::sampler::cgroup::fake::Tree;

    fn socket(local: u16, remote: u16) -> TcpSocket {
        TcpSocket {
            local: ([127, 0, 0, 1], local).into(),
            remote: ([127, 0, 0, 1], remote).into(),
            state: TcpState::Other,
            receive_queue: 0,
            backlog: 0,
            inode: 0,
        }
    }

    #[test]
    fn ports_are_counted_by_address() {
        let sockets = [socket(40_000, 80), socket(40_001, 80), socket(40_002, 81), socket(80, 40_000)];
        assert_eq!(most_ports(&sockets, (32_768, 60_999)), Some((([127, 0, 0, 1], 80).into(), 2)));
        assert_eq!(most_ports(&sockets, (50_000, 60_999)), None);
    }

    #[test]
    fn the_files_of_our_own_namespace() {
        let tree = Tree::new("");
        tree.file("proc/net/sockstat", "TCP: inuse 7 orphan 0 tw 300 alloc 5 mem 333\n");
        tree.file("proc/net/stat/nf_conntrack", "entries drop\n00000010 00000003\n00000010 00000001\n");
        tree.file("proc/sys/net/netfilter/nf_conntrack_max", "64\n");
        tree.file("proc/sys/net/ipv4/ip_local_port_range", "32768\t33767\n");
        let topology = Topology::unseen(([127, 0, 0, 1], 80).into());
        let expected = ConnectionLimits {
            of_server: false,
            tracked: Some(Tracked { connections: 16, most: 64, refused: 4 }),
            time_wait: 300,
            local_ports: 1000,
            most_ports: None,
        };
        assert_eq!(ConnectionLimitSampler::new(&tree.paths()).sample(&topology), [expected]);
        let nothing = ConnectionLimitSampler::new(&Tree::new("").paths()).sample(&topology);
        assert_eq!(nothing, [ConnectionLimits::default()]);
    }
}
