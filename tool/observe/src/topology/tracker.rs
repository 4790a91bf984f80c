//! Tracking of processes that came since the topology was found.

use std::collections::BTreeSet;

use super::Topology;
use super::find::find_in;
use super::namespaces::Namespaces;
use super::process_tree::{INIT, ProcessTree};
use super::tiers::TierSearch;
use crate::kernel_files::{KernelPaths, Pid, read_or_empty};

/// Keeps a topology up to date.
#[derive(Debug)]
pub(crate) struct TopologyTracker {
    paths: KernelPaths,
    tiers: TierSearch,
    /// The processes and their namespaces at the last search.
    known: Option<(ProcessTree, Namespaces)>,
}

impl TopologyTracker {
    pub(crate) fn new(paths: &KernelPaths) -> Self {
        Self { paths: paths.clone(), tiers: TierSearch::new(paths), known: None }
    }

    /// Searches again for descendants and for tiers behind, and for the servers themselves if all of them ended.
    pub(crate) fn search(&mut self, topology: &mut Topology) {
        if topology.is_unseen() {
            return;
        }
        let Some((tree, namespaces)) = self.processes() else { return };
        topology.servers = tree.alive(&topology.servers);
        topology.downstream = tree.alive(&topology.downstream);
        if topology.servers.is_empty() {
            self.find_again(topology);
        } else {
            topology.retain_callers(|pid| tree.contains(pid));
            self.tiers.extend(&self.paths, &tree, &namespaces, topology);
        }
        self.known = Some((tree, namespaces));
    }

    /// All processes now.
    fn processes(&mut self) -> Option<(ProcessTree, Namespaces)> {
        let Some((mut tree, mut namespaces)) = self.known.take() else {
            let tree = ProcessTree::read(&self.paths).ok()?;
            let namespaces = Namespaces::read(&self.paths, &tree);
            return Some((tree, namespaces));
        };
        tree.refresh(&self.paths).ok()?;
        namespaces.refresh(&self.paths, &tree);
        Some((tree, namespaces))
    }

    fn find_again(&self, topology: &mut Topology) {
        let again = |address| find_in(&self.paths, address).ok();
        // What took its place may be at another address, to which the load is led all the same.
        let found = again(topology.target).or_else(|| again(topology.service?));
        if let Some(found) = found {
            let generators = std::mem::take(&mut topology.generators);
            let Topology { service, load_is_far, is_behind, .. } = *topology;
            *topology = Topology { service, load_is_far, is_behind, generators, ..found };
        }
    }

    /// The processes that listened at the last search and have gone since. This is cheap enough for every sample, too.
    pub(crate) fn gone(&self, topology: &Topology) -> BTreeSet<Pid> {
        let owners: BTreeSet<Pid> = topology.listeners.values().flatten().copied().collect();
        owners.into_iter().filter(|pid| !self.paths.process(*pid).exists()).collect()
    }

    /// Adds the children of the processes, as far as the kernel lists them. This is cheap enough for every sample, for
    /// servers that fork per connection.
    pub(crate) fn add_children(&self, topology: &mut Topology) {
        for tier in [&mut topology.servers, &mut topology.downstream] {
            let children: BTreeSet<Pid> = tier.iter().flat_map(|pid| children(&self.paths, *pid)).collect();
            if children.iter().any(|child| tier.binary_search(child).is_err()) {
                let all: BTreeSet<Pid> = tier.iter().copied().chain(children).collect();
                *tier = all.into_iter().collect();
            }
        }
    }
}

/// The children that the main thread forked. [`TopologyTracker::search`] finds those of other threads.
fn children(paths: &KernelPaths, pid: Pid) -> Vec<Pid> {
    if pid == INIT {
        return Vec::new();
    }
    let path = paths.process(pid).join("task").join(pid.to_string()).join("children");
    let own = std::process::id();
    read_or_empty(&path)
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .filter(|child| *child != own)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn who_listened_and_has_gone_is_noticed_without_a_search() {
        let folder = tempfile::tempdir().unwrap();
        let paths = KernelPaths { proc: folder.path().into(), ..KernelPaths::default() };
        std::fs::create_dir_all(paths.process(7)).unwrap();
        let listeners = BTreeMap::from([(1, Some(7)), (2, Some(8)), (3, Some(8)), (4, None)]);
        let topology = Topology { listeners, ..Topology::unseen(([127, 0, 0, 1], 80).into()) };
        assert_eq!(TopologyTracker::new(&paths).gone(&topology), BTreeSet::from([8]));
    }
}
