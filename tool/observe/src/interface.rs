//! An interface of this host, and what shapes all that it sends.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use crate::kernel_files::{KernelPaths, read};
use crate::netlink::{NetlinkSockets, qdisc, route};
use crate::topology::Topology;
use crate::topology::namespaces::Namespace;

/// What samples add to the names of interfaces in a namespace of the server's own.
pub(crate) const IN_SERVERS_NAMESPACE: &str = " (server's namespace)";

/// A network interface of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's name of it.
    pub name: String,
    /// The file by which its network namespace is entered; `None`: this process's own.
    pub namespace: Option<PathBuf>,
}

/// The queueing discipline that all packets leave an interface by (tc(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootQdisc {
    /// The kernel's choice. It comes back where another one is deleted.
    Default,
    /// A token bucket, with all that it was told.
    TokenBucket(TokenBucket),
    /// Another one, or a token bucket that was told more.
    Other,
}

/// The settings of a token bucket (tc-tbf(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    /// Its rate, bits per second.
    pub bits_per_s: u64,
    /// Bytes that it lets through at once.
    pub burst_bytes: u64,
    /// Bytes that may wait in it.
    pub limit_bytes: u32,
}

impl Interface {
    /// The queueing discipline at its root.
    ///
    /// # Errors
    /// If its namespace may not be entered, or it has gone.
    pub fn root_qdisc(&self) -> io::Result<RootQdisc> {
        let mut sockets = NetlinkSockets::open(self.namespace.as_deref())?;
        let names = route::names(&mut sockets.route)?;
        let index = names.into_iter().find(|(_, name)| *name == self.name).map(|(index, _)| index);
        let index = index.ok_or(io::ErrorKind::NotFound)?;
        let (root, defaults) = qdisc::root(&mut sockets.route, index)?;
        let would_be_lost = root == RootQdisc::Default && !come_back(&defaults, kernels_choice().as_deref());
        Ok(if would_be_lost { RootQdisc::Other } else { root })
    }
}

/// Whether the kernel would choose these disciplines again: what it chooses may have been set only after the interface came up.
fn come_back(disciplines: &BTreeSet<String>, choice: Option<&str>) -> bool {
    // Those of interfaces without a queue, and around several queues, are always the same.
    disciplines.iter().all(|name| ["noqueue", "mq"].contains(&name.as_str()) || Some(name.as_str()) == choice)
}

/// The discipline that the kernel gives to queues. Other network namespaces than the first are not told.
fn kernels_choice() -> Option<String> {
    let text = read(&KernelPaths::default().proc.join("sys/net/core/default_qdisc")).ok()?;
    Some(text.trim().to_owned())
}

impl Topology {
    /// The interface that samples give this name. `None` where nothing leads into its namespace.
    #[must_use]
    pub fn interface(&self, name: &str) -> Option<Interface> {
        let Some(inside) = name.strip_suffix(IN_SERVERS_NAMESPACE) else {
            return Some(Interface { name: name.to_owned(), namespace: None });
        };
        let namespace = self.namespace.as_ref().and_then(Namespace::entrance)?;
        Some(Interface { name: inside.to_owned(), namespace: Some(namespace) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_of_the_servers_namespace_is_never_taken_for_one_of_ours() {
        let mut topology = Topology::unseen(([127, 0, 0, 1], 80).into());
        let ours = Interface { name: "eth0".into(), namespace: None };
        assert_eq!(topology.interface("eth0"), Some(ours));
        let theirs = format!("eth0{IN_SERVERS_NAMESPACE}");
        assert_eq!(topology.interface(&theirs), None);
        topology.namespace =
            Some(Namespace { id: "net:[7]".into(), through: Some(7), net: "/proc/7/net".into() });
        let found = Interface { name: "eth0".into(), namespace: Some("/proc/7/ns/net".into()) };
        assert_eq!(topology.interface(&theirs), Some(found));
    }

    #[test]
    fn a_discipline_that_the_kernel_would_not_choose_again_is_not_its_choice() {
        let come_back = |names: &[&str], choice| {
            come_back(&names.iter().map(|name| (*name).to_owned()).collect(), choice)
        };
        assert!(come_back(&["fq_codel", "mq"], Some("fq_codel")) && come_back(&["noqueue"], None));
        assert!(!come_back(&["pfifo_fast"], Some("fq")) && !come_back(&["mq", "pfifo_fast"], None));
    }

    #[test]
    fn loopback_has_the_discipline_that_the_kernel_chose() {
        let interface = |name: &str| Interface { name: name.into(), namespace: None };
        assert_eq!(interface("lo").root_qdisc().unwrap(), RootQdisc::Default);
        assert!(interface("no such link").root_qdisc().is_err());
    }
}
