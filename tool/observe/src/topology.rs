//! Which processes serve an address, and which they talk to.

pub(crate) mod find;
pub(crate) mod namespaces;
pub(crate) mod process_tree;
mod tiers;
pub(crate) mod tracker;
pub(crate) mod translation;
mod unread;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use analysis::counters::ServerAddress;

use crate::kernel_files::Pid;
use namespaces::Namespace;

/// What every service of a system may be connected to, whatever it serves: its log, its bus, its names.
const SYSTEM_SOCKETS: [&str; 4] = ["/run/systemd/", "/run/dbus/", "/run/nscd/", "/var/run/nscd/"];

/// The other end of a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Callee {
    /// A TCP address, as seen from the namespace with this id, behind all translation that is known.
    Tcp(String, SocketAddr),
    /// The inode of a listening unix socket.
    Unix(u64),
}

/// A name of a unix socket as people write it: abstract ones begin with an `@` in place of a zero byte.
pub(crate) fn unix_address(name: &[u8]) -> ServerAddress {
    let (mark, name) = name.strip_prefix(b"\0").map_or(("", name), |rest| ("@", rest));
    let name = String::from_utf8_lossy(name);
    ServerAddress::Unix { path: format!("{mark}{}", name.trim_end_matches('\0')) }
}

/// Who calls an address, and who listens there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Call {
    /// The watched processes that were seen to call it; not necessarily all of them.
    pub(crate) callers: BTreeSet<Pid>,
    /// The inodes of the listening sockets; empty if none on this host is known.
    pub(crate) listeners: BTreeSet<u64>,
    /// Whether address translation failed to answer when it was noted, so that it may lead elsewhere.
    pub(crate) is_unsure: bool,
}

/// The processes behind an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// The address that they serve.
    pub target: SocketAddr,
    /// The address that the load calls, where address translation leads from it to the target.
    pub(crate) service: Option<SocketAddr>,
    /// The processes that hold the listening socket, and their descendants, ascending. Empty if the target is not on
    /// this host.
    pub servers: Vec<Pid>,
    /// The processes that the servers talk to, directly or through others, ascending.
    pub downstream: Vec<Pid>,
    /// The network namespace of the servers' sockets; `None` for our own.
    pub(crate) namespace: Option<Namespace>,
    /// The inodes of all tiers' listening sockets, with the process that owns each.
    pub(crate) listeners: BTreeMap<u64, Option<Pid>>,
    /// The network namespaces in which the tiers live.
    pub(crate) namespaces: Vec<Namespace>,
    /// What the tiers were seen to call.
    pub(crate) calls: BTreeMap<Callee, Call>,
    /// Whether the load comes from another host, so that this process is not the generator.
    pub(crate) load_is_far: bool,
    /// Whether tiers on other hosts call it and the load does not, so that its servers are tiers behind the server.
    pub(crate) is_behind: bool,
    /// Processes beside this one that make the load with it, or in its place.
    pub(crate) generators: Vec<Pid>,
}

impl Topology {
    /// The topology of a target whose processes cannot be seen, so only the generator and the host are watched.
    #[must_use]
    pub fn unseen(target: SocketAddr) -> Self {
        Self {
            target,
            service: None,
            servers: Vec::new(),
            downstream: Vec::new(),
            namespace: None,
            listeners: BTreeMap::new(),
            namespaces: Vec::new(),
            calls: BTreeMap::new(),
            load_is_far: false,
            is_behind: false,
            generators: Vec::new(),
        }
    }

    /// Whether what connects to this address calls the servers, as the load does.
    pub(crate) fn is_called_at(&self, address: SocketAddr) -> bool {
        address == self.target || self.service == Some(address)
    }

    /// The addresses that its processes call, and that processes of this host serve which may not be looked into: those of
    /// another user, or of a container that cannot be seen from here.
    #[must_use]
    pub fn tiers_out_of_sight(&self) -> Vec<ServerAddress> {
        let owner = |inode: &u64| self.listeners.get(inode).copied().flatten();
        let unseen =
            |call: &Call| !call.listeners.is_empty() && call.listeners.iter().all(|one| owner(one).is_none());
        let calls = self.calls.iter().filter(|(_, call)| unseen(call));
        calls.filter_map(|(callee, _)| self.address_of(callee)).collect()
    }

    /// Where a callee is reached; `None` for a unix socket that has gone, or is the system's own.
    fn address_of(&self, callee: &Callee) -> Option<ServerAddress> {
        match callee {
            Callee::Tcp(_, address) => Some(ServerAddress::Tcp { address: *address }),
            Callee::Unix(inode) => {
                let mut sockets = self.namespaces.iter().flat_map(Namespace::unix_sockets);
                let socket = sockets.find(|socket| socket.inode == *inode)?;
                let is_system = |path: &&str| socket.name.starts_with(path.as_bytes());
                SYSTEM_SOCKETS.iter().all(|path| !is_system(path)).then(|| unix_address(&socket.name))
            }
        }
    }

    /// The same for a load that comes from another host: this process is no part of the measurement then.
    #[must_use]
    pub fn with_far_load(self) -> Self {
        Self { load_is_far: true, ..self }
    }

    /// The same for a load that other processes of this host make for this one.
    #[must_use]
    pub fn with_generators(self, generators: Vec<Pid>) -> Self {
        Self { generators, ..self }
    }

    /// The same with processes that tiers on other hosts call.
    fn with_behind(self, behind: Self) -> Self {
        let all: BTreeSet<Pid> = behind.servers.iter().chain(&behind.downstream).copied().collect();
        self.joined_with(Self { servers: Vec::new(), downstream: all.into_iter().collect(), ..behind })
    }

    fn joined_with(mut self, other: Self) -> Self {
        let servers: BTreeSet<Pid> = self.servers.into_iter().chain(other.servers).collect();
        let behind: BTreeSet<Pid> = self.downstream.into_iter().chain(other.downstream).collect();
        self.downstream = behind.difference(&servers).copied().collect();
        self.servers = servers.into_iter().collect();
        self.listeners.extend(other.listeners);
        let others = other.namespaces.into_iter().filter(|namespace| !self.namespaces.contains(namespace));
        let others: Vec<Namespace> = others.collect();
        self.namespaces.extend(others);
        self.calls.extend(other.calls);
        self
    }

    /// Whether it was made by [`Topology::unseen`]. Servers that have all ended leave their sockets here.
    pub(crate) fn is_unseen(&self) -> bool {
        self.listeners.is_empty()
    }

    /// Forgets the calls that may lead elsewhere than was noted, so that they are searched for again.
    fn forget_unsure_calls(&mut self) {
        self.calls.retain(|_, call| !call.is_unsure);
    }

    /// Forgets callers that have ended. What nobody calls any more is searched for again.
    fn retain_callers(&mut self, alive: impl Fn(Pid) -> bool) {
        self.calls.retain(|_, call| {
            call.callers.retain(|pid| alive(*pid));
            !call.callers.is_empty()
        });
    }
}
