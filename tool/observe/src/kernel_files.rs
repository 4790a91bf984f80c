//! Where the kernel's files are, and how they are read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A process number.
pub type Pid = u32;

/// The directories that everything is read from. Tests lay out their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelPaths {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
    /// `/sys/fs/cgroup`.
    pub cgroup: PathBuf,
}

impl Default for KernelPaths {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into(), cgroup: "/sys/fs/cgroup".into() }
    }
}

impl KernelPaths {
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

/// Reads a whole file as text. Bytes that are not UTF-8 are replaced, because a process may name itself anything.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    // The kernel's files do not tell their size beforehand. Asking for it, as `fs::read` does, and then growing from
    // small reads costs more than this.
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

/// Reads a whole file as text, or returns an empty text if that fails.
pub(crate) fn read_or_empty(path: &Path) -> String {
    read(path).unwrap_or_default()
}

/// The entries of a directory whose names are numbers (processes, threads, descriptors), ascending.
pub(crate) fn numbered_entries(directory: &Path) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(directory)?;
    let mut numbers: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Larger than any file that is sampled; a buffer grows no further.
const SIZE_MAX: usize = 4 << 20;

/// A file that is read from its start for every sample, and kept open in between.
#[derive(Debug)]
pub(crate) struct SampledFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl SampledFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, buffer: vec![0; 4096] }
    }

    /// The text now, or an empty one if it cannot be read. After a failure the file is opened again next time.
    pub(crate) fn text(&mut self) -> String {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        match self.fill() {
            Some(length) => {
                String::from_utf8_lossy(self.buffer.get(..length).unwrap_or_default()).into_owned()
            }
            None => {
                self.file = None;
                String::new()
            }
        }
    }

    fn fill(&mut self) -> Option<usize> {
        let file = self.file.as_ref()?;
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                if length >= SIZE_MAX {
                    return Some(length);
                }
                self.buffer.resize(length * 2, 0);
            }
            match file.read_at(self.buffer.get_mut(length..)?, length as u64) {
                Ok(0) => return Some(length),
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampled_file_is_read_as_it_is_now() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counter");
        let mut counter = SampledFile::new(path.clone());
        assert_eq!(counter.text(), "");
        std::fs::write(&path, "1").unwrap();
        assert_eq!(counter.text(), "1");
        let long = "x".repeat(10_000);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(counter.text(), long);
        std::fs::write(&path, "3").unwrap();
        assert_eq!(counter.text(), "3");
    }
}
