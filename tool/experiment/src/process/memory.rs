//! A limit on the memory of a program, by a cgroup of its own; its page cache counts.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// Where the memory controller of cgroup v1 is, if there is one.
const V1: &str = "/sys/fs/cgroup/memory";
/// Where cgroup v2 is.
const V2: &str = "/sys/fs/cgroup";

/// A cgroup that limits memory. Removed when dropped, by when its processes must have ended.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    folder: PathBuf,
}

impl MemoryLimit {
    /// Makes a cgroup of this name.
    pub(super) fn new(name: &str, bytes: u64) -> io::Result<Self> {
        let v1 = Path::new(V1).is_dir();
        let folder = Path::new(if v1 { V1 } else { V2 }).join(name);
        fs::create_dir(&folder)?;
        let limit = MemoryLimit { folder };
        let write = |file: &str, text: &str| fs::write(limit.folder.join(file), text);
        let bytes = bytes.to_string();
        if v1 {
            write("memory.limit_in_bytes", &bytes)?;
            // Not there where swap is not accounted.
            let _ = write("memory.memsw.limit_in_bytes", &bytes);
        } else {
            write("memory.max", &bytes)?;
            let _ = write("memory.swap.max", "0");
        }
        Ok(limit)
    }

    /// The file that takes a process into it.
    pub(super) fn entrance(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // A process that has just ended may hold it for a moment.
        for _ in 0..50 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}
