//! The function in which most samples of a server were taken.

use std::{
    collections::BTreeMap,
    fmt, fs,
    process::{Command, Stdio},
};

use super::record;
use crate::tools::{
    cpu,
    effort::Result,
    workspace::{ServerProcess, Workspace},
};

/// Samples per second of processor time: as many as `nstar --profile` takes.
const SAMPLES_PER_S: &str = "99";

/// Code without a name is told apart by pages of so many bytes, as nstar does.
const PAGE: u64 = 4_096;

/// The kernel as a module.
const KERNEL: &str = "kernel";

/// A function, or a place in code that has no name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The name of the function; empty where there is none.
    pub name: String,
    /// The file that the code is in, without folders, or `kernel`.
    pub module: String,
    /// Without a name: the page within the file, in bytes from its beginning.
    pub page: Option<u64>,
}

impl Place {
    /// Whether both are the same function, or the same page of code without a name. The files of functions are not compared:
    /// code made at run time is in different ones for different tools. Nor are the arguments of functions of C++, which not all
    /// tools print.
    pub(crate) fn is_same(&self, other: &Place) -> bool {
        match (self.name.is_empty(), other.name.is_empty()) {
            (false, false) => without_arguments(&self.name) == without_arguments(&other.name),
            (true, true) => (&self.module, self.page) == (&other.module, other.page),
            _ => false,
        }
    }
}

fn without_arguments(name: &str) -> &str {
    name.split('(').next().unwrap_or(name)
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { name, module, page } = self;
        match (name.is_empty(), page) {
            (true, Some(page)) => write!(out, "`{module}+{page:#x}`"),
            (true, None) => write!(out, "code without a name in `{module}`"),
            // Code that was made as the program ran is in no file.
            (false, _) if module.is_empty() || module.starts_with('[') || module.starts_with("perf-") => {
                write!(out, "`{name}`")
            }
            (false, _) => write!(out, "`{name}` ({module})"),
        }
    }
}

/// Samples where the server's processor time goes while the client runs, whose exit status must be among `accepted`. Returns
/// the function in which most samples were taken, not counting what it called, and their share of all, 0 to 1.
pub(crate) fn hottest(
    workspace: &Workspace,
    server: &ServerProcess,
    client: &[String],
    accepted: &[i32],
) -> Result<(Place, f64)> {
    let seen = record(workspace, server, client, accepted, SAMPLES_PER_S)?;
    let told = Command::new("perf")
        .args(["script", "-i", &seen, "-G", "-F", "ip,sym,dso"])
        .stdin(Stdio::null())
        .output()?;
    let code = Code::of(&cpu::tree(server.pid()));
    let hottest = most_frequent(&String::from_utf8_lossy(&told.stdout), &code);
    hottest
        .ok_or_else(|| format!("perf script shows nothing: {}", String::from_utf8_lossy(&told.stderr)).into())
}

