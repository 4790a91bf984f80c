//! The CPU quota of a cgroup that holds one tier's processes and no others: version 2 (`cpu.max`) and version 1
//! (`cpu.cfs_quota_us`).

use std::collections::BTreeSet;
use std::fs::read_dir;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::run::LeftAloneReason;
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::kernel_files::{KernelPaths, Pid, read, read_or_empty};
use crate::sampler::tightest_quota;
use crate::stoppable::above;
use crate::topology::process_tree::INIT;

/// The CPU quota of processes that slows nobody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuLimit {
    /// The directory of the cgroup.
    pub(crate) directory: PathBuf,
    version: Version,
    /// Processor time in each period, microseconds.
    quota_us: u64,
    period_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

impl CpuLimit {
    /// The tightest limit on these processes.
    ///
    /// # Errors
    /// The reason to leave it alone: there is none any longer, others are in that cgroup too, or this process may not write it.
    pub fn of_only(paths: &KernelPaths, pids: &[Pid]) -> Result<Self, LeftAloneReason> {
        // What has ended meanwhile is in no cgroup.
        let is_there = |pid: &&Pid| !read_or_empty(&paths.process(**pid).join("cgroup")).is_empty();
        let mut of_each = pids.iter().filter(is_there).map(|pid| Self::tightest(paths, *pid));
        let first = of_each.next().ok_or(LeftAloneReason::Ended)??;
        let is_one = of_each.all(|other| other.as_ref() == Ok(&first));
        if !is_one || !first.holds_only(paths, pids) {
            return Err(LeftAloneReason::QuotaShared);
        }
        match access(first.file(), Access::WRITE_OK) {
            Ok(()) => Ok(first),
            Err(Errno::ACCESS | Errno::PERM) => Err(LeftAloneReason::QuotaNeedsRoot),
            Err(_) => Err(LeftAloneReason::NotAllowed),
        }
    }

    /// The file that holds it.
    pub fn file(&self) -> PathBuf {
        self.directory.join(match self.version {
            Version::One => "cpu.cfs_quota_us",
            Version::Two => "cpu.max",
        })
    }

    /// What the file holds.
    pub fn text(&self) -> String {
        match self.version {
            Version::One => self.quota_us.to_string(),
            Version::Two => format!("{} {}", self.quota_us, self.period_us),
        }
    }

    /// Whether it is in force.
    pub fn is_set(&self) -> bool {
        Self::read_in(&self.directory, self.version).as_ref() == Some(self)
    }

    /// The processors that it is worth.
    pub fn cores(&self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }

    /// How often processor time is handed out.
    pub fn period(&self) -> Duration {
        Duration::from_micros(self.period_us)
    }

    /// The same, lower by this share of it, 0 to 1.
    #[must_use]
    pub fn lower_by(&self, share: f64) -> Self {
        Self { quota_us: (self.quota_us as f64 * (1.0 - share)).round() as u64, ..self.clone() }
    }

    fn tightest(paths: &KernelPaths, pid: Pid) -> Result<Self, LeftAloneReason> {
        let group = tightest_quota(paths, pid).ok_or(LeftAloneReason::ChangedByOthers)?;
        // A container's root may have a limit, which is everybody's.
        if group.is_root() { Err(LeftAloneReason::QuotaShared) } else { Ok(group.limit) }
    }

    /// The limit on the group of this directory; `None` where it has none.
    pub(crate) fn read_in(directory: &Path, version: Version) -> Option<Self> {
        let value = |name| read(&directory.join(name)).ok();
        let (quota, period) = match version {
            Version::One => (value("cpu.cfs_quota_us")?, value("cpu.cfs_period_us")?),
            Version::Two => {
                let text = value("cpu.max")?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.to_owned(), period.to_owned())
            }
        };
        // Without a limit it is no positive number: `max`, or -1 in version 1.
        let positive = |text: &str| text.trim().parse::<u64>().ok().filter(|us| *us > 0);
        let (quota_us, period_us) = (positive(&quota)?, positive(&period)?);
        Some(Self { directory: directory.to_owned(), version, quota_us, period_us })
    }

    /// Whether all processes of its group are these or descend from them, and this one is not among them.
    fn holds_only(&self, paths: &KernelPaths, pids: &[Pid]) -> bool {
        let Ok(members) = members(&self.directory) else { return false };
        let descends = |pid: Pid| above(paths, pid).any(|above| above > INIT && pids.contains(&above));
        let is_theirs = |pid: &Pid| pids.contains(pid) || descends(*pid);
        !members.contains(&std::process::id()) && members.iter().all(is_theirs)
    }
}

