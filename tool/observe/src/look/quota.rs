//! The CPU limit of a process's cgroup: version 2 (`cpu.max`) and version 1 (`cpu.cfs_quota_us`).

use std::path::{Path, PathBuf};

use analysis::counters::CpuQuota;

use crate::Pid;
use crate::proc::{cgroup, named};
use crate::roots::{Roots, read, read_or_empty};

/// Finds and reads the nearest limited cgroup of a process.
#[derive(Debug)]
pub(super) struct Quota {
    membership: PathBuf,
    roots: Roots,
    place: Option<Place>,
}

/// A limited cgroup.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    /// Path below the mount point.
    cgroup: String,
    cores: f64,
    directory: PathBuf,
    /// Version 1: where the group's CPU time is counted.
    usage: Option<PathBuf>,
}

impl Quota {
    pub(super) fn new(roots: &Roots, pid: Pid) -> Self {
        Self { membership: roots.process(pid).join("cgroup"), roots: roots.clone(), place: None }
    }

    /// Looks for the limit anew: it may have been set, lifted or moved.
    pub(super) fn locate(&mut self) {
        let membership = cgroup::parse(&read_or_empty(&self.membership));
        self.place = self.version_2(&membership).or_else(|| self.version_1(&membership));
    }

    pub(super) fn take(&self) -> Option<CpuQuota> {
        let place = self.place.as_ref()?;
        let stat = read(&place.directory.join("cpu.stat")).ok()?;
        let throttled_us = match &place.usage {
            Some(_) => named(&stat, "throttled_time ") / 1000,
            None => named(&stat, "throttled_usec "),
        };
        Some(CpuQuota {
            cgroup: place.cgroup.clone(),
            cores: place.cores,
            periods: named(&stat, "nr_periods "),
            throttled_periods: named(&stat, "nr_throttled "),
            throttled_us,
            usage_us: usage_us(place, &stat),
        })
    }

    fn version_2(&self, membership: &cgroup::Membership) -> Option<Place> {
        let path = membership.unified.as_deref()?;
        // A host that runs both versions mounts this one below the other's directory.
        let mounts = [self.roots.cgroup.clone(), self.roots.cgroup.join("unified")];
        mounts.iter().find_map(|mount| nearest(mount, path, cores_of_version_2))
    }

    fn version_1(&self, membership: &cgroup::Membership) -> Option<Place> {
        let path = membership.cpu.as_deref()?;
        let accounts = ["cpu,cpuacct", "cpuacct"].map(|name| self.roots.cgroup.join(name));
        let mounts = ["cpu,cpuacct", "cpu"].map(|name| self.roots.cgroup.join(name));
        let mut place = mounts.iter().find_map(|mount| nearest(mount, path, cores_of_version_1))?;
        let relative = place.cgroup.trim_start_matches('/').to_owned();
        let account = accounts.into_iter().map(|mount| mount.join(&relative).join("cpuacct.usage"));
        place.usage = account.into_iter().find(|file| file.exists()).or(Some(PathBuf::new()));
        Some(place)
    }
}

fn usage_us(place: &Place, stat: &str) -> u64 {
    match &place.usage {
        Some(file) => read_or_empty(file).trim().parse::<u64>().unwrap_or(0) / 1000,
        None => named(stat, "usage_usec "),
    }
}

/// The group itself or the nearest ancestor that has a limit.
fn nearest(mount: &Path, path: &str, cores_of: fn(&Path) -> Option<f64>) -> Option<Place> {
    let mut path = path.trim_matches('/');
    loop {
        let directory = mount.join(path);
        if let Some(cores) = cores_of(&directory) {
            return Some(Place { cgroup: format!("/{path}"), cores, directory, usage: None });
        }
        if path.is_empty() {
            return None;
        }
        path = path.rsplit_once('/').map_or("", |parts| parts.0);
    }
}

/// `cpu.max`: quota (or `max`) and period, microseconds.
fn cores_of_version_2(directory: &Path) -> Option<f64> {
    let text = read(&directory.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota, period)
}

/// `cpu.cfs_quota_us` (-1: none) and `cpu.cfs_period_us`.
fn cores_of_version_1(directory: &Path) -> Option<f64> {
    let value = |name| read(&directory.join(name)).ok();
    ratio(&value("cpu.cfs_quota_us")?, &value("cpu.cfs_period_us")?)
}

fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(membership: &str) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            tree.file("proc/7/cgroup", membership);
            tree
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn quota(&self) -> Option<CpuQuota> {
            let at = |name| self.0.path().join(name);
            let roots = Roots { proc: at("proc"), sys: at("sys"), cgroup: at("cg") };
            let mut quota = Quota::new(&roots, 7);
            quota.locate();
            quota.take()
        }
    }

    #[test]
    fn version_2_takes_the_nearest_limited_ancestor() {
        let tree = Tree::new("0::/slice/web/one\n");
        tree.file("cg/slice/web/one/cpu.max", "max 100000\n");
        tree.file("cg/slice/web/cpu.max", "150000 100000\n");
        tree.file("cg/slice/cpu.max", "10000 100000\n");
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
        assert_eq!(tree.quota(), Some(expected));
    }

    #[test]
    fn version_1_counts_in_nanoseconds() {
        let tree = Tree::new("2:cpuacct:/web\n1:cpu:/web\n0::/\n");
        tree.file("cg/cpu/web/cpu.cfs_quota_us", "10000\n");
        tree.file("cg/cpu/web/cpu.cfs_period_us", "100000\n");
        tree.file("cg/cpu/web/cpu.stat", "nr_periods 8\nnr_throttled 3\nthrottled_time 77000\n");
        tree.file("cg/cpuacct/web/cpuacct.usage", "900000\n");
        let quota = tree.quota().unwrap();
        assert_eq!((quota.cgroup.as_str(), quota.throttled_us, quota.usage_us), ("/web", 77, 900));
        assert!((quota.cores - 0.1).abs() < 1e-12);
    }

    #[test]
    fn no_limit_anywhere() {
        let tree = Tree::new("1:cpu:/\n0::/a\n");
        tree.file("cg/cpu/cpu.cfs_quota_us", "-1\n");
        tree.file("cg/cpu/cpu.cfs_period_us", "100000\n");
        tree.file("cg/a/cpu.max", "garbage");
        assert_eq!(tree.quota(), None);
    }

    #[test]
    fn a_path_that_is_not_mounted_here_falls_back_to_what_is() {
        let tree = Tree::new("0::/docker/abc\n");
        tree.file("cg/cpu.max", "50000 100000\n");
        tree.file("cg/cpu.stat", "usage_usec 5\n");
        assert_eq!(tree.quota().map(|quota| quota.cores), Some(0.5));
    }
}
