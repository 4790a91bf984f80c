//! A tree of files that imitates those of a kernel.

use std::os::unix::fs::symlink;

use observe::KernelPaths;

/// A tree of `/proc`, `/sys` and cgroup files.
pub(crate) struct Tree(tempfile::TempDir);

impl Tree {
    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn paths(&self) -> KernelPaths {
        let at = |name| self.0.path().join(name);
        KernelPaths { proc: at("proc"), sys: at("sys"), cgroup: at("cgroup") }
    }

    pub(crate) fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }
}
