//! The search for the tiers behind the servers, by their sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::namespaces::{Namespace, Namespaces, accepting};
use super::process_tree::{ProcessTree, socket_holders};
use super::translation::Translation;
use super::{Callee, Topology};
use crate::kernel_files::{KernelPaths, Pid};
use crate::netlink::conntrack::Tuple;
use crate::netlink::diag::UnixSocket;
use crate::proc::network::{TcpSocket, TcpState};

/// How many tiers deep the search goes.
const DEPTH_MAX: usize = 8;

/// When there are more foreign sockets than this, they are forgotten and determined again.
const FOREIGN_MAX: usize = 1 << 16;

/// Searches for tiers, and remembers results, so that a kept connection costs only one search.
#[derive(Debug)]
pub(crate) struct TierSearch {
    translation: Translation,
    /// Connected sockets that none of the `members` holds.
    foreign: BTreeSet<u64>,
    members: Vec<Pid>,
    listening: Listening,
}

impl TierSearch {
    pub(crate) fn new(paths: &KernelPaths) -> Self {
        let (foreign, members, listening) = (BTreeSet::new(), Vec::new(), Listening::default());
        Self { translation: Translation::new(paths), foreign, members, listening }
    }

    /// Adds the processes that the topology's processes are connected to now, tier by tier, and notes who calls what.
    pub(crate) fn extend(
        &mut self,
        paths: &KernelPaths,
        tree: &ProcessTree,
        namespaces: &Namespaces,
        topology: &mut Topology,
    ) {
        let ids = namespaces.ids();
        self.translation.retain(|id| ids.contains(id));
        topology.forget_unsure_calls();
        self.listening = Listening::default();
        for _ in 0..DEPTH_MAX {
            let called = self.called(paths, namespaces, topology);
            if called.is_empty() {
                return;
            }
            let found = socket_holders(paths, tree.pids(), &called);
            topology.listeners.extend(found.owners(&called));
            add(topology, &tree.tier(&found.pids));
        }
    }

    /// The listening sockets to which the topology's processes are connected and which are not in it yet.
    fn called(
        &mut self,
        paths: &KernelPaths,
        namespaces: &Namespaces,
        topology: &mut Topology,
    ) -> BTreeSet<u64> {
        self.renew(topology);
        let mut called = BTreeSet::new();
        let groups = by_namespace(namespaces, topology);
        topology.namespaces = groups.iter().map(|group| group.0.clone()).collect();
        for (namespace, pids) in groups {
            let sockets = namespace.sockets();
            let mut calls = self.calls(namespaces, namespace, &sockets, topology);
            calls.extend(self.unix_calls(&namespace.unix_sockets(), topology));
            if calls.is_empty() {
                continue;
            }
            let own = socket_holders(paths, pids.into_iter(), &calls.keys().copied().collect()).first;
            for (inode, (callee, listeners)) in calls {
                let Some(caller) = own.get(&inode) else {
                    self.foreign.insert(inode);
                    continue;
                };
                let (callee, listeners) =
                    self.translated((inode, callee, listeners), &sockets, (namespaces, namespace));
                if !is_new(topology, &callee, &listeners) || serves_users(topology, &listeners) {
                    continue;
                }
                called.extend(listeners.iter().filter(|inode| !topology.listeners.contains_key(inode)));
                let call = topology.calls.entry(callee).or_default();
                call.callers.insert(*caller);
                call.listeners = listeners;
                call.is_unsure = self.translation.has_failed();
            }
        }
        called
    }

    /// Forgets the foreign sockets when the members change, because a new member may hold them.
    fn renew(&mut self, topology: &Topology) {
        let members: Vec<Pid> = topology.servers.iter().chain(&topology.downstream).copied().collect();
        if members != self.members || self.foreign.len() > FOREIGN_MAX {
            self.members = members;
            self.foreign.clear();
        }
    }

    /// The connected sockets of a namespace that may be calls not noted yet, each with what it may call and the listeners
    /// there.
    fn calls(
        &mut self,
        namespaces: &Namespaces,
        namespace: &Namespace,
        sockets: &[TcpSocket],
        topology: &Topology,
    ) -> BTreeMap<u64, (Callee, BTreeSet<u64>)> {
        let mut listeners_at: BTreeMap<SocketAddr, BTreeSet<u64>> = BTreeMap::new();
        let mut calls = BTreeMap::new();
        let served: BTreeSet<u16> = listening_ports(sockets);
        for socket in
            sockets.iter().filter(|socket| socket.state == TcpState::Established && socket.inode != 0)
        {
            if served.contains(&socket.local.port()) || self.foreign.contains(&socket.inode) {
                continue;
            }
            let listeners = listeners_at
                .entry(socket.remote)
                .or_insert_with(|| self.listening.behind((namespaces, namespace), sockets, socket.remote));
            let callee = Callee::Tcp(namespace.id.clone(), socket.remote);
            if is_new(topology, &callee, listeners) && !serves_users(topology, listeners) {
                calls.insert(socket.inode, (callee, listeners.clone()));
            }
        }
        calls
    }

    /// The call on a socket, and the listeners there, behind all translation. It is asked for once the caller is known: a
    /// connection may be over before many have been asked for, and then nobody holds it.
    fn translated(
        &mut self,
        (inode, callee, listeners): (u64, Callee, BTreeSet<u64>),
        sockets: &[TcpSocket],
        (namespaces, namespace): (&Namespaces, &Namespace),
    ) -> (Callee, BTreeSet<u64>) {
        let Callee::Tcp(id, remote) = callee else { return (callee, listeners) };
        let local = sockets.iter().find(|socket| socket.inode == inode).map(|socket| socket.local);
        let real =
            |local| self.translation.seen_by_server(namespace, Tuple { client: local, server: remote });
        match local.map(real).map(|real| real.server) {
            Some(server) if server != remote => {
                let behind = self.listening.behind((namespaces, namespace), sockets, server);
                (Callee::Tcp(id, server), behind)
            }
            _ => (Callee::Tcp(id, remote), listeners),
        }
    }

