//! Which processes hold the clients' ends of connections to tiers.

use std::collections::BTreeSet;

use super::SHARE;
use crate::clock::own_thread_cpu_us;
use crate::kernel_files::{KernelPaths, Pid};
use crate::sampler::SLOW_US;
use crate::topology::Topology;
use crate::topology::process_tree::{SocketHolders, socket_holders};

/// Tells sockets of tiers from those of other processes, which may call a tier too: a console, or what watches a database.
///
/// A socket is another's only where another process was seen to hold it, twice with the same tiers: a child that a tier has just
/// started is one of the tier's soon, and what nobody is seen to hold may be a tier's in a way that is not listed.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// The processes of all tiers.
    members: Vec<Pid>,
    /// The inodes that members hold.
    of_tiers: BTreeSet<u64>,
    /// The inodes that others were seen to hold, and no member.
    of_others: BTreeSet<u64>,
    /// The inodes that others were seen to hold at least once.
    suspects: BTreeSet<u64>,
    /// The inodes of which no more can be known with these members.
    settled: BTreeSet<u64>,
    next_at_us: u64,
    cost_us: u64,
}

impl Owners {
    /// Asks who holds the sockets `kept`, and forgets all others. It asks only for those of which it is not known, at most
    /// once a second, and less often where it takes long, because that reads what all processes have open.
    pub(super) fn learn(
        &mut self,
        paths: &KernelPaths,
        topology: &Topology,
        kept: &BTreeSet<u64>,
        now_us: u64,
    ) {
        self.cost_us = 0;
        self.renew(topology);
        for known in [&mut self.of_tiers, &mut self.of_others, &mut self.suspects, &mut self.settled] {
            known.retain(|inode| kept.contains(inode));
        }
        let is_known = |inode: &u64| self.of_tiers.contains(inode) || self.settled.contains(inode);
        let unknown: BTreeSet<u64> = kept.iter().copied().filter(|inode| !is_known(inode)).collect();
        if unknown.is_empty() || now_us < self.next_at_us {
            return;
        }
        let cpu_us = own_thread_cpu_us();
        let by_members = socket_holders(paths, self.members.iter().copied(), &unknown);
        let by_others = match unknown.iter().all(|inode| by_members.first.contains_key(inode)) {
            true => SocketHolders::default(),
            false => {
                let all = paths.processes().unwrap_or_default().into_iter();
                socket_holders(paths, all.filter(|pid| !self.members.contains(pid)), &unknown)
            }
        };
        self.note(unknown, &by_members, &by_others);
        self.cost_us = own_thread_cpu_us().saturating_sub(cpu_us);
        self.next_at_us = now_us + self.cost_us.saturating_mul(SHARE).max(SLOW_US);
    }

    /// A new member may hold what was another's: it is asked for again, and what was known holds until then.
    fn renew(&mut self, topology: &Topology) {
        let members: Vec<Pid> = topology.servers.iter().chain(&topology.downstream).copied().collect();
        if members != self.members {
            self.members = members;
            self.settled.clear();
            self.suspects.clone_from(&self.of_others);
        }
    }

    fn note(&mut self, asked: BTreeSet<u64>, by_members: &SocketHolders, by_others: &SocketHolders) {
        for inode in asked {
            if by_members.first.contains_key(&inode) {
                self.of_others.remove(&inode);
                self.of_tiers.insert(inode);
            } else if !by_others.first.contains_key(&inode) {
                self.of_others.remove(&inode);
                self.settled.insert(inode);
            } else if !self.suspects.insert(inode) {
                self.of_others.insert(inode);
                self.settled.insert(inode);
            }
        }
    }

    /// Whether a socket is known to be held by another process than those of tiers.
    pub(super) fn is_of_others(&self, inode: Option<u64>) -> bool {
        inode.is_some_and(|inode| self.of_others.contains(&inode))
    }

    /// What asking took at the last look, in microseconds of a processor.
    pub(super) fn cost_us(&self) -> u64 {
        self.cost_us
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Files of processes, each with the sockets that it holds.
    fn lay_out(processes: &[(Pid, u64)]) -> (tempfile::TempDir, KernelPaths) {
        let folder = tempfile::tempdir().unwrap();
        let paths = KernelPaths { proc: folder.path().into(), ..KernelPaths::default() };
        for (pid, inode) in processes {
            let open = paths.process(*pid).join("fd");
            std::fs::create_dir_all(&open).unwrap();
            symlink(format!("socket:[{inode}]"), open.join("3")).unwrap();
        }
        (folder, paths)
    }

    fn topology(servers: &[Pid]) -> Topology {
        Topology { servers: servers.to_vec(), ..Topology::unseen(([127, 0, 0, 1], 80).into()) }
    }

    fn others(owners: &Owners, inodes: &[u64]) -> Vec<u64> {
        inodes.iter().copied().filter(|inode| owners.is_of_others(Some(*inode))).collect()
    }

    #[test]
    fn a_socket_that_another_process_was_seen_to_hold_twice_is_of_others() {
        let (_folder, paths) = lay_out(&[(10, 100), (20, 200)]);
        let mut owners = Owners::default();
        let mut learn = |kept: &[u64], now_us: u64| {
            owners.learn(&paths, &topology(&[10]), &kept.iter().copied().collect(), now_us);
            others(&owners, &[100, 200, 300])
        };
        assert!(learn(&[100, 200, 300], 0).is_empty(), "it may be a child that has just been started");
        assert_eq!(learn(&[100, 200, 300], u64::MAX / 2), [200]);
        assert!(learn(&[100], u64::MAX / 2 + 1).is_empty(), "it has been closed");
        assert!(!owners.is_of_others(None));
    }

    #[test]
    fn new_members_are_asked_and_the_others_seldom() {
        let (_folder, paths) = lay_out(&[(10, 100), (20, 200)]);
        let mut owners = Owners::default();
        let later = u64::MAX / 4;
        for now_us in [0, later] {
            owners.learn(&paths, &topology(&[10]), &[100, 200].into(), now_us);
        }
        owners.learn(&paths, &topology(&[10, 20]), &[100, 200].into(), later + 1);
        assert_eq!(others(&owners, &[100, 200]), [200], "asked a moment ago");
        owners.learn(&paths, &topology(&[10, 20]), &[100, 200].into(), 2 * later);
        assert!(others(&owners, &[100, 200]).is_empty());
    }

    #[test]
    fn what_nobody_is_seen_to_hold_is_left_open() {
        let mut owners = Owners::default();
        let by_members = SocketHolders { first: [(100, 10)].into(), ..SocketHolders::default() };
        let by_others = SocketHolders { denied: 1, ..SocketHolders::default() };
        owners.note([100, 200].into(), &by_members, &by_others);
        assert!(others(&owners, &[100, 200]).is_empty());
        assert!(
            owners.of_tiers.contains(&100) && owners.settled.contains(&200),
            "neither is asked for again"
        );
    }
}
