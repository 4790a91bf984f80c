//! The search for the processes behind an address.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::Topology;
use super::namespaces::{Namespace, Namespaces};
use super::process_tree::{ProcessTree, SocketHolders, socket_holders};
use super::tiers::TierSearch;
use super::translation::{Leads, leads_to};
use crate::error::ObserveError;
use crate::kernel_files::{KernelPaths, Pid};
use crate::netlink::conntrack::Called;

/// Finds the processes behind `target` on this host. Where address translation leads connections from here on to another port
/// or address, they are those behind that one: connection tracking tells of connections that are open, or were a moment ago.
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
    let paths = KernelPaths::default();
    let host = Finder::read(&paths)?;
    others.iter().try_fold(host.find(*first)?, |all, target| Ok(all.joined_with(host.find(*target)?)))
}

/// Where the processes behind an address listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The address that they listen on.
    pub at: SocketAddr,
    /// Whether nothing but its port says that they are behind the one that was asked for.
    pub by_port: bool,
}

impl Found {
    fn of(called: SocketAddr, topology: &Topology) -> Self {
        let at = topology.target;
        Self { at, by_port: topology.service.is_none() && at != canonical(called) }
    }
}

/// Finds what serves the port of each target on this host, for somebody elsewhere who calls it by an address that need
/// not be one of this host's: address translation changes it on the way. Finds too what serves the addresses that tiers on
/// other hosts call, `behind` the targets, and these only where this host has them or leads them on. Where connections to an
/// address are translated on this host, as those to the published ports of containers are, it finds what they lead to, as soon as
/// any have been made.
///
/// The topology is of all that were found, or of none. With it comes for each target, and then for each of the others, where
/// its processes listen, or why they were not found.
pub fn find_for_far_load(
    targets: &[SocketAddr],
    behind: &[SocketAddr],
) -> (Topology, Vec<Result<Found, ObserveError>>) {
    let paths = KernelPaths::default();
    let host = Finder::read(&paths).ok();
    // An error cannot be copied: where the host may not be read, each address has its own.
    let on_host = |find: fn(&Finder, SocketAddr) -> Result<Topology, ObserveError>, address| match &host {
        Some(host) => find(host, address),
        None => find(&Finder::read(&paths)?, address),
    };
    let found: Vec<_> = targets.iter().map(|target| on_host(Finder::find_by_port, *target)).collect();
    let found_behind: Vec<_> =
        behind.iter().map(|address| on_host(Finder::find_translated, *address)).collect();
    let joined = |found: &[Result<Topology, ObserveError>]| {
        found.iter().filter_map(|found| found.as_ref().ok()).cloned().reduce(Topology::joined_with)
    };
    let nowhere = || SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let all = match (joined(&found), joined(&found_behind)) {
        (Some(served), Some(behind)) => served.with_behind(behind),
        (Some(served), None) => served,
        (None, Some(behind)) => Topology { is_behind: true, ..behind },
        (None, None) => Topology::unseen(targets.first().copied().unwrap_or_else(nowhere)),
    };
    let called = targets.iter().chain(behind);
    let found = called.zip(found.into_iter().chain(found_behind));
    (all.with_far_load(), found.map(|(called, found)| Ok(Found::of(*called, &found?))).collect())
}

/// Does what [`find`] does, with files from `paths`.
///
/// # Errors
/// The same as [`find`].
pub fn find_in(paths: &KernelPaths, target: SocketAddr) -> Result<Topology, ObserveError> {
    Finder::read(paths)?.find(target)
}

/// Finds what serves addresses in what was read once of this host: of many addresses few are local.
struct Finder {
    paths: KernelPaths,
    tree: ProcessTree,
    namespaces: Namespaces,
    /// The addresses that any namespace has.
    addresses: BTreeSet<IpAddr>,
    /// Those of this process's own.
    own: BTreeSet<IpAddr>,
}

impl Finder {
    fn read(paths: &KernelPaths) -> Result<Self, ObserveError> {
        let tree = ProcessTree::read(paths)?;
        let namespaces = Namespaces::read(paths, &tree);
        let addresses = namespaces.addresses();
        let own = namespaces.own().map(Namespace::addresses).unwrap_or_default();
        Ok(Self { paths: paths.clone(), tree, namespaces, addresses, own })
    }

    /// Finds what serves those who call the address from here.
    fn find(&self, target: SocketAddr) -> Result<Topology, ObserveError> {
        self.find_for(Called { service: canonical(target), from: Some(&self.own) })
    }

    /// Finds what serves those who call the address from anywhere.
    fn find_translated(&self, address: SocketAddr) -> Result<Topology, ObserveError> {
        self.find_for(Called { service: canonical(address), from: None })
    }

    /// Finds what serves the addresses to which this host translates one, or else what serves the address itself: what listens
    /// at a published port gets only what is not translated.
    fn find_for(&self, called: Called<'_>) -> Result<Topology, ObserveError> {
        let Led { to, is_refused } = self.led_from(called);
        let found = to.into_iter().filter_map(|(within, server)| self.find_at(Some(within), server).ok());
        if let Some(found) = found.reduce(Topology::joined_with) {
            return Ok(Topology { service: Some(called.service), ..found });
        }
        match self.find_at(self.namespaces.own(), called.service) {
            Err(ObserveError::NotListening(address)) if is_refused => {
                Err(ObserveError::TranslationUnread(address))
            }
            found => found,
        }
    }

