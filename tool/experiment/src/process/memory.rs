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

/// A cgroup that limits memory. The guard of its program removes it, also where this process was killed; where there is no
/// guard, it is removed when dropped, by when its processes must have ended.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    folder: PathBuf,
}

impl MemoryLimit {
    /// Makes a cgroup for the program under the guard of this number.
    pub(super) fn new(guard: u32, bytes: u64) -> io::Result<Self> {
        let v1 = Path::new(V1).is_dir();
        let folder = folder_of(guard);
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
        remove(&self.folder);
    }
}

/// The cgroup of the program under the guard of this number, if it has one.
pub(super) fn folder_of(guard: u32) -> PathBuf {
    Path::new(if Path::new(V1).is_dir() { V1 } else { V2 }).join(format!("nstar-{guard}"))
}

/// Removes a cgroup, if it is there. A process that has just ended may hold it for a moment.
pub(super) fn remove(folder: &Path) {
    for _ in 0..50 {
        if !folder.exists() || fs::remove_dir(folder).is_ok() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