/// From lines such as `55d6c1a2e3f4 deflate_slow (/usr/lib/libz.so.1)`, one for each sample.
fn most_frequent(samples: &str, code: &Code) -> Option<(Place, f64)> {
    let mut counts = BTreeMap::<Place, u64>::new();
    for place in samples.lines().filter_map(|line| place(line, code)) {
        *counts.entry(place).or_default() += 1;
    }
    let all: u64 = counts.values().sum();
    let (place, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    Some((place, count as f64 / all as f64))
}

fn place(line: &str, code: &Code) -> Option<Place> {
    let (address, rest) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    // A name may hold spaces and parentheses; the file has a path, or a word in brackets.
    let begins = rest.find(" (/").or_else(|| rest.find(" (["));
    let (name, file) = begins.map_or((rest, ""), |at| (&rest[..at], &rest[at + 2..]));
    let file = file.strip_suffix(')').unwrap_or(file);
    // The upper half of all addresses is the kernel's.
    let module = if address >> 63 == 1 { KERNEL.into() } else { file_name(file) };
    match name.trim() {
        "[unknown]" => Some(code.place(address).unwrap_or_else(|| Place { module, ..Place::default() })),
        name => Some(Place { name: name.to_owned(), module, page: None }),
    }
}

/// A file without its folders; a word in brackets stays.
fn file_name(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// The code that the processes of a server have mapped.
#[derive(Debug, Default)]
struct Code(Vec<Mapping>);

#[derive(Debug)]
struct Mapping {
    start: u64,
    end: u64,
    /// Where in the file it begins.
    offset: u64,
    module: String,
}

impl Code {
    fn of(processes: &[u32]) -> Self {
        let maps = processes.iter().map(|pid| fs::read_to_string(format!("/proc/{pid}/maps")));
        Code(maps.flat_map(|text| Self::parse(&text.unwrap_or_default()).0).collect())
    }

    /// From the text of /proc/PID/maps: proc_pid_maps(5).
    fn parse(text: &str) -> Self {
        Code(text.lines().filter_map(Mapping::parse).collect())
    }

    /// The page of a file that an address lies in; of several processes the first that has a file there.
    fn place(&self, address: u64) -> Option<Place> {
        let at = self.0.iter().find(|mapping| (mapping.start..mapping.end).contains(&address))?;
        let offset = address - at.start + at.offset;
        Some(Place { name: String::new(), module: at.module.clone(), page: Some(offset - offset % PAGE) })
    }
}

impl Mapping {
    /// A line that maps code of a file.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let is_code = words.next()?.contains('x');
        let offset = words.next()?;
        let path = words.nth(2)?.trim();
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end, offset) = (hex(start)?, hex(end)?, hex(offset)?);
        (is_code && path.starts_with('/')).then(|| Mapping { start, end, offset, module: file_name(path) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "7f0000000000-7f0000003000 r--p 00000000 fd:00 13    /usr/lib/libz.so.1.2.13\n\
                        7f0000003000-7f0000020000 r-xp 00003000 fd:00 13    /usr/lib/libz.so.1.2.13\n\
                        7f0000030000-7f0000040000 rwxp 00000000 00:00 0 \n";

    fn seen(name: &str, module: &str, page: Option<u64>) -> Place {
        Place { name: name.into(), module: module.into(), page }
    }

    #[test]
    fn samples_are_counted_by_function_and_code_without_names_by_page() {
        let code = Code::parse(MAPS);
        let samples = "    7f0000005123 [unknown] (/usr/lib/libz.so.1.2.13)\n\
                       7f0000005fff [unknown] (/usr/lib/libz.so.1.2.13)\n\
                       7f0000006000 [unknown] (/usr/lib/libz.so.1.2.13)\n\
                       ffffffff81000000 copy_to_iter ([kernel.kallsyms])\n\n";
        let expected = (seen("", "libz.so.1.2.13", Some(0x5000)), 0.5);
        assert_eq!(most_frequent(samples, &code), Some(expected));
        assert_eq!(most_frequent("", &code), None);
    }

    #[test]
    fn a_name_may_hold_spaces_and_parentheses() {
        let at = |line| place(line, &Code::parse(MAPS));
        assert_eq!(
            at("7f0000030010 JS:*squares /tmp/a b/hot.js:5:17 (/tmp/perf-12.map)"),
            Some(seen("JS:*squares /tmp/a b/hot.js:5:17", "perf-12.map", None))
        );
        assert_eq!(
            at("55d6c1a2e3f4 node::Run(node::Loop*) (/usr/bin/node (deleted))"),
            Some(seen("node::Run(node::Loop*)", "node", None))
        );
        assert_eq!(at("ffffffff81000000 [unknown] ([nf_tables])"), Some(seen("", "kernel", None)));
        assert_eq!(at("7f0000030010 [unknown] (//anon)"), Some(seen("", "anon", None)));
        assert_eq!(at("perf: it has nothing to say"), None);
    }

    #[test]
    fn functions_are_compared_by_name_and_code_without_one_by_place() {
        let jitted = seen("JS:*squares /tmp/hot.js:5:17", "perf-12.map", None);
        assert!(jitted.is_same(&seen("JS:*squares /tmp/hot.js:5:17", "[anonymous]", None)));
        assert!(!jitted.is_same(&seen("JS:*handle /tmp/hot.js:9:17", "perf-12.map", None)));
        assert!(seen("node::Run(node::Loop*)", "node", None).is_same(&seen("node::Run", "node", None)));
        let unnamed = seen("", "libz.so.1.2.13", Some(0x5000));
        assert!(unnamed.is_same(&unnamed.clone()) && !unnamed.is_same(&jitted));
        assert!(!unnamed.is_same(&seen("", "libz.so.1.2.13", Some(0x6000))));
    }

    #[test]
    fn a_place_is_shown_with_what_is_known_of_it() {
        assert_eq!(seen("deflate_slow", "libz.so.1", None).to_string(), "`deflate_slow` (libz.so.1)");
        assert_eq!(seen("", "libz.so.1", Some(0x5000)).to_string(), "`libz.so.1+0x5000`");
        assert_eq!(seen("JS:*squares", "perf-12.map", None).to_string(), "`JS:*squares`");
        assert_eq!(seen("", "kernel", None).to_string(), "code without a name in `kernel`");
    }
}
