//! Samples of the I/O limits of a process's cgroups: version 2 (`io.max`) and version 1 (`blkio.throttle`).

use std::path::{Path, PathBuf};

use analysis::counters::{IoLimit, IoRate};

use super::cgroup::{Membership, ancestors};
use crate::kernel_files::{KernelPaths, Pid, read_or_empty};
use crate::proc::process::Cgroups;

/// Version 1: the file that sets each limit, the file that counts against it, and the name of the count.
const VERSION_1: [(IoRate, &str, &str, &str); 4] = [
    (IoRate::Reads, "blkio.throttle.read_iops_device", "blkio.throttle.io_serviced", "Read"),
    (IoRate::Writes, "blkio.throttle.write_iops_device", "blkio.throttle.io_serviced", "Write"),
    (IoRate::ReadBytes, "blkio.throttle.read_bps_device", "blkio.throttle.io_service_bytes", "Read"),
    (IoRate::WrittenBytes, "blkio.throttle.write_bps_device", "blkio.throttle.io_service_bytes", "Write"),
];

/// Version 2: the name of each limit in `io.max`, and of the count in `io.stat`.
const VERSION_2: [(IoRate, &str, &str); 4] = [
    (IoRate::Reads, "riops", "rios"),
    (IoRate::Writes, "wiops", "wios"),
    (IoRate::ReadBytes, "rbps", "rbytes"),
    (IoRate::WrittenBytes, "wbps", "wbytes"),
];

/// Finds and samples the limits on a process.
#[derive(Debug)]
pub(super) struct IoLimitSampler {
    membership: Membership,
    limits: Vec<CountedLimit>,
}

/// A limit, and where its count is found.
#[derive(Debug)]
struct CountedLimit {
    limit: IoLimit,
    /// The device as the files name it, such as `254:0`.
    number: String,
    counts: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy)]
enum Version {
    One,
    Two,
}

impl IoLimitSampler {
    pub(super) fn new(paths: &KernelPaths, pid: Pid) -> Self {
        Self { membership: Membership::of(paths, pid), limits: Vec::new() }
    }

    /// Finds the limits again, because they may have been set, lifted or moved.
    pub(super) fn locate(&mut self) {
        let cgroups = self.membership.read();
        self.limits = self.version_2(&cgroups);
        self.limits.extend(self.version_1(&cgroups));
    }

    pub(super) fn sample(&self) -> Vec<IoLimit> {
        let now = |counted: &CountedLimit| {
            let text = read_or_empty(&counted.counts);
            let done = match counted.version {
                Version::One => done_of_version_1(&text, &counted.number, counted.limit.of),
                Version::Two => done_of_version_2(&text, &counted.number, counted.limit.of),
            };
            Some(IoLimit { done: done?, ..counted.limit.clone() })
        };
        self.limits.iter().filter_map(now).collect()
    }

    /// The limits of version 2, where those of every ancestor apply.
    fn version_2(&self, cgroups: &Cgroups) -> Vec<CountedLimit> {
        let Some(path) = cgroups.unified.as_deref() else { return Vec::new() };
        let mounts = self.membership.unified_mounts();
        let groups = mounts.iter().flat_map(|mount| ancestors(path).map(move |group| (mount, group)));
        groups.flat_map(|(mount, group)| self.limits_of_version_2(mount, group)).collect()
    }

    fn limits_of_version_2(&self, mount: &Path, group: &str) -> Vec<CountedLimit> {
        let directory = mount.join(group);
        let mut limits = Vec::new();
        for line in read_or_empty(&directory.join("io.max")).lines() {
            let Some((number, values)) = line.split_once(' ') else { continue };
            for (of, key, _) in VERSION_2 {
                // `max` is not a number, and means no limit.
                let Some(per_s) = value_of(values, key) else { continue };
                let limit = self.limit(group, number, of, per_s);
                let counts = directory.join("io.stat");
                limits.push(CountedLimit { limit, number: number.to_owned(), counts, version: Version::Two });
            }
        }
        limits
    }

