//! Which processes hold a socket, and who descends from whom.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

use crate::proc::stat;
use crate::roots::{Roots, read_or_empty};
use crate::{ObserveError, Pid};

/// The first process of a system (or container): it holds sockets for others (socket activation) and
/// adopts orphans, so that its children are not its workers.
pub(super) const INIT: Pid = 1;

/// All processes and their parents.
#[derive(Debug)]
pub(crate) struct Family {
    parents: BTreeMap<Pid, Pid>,
    own: Pid,
}

impl Family {
    /// Lists the processes.
    pub(crate) fn read(roots: &Roots) -> Result<Self, ObserveError> {
        let pids = roots
            .processes()
            .map_err(|source| ObserveError::Unreadable { path: roots.proc.clone(), source })?;
        let parent = |pid: Pid| {
            let stat = stat::parse(&read_or_empty(&roots.process(pid).join("stat")))?;
            Some((pid, stat.parent))
        };
        Ok(Self { parents: pids.into_iter().filter_map(parent).collect(), own: std::process::id() })
    }

    pub(crate) fn pids(&self) -> impl Iterator<Item = Pid> + '_ {
        self.parents.keys().copied()
    }

    /// Those of `tier` that still live, and their descendants; ascending.
    pub(crate) fn still(&self, tier: &[Pid]) -> Vec<Pid> {
        let alive = tier.iter().copied().filter(|pid| self.parents.contains_key(pid)).collect();
        self.with_descendants(alive).into_iter().collect()
    }

    /// The processes of a tier: those that hold its socket and their descendants, without this process.
    /// The init process belongs to it only if nobody else does.
    pub(crate) fn tier(&self, holders: &BTreeSet<Pid>) -> BTreeSet<Pid> {
        let mut tier: BTreeSet<Pid> = holders.iter().copied().filter(|pid| *pid != self.own).collect();
        if tier.len() > 1 {
            tier.remove(&INIT);
        }
        self.with_descendants(tier)
    }

    fn with_descendants(&self, mut tier: BTreeSet<Pid>) -> BTreeSet<Pid> {
        // One round per generation.
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

impl Holders {
    /// The inodes searched for, each with the process that owns it, if one does.
    pub(crate) fn owners(&self, inodes: &BTreeSet<u64>) -> BTreeMap<u64, Option<Pid>> {
        inodes.iter().map(|inode| (*inode, self.first.get(inode).copied())).collect()
    }
}

/// What a search for the holders of sockets found.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    pub(crate) pids: BTreeSet<Pid>,
    /// Those of the inodes that somebody holds, with the first process that does; the init
    /// process only if no other does.
    pub(crate) first: BTreeMap<u64, Pid>,
    /// How many processes may not be looked into.
    pub(crate) denied: usize,
}

/// The processes among `pids` that hold one of the sockets `inodes`.
pub(crate) fn holders(roots: &Roots, pids: impl Iterator<Item = Pid>, inodes: &BTreeSet<u64>) -> Holders {
    let mut holders = Holders::default();
    for pid in pids {
        match sockets_of(roots, pid) {
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

/// Inodes of the sockets a process holds.
fn sockets_of(roots: &Roots, pid: Pid) -> Result<impl Iterator<Item = u64>, ErrorKind> {
    let entries = std::fs::read_dir(roots.process(pid).join("fd")).map_err(|error| error.kind())?;
    Ok(entries.flatten().filter_map(|entry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    }))
}
