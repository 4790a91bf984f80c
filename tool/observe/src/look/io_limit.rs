//! What a process's cgroups may ask of block devices: version 2 (`io.max`) and version 1 (`blkio.throttle`).

use std::path::{Path, PathBuf};

use analysis::counters::{IoLimit, IoRate};

use crate::Pid;
use crate::proc::cgroup;
use crate::roots::{Roots, read_or_empty};

/// Version 1: where each limit is set, where what was done is counted, and under which name.
const VERSION_1: [(IoRate, &str, &str, &str); 4] = [
    (IoRate::Reads, "blkio.throttle.read_iops_device", "blkio.throttle.io_serviced", "Read"),
    (IoRate::Writes, "blkio.throttle.write_iops_device", "blkio.throttle.io_serviced", "Write"),
    (IoRate::ReadBytes, "blkio.throttle.read_bps_device", "blkio.throttle.io_service_bytes", "Read"),
    (IoRate::WrittenBytes, "blkio.throttle.write_bps_device", "blkio.throttle.io_service_bytes", "Write"),
];

/// Version 2: how `io.max` names each limit, and `io.stat` what was done.
const VERSION_2: [(IoRate, &str, &str); 4] = [
    (IoRate::Reads, "riops", "rios"),
    (IoRate::Writes, "wiops", "wios"),
    (IoRate::ReadBytes, "rbps", "rbytes"),
    (IoRate::WrittenBytes, "wbps", "wbytes"),
];

/// Finds and reads the limits that a process is under.
#[derive(Debug)]
pub(super) struct IoLimits {
    membership: PathBuf,
    roots: Roots,
    places: Vec<Place>,
}

/// One limit, and where what counts against it is counted.
#[derive(Debug)]
struct Place {
    limit: IoLimit,
    /// The device as the files name it, such as `254:0`.
    number: String,
    file: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy)]
enum Version {
    One,
    Two,
}

impl IoLimits {
    pub(super) fn new(roots: &Roots, pid: Pid) -> Self {
        Self { membership: roots.process(pid).join("cgroup"), roots: roots.clone(), places: Vec::new() }
    }

    /// Looks for the limits anew: they may have been set, lifted or moved.
    pub(super) fn locate(&mut self) {
        let membership = cgroup::parse(&read_or_empty(&self.membership));
        self.places = self.version_2(&membership);
        self.places.extend(self.version_1(&membership));
    }

    pub(super) fn take(&self) -> Vec<IoLimit> {
        let now = |place: &Place| {
            let text = read_or_empty(&place.file);
            let done = match place.version {
                Version::One => done_of_version_1(&text, &place.number, place.limit.of),
                Version::Two => done_of_version_2(&text, &place.number, place.limit.of),
            };
            Some(IoLimit { done: done?, ..place.limit.clone() })
        };
        self.places.iter().filter_map(now).collect()
    }

    /// Every ancestor's limit holds.
    fn version_2(&self, membership: &cgroup::Membership) -> Vec<Place> {
        let Some(path) = membership.unified.as_deref() else { return Vec::new() };
        // A host that runs both versions mounts this one below the other's directory.
        let mounts = [self.roots.cgroup.clone(), self.roots.cgroup.join("unified")];
        let groups = || ancestors(path).map(|group| group.to_owned());
        mounts
            .iter()
            .flat_map(|mount| groups().flat_map(|group| self.limits_of_version_2(mount, &group)))
            .collect()
    }

    fn limits_of_version_2(&self, mount: &Path, group: &str) -> Vec<Place> {
        let directory = mount.join(group);
        let mut places = Vec::new();
        for line in read_or_empty(&directory.join("io.max")).lines() {
            let Some((number, values)) = line.split_once(' ') else { continue };
            for (of, key, _) in VERSION_2 {
                // `max` is no number, and no limit.
                let Some(per_s) = value_of(values, key) else { continue };
                let limit = self.limit(group, number, of, per_s);
                let file = directory.join("io.stat");
                places.push(Place { limit, number: number.to_owned(), file, version: Version::Two });
            }
        }
        places
    }

