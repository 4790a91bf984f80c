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
use crate::proc::process::{self, Cgroups};
use crate::sampler::cgroup::{Membership, ancestors};
use crate::topology::process_tree::INIT;

/// The CPU quota of processes, or the place where they may be given one, that slows nobody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuLimit {
    directory: PathBuf,
    version: Version,
    /// Processor time in each period, microseconds; `None` without a limit.
    quota_us: Option<u64>,
    period_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl CpuLimit {
    /// The tightest limit on these processes, or where there is none their own cgroup.
    ///
    /// # Errors
    /// The reason to leave it alone: others are in that cgroup too, or this process may not write it.
    pub fn of_only(paths: &KernelPaths, pids: &[Pid]) -> Result<Self, LeftAloneReason> {
        // What has ended meanwhile is in no cgroup.
        let is_there = |pid: &&Pid| !read_or_empty(&paths.process(**pid).join("cgroup")).is_empty();
        let mut of_each = pids.iter().filter(is_there).map(|pid| Self::tightest(paths, *pid));
        let first = of_each.next().ok_or(LeftAloneReason::Ended)?.ok_or(LeftAloneReason::QuotaShared)?;
        let is_one = of_each.all(|other| other.as_ref() == Some(&first));
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
        match (self.version, self.quota_us) {
            (Version::One, Some(quota)) => quota.to_string(),
            (Version::One, None) => "-1".to_owned(),
            (Version::Two, Some(quota)) => format!("{quota} {}", self.period_us),
            (Version::Two, None) => format!("max {}", self.period_us),
        }
    }

    /// Whether it is in force.
    pub fn is_set(&self) -> bool {
        Self::read_in(&self.directory, self.version).as_ref() == Some(self)
    }

    /// The processors that it is worth; `None` without a limit.
    pub fn cores(&self) -> Option<f64> {
        self.quota_us.map(|quota| quota as f64 / self.period_us as f64)
    }

    /// How often processor time is handed out.
    pub fn period(&self) -> Duration {
        Duration::from_micros(self.period_us)
    }

    /// The same with a limit worth so many processors.
    #[must_use]
    pub fn with_cores(&self, cores: f64) -> Self {
        Self { quota_us: Some((cores * self.period_us as f64).round() as u64), ..self.clone() }
    }

    fn tightest(paths: &KernelPaths, pid: Pid) -> Option<Self> {
        let membership = Membership::of(paths, pid);
        let Cgroups { unified, cpu, .. } = membership.read();
        let unified_mounts = membership.unified_mounts();
        let mounts = ["cpu,cpuacct", "cpu"].map(|name| membership.controller(name));
        let mut all = Self::around(unified.as_deref(), &unified_mounts, Version::Two);
        all.extend(Self::around(cpu.as_deref(), &mounts, Version::One));
        let cores = |limit: &Self| limit.cores().unwrap_or(f64::INFINITY);
        // The nearest of those that are worth the same.
        let found = all.into_iter().min_by(|one, other| cores(one).total_cmp(&cores(other)))?;
        // A container's root may have a limit, which is everybody's.
        let is_root = unified_mounts.iter().chain(&mounts).any(|mount| *mount == found.directory);
        (!is_root).then_some(found)
    }

    /// Those of a group and of the ones around it, the nearest first.
    fn around(path: Option<&str>, mounts: &[PathBuf], version: Version) -> Vec<Self> {
        let groups = path.into_iter().flat_map(ancestors);
        let directories = groups.flat_map(|path| mounts.iter().map(move |mount| mount.join(path)));
        directories.filter_map(|directory| Self::read_in(&directory, version)).collect()
    }

    fn read_in(directory: &Path, version: Version) -> Option<Self> {
        let value = |name| read(&directory.join(name)).ok();
        let (quota, period) = match version {
            Version::One => (value("cpu.cfs_quota_us")?, value("cpu.cfs_period_us")?),
            Version::Two => {
                let text = value("cpu.max")?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.to_owned(), period.to_owned())
            }
        };
        let quota_us = match quota.trim() {
            "max" | "-1" => None,
            number => Some(number.parse().ok()?),
        };
        let period_us = period.trim().parse().ok().filter(|period| *period > 0)?;
        Some(Self { directory: directory.to_owned(), version, quota_us, period_us })
    }

    /// Whether all processes of its group are these or descend from them, and this one is not among them.
    fn holds_only(&self, paths: &KernelPaths, pids: &[Pid]) -> bool {
        let Ok(members) = members(&self.directory) else { return false };
        let is_theirs = |pid: &Pid| pids.contains(pid) || descends(paths, *pid, pids);
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

/// Whether one of these started it, or a process that one of these started did.
fn descends(paths: &KernelPaths, pid: Pid, from: &[Pid]) -> bool {
    let parent =
        |pid: Pid| process::stat(&read_or_empty(&paths.process(pid).join("stat"))).map(|stat| stat.parent);
    let (mut next, mut seen) = (parent(pid), BTreeSet::from([pid]));
    // Ends at the first process, and where the files go round in a circle.
    while let Some(above) = next.filter(|above| *above > INIT && seen.insert(*above)) {
        if from.contains(&above) {
            return true;
        }
        next = parent(above);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::cgroup::fake::{PID, Tree};

    fn found(tree: &Tree, pids: &[Pid]) -> Result<(String, Option<f64>), LeftAloneReason> {
        let limit = CpuLimit::of_only(&tree.paths(), pids)?;
        assert!(limit.is_set(), "{limit:?}");
        let below = limit.file().strip_prefix(tree.paths().cgroup).unwrap().display().to_string();
        Ok((below, limit.cores()))
    }

    fn started_by(tree: &Tree, pid: Pid, parent: Pid) {
        let rest = " 0".repeat(18);
        tree.file(&format!("proc/{pid}/stat"), &format!("{pid} (x y) S {parent} 0{rest} 0\n"));
    }

    #[test]
    fn version_2_takes_the_tightest_quota_of_these_processes_alone() {
        let tree = Tree::new("0::/slice/web/one\n");
        tree.file("cg/slice/web/one/cpu.max", "max 100000\n");
        tree.file("cg/slice/web/one/cgroup.procs", "7\n9\n");
        tree.file("cg/slice/web/cpu.max", "20000 100000\n");
        tree.file("cg/slice/web/cgroup.procs", "");
        started_by(&tree, 9, 8);
        started_by(&tree, 8, PID);
        // One of them started 8, which started 9.
        assert_eq!(found(&tree, &[PID]), Ok(("slice/web/cpu.max".into(), Some(0.2))));
        started_by(&tree, 8, 1);
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::QuotaShared));
    }

    #[test]
    fn without_a_limit_it_is_their_own_group() {
        let tree = Tree::new("0::/slice/web\n");
        tree.file("cg/slice/web/cpu.max", "max 50000\n");
        tree.file("cg/slice/web/cgroup.procs", "7\n");
        tree.file("cg/slice/cpu.max", "max 100000\n");
        tree.file("cg/slice/cgroup.procs", "");
        assert_eq!(found(&tree, &[PID]), Ok(("slice/web/cpu.max".into(), None)));
        let limit = CpuLimit::of_only(&tree.paths(), &[PID]).unwrap();
        assert_eq!((limit.text().as_str(), limit.period()), ("max 50000", Duration::from_millis(50)));
        let lower = limit.with_cores(1.8);
        assert_eq!((lower.text().as_str(), lower.is_set()), ("90000 50000", false));
    }

    #[test]
    fn a_limit_of_the_root_is_everybodys_and_no_other_stands_for_it() {
        let tree = Tree::new("0::/web\n");
        tree.file("cg/web/cpu.max", "max 100000\n");
        tree.file("cg/web/cgroup.procs", "7\n");
        tree.file("cg/cpu.max", "50000 100000\n");
        tree.file("cg/cgroup.procs", "");
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::QuotaShared));
    }

    #[test]
    fn version_1_keeps_the_period_in_a_file_of_its_own() {
        let tree = Tree::new("1:cpu:/web\n0::/\n");
        tree.file("cg/cpu/web/cpu.cfs_quota_us", "30000\n");
        tree.file("cg/cpu/web/cpu.cfs_period_us", "100000\n");
        tree.file("cg/cpu/web/cgroup.procs", "7\n");
        assert_eq!(found(&tree, &[PID]), Ok(("cpu/web/cpu.cfs_quota_us".into(), Some(0.3))));
        let limit = CpuLimit::of_only(&tree.paths(), &[PID]).unwrap();
        assert_eq!((limit.text(), limit.with_cores(0.27).text()), ("30000".into(), "27000".into()));
        tree.file("cg/cpu/web/cpu.cfs_quota_us", "-1\n");
        assert_eq!(CpuLimit::of_only(&tree.paths(), &[PID]).unwrap().text(), "-1");
    }

    #[test]
    fn a_group_with_anybody_else_is_left_alone() {
        let tree = Tree::new("1:cpu:/web\n");
        tree.file("cg/cpu/cpu.cfs_quota_us", "50000\n");
        tree.file("cg/cpu/cpu.cfs_period_us", "100000\n");
        tree.file("cg/cpu/cgroup.procs", "7\n");
        assert_eq!(found(&tree, &[PID]), Err(LeftAloneReason::QuotaShared), "the root is everybody's");
        tree.file("cg/cpu/web/cpu.cfs_quota_us", "30000\n");
        tree.file("cg/cpu/web/cpu.cfs_period_us", "100000\n");
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
