//! The tree of processes, and which of them hold a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

use crate::error::ObserveError;
use crate::kernel_files::{KernelPaths, Pid, read_or_empty};
use crate::proc::process;

/// The first process of a system or container. It holds sockets for others (socket activation) and adopts orphans, so its
/// children are not its workers.
pub(crate) const INIT: Pid = 1;

/// Of the processes that are known, one in so many is read again at each refresh, each in its turn.
const TURNS: u32 = 64;

/// All processes and their parents.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    parents: BTreeMap<Pid, Pid>,
    own: Pid,
    turn: u32,
}

impl ProcessTree {
    /// Lists the processes.
    pub(crate) fn read(paths: &KernelPaths) -> Result<Self, ObserveError> {
        let mut tree = Self { parents: BTreeMap::new(), own: std::process::id(), turn: 0 };
        tree.refresh(paths)?;
        Ok(tree)
    }

    /// Lists the processes again. Reading thousands costs much, and few are new: of the others the parent is known, which
    /// changes only when it ends.
    pub(crate) fn refresh(&mut self, paths: &KernelPaths) -> Result<(), ObserveError> {
        let pids = paths
            .processes()
            .map_err(|source| ObserveError::Unreadable { path: paths.proc.clone(), source })?;
        self.turn = self.turn.wrapping_add(1);
        let kept = |pid: Pid| {
            let parent = self.parents.get(&pid).copied().filter(|_| !self.is_due(pid))?;
            (parent == 0 || pids.binary_search(&parent).is_ok()).then_some(parent)
        };
        let read = |pid: Pid| Some(process::stat(&read_or_empty(&paths.process(pid).join("stat")))?.parent);
        let parents = pids.iter().filter_map(|pid| Some((*pid, kept(*pid).or_else(|| read(*pid))?)));
        self.parents = parents.collect();
        Ok(())
    }

    /// Whether it is this process's turn to be read again, though it is known.
    pub(crate) fn is_due(&self, pid: Pid) -> bool {
        pid.wrapping_add(self.turn).is_multiple_of(TURNS)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lay_out(paths: &KernelPaths, pid: Pid, parent: Pid) {
        std::fs::create_dir_all(paths.process(pid)).unwrap();
        let stat = format!("{pid} (x) S {parent}{}", " 0".repeat(30));
        std::fs::write(paths.process(pid).join("stat"), stat).unwrap();
    }

    #[test]
    fn known_processes_are_read_again_in_turn_and_orphans_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let paths = KernelPaths { proc: folder.path().into(), ..KernelPaths::default() };
        for (pid, parent) in [(1, 0), (70, 1), (71, 70), (72, 70)] {
            lay_out(&paths, pid, parent);
        }
        let mut tree = ProcessTree::read(&paths).unwrap();
        assert_eq!(tree.with_descendants([70].into()), [70, 71, 72].into());
        lay_out(&paths, 72, 1);
        lay_out(&paths, 73, 70);
        tree.refresh(&paths).unwrap();
        assert_eq!(tree.with_descendants([70].into()), [70, 71, 72, 73].into(), "73 is new, 72 is known");
        (0..TURNS).for_each(|_| tree.refresh(&paths).unwrap());
        assert_eq!(tree.with_descendants([70].into()), [70, 71, 73].into());
        std::fs::remove_dir_all(paths.process(70)).unwrap();
        lay_out(&paths, 71, 73);
        tree.refresh(&paths).unwrap();
        assert!(!tree.contains(70));
        assert_eq!(tree.with_descendants([73].into()), [71, 73].into(), "the parent that was known is gone");
    }
}
