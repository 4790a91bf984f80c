//! The control groups of a process, and where their files are mounted.

use std::path::PathBuf;

use crate::kernel_files::{KernelPaths, Pid, read_or_empty};
use crate::proc::process::{self, Cgroups};

/// The control groups of a process. Read anew each time, because it may be moved.
#[derive(Debug)]
pub(super) struct Membership {
    file: PathBuf,
    paths: KernelPaths,
}

impl Membership {
    pub(super) fn of(paths: &KernelPaths, pid: Pid) -> Self {
        Self { file: paths.process(pid).join("cgroup"), paths: paths.clone() }
    }

    pub(super) fn read(&self) -> Cgroups {
        process::cgroups(&read_or_empty(&self.file))
    }

    /// Where version 2 may be mounted: a host that runs both versions mounts it below the other's directory.
    pub(super) fn unified_mounts(&self) -> [PathBuf; 2] {
        [self.paths.cgroup.clone(), self.paths.cgroup.join("unified")]
    }

    /// Where a controller of version 1 is mounted.
    pub(super) fn controller(&self, name: &str) -> PathBuf {
        self.paths.cgroup.join(name)
    }

    /// The kernel's name of a block device such as `254:0`, or this number if the name is not known.
    pub(super) fn device(&self, number: &str) -> String {
        let link = std::fs::read_link(self.paths.sys.join("dev/block").join(number));
        let name = link.ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        name.unwrap_or_else(|| number.to_owned())
    }
}

/// The path of a group below a mount point and those of its ancestors, the root last, without leading slashes.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path.trim_matches('/')), |path| match path.rsplit_once('/') {
        Some((above, _)) => Some(above),
        None => (!path.is_empty()).then_some(""),
    })
}

/// Files laid out as the kernel does, for process 7.
#[cfg(test)]
pub(crate) mod fake {
    use super::*;

    pub(crate) const PID: Pid = 7;

    pub(crate) struct Tree(tempfile::TempDir);

    impl Tree {
        /// With the block device `254:0`, which is `vda`.
        pub(crate) fn new(membership: &str) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            tree.file("proc/7/cgroup", membership);
            std::fs::create_dir_all(tree.0.path().join("sys/dev/block")).unwrap();
            let link = tree.0.path().join("sys/dev/block/254:0");
            std::os::unix::fs::symlink("../../devices/virtio0/block/vda", link).unwrap();
            tree
        }

        pub(crate) fn file(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        pub(crate) fn paths(&self) -> KernelPaths {
            let at = |name| self.0.path().join(name);
            KernelPaths { proc: at("proc"), sys: at("sys"), cgroup: at("cg") }
        }
    }
}
