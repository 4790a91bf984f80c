//! Samples of the CPU limit of a process's cgroup: version 2 (`cpu.max`) and version 1 (`cpu.cfs_quota_us`).

use std::path::{Path, PathBuf};

use analysis::counters::CpuQuota;

use super::cgroup::{Membership, ancestors};
use crate::cpu_limit::{CpuLimit, Version};
use crate::kernel_files::{KernelPaths, Pid, read, read_or_empty};
use crate::proc::named;
use crate::proc::process::Cgroups;

/// Finds and samples the limited cgroup of a process: of its own and those around it, the one with the fewest processors.
#[derive(Debug)]
pub(super) struct QuotaSampler {
    membership: Membership,
    group: Option<LimitedGroup>,
}

/// A limited cgroup.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LimitedGroup {
    /// Path below the mount point.
    cgroup: String,
    pub(crate) limit: CpuLimit,
    /// The file with the group's CPU time in version 1, `None` in version 2.
    usage: Option<PathBuf>,
}

impl LimitedGroup {
    /// Whether it is the root, around all groups that are seen here.
    pub(crate) fn is_root(&self) -> bool {
        self.cgroup == "/"
    }
}

/// The limited cgroup of a process, as it is now; `None` where it has no limit.
pub(super) fn limited(paths: &KernelPaths, pid: Pid) -> Option<LimitedGroup> {
    let mut sampler = QuotaSampler::new(paths, pid);
    sampler.locate();
    sampler.group
}

impl QuotaSampler {
    pub(super) fn new(paths: &KernelPaths, pid: Pid) -> Self {
        Self { membership: Membership::of(paths, pid), group: None }
    }

    /// Finds the limit again, because it may have been set, lifted or moved.
    pub(super) fn locate(&mut self) {
        let cgroups = self.membership.read();
        self.group = self.version_2(&cgroups).or_else(|| self.version_1(&cgroups));
    }

    pub(super) fn sample(&self) -> Option<CpuQuota> {
        let group = self.group.as_ref()?;
        let stat = read(&group.limit.directory.join("cpu.stat")).ok()?;
        let throttled_us = match &group.usage {
            Some(_) => named(&stat, "throttled_time ") / 1000,
            None => named(&stat, "throttled_usec "),
        };
        Some(CpuQuota {
            cgroup: group.cgroup.clone(),
            cores: group.limit.cores(),
            periods: named(&stat, "nr_periods "),
            throttled_periods: named(&stat, "nr_throttled "),
            throttled_us,
            usage_us: usage_us(group, &stat),
        })
    }

    fn version_2(&self, cgroups: &Cgroups) -> Option<LimitedGroup> {
        let path = cgroups.unified.as_deref()?;
        self.membership.unified_mounts().iter().find_map(|mount| tightest(mount, path, Version::Two))
    }

    fn version_1(&self, cgroups: &Cgroups) -> Option<LimitedGroup> {
        let path = cgroups.cpu.as_deref()?;
        let accounts = ["cpu,cpuacct", "cpuacct"].map(|name| self.membership.controller(name));
        let mounts = ["cpu,cpuacct", "cpu"].map(|name| self.membership.controller(name));
        let mut group = mounts.iter().find_map(|mount| tightest(mount, path, Version::One))?;
        let relative = group.cgroup.trim_start_matches('/').to_owned();
        let account = accounts.into_iter().map(|mount| mount.join(&relative).join("cpuacct.usage"));
        group.usage = account.into_iter().find(|file| file.exists()).or(Some(PathBuf::new()));
        Some(group)
    }
}

fn usage_us(group: &LimitedGroup, stat: &str) -> u64 {
    match &group.usage {
        Some(file) => read_or_empty(file).trim().parse::<u64>().unwrap_or(0) / 1000,
        None => named(stat, "usage_usec "),
    }
}

/// Of the group and its ancestors the one with the fewest processors, the nearest of those with as few: a group that is
/// allowed more than those around it does not get it.
fn tightest(mount: &Path, path: &str, version: Version) -> Option<LimitedGroup> {
    let limited = ancestors(path).filter_map(|path| {
        let limit = CpuLimit::read_in(&mount.join(path), version)?;
        Some(LimitedGroup { cgroup: format!("/{path}"), limit, usage: None })
    });
    limited.min_by(|one, other| one.limit.cores().total_cmp(&other.limit.cores()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::cgroup::fake::{PID, Tree};

    fn quota(tree: &Tree) -> Option<CpuQuota> {
        let mut sampler = QuotaSampler::new(&tree.paths(), PID);
        sampler.locate();
        sampler.sample()
    }

    #[test]
    fn version_2_takes_the_nearest_of_the_tightest_limits() {
        let tree = Tree::new("0::/slice/web/one\n");
        tree.file("cg/slice/web/one/cpu.max", "200000 100000\n");
        tree.file("cg/slice/web/cpu.max", "150000 100000\n");
        tree.file("cg/slice/cpu.max", "75000 50000\n");
        tree.file(
            "cg/slice/web/cpu.stat",
            "usage_usec 900\nuser_usec 1\nnr_periods 8\nnr_throttled 3\nthrottled_usec 77\n",
        );
        let expected = CpuQuota {
            cgroup: "/slice/web".to_owned(),
            cores: 1.5,
            periods: 8,
            throttled_periods: 3,
            throttled_us: 77,
            usage_us: 900,
        };
        assert_eq!(quota(&tree), Some(expected));
    }

    #[test]
    fn version_1_counts_in_nanoseconds() {
        let tree = Tree::new("2:cpuacct:/web\n1:cpu:/web\n0::/\n");
        tree.file("cg/cpu/web/cpu.cfs_quota_us", "10000\n");
        tree.file("cg/cpu/web/cpu.cfs_period_us", "100000\n");
        tree.file("cg/cpu/web/cpu.stat", "nr_periods 8\nnr_throttled 3\nthrottled_time 77000\n");
        tree.file("cg/cpuacct/web/cpuacct.usage", "900000\n");
        let found = quota(&tree).unwrap();
        assert_eq!((found.cgroup.as_str(), found.throttled_us, found.usage_us), ("/web", 77, 900));
        assert!((found.cores - 0.1).abs() < 1e-12);
    }

    #[test]
    fn no_limit_anywhere() {
        let tree = Tree::new("1:cpu:/\n0::/a\n");
        tree.file("cg/cpu/cpu.cfs_quota_us", "-1\n");
        tree.file("cg/cpu/cpu.cfs_period_us", "100000\n");
        tree.file("cg/a/cpu.max", "garbage");
        assert_eq!(quota(&tree), None);
    }

    #[test]
    fn a_path_that_is_not_mounted_here_falls_back_to_an_ancestor_that_is() {
        let tree = Tree::new("0::/docker/abc\n");
        tree.file("cg/cpu.max", "50000 100000\n");
        tree.file("cg/cpu.stat", "usage_usec 5\n");
        assert_eq!(quota(&tree).map(|quota| quota.cores), Some(0.5));
    }
}