    /// Where connections to an address are translated to: in this process's own namespace, which they leave or pass, and then
    /// in the one that they lead into.
    fn led_from(&self, called: Called<'_>) -> Led<'_> {
        let Some(own) = self.namespaces.own() else { return Led::default() };
        let Leads { to, is_refused } = leads_to(&self.paths, own, called);
        let further = |stop| self.led_into(own, Called { service: stop, ..called });
        if to.is_empty() {
            return Led { to: further(called.service), is_refused };
        }
        let to = to.into_iter().flat_map(|stop| {
            let further = further(stop);
            if further.is_empty() { vec![(own, stop)] } else { further }
        });
        Led { to: to.collect(), is_refused }
    }

    /// Where the namespaces that have an address translate connections from another one to.
    fn led_into<'a>(&'a self, from: &'a Namespace, called: Called<'_>) -> Vec<(&'a Namespace, SocketAddr)> {
        let ip = called.service.ip();
        let mut ends = self.namespaces.reachable(Some(from), ip).peekable();
        if !self.is_local(ip) || ends.peek().is_none_or(|end| end.id == from.id) {
            return Vec::new();
        }
        let to = |end: &'a Namespace| leads_to(&self.paths, end, called).to;
        ends.flat_map(|end| to(end).into_iter().map(move |server| (end, server))).collect()
    }

    /// Finds what serves the address, called from a namespace.
    fn find_at(&self, from: Option<&Namespace>, target: SocketAddr) -> Result<Topology, ObserveError> {
        self.topology(self.listening(from, target)?, target)
    }

    /// Finds what serves the address, or else the same port at any other.
    fn find_by_port(&self, target: SocketAddr) -> Result<Topology, ObserveError> {
        use ObserveError::{NotListening, NotLocal, TranslationUnread};
        let error = match self.find_translated(target) {
            Err(error @ (NotLocal(_) | NotListening(_) | TranslationUnread(_))) => error,
            found => return found,
        };
        match self.namespaces.listening_on_port(target.port()) {
            Some((namespace, listeners, address)) => self.topology((namespace, listeners), address),
            None => Err(error),
        }
    }

    /// The processes that hold the sockets which listen in a namespace, and the tiers behind them.
    fn topology(
        &self,
        (namespace, listeners): (Namespace, BTreeSet<u64>),
        target: SocketAddr,
    ) -> Result<Topology, ObserveError> {
        let holders = socket_holders(&self.paths, self.tree.pids(), &listeners);
        let mut topology = Topology {
            servers: servers(&self.tree, target, &holders)?,
            namespace: Some(namespace),
            listeners: holders.owners(&listeners),
            ..Topology::unseen(target)
        };
        TierSearch::new(&self.paths).extend(&self.paths, &self.tree, &self.namespaces, &mut topology);
        Ok(topology)
    }

    /// The namespace that has the address, called from another or the same, and the inodes of the sockets that listen there.
    fn listening(
        &self,
        from: Option<&Namespace>,
        target: SocketAddr,
    ) -> Result<(Namespace, BTreeSet<u64>), ObserveError> {
        if !self.is_local(target.ip()) {
            return Err(ObserveError::NotLocal(target));
        }
        let listening = self.namespaces.reachable(from, target.ip()).find_map(|namespace| {
            let inodes = namespace.listeners_on(target);
            (!inodes.is_empty()).then(|| (namespace.clone(), inodes))
        });
        listening.ok_or(ObserveError::NotListening(target))
    }

    fn is_local(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || ip.is_unspecified() || self.addresses.contains(&ip)
    }
}

/// What address translation makes of connections.
#[derive(Default)]
struct Led<'a> {
    /// The addresses that they lead to, each with the namespace in which it is translated last.
    to: Vec<(&'a Namespace, SocketAddr)>,
    /// Whether this process may not ask about those of its own namespace.
    is_refused: bool,
}

/// The same address, as IPv4 where it is that.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_at_another_address_is_found_by_its_port_alone_unless_connections_lead_there() {
        let [called, at] = [[10u8, 0, 0, 1], [172, 17, 0, 2]].map(|ip| SocketAddr::from((ip, 80)));
        let mapped: SocketAddr = "[::ffff:10.0.0.1]:80".parse().unwrap();
        let by_port = |called: SocketAddr, topology: Topology| Found::of(called, &topology).by_port;
        assert!(by_port(called, Topology::unseen(at)));
        assert!(!by_port(called, Topology { service: Some(called), ..Topology::unseen(at) }));
        assert!(!by_port(called, Topology::unseen(called)) && !by_port(mapped, Topology::unseen(called)));
    }

    #[test]
    fn many_addresses_are_looked_for_in_what_was_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let net = folder.path().join("net");
        std::fs::create_dir_all(&net).unwrap();
        std::fs::write(net.join("fib_trie"), "Main:\n     |-- 10.0.0.1\n        /32 host LOCAL\n").unwrap();
        let paths = KernelPaths { proc: folder.path().into(), ..KernelPaths::default() };
        let host = Finder::read(&paths).unwrap();
        // What would be read again could not be.
        drop(folder);
        let is_local = |ip: [u8; 4]| !matches!(host.find((ip, 80).into()), Err(ObserveError::NotLocal(_)));
        assert!(matches!(host.find(([10, 0, 0, 1], 80).into()), Err(ObserveError::NotListening(_))));
        let all = [[10, 0, 0, 1], [127, 0, 0, 1], [0, 0, 0, 0], [10, 0, 0, 2], [192, 0, 2, 7]];
        assert_eq!(all.map(is_local), [true, true, true, false, false]);
        assert!(Finder::read(&paths).is_err(), "nothing is left to read");
    }
}
