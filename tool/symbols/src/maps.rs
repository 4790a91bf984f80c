//! What code is mapped where in a process.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use analysis::run::Function;
use rustix::fs::OFlags;

use super::file_name;

/// Places are told to within so many bytes, so that samples of one function come together.
const PAGE: u64 = 4096;

/// As much as is read of what a process has mapped: some 100 000 mappings.
const TEXT_MAX: u64 = 8 << 20;

/// Most mappings of code that are kept; a program has a few dozen.
const MAPPINGS_MAX: usize = 4_096;

/// The code that a process has mapped, by ascending address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Maps(Vec<Mapping>);

/// A range of addresses that holds code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    /// The device and the inode of the file, in the kernel's words; `None` where there is no file.
    pub(crate) file: Option<String>,
    /// The path in the name space of the process, or a word in brackets.
    path: String,
}

impl Maps {
    /// Those of a process; none if it has ended.
    pub(crate) fn of(pid: u32) -> Self {
        Self::read(pid).unwrap_or_default()
    }

    fn read(pid: u32) -> io::Result<Self> {
        let mut text = Vec::new();
        File::open(format!("/proc/{pid}/maps"))?.take(TEXT_MAX).read_to_end(&mut text)?;
        Ok(Self::parse(&String::from_utf8_lossy(&text)))
    }

    /// From the text of `/proc/PID/maps`.
    fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(Mapping::parse).take(MAPPINGS_MAX).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter()
    }

    /// The mapping that holds an address.
    pub(crate) fn at(&self, address: u64) -> Option<&Mapping> {
        let after = self.0.partition_point(|mapping| mapping.end <= address);
        self.0.get(after).filter(|mapping| mapping.start <= address)
    }

    /// The module and the place of an address; nothing where nothing is mapped.
    pub(crate) fn place(&self, address: u64) -> Function {
        self.at(address).map_or_else(Function::default, |mapping| {
            let at = mapping.offset_of(address);
            let module = mapping.module();
            // Where in memory that a compiler filled as it went differs from run to run.
            let offset = (!module.starts_with('[')).then_some(at - at % PAGE);
            Function { name: String::new(), module, offset, kernel: false }
        })
    }
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let executable = words.next()?.contains('x');
        let (offset, device, rest) = (words.next()?, words.next()?, words.next()?);
        let path = words.next().unwrap_or_default().trim_start().to_owned();
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end, offset) = (hex(start)?, hex(end)?, hex(offset)?);
        let file = (rest != "0").then(|| format!("{device} {rest}"));
        (executable && start < end).then_some(Self { start, end, offset, file, path })
    }

    /// Where in the file an address of it is.
    pub(crate) fn offset_of(&self, address: u64) -> u64 {
        address.saturating_sub(self.start).saturating_add(self.offset)
    }

    /// Whether it is memory that a compiler may have filled as the program ran. Some of it has a name, or a file that never was
    /// on a disk.
    pub(crate) fn is_memory(&self) -> bool {
        !self.path.starts_with('/') || MEMORY.iter().any(|begin| self.path.starts_with(begin))
    }

    /// The name of the file without folders.
    fn module(&self) -> String {
        let path = self.path.trim_end().trim_end_matches(DELETED);
        if path.is_empty() || path.starts_with("//") { "[anonymous]".into() } else { file_name(path) }
    }

    pub(crate) fn is_vdso(&self) -> bool {
        self.path == "[vdso]"
    }

    /// Opens the file that is mapped: the very same one, for whoever the kernel lets do that, or else what is at its path now as
    /// the process sees it.
    pub(crate) fn open(&self, pid: u32) -> io::Result<File> {
        open_regular(&self.in_map_files(pid)).or_else(|_| self.open_by_path(pid))
    }

    pub(crate) fn open_by_path(&self, pid: u32) -> io::Result<File> {
        open_regular(&self.in_root(pid).ok_or(io::ErrorKind::NotFound)?)
    }

    /// The path at which [`Self::open`] opens it, for what opens files by itself; `None` where that fails.
    pub(crate) fn openable(&self, pid: u32) -> Option<PathBuf> {
        let paths = [Some(self.in_map_files(pid)), self.in_root(pid)];
        paths.into_iter().flatten().find(|path| open_regular(path).is_ok())
    }

    fn in_map_files(&self, pid: u32) -> PathBuf {
        let Self { start, end, .. } = self;
        format!("/proc/{pid}/map_files/{start:x}-{end:x}").into()
    }

    fn in_root(&self, pid: u32) -> Option<PathBuf> {
        let is_there = self.path.starts_with('/') && !self.path.ends_with(DELETED);
        is_there.then(|| format!("/proc/{pid}/root{}", self.path).into())
    }

    #[cfg(test)]
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        Path::new(&self.path) == path
    }
}

