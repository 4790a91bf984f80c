//! Processes that came since the topology was found.

use std::collections::BTreeSet;

use super::namespaces::Namespaces;
use super::owners::{Family, INIT};
use super::tiers::Tiers;
use super::{Topology, find_in};
use crate::Pid;
use crate::roots::{Roots, read_or_empty};

/// Keeps a topology up to date.
#[derive(Debug)]
pub(crate) struct Follower {
    roots: Roots,
    tiers: Tiers,
}

impl Follower {
    pub(crate) fn new(roots: &Roots) -> Self {
        Self { roots: roots.clone(), tiers: Tiers::default() }
    }

    /// Searches again: descendants, tiers behind; the servers themselves if all of them ended.
    pub(crate) fn follow(&mut self, topology: &mut Topology) {
        if topology.is_unseen() {
            return;
        }
        let Ok(family) = Family::read(&self.roots) else { return };
        topology.servers = family.still(&topology.servers);
        topology.downstream = family.still(&topology.downstream);
        if topology.servers.is_empty() {
            self.find_again(topology);
            return;
        }
        let namespaces = Namespaces::read(&self.roots, family.pids());
        self.tiers.extend(&self.roots, &family, &namespaces, topology);
    }

    fn find_again(&self, topology: &mut Topology) {
        if let Ok(found) = find_in(&self.roots, topology.target) {
            *topology = found;
        }
    }

    /// Adds the children of the processes, as far as the kernel lists them: cheap enough for every look,
    /// for servers that fork per connection.
    pub(crate) fn follow_children(&self, topology: &mut Topology) {
        for tier in [&mut topology.servers, &mut topology.downstream] {
            let children: BTreeSet<Pid> = tier.iter().flat_map(|pid| children(&self.roots, *pid)).collect();
            if children.iter().any(|child| tier.binary_search(child).is_err()) {
                let all: BTreeSet<Pid> = tier.iter().copied().chain(children).collect();
                *tier = all.into_iter().collect();
            }
        }
    }
}

/// What the main thread forked. Children of other threads are found by [`Follower::follow`].
fn children(roots: &Roots, pid: Pid) -> Vec<Pid> {
    if pid == INIT {
        return Vec::new();
    }
    let path = roots.process(pid).join("task").join(pid.to_string()).join("children");
    let own = std::process::id();
    read_or_empty(&path)
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .filter(|child| *child != own)
        .collect()
}
