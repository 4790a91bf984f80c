//! Who serves an address, and whom they talk to.

mod follow;
mod namespaces;
mod owners;
mod tiers;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

use crate::{ObserveError, Pid, Roots};
pub(crate) use follow::Follower;
pub(crate) use namespaces::Namespace;
use namespaces::Namespaces;
use owners::{Family, Holders};
use tiers::Tiers;

/// The processes behind an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// The address they serve.
    pub target: SocketAddr,
    /// The processes that hold the listening socket, and their descendants; ascending. Empty where the
    /// target is not on this host.
    pub servers: Vec<Pid>,
    /// The processes those talk to, directly or through others; ascending.
    pub downstream: Vec<Pid>,
    /// Where the servers' sockets live; `None` for our own.
    pub(crate) namespace: Option<Namespace>,
    /// Inodes of the listening sockets of all tiers, with who owns them.
    pub(crate) listeners: BTreeMap<u64, Option<Pid>>,
}

impl Topology {
    /// For a target whose processes cannot be seen: only the generator and the host are watched.
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

    /// Whether it was made by [`Topology::unseen`]: servers that all ended leave their sockets behind.
    fn is_unseen(&self) -> bool {
        self.listeners.is_empty()
    }
}

/// Finds the processes behind `target` on this host.
///
/// # Errors
/// When the address is not local, nobody listens there, or the listener may not be seen.
pub fn find(target: SocketAddr) -> Result<Topology, ObserveError> {
    find_in(&Roots::default(), target)
}

/// Finds the processes behind several addresses, as those of one system: each of them is a server of it, whoever else
/// among them asks it. The listen queues and the network that are watched are those of the first address's host.
///
/// # Errors
/// As [`find`], of the first address that is not found.
pub fn find_all(targets: &[SocketAddr]) -> Result<Topology, ObserveError> {
    let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let (first, others) = targets.split_first().ok_or(ObserveError::NotListening(nowhere))?;
    others.iter().try_fold(find(*first)?, |all, target| Ok(all.joined_with(find(*target)?)))
}

/// The same, read from `roots`.
///
/// # Errors
/// As [`find`].
pub fn find_in(roots: &Roots, target: SocketAddr) -> Result<Topology, ObserveError> {
    let target = SocketAddr::new(target.ip().to_canonical(), target.port());
    let family = Family::read(roots)?;
    let namespaces = Namespaces::read(roots, family.pids());
    let (namespace, listeners) = listening(&namespaces, target)?;
    let holders = owners::holders(roots, family.pids(), &listeners);
    let mut topology = Topology {
        target,
        servers: servers(&family, target, &holders)?,
        downstream: Vec::new(),
        namespace: Some(namespace),
        listeners: holders.owners(&listeners),
    };
    Tiers::default().extend(roots, &family, &namespaces, &mut topology);
    Ok(topology)
}

/// The namespace that has the address, and the inodes of the sockets that listen there.
fn listening(
    namespaces: &Namespaces,
    target: SocketAddr,
) -> Result<(Namespace, BTreeSet<u64>), ObserveError> {
    let mut local = false;
    for namespace in namespaces.with_address(target.ip()) {
        local = true;
        let inodes = namespace.listeners_on(target);
        if !inodes.is_empty() {
            return Ok((namespace.clone(), inodes));
        }
    }
    Err(if local { ObserveError::NotListening(target) } else { ObserveError::NotLocal(target) })
}

fn servers(family: &Family, target: SocketAddr, holders: &Holders) -> Result<Vec<Pid>, ObserveError> {
    if holders.pids.is_empty() {
        let denied = holders.denied > 0;
        return Err(if denied {
            ObserveError::PermissionDenied(target)
        } else {
            ObserveError::NoOwner(target)
        });
    }
    let servers = family.tier(&holders.pids);
    if servers.is_empty() { Err(ObserveError::OwnProcess(target)) } else { Ok(servers.into_iter().collect()) }
}
