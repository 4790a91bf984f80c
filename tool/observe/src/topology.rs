//! Which processes serve an address, and which they talk to.

pub(crate) mod find;
pub(crate) mod namespaces;
mod process_tree;
mod tiers;
pub(crate) mod tracker;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::kernel_files::Pid;
use namespaces::Namespace;

/// The processes behind an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// The address that they serve.
    pub target: SocketAddr,
    /// The processes that hold the listening socket, and their descendants, ascending. Empty if the target is not on
    /// this host.
    pub servers: Vec<Pid>,
    /// The processes that the servers talk to, directly or through others, ascending.
    pub downstream: Vec<Pid>,
    /// The network namespace of the servers' sockets; `None` for our own.
    pub(crate) namespace: Option<Namespace>,
    /// The inodes of all tiers' listening sockets, with the process that owns each.
    pub(crate) listeners: BTreeMap<u64, Option<Pid>>,
}

impl Topology {
    /// The topology of a target whose processes cannot be seen, so only the generator and the host are watched.
    #[must_use]
    pub fn unseen(target: SocketAddr) -> Self {
        Self {
            target,
            servers: Vec::new(),
            downstream: Vec::new(),
            namespace: None,
            listeners: BTreeMap::new(),
        }
    }

    fn joined_with(mut self, other: Self) -> Self {
        let servers: BTreeSet<Pid> = self.servers.into_iter().chain(other.servers).collect();
        let behind: BTreeSet<Pid> = self.downstream.into_iter().chain(other.downstream).collect();
        self.downstream = behind.difference(&servers).copied().collect();
        self.servers = servers.into_iter().collect();
        self.listeners.extend(other.listeners);
        self
    }

    /// Whether it was made by [`Topology::unseen`]. Servers that have all ended leave their sockets here.
    fn is_unseen(&self) -> bool {
        self.listeners.is_empty()
    }
}
