//! Limits on what a program may use, by cgroups of its own.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::fs::{major, minor};

/// Where cgroup v2 is, or one folder for each controller of v1.
const CGROUPS: &str = "/sys/fs/cgroup";
/// What v1 calls the controllers that limit something here.
const CONTROLLERS: [&str; 2] = ["memory", "blkio"];

/// A limit on what a program may use, all that it starts included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Memory, bytes; its page cache counts.
    Memory(u64),
    /// What it may ask of the disk that holds the experiment's folder. Reads and writes are limited alike, each by themselves.
    Disk {
        /// Operations per second.
        iops: Option<u64>,
        /// Bytes per second.
        bytes_per_s: Option<u64>,
    },
}

/// A cgroup with a limit. The guard of its program removes it, also where this process was killed; where there is no guard,
/// it is removed when dropped, by when its processes must have ended.
#[derive(Debug)]
pub(super) struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// Limits the program under the guard of this number, with its data in `folder`.
    pub(super) fn limiting(guard: u32, limit: Limit, folder: &Path) -> io::Result<Self> {
        let controller = match limit {
            Limit::Memory(_) => "memory",
            Limit::Disk { .. } => "blkio",
        };
        let group = folder_of(controller, guard);
        // That of v2 is one for all limits.
        let is_new = !group.exists();
        hand_down(controller);
        fs::create_dir_all(&group)?;
        let files = LimitFiles { group: &group, v1: is_v1(controller) };
        let set = match limit {
            Limit::Memory(bytes) => files.limit_memory(bytes),
            Limit::Disk { iops, bytes_per_s } => files.limit_disk(folder, iops, bytes_per_s),
        };
        if let Err(error) = set {
            if is_new {
                remove(&group);
            }
            return Err(error);
        }
        Ok(Cgroup { folder: group })
    }

    /// The file that takes a process into it.
    pub(super) fn entrance(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// The files of a cgroup that set its limits.
struct LimitFiles<'a> {
    group: &'a Path,
    v1: bool,
}

impl LimitFiles<'_> {
    fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        let bytes = bytes.to_string();
        if self.v1 {
            self.write("memory.limit_in_bytes", &bytes)?;
            // Not there where swap is not accounted.
            let _ = self.write("memory.memsw.limit_in_bytes", &bytes);
        } else {
            self.write("memory.max", &bytes)?;
            let _ = self.write("memory.swap.max", "0");
        }
        Ok(())
    }

    fn limit_disk(&self, data: &Path, iops: Option<u64>, bytes_per_s: Option<u64>) -> io::Result<()> {
        let disk = disk_under(data)?;
        for (most, unit) in [(iops, "iops"), (bytes_per_s, "bps")] {
            let Some(most) = most else { continue };
            for (way, initial) in [("read", "r"), ("write", "w")] {
                if self.v1 {
                    self.write(&format!("blkio.throttle.{way}_{unit}_device"), &format!("{disk} {most}"))?;
                } else {
                    self.write("io.max", &format!("{disk} {initial}{unit}={most}"))?;
                }
            }
        }
        Ok(())
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.group.join(file), text)
    }
}

fn is_v1(controller: &str) -> bool {
    Path::new(CGROUPS).join(controller).is_dir()
}

/// Lets the cgroups below the root of v2 have limits of this kind, which not every system does by itself. Where that fails, setting
/// the limit does too.
fn hand_down(controller: &str) {
    if !is_v1(controller) {
        let name = if controller == "blkio" { "io" } else { controller };
        let _ = fs::write(Path::new(CGROUPS).join("cgroup.subtree_control"), format!("+{name}"));
    }
}

fn folder_of(controller: &str, guard: u32) -> PathBuf {
    let root = Path::new(CGROUPS);
    let root = if is_v1(controller) { root.join(controller) } else { root.to_owned() };
    root.join(format!("nstar-{guard}"))
}

/// The disk that holds a folder, as the kernel numbers it: `254:0`. Limits are set on a whole disk, never on a partition.
fn disk_under(folder: &Path) -> io::Result<String> {
    let device = fs::metadata(folder)?.dev();
    let number = format!("{}:{}", major(device), minor(device));
    let known = Path::new("/sys/dev/block").join(&number);
    if !known.exists() {
        return Err(io::Error::from(rustix::io::Errno::NOTBLK));
    }
    if !known.join("partition").exists() {
        return Ok(number);
    }
    Ok(fs::read_to_string(fs::canonicalize(known)?.join("../dev"))?.trim().to_owned())
}

/// Removes the cgroups of the program under the guard of this number, if it has any.
pub(super) fn remove_all(guard: u32) {
    CONTROLLERS.iter().for_each(|controller| remove(&folder_of(controller, guard)));
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
