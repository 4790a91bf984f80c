//! Where the kernel's files are.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Pid;

/// The directories everything is read from. Tests lay out their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
    /// `/sys/fs/cgroup`.
    pub cgroup: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into(), cgroup: "/sys/fs/cgroup".into() }
    }
}

impl Roots {
    /// Whether these are this host's own files, so that system calls may complete what they tell.
    pub(crate) fn are_this_host(&self) -> bool {
        self.proc == Path::new("/proc")
    }

    /// The directory of a process.
    pub(crate) fn process(&self, pid: Pid) -> PathBuf {
        self.proc.join(pid.to_string())
    }

    /// The numbers of all processes, ascending.
    pub(crate) fn processes(&self) -> io::Result<Vec<Pid>> {
        numbered_entries(&self.proc)
    }
}

/// The whole file as text; bytes that are not UTF-8 (a process may name itself anything) are replaced.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    // The size of the kernel's files is not known before: asking for it, as `fs::read` does, and feeling
    // the way with small reads costs more than this.
    let mut bytes = vec![0; 4096];
    let mut length = 0;
    loop {
        match file.read(bytes.get_mut(length..).unwrap_or_default()) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if length == bytes.len() {
            bytes.resize(length * 2, 0);
        }
    }
    bytes.truncate(length);
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The whole file, or an empty text where it cannot be read.
pub(crate) fn read_or_empty(path: &Path) -> String {
    read(path).unwrap_or_default()
}

/// Entries of a directory whose names are numbers (processes, threads, descriptors), ascending.
pub(crate) fn numbered_entries(directory: &Path) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(directory)?;
    let mut numbers: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