/// How the paths of memory begin that is in no file system.
const MEMORY: [&str; 4] = ["//", "/memfd:", "/dev/zero", "/anon_hugepage"];

/// What the kernel adds to the path of a file that is no longer there.
const DELETED: &str = " (deleted)";

/// Opens a file unless it is a device or a pipe, which could act on that or wait.
fn open_regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    fs::OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "55e4a000-55e4c000 r--p 00000000 fd:00 12                  /usr/sbin/nginx\n\
         55e4c000-55e5c000 r-xp 00002000 fd:00 12                  /usr/sbin/nginx\n\
         7f000000-7f010000 r-xp 00003000 fd:00 13 /usr/lib/with a space/libz.so.1 (deleted)\n\
         7f020000-7f030000 rwxp 00000000 00:00 0 \n\
         damaged\n\
         7f050000-7f040000 r-xp 00000000 00:00 0 backwards\n\
         7ffe0000-7ffe2000 r-xp 00000000 00:00 0                          [vdso]\n";

    #[test]
    fn an_address_without_a_name_has_a_module_and_a_place() {
        let maps = Maps::parse(TEXT);
        let place = |at| {
            let Function { module, offset, .. } = maps.place(at);
            (module, offset)
        };
        assert_eq!(place(0x55e4_c123), ("nginx".into(), Some(0x2000)));
        assert_eq!(place(0x7f00_1fff), ("libz.so.1".into(), Some(0x4000)));
        assert_eq!(place(0x7f02_1000), ("[anonymous]".into(), None));
        assert_eq!(place(0x55e4_a000), (String::new(), None), "no code");
        assert_eq!(place(0x55e5_c000), (String::new(), None), "after the end");
    }

    #[test]
    fn mappings_tell_their_files() {
        let maps = Maps::parse(TEXT);
        let files: Vec<_> = maps.iter().map(|mapping| mapping.file.as_deref()).collect();
        assert_eq!(files, [Some("fd:00 12"), Some("fd:00 13"), None, None]);
        assert_eq!(maps.iter().filter(|mapping| mapping.is_vdso()).count(), 1);
    }

    #[test]
    fn memory_that_compilers_fill_is_told_from_files() {
        let is_memory = |path: &str| {
            let line = format!("7f020000-7f030000 rwxp 00000000 00:00 7 {path}");
            Mapping::parse(&line).expect("a mapping").is_memory()
        };
        let memory =
            ["", "[anon:cpython:perf_trampoline]", "/memfd:doublemapper (deleted)", "/dev/zero (deleted)"];
        assert!(memory.into_iter().all(is_memory));
        assert!(!["/usr/sbin/nginx", "/tmp/program (deleted)"].into_iter().any(is_memory));
    }

    #[test]
    fn of_a_process_only_files_are_opened() {
        let maps = Maps::of(std::process::id());
        let here = of_a_process_only_files_are_opened as *const () as u64;
        let mapping = maps.at(here).expect("this code");
        assert!(mapping.open(std::process::id()).is_ok(), "{mapping:?}");
        assert!(mapping.openable(std::process::id()).is_some(), "{mapping:?}");
        assert!(open_regular(Path::new("/dev/null")).is_err());
        let gone = Mapping { path: "/bin/sh (deleted)".into(), start: 1, ..mapping.clone() };
        assert!(gone.open(std::process::id()).is_err());
    }
}
