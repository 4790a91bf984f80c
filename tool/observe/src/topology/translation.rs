//! Where connections really lead: service addresses are translated on the way, and connection tracking tells to what.
//!
//! It is asked about a connection where that begins, and in this process's own namespace, through which those of containers
//! go. What it says is that of the server: its own address, and the client's as it sees it. Without root it says nothing, and
//! connections are taken as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::namespaces::Namespace;
use crate::clock::monotonic_us;
use crate::kernel_files::KernelPaths;
use crate::netlink::NetlinkSocket;
use crate::netlink::conntrack::{self, Tuple};

/// More addresses or connections than this are forgotten and asked for again.
const KNOWN_MAX: usize = 1 << 14;

/// After so long a connection is asked for again, microseconds: another may have its ports by then.
const KNOWN_US: u64 = 1_000_000;

/// Asks where connections really lead, and remembers answers.
#[derive(Debug)]
pub(crate) struct Translation {
    own: Namespace,
    /// Whether this kernel tracks connections at all.
    is_tracking: bool,
    /// By the id of their namespace.
    namespaces: BTreeMap<String, Tracked>,
}

/// What is known of the connections of one namespace.
#[derive(Debug)]
struct Tracked {
    /// `None` where it may not be asked.
    netlink: Option<NetlinkSocket>,
    /// Addresses that are not translated.
    plain: BTreeSet<SocketAddr>,
    /// Connections that are, with when that was asked.
    translated: BTreeMap<Tuple, (Tuple, u64)>,
}

impl Translation {
    pub(crate) fn new(paths: &KernelPaths) -> Self {
        // Asking a kernel that has it as a module would load that.
        let counter = paths.proc.join("sys/net/netfilter/nf_conntrack_count");
        let is_tracking = paths.proc == KernelPaths::default().proc && counter.exists();
        Self { own: Namespace::own(paths), is_tracking, namespaces: BTreeMap::new() }
    }

    /// A connection that a client in this namespace made, as its server sees it.
    pub(crate) fn seen_by_server(&mut self, namespace: &Namespace, tuple: Tuple) -> Tuple {
        if !self.is_tracking {
            return tuple;
        }
        let first = self.behind(namespace, tuple);
        if namespace.id == self.own.id || first.server.ip().is_loopback() {
            return first;
        }
        let own = self.own.clone();
        self.behind(&own, first)
    }

    fn behind(&mut self, namespace: &Namespace, tuple: Tuple) -> Tuple {
        let open = || Tracked {
            netlink: conntrack::open(namespace).ok(),
            plain: BTreeSet::new(),
            translated: BTreeMap::new(),
        };
        if !self.namespaces.contains_key(&namespace.id) {
            self.namespaces.insert(namespace.id.clone(), open());
        }
        self.namespaces.get_mut(&namespace.id).map_or(tuple, |tracked| tracked.behind(tuple))
    }

    /// Forgets the namespaces of which this does not hold.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        let own = &self.own.id;
        self.namespaces.retain(|id, _| id == own || is_there(id));
    }
}

impl Tracked {
    fn behind(&mut self, tuple: Tuple) -> Tuple {
        if self.plain.contains(&tuple.server) {
            return tuple;
        }
        let now_us = monotonic_us();
        let known = self.translated.get(&tuple).filter(|(_, asked_us)| now_us < asked_us + KNOWN_US);
        if let Some((behind, _)) = known {
            return *behind;
        }
        let Some(netlink) = &mut self.netlink else { return tuple };
        match conntrack::behind(netlink, tuple) {
            Ok(Some(behind)) if behind != tuple => {
                if self.translated.len() >= KNOWN_MAX {
                    self.translated.clear();
                }
                self.translated.insert(tuple, (behind, now_us));
                behind
            }
            // What leads elsewhere leads there for all: an address is translated, or it is not.
            Ok(_) => {
                if self.plain.len() >= KNOWN_MAX {
                    self.plain.clear();
                }
                self.plain.insert(tuple.server);
                tuple
            }
            Err(_) => {
                self.netlink = None;
                tuple
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_taken_as_they_are_where_nothing_is_tracked() {
        let mut translation = Translation::new(&KernelPaths::default());
        let own = Namespace::own(&KernelPaths::default());
        let tuple = Tuple { client: ([127, 0, 0, 1], 40_000).into(), server: ([127, 0, 0, 1], 9).into() };
        assert_eq!(translation.seen_by_server(&own, tuple), tuple);
        translation.is_tracking = false;
        assert_eq!(translation.seen_by_server(&own, tuple), tuple);
    }
}