/// The processes of a group and of those below it.
fn members(directory: &Path) -> io::Result<BTreeSet<Pid>> {
    let text = read(&directory.join("cgroup.procs"))?;
    let mut all: BTreeSet<Pid> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    for entry in read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            all.extend(members(&entry.path())?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::cgroup::fake::{PID, Tree};

    fn found(tree: &Tree, pids: &[Pid]) -> Result<(String, f64), LeftAloneReason> {
        let limit = CpuLimit::of_only(&tree.paths(), pids)?;
        assert!(limit.is_set(), "{limit:?}");
        let below = limit.file().strip_prefix(tree.paths().cgroup).unwrap().display().to_string();
        Ok((below, limit.cores()))
    }

    /// Lays out a group of version 2, with these processes.
    fn group(tree: &Tree, path: &str, quota: &str, members: &str) {
        tree.file(&format!("cg/{path}/cpu.max"), quota);
        tree.file(&format!("cg/{path}/cgroup.procs"), members);
    }

    /// Limits a group of version 1.
    fn set_limit(tree: &Tree, path: &str, quota: &str) {
        tree.file(&format!("cg/cpu/{path}/cpu.cfs_quota_us"), quota);
        tree.file(&format!("cg/cpu/{path}/cpu.cfs_period_us"), "100000\n");
    }

    fn started_by(tree: &Tree, pid: Pid, parent: Pid) {
        let rest = " 0".repeat(18);
        tree.file(&format!("proc/{pid}/stat"), &format!("{pid} (x y) S {parent} 0{rest} 0\n"));
    }

    #[test]
    fn version_2_takes_the_tightest_quota_of_these_processes_alone() {
        let tree = Tree::new("0::/slice/web/one\n");
        group(&tree, "slice/web/one", "max 100000\n", "7\n9\n");
        group(&tree, "slice/web", "20000 100000\n", "");
        started_by(&tree, 9, 8);
        started_by(&tree, 8, PID);
        // One of them started 8, which started 9.
        assert_eq!(found(&tree, &[PID]), Ok(("slice/web/cpu.max".into(), 0.2)));
        let limit = CpuLimit::of_only(&tree.paths(), &[PID]).unwrap();
        assert_eq!((limit.text().as_str(), limit.period()), ("20000 100000", Duration::from_millis(100)));
        let lower = limit.lower_by(0.1);
        assert_eq!((lower.text().as_str(), lower.is_set()), ("18000 100000", false));
        started_by(&tree, 8, 1);
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::QuotaShared));
    }

    #[test]
    fn processes_without_a_limit_are_given_none() {
        let tree = Tree::new("0::/slice/web\n");
        group(&tree, "slice/web", "max 50000\n", "7\n");
        group(&tree, "slice", "max 100000\n", "");
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::ChangedByOthers));
    }

    #[test]
    fn a_limit_of_the_root_is_everybodys_and_no_other_stands_for_it() {
        let tree = Tree::new("0::/web\n");
        group(&tree, "web", "max 100000\n", "7\n");
        group(&tree, ".", "50000 100000\n", "");
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::QuotaShared));
    }

    #[test]
    fn version_1_keeps_the_period_in_a_file_of_its_own() {
        let tree = Tree::new("1:cpu:/web\n0::/\n");
        set_limit(&tree, "web", "30000\n");
        tree.file("cg/cpu/web/cgroup.procs", "7\n");
        assert_eq!(found(&tree, &[PID]), Ok(("cpu/web/cpu.cfs_quota_us".into(), 0.3)));
        let limit = CpuLimit::of_only(&tree.paths(), &[PID]).unwrap();
        assert_eq!((limit.text(), limit.lower_by(0.1).text()), ("30000".into(), "27000".into()));
        set_limit(&tree, "web", "-1\n");
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::ChangedByOthers));
    }

    #[test]
    fn a_group_with_anybody_else_is_left_alone() {
        let tree = Tree::new("1:cpu:/web\n");
        set_limit(&tree, ".", "50000\n");
        tree.file("cg/cpu/cgroup.procs", "7\n");
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::QuotaShared), "the root is everybody's");
        set_limit(&tree, "web", "30000\n");
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::QuotaShared), "who is in it is not known");
        tree.file("cg/cpu/web/cgroup.procs", "7\n");
        assert!(found(&tree, &[PID]).is_ok());
        tree.file("cg/cpu/web/below/cgroup.procs", "12\n");
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::QuotaShared));
        tree.file("cg/cpu/web/below/cgroup.procs", &format!("{}\n", std::process::id()));
        started_by(&tree, std::process::id(), PID);
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::QuotaShared), "this process is in it");
        tree.file("cg/cpu/web/below/cgroup.procs", "");
        // Another process of the tier, elsewhere.
        tree.file("proc/8/cgroup", "1:cpu:/other\n");
        assert_eq!(found(&tree, &[PID, 8]), Err(LeftAloneReason::QuotaShared));
        assert_eq!(found(&tree, &[99]), Err(LeftAloneReason::Ended));
    }
}
