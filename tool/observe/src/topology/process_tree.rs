//! The tree of processes, and which of them hold a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

use crate::error::ObserveError;
use crate::kernel_files::{KernelPaths, Pid, read_or_empty};
use crate::proc::process;

/// The first process of a system or container. It holds sockets for others (socket activation) and adopts orphans, so its
/// children are not its workers.
pub(crate) const INIT: Pid = 1;

/// All processes and their parents.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    parents: BTreeMap<Pid, Pid>,
    own: Pid,
}

impl ProcessTree {
    /// Lists the processes.
    pub(crate) fn read(paths: &KernelPaths) -> Result<Self, ObserveError> {
        let pids = paths
            .processes()
            .map_err(|source| ObserveError::Unreadable { path: paths.proc.clone(), source })?;
        let parent = |pid: Pid| {
            let stat = process::stat(&read_or_empty(&paths.process(pid).join("stat")))?;
            Some((pid, stat.parent))
        };
        Ok(Self { parents: pids.into_iter().filter_map(parent).collect(), own: std::process::id() })
    }

    pub(crate) fn pids(&self) -> impl Iterator<Item = Pid> + '_ {
        self.parents.keys().copied()
    }

    pub(crate) fn contains(&self, pid: Pid) -> bool {
        self.parents.contains_key(&pid)
    }

    /// The processes of `tier` that are still alive, and their descendants, ascending.
    pub(crate) fn alive(&self, tier: &[Pid]) -> Vec<Pid> {
        let alive = tier.iter().copied().filter(|pid| self.parents.contains_key(pid)).collect();
        self.with_descendants(alive).into_iter().collect()
    }

    /// The processes of a tier: those that hold its socket and their descendants, without this process. The init process
    /// belongs to it only if no other does.
    pub(crate) fn tier(&self, holders: &BTreeSet<Pid>) -> BTreeSet<Pid> {
        let mut tier: BTreeSet<Pid> = holders.iter().copied().filter(|pid| *pid != self.own).collect();
        if tier.len() > 1 {
            tier.remove(&INIT);
        }
        self.with_descendants(tier)
    }

    fn with_descendants(&self, mut tier: BTreeSet<Pid>) -> BTreeSet<Pid> {
        // Each round adds a generation.
        loop {
            let joining = self.parents.iter().filter(|(pid, parent)| self.joins(&tier, **pid, **parent));
            let joining: Vec<Pid> = joining.map(|pair| *pair.0).collect();
            if joining.is_empty() {
                return tier;
            }
            tier.extend(joining);
        }
    }

    fn joins(&self, tier: &BTreeSet<Pid>, pid: Pid, parent: Pid) -> bool {
        parent != INIT && pid != self.own && tier.contains(&parent) && !tier.contains(&pid)
    }
}

/// The processes that hold the sockets searched for.
#[derive(Debug, Default)]
pub(crate) struct SocketHolders {
    pub(crate) pids: BTreeSet<Pid>,
    /// The inodes that are held, each with the first process that does; the init process only if no other does.
    pub(crate) first: BTreeMap<u64, Pid>,
    /// How many processes may not be inspected.
    pub(crate) denied: usize,
}

impl SocketHolders {
    /// The inodes searched for, each with its owner if it has one.
    pub(crate) fn owners(&self, inodes: &BTreeSet<u64>) -> BTreeMap<u64, Option<Pid>> {
        inodes.iter().map(|inode| (*inode, self.first.get(inode).copied())).collect()
    }
}

/// Finds the processes among `pids` that hold one of the sockets `inodes`.
pub(crate) fn socket_holders(
    paths: &KernelPaths,
    pids: impl Iterator<Item = Pid>,
    inodes: &BTreeSet<u64>,
) -> SocketHolders {
    let mut holders = SocketHolders::default();
    for pid in pids {
        match sockets_of(paths, pid) {
            Ok(sockets) => {
                for inode in sockets.filter(|inode| inodes.contains(inode)) {
                    holders.pids.insert(pid);
                    let first = holders.first.entry(inode).or_insert(pid);
                    if *first == INIT {
                        *first = pid;
                    }
                }
            }
            Err(ErrorKind::PermissionDenied) => holders.denied += 1,
            Err(_) => {}
        }
    }
    holders
}

/// The inodes of the sockets that a process holds.
fn sockets_of(paths: &KernelPaths, pid: Pid) -> Result<impl Iterator<Item = u64>, ErrorKind> {
    let entries = std::fs::read_dir(paths.process(pid).join("fd")).map_err(|error| error.kind())?;
    Ok(entries.flatten().filter_map(|entry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    }))
}
