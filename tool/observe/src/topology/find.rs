//! The search for the processes behind an address.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use super::Topology;
use super::namespaces::{Namespace, Namespaces};
use super::process_tree::{ProcessTree, SocketHolders, socket_holders};
use super::tiers::TierSearch;
use crate::error::ObserveError;
use crate::kernel_files::{KernelPaths, Pid};

/// Finds the processes behind `target` on this host.
///
/// # Errors
/// When the address is not local, no process listens there, or the listening process may not be seen.
pub fn find(target: SocketAddr) -> Result<Topology, ObserveError> {
    find_in(&KernelPaths::default(), target)
}

/// Finds the processes behind several addresses of one system. Each of them counts as a server, even if others among
/// them call it. The listen queues and the network that are watched are those of the first address's host.
///
/// # Errors
/// The same as [`find`], for the first address that is not found.
pub fn find_all(targets: &[SocketAddr]) -> Result<Topology, ObserveError> {
    let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let (first, others) = targets.split_first().ok_or(ObserveError::NotListening(nowhere))?;
    others.iter().try_fold(find(*first)?, |all, target| Ok(all.joined_with(find(*target)?)))
}

/// Does what [`find`] does, with files from `paths`.
///
/// # Errors
/// The same as [`find`].
pub fn find_in(paths: &KernelPaths, target: SocketAddr) -> Result<Topology, ObserveError> {
    let target = SocketAddr::new(target.ip().to_canonical(), target.port());
    let tree = ProcessTree::read(paths)?;
    let namespaces = Namespaces::read(paths, &tree);
    let (namespace, listeners) = listening(&namespaces, target)?;
    let holders = socket_holders(paths, tree.pids(), &listeners);
    let mut topology = Topology {
        servers: servers(&tree, target, &holders)?,
        namespace: Some(namespace),
        listeners: holders.owners(&listeners),
        ..Topology::unseen(target)
    };
    TierSearch::default().extend(paths, &tree, &namespaces, &mut topology);
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

fn servers(
    tree: &ProcessTree,
    target: SocketAddr,
    holders: &SocketHolders,
) -> Result<Vec<Pid>, ObserveError> {
    if holders.pids.is_empty() {
        let denied = holders.denied > 0;
        return Err(if denied {
            ObserveError::PermissionDenied(target)
        } else {
            ObserveError::NoOwner(target)
        });
    }
    let servers = tree.tier(&holders.pids);
    if servers.is_empty() { Err(ObserveError::OwnProcess(target)) } else { Ok(servers.into_iter().collect()) }
}