    /// The limits of version 1, where only the group's own apply.
    fn version_1(&self, cgroups: &Cgroups) -> Vec<CountedLimit> {
        let Some(path) = cgroups.blkio.as_deref() else { return Vec::new() };
        let group = path.trim_matches('/');
        let directory = self.membership.controller("blkio").join(group);
        let mut limits = Vec::new();
        for (of, set, counted, _) in VERSION_1 {
            for line in read_or_empty(&directory.join(set)).lines() {
                let Some((number, per_s)) = line.split_once(' ') else { continue };
                let Ok(per_s) = per_s.trim().parse() else { continue };
                let limit = self.limit(group, number, of, per_s);
                let counts = directory.join(counted);
                limits.push(CountedLimit { limit, number: number.to_owned(), counts, version: Version::One });
            }
        }
        limits
    }

    fn limit(&self, group: &str, number: &str, of: IoRate, per_s: u64) -> IoLimit {
        IoLimit { cgroup: format!("/{group}"), device: self.membership.device(number), of, per_s, done: 0 }
    }
}

fn done_of_version_1(text: &str, number: &str, of: IoRate) -> Option<u64> {
    let (.., name) = VERSION_1.into_iter().find(|(rate, ..)| *rate == of)?;
    // A device without requests has no line.
    let count =
        |line: &str| line.strip_prefix(number)?.strip_prefix(' ')?.strip_prefix(name)?.trim().parse().ok();
    Some(text.lines().find_map(count).unwrap_or(0))
}

fn done_of_version_2(text: &str, number: &str, of: IoRate) -> Option<u64> {
    let (.., key) = VERSION_2.into_iter().find(|(rate, ..)| *rate == of)?;
    let values = |line: &str| value_of(line.strip_prefix(number)?.strip_prefix(' ')?, key);
    Some(text.lines().find_map(values).unwrap_or(0))
}

/// A number among `key=value` pairs.
fn value_of(pairs: &str, key: &str) -> Option<u64> {
    pairs.split_whitespace().find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::cgroup::fake::{PID, Tree};

    fn limits(tree: &Tree) -> Vec<IoLimit> {
        let mut sampler = IoLimitSampler::new(&tree.paths(), PID);
        sampler.locate();
        sampler.sample()
    }

    fn limit(cgroup: &str, device: &str, of: IoRate, per_s: u64, done: u64) -> IoLimit {
        IoLimit { cgroup: cgroup.to_owned(), device: device.to_owned(), of, per_s, done }
    }

    #[test]
    fn in_version_2_every_ancestors_limit_applies() {
        let tree = Tree::new("0::/slice/db\n");
        tree.file("cg/slice/db/io.max", "254:0 rbps=max wbps=1048576 riops=max wiops=120\n");
        tree.file(
            "cg/slice/db/io.stat",
            "254:16 wios=9\n254:0 rbytes=1 wbytes=500 rios=1 wios=77 dbytes=0\n",
        );
        tree.file("cg/slice/io.max", "8:0 rbps=900 wbps=max riops=max wiops=max\n");
        let expected = [
            limit("/slice/db", "vda", IoRate::Writes, 120, 77),
            limit("/slice/db", "vda", IoRate::WrittenBytes, 1_048_576, 500),
            limit("/slice", "8:0", IoRate::ReadBytes, 900, 0),
        ];
        assert_eq!(limits(&tree), expected);
    }

    #[test]
    fn in_version_1_only_its_own_limits_apply() {
        let tree = Tree::new("3:blkio:/db/one\n0::/\n");
        tree.file("cg/blkio/db/one/blkio.throttle.write_iops_device", "254:0 50\n");
        tree.file("cg/blkio/db/one/blkio.throttle.read_bps_device", "254:0 4096\n");
        tree.file("cg/blkio/db/one/blkio.throttle.io_serviced", "254:0 Read 3\n254:0 Write 202\nTotal 205\n");
        tree.file("cg/blkio/db/blkio.throttle.write_iops_device", "254:0 9\n");
        let expected = [
            limit("/db/one", "vda", IoRate::Writes, 50, 202),
            limit("/db/one", "vda", IoRate::ReadBytes, 4096, 0),
        ];
        assert_eq!(limits(&tree), expected);
    }

    #[test]
    fn no_limit_and_garbage_give_none() {
        let tree = Tree::new("3:blkio:/db\n0::/a\n");
        tree.file("cg/a/io.max", "254:0 rbps=max wbps=-1 riops wiops=\ngarbage\n");
        tree.file("cg/blkio/db/blkio.throttle.write_iops_device", "254:0 many\n254:0\n");
        assert_eq!(limits(&tree), []);
        assert_eq!(limits(&Tree::new("")), []);
    }
}
