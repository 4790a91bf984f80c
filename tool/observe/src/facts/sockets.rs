//! Limits on connections: in this process's network namespace, and in the server's if that is another.

use std::io;

use analysis::counters::{Listener, Tracked};
use analysis::doctor::{Check, ListenQueue, ServerNetwork, Sockets};

use super::name_of;
use super::reader::Reader;
use crate::clock::ticks_per_second;
use crate::proc::{host, network, softnet};
use crate::sampler;
use crate::topology::Topology;
use crate::topology::namespaces::Namespace;

/// What limits connections.
pub(super) struct Limits {
    pub(super) sockets: Sockets,
    pub(super) server_network: Option<ServerNetwork>,
    pub(super) listeners: Vec<ListenQueue>,
}

pub(super) fn limits(reader: &Reader<'_>, topology: Option<&Topology>) -> Limits {
    let own = Namespace::own(reader.paths);
    let server_network = topology.and_then(|topology| server_network(reader, topology, &own));
    // Where the load comes from another host, a namespace that the server is not in is nobody's.
    let is_nobodys = server_network.is_some() && topology.is_some_and(|topology| topology.load_is_far);
    let sockets = if is_nobodys { Sockets::default() } else { sockets(reader, &own) };
    let listeners = topology.map(|topology| listeners(reader, topology, &own));
    let [packets_dropped, packets_handled] = packets(reader);
    let packet_queue = packet_queue(reader);
    Limits {
        sockets: Sockets { packet_queue, packets_dropped, packets_handled, ..sockets },
        server_network,
        listeners: listeners.unwrap_or_default(),
    }
}

fn server_network(reader: &Reader<'_>, topology: &Topology, own: &Namespace) -> Option<ServerNetwork> {
    let namespace = topology.namespace.as_ref().filter(|namespace| namespace.id != own.id)?;
    let pid = topology.tier_in(reader.paths, namespace)?;
    Some(ServerNetwork { name: name_of(reader.paths, pid), pid, sockets: sockets(reader, namespace) })
}

/// Settings of a network namespace, each with the check that needs it.
const SETTINGS: [(Check, &str); 4] = [
    (Check::ListenQueue, "core/somaxconn"),
    (Check::SynQueue, "ipv4/tcp_max_syn_backlog"),
    (Check::Ports, "ipv4/ip_local_port_range"),
    (Check::TimeWait, "ipv4/tcp_tw_reuse"),
];

fn sockets(reader: &Reader<'_>, namespace: &Namespace) -> Sockets {
    let number = |text: Option<String>| text?.trim().parse().ok();
    let file = |check, name: &str| reader.text(check, &namespace.net.join(name));
    let [listen_queue, syn_queue, ports, reuse] = settings(reader, namespace);
    let ports = ports.and_then(|text| network::local_ports(&text));
    // There is one limit for all namespaces.
    let most = reader.number(Check::Tracking, &reader.paths.proc.join("sys/net/netfilter/nf_conntrack_max"));
    let tracked = network::tracked(&file(Check::Tracking, "stat/nf_conntrack"));
    Sockets {
        network: namespace.id.clone(),
        listen_queue: number(listen_queue),
        syn_queue: number(syn_queue),
        ports: ports.map(|(first, last)| u64::from(last - first) + 1),
        time_wait: network::time_wait(&file(Check::TimeWait, "sockstat")),
        reuse: number(reuse),
        tracked: tracked.map(|tracked| Tracked { most: most.unwrap_or(0), ..tracked }),
        ..Sockets::default()
    }
}

fn settings(reader: &Reader<'_>, namespace: &Namespace) -> [Option<String>; SETTINGS.len()] {
    match namespace.settings(reader.paths, SETTINGS.map(|(_, name)| name)) {
        Ok(texts) => {
            let mut checks = SETTINGS.iter();
            texts.map(|text| checks.next().and_then(|(check, _)| reader.noted(*check, text)))
        }
        Err(error) => {
            SETTINGS.iter().for_each(|(check, _)| deny(reader, *check, &error));
            Default::default()
        }
    }
}

/// Notes that a namespace could not be looked into; one whose process has ended is not refused.
fn deny(reader: &Reader<'_>, check: Check, error: &io::Error) {
    if error.kind() != io::ErrorKind::NotFound {
        reader.deny(check, error.raw_os_error());
    }
}

fn packet_queue(reader: &Reader<'_>) -> Option<u64> {
    reader.number(Check::PacketsDropped, &reader.paths.proc.join("sys/net/core/netdev_max_backlog"))
}

/// Packets dropped from full queues so far, and handled: the counts are the same in every namespace.
fn packets(reader: &Reader<'_>) -> [u64; 2] {
    let text = |name: &str| reader.text(Check::PacketsDropped, &reader.paths.proc.join(name));
    let mut cpus = host::cpus(&text("stat"), ticks_per_second());
    let lines = softnet::softnet(&text("net/softnet_stat"));
    softnet::add_to(&mut cpus, &lines);
    let dropped = cpus.iter().map(|cpu| cpu.packets_dropped).fold(0, u64::saturating_add);
    [dropped, lines.iter().map(|line| line.handled).fold(0, u64::saturating_add)]
}

/// The queues of the server itself. Tiers behind it are called over connections that are kept, and need no long ones.
fn listeners(reader: &Reader<'_>, topology: &Topology, own: &Namespace) -> Vec<ListenQueue> {
    if topology.servers.is_empty() {
        return Vec::new();
    }
    if let Some(error) = topology.namespace.as_ref().unwrap_or(own).refusal() {
        reader.deny(Check::Backlog, error.raw_os_error());
        return Vec::new();
    }
    // In files it does not stand how many may wait: 0 is the length of a queue only where the kernel was asked.
    let is_told = |listener: &Listener| listener.backlog > 0 || reader.paths.are_this_host();
    let of_server = |listener: &Listener| topology.servers.contains(&listener.pid);
    let listening = sampler::listeners(reader.paths, topology).into_iter();
    let queue = |listener: Listener| ListenQueue {
        name: name_of(reader.paths, listener.pid),
        pid: listener.pid,
        port: listener.port,
        most: listener.backlog,
    };
    listening.filter(is_told).filter(of_server).map(queue).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::TcpListener;

    use super::*;
    use crate::kernel_files::KernelPaths;
    use crate::proc::network::TcpState;

    /// What serves this port, as if that were another process.
    fn served(listener: &TcpListener) -> Topology {
        let address = listener.local_addr().unwrap();
        let pid = std::process::id();
        let paths = KernelPaths::default();
        let sockets = Namespace::own(&paths).sockets();
        let inode =
            sockets.iter().find(|of| of.local == address && of.state == TcpState::Listen).unwrap().inode;
        Topology {
            servers: vec![pid],
            listeners: BTreeMap::from([(inode, Some(pid))]),
            ..Topology::unseen(address)
        }
    }

    #[test]
    fn the_queue_of_a_listening_socket_is_as_long_as_the_server_said() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 3).unwrap();
        let (paths, topology) = (KernelPaths::default(), served(&listener));
        let reader = Reader::new(&paths);
        let found = limits(&reader, Some(&topology));
        let [queue] = found.listeners.as_slice() else { panic!("{:?}", reader.unmade()) };
        assert_eq!((queue.most, queue.port), (3, listener.local_addr().unwrap().port()));
        assert!(found.sockets.listen_queue.is_some() && found.server_network.is_none());
        assert_eq!(reader.unmade(), []);
    }
}