    /// The same for unix sockets: the other end of a call has the name of its listener.
    fn unix_calls(
        &self,
        sockets: &[UnixSocket],
        topology: &Topology,
    ) -> BTreeMap<u64, (Callee, BTreeSet<u64>)> {
        let mut listeners: BTreeMap<&[u8], BTreeSet<u64>> = BTreeMap::new();
        for socket in sockets.iter().filter(|socket| socket.listening && !socket.name.is_empty()) {
            listeners.entry(&socket.name).or_default().insert(socket.inode);
        }
        let names: BTreeMap<u64, &[u8]> =
            sockets.iter().map(|socket| (socket.inode, socket.name.as_slice())).collect();
        let call = |socket: &UnixSocket| {
            let behind = listeners.get(names.get(&socket.peer?)?)?;
            let callee = Callee::Unix(*behind.first()?);
            let new = is_new(topology, &callee, behind) && !self.foreign.contains(&socket.inode);
            new.then(|| (socket.inode, (callee, behind.clone())))
        };
        sockets.iter().filter_map(call).collect()
    }
}

/// Whether a call is not noted yet, or leads to a listener that is not.
fn is_new(topology: &Topology, callee: &Callee, listeners: &BTreeSet<u64>) -> bool {
    !topology.calls.contains_key(callee)
        || listeners.iter().any(|inode| !topology.listeners.contains_key(inode))
}

/// Whether these are the servers' own listeners, which the users call.
fn serves_users(topology: &Topology, listeners: &BTreeSet<u64>) -> bool {
    let owner = |inode| topology.listeners.get(inode).copied().flatten();
    let server = |pid: Pid| topology.servers.binary_search(&pid).is_ok();
    !listeners.is_empty() && listeners.iter().all(|inode| owner(inode).is_some_and(server))
}

fn listening_ports(sockets: &[TcpSocket]) -> BTreeSet<u16> {
    sockets
        .iter()
        .filter(|socket| socket.state == TcpState::Listen)
        .map(|socket| socket.local.port())
        .collect()
}

/// The listening sockets of namespaces that are called from others, by their ids. They are read once in a search, however
/// often they are called.
#[derive(Debug, Default)]
struct Listening(BTreeMap<String, Vec<TcpSocket>>);

impl Listening {
    /// The inodes of the sockets that accept, on this host, a connection made to `remote` in `namespace`, which has these sockets.
    fn behind(
        &mut self,
        (namespaces, namespace): (&Namespaces, &Namespace),
        sockets: &[TcpSocket],
        remote: SocketAddr,
    ) -> BTreeSet<u64> {
        for other in namespaces.reachable(Some(namespace), remote.ip()) {
            let found = if other.id == namespace.id {
                accepting(sockets, remote)
            } else {
                accepting(self.of(other), remote)
            };
            if !found.is_empty() {
                return found;
            }
        }
        BTreeSet::new()
    }

    fn of(&mut self, namespace: &Namespace) -> &[TcpSocket] {
        self.0.entry(namespace.id.clone()).or_insert_with(|| {
            let sockets = namespace.sockets().into_iter();
            sockets.filter(|socket| socket.state == TcpState::Listen).collect()
        })
    }
}

fn by_namespace<'a>(namespaces: &'a Namespaces, topology: &Topology) -> Vec<(&'a Namespace, Vec<Pid>)> {
    let mut groups: Vec<(&Namespace, Vec<Pid>)> = Vec::new();
    for pid in topology.servers.iter().chain(&topology.downstream) {
        let Some(namespace) = namespaces.of(*pid) else { continue };
        match groups.iter_mut().find(|group| group.0.id == namespace.id) {
            Some(group) => group.1.push(*pid),
            None => groups.push((namespace, vec![*pid])),
        }
    }
    groups
}

fn add(topology: &mut Topology, found: &BTreeSet<Pid>) {
    let known = |pid: &&Pid| topology.servers.binary_search(pid).is_ok();
    let mut downstream: BTreeSet<Pid> = found.iter().filter(|pid| !known(pid)).copied().collect();
    downstream.extend(&topology.downstream);
    topology.downstream = downstream.into_iter().collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sockets_of_a_namespace_that_is_called_are_read_once_in_a_search() {
        let net = tempfile::tempdir().unwrap();
        let listen = |inode: u64| {
            let socket = "00000000:0050 00000000:0000 0A 00000000:00000000 00:0 0 0 0";
            std::fs::write(net.path().join("tcp"), format!("head\n 0: {socket} {inode} 1\n")).unwrap();
        };
        let namespace = Namespace { id: "net:[2]".into(), through: Some(7), net: net.path().to_owned() };
        let inodes = |listening: &mut Listening| {
            listening.of(&namespace).iter().map(|socket| socket.inode).collect::<Vec<_>>()
        };
        let mut listening = Listening::default();
        listen(50);
        assert_eq!(inodes(&mut listening), [50]);
        listen(51);
        assert_eq!(inodes(&mut listening), [50], "it is not read again");
        assert_eq!(inodes(&mut Listening::default()), [51], "the next search reads it");
    }
}