    /// Only the group's own limits hold.
    fn version_1(&self, membership: &cgroup::Membership) -> Vec<Place> {
        let Some(path) = membership.blkio.as_deref() else { return Vec::new() };
        let group = path.trim_matches('/');
        let directory = self.roots.cgroup.join("blkio").join(group);
        let mut places = Vec::new();
        for (of, set, counted, _) in VERSION_1 {
            for line in read_or_empty(&directory.join(set)).lines() {
                let Some((number, per_s)) = line.split_once(' ') else { continue };
                let Ok(per_s) = per_s.trim().parse() else { continue };
                let limit = self.limit(group, number, of, per_s);
                let file = directory.join(counted);
                places.push(Place { limit, number: number.to_owned(), file, version: Version::One });
            }
        }
        places
    }

    fn limit(&self, group: &str, number: &str, of: IoRate, per_s: u64) -> IoLimit {
        IoLimit { cgroup: format!("/{group}"), device: self.device(number), of, per_s, done: 0 }
    }

    /// The kernel's name of a device; its number where that is not known.
    fn device(&self, number: &str) -> String {
        let link = std::fs::read_link(self.roots.sys.join("dev/block").join(number));
        let name = link.ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        name.unwrap_or_else(|| number.to_owned())
    }
}

/// A path below a mount point and those above it, the root last; without a slash at the beginning.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path.trim_matches('/')), |path| match path.rsplit_once('/') {
        Some((above, _)) => Some(above),
        None => (!path.is_empty()).then_some(""),
    })
}

fn done_of_version_1(text: &str, number: &str, of: IoRate) -> Option<u64> {
    let (.., name) = VERSION_1.into_iter().find(|(rate, ..)| *rate == of)?;
    // A device that nothing was asked of has no line.
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

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(membership: &str) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            tree.file("proc/7/cgroup", membership);
            std::fs::create_dir_all(tree.0.path().join("sys/dev/block")).unwrap();
            let link = tree.0.path().join("sys/dev/block/254:0");
            std::os::unix::fs::symlink("../../devices/virtio0/block/vda", link).unwrap();
            tree
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn limits(&self) -> Vec<IoLimit> {
            let at = |name| self.0.path().join(name);
            let roots = Roots { proc: at("proc"), sys: at("sys"), cgroup: at("cg") };
            let mut limits = IoLimits::new(&roots, 7);
            limits.locate();
            limits.take()
        }
    }

    fn limit(cgroup: &str, device: &str, of: IoRate, per_s: u64, done: u64) -> IoLimit {
        IoLimit { cgroup: cgroup.to_owned(), device: device.to_owned(), of, per_s, done }
    }

    #[test]
    fn version_2_is_under_every_ancestors_limit() {
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
        assert_eq!(tree.limits(), expected);
    }

    #[test]
    fn version_1_is_under_its_own_limits_only() {
        let tree = Tree::new("3:blkio:/db/one\n0::/\n");
        tree.file("cg/blkio/db/one/blkio.throttle.write_iops_device", "254:0 50\n");
        tree.file("cg/blkio/db/one/blkio.throttle.read_bps_device", "254:0 4096\n");
        tree.file("cg/blkio/db/one/blkio.throttle.io_serviced", "254:0 Read 3\n254:0 Write 202\nTotal 205\n");
        tree.file("cg/blkio/db/blkio.throttle.write_iops_device", "254:0 9\n");
        let expected = [
            limit("/db/one", "vda", IoRate::Writes, 50, 202),
            limit("/db/one", "vda", IoRate::ReadBytes, 4096, 0),
        ];
        assert_eq!(tree.limits(), expected);
    }

    #[test]
    fn no_limit_and_nonsense_are_none() {
        let tree = Tree::new("3:blkio:/db\n0::/a\n");
        tree.file("cg/a/io.max", "254:0 rbps=max wbps=-1 riops wiops=\ngarbage\n");
        tree.file("cg/blkio/db/blkio.throttle.write_iops_device", "254:0 many\n254:0\n");
        assert_eq!(tree.limits(), []);
        assert_eq!(Tree::new("").limits(), []);
    }
}
