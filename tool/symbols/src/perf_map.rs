//! The maps that runtimes with a compiler of their own write: `/tmp/perf-PID.map`, a line for each function that they compiled.
//!
//! The format is in `tools/perf/Documentation/jit-interface.txt` of Linux: where the function begins and how long it is, in
//! hexadecimal, and its name. A process goes on writing it meanwhile, and names hold what its users call their functions: a
//! line that is none takes only itself. Nor may a map make work without end: each address is looked for until it has a name.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// As much as is read of a map: some million functions.
const MAP_MAX: u64 = 64 << 20;

/// As much as is kept of a name, bytes.
const NAME_MAX: usize = 1_024;

/// Names addresses in a process, as far as the map tells that it writes.
pub(crate) fn names(pid: u32, addresses: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    if addresses.is_empty() {
        return BTreeMap::new();
    }
    let path = format!("/proc/{pid}/root/tmp/perf-{}.map", own_number(pid));
    let mut map = Vec::new();
    // What was read before an error counts.
    let _ = open(Path::new(&path)).and_then(|file| file.take(MAP_MAX).read_to_end(&mut map));
    told(&map, addresses)
}

/// Opens a map unless it is a link, which a process could lead out of what it sees itself to a file that only its reader may
/// read; or a device or a pipe, which could act on that or wait.
fn open(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// The number of a process in its own name space, by which it names its map.
fn own_number(pid: u32) -> u32 {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let numbers = status.lines().find_map(|line| line.strip_prefix("NStgid:"));
    numbers.and_then(|numbers| numbers.split_whitespace().next_back()?.parse().ok()).unwrap_or(pid)
}

/// What a map says of addresses. Of several lines that hold one the last says it: code is compiled anew where it matters.
fn told(map: &[u8], addresses: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    let (mut names, mut unnamed) = (BTreeMap::new(), addresses.clone());
    // From the end on. What comes after the last end of a line is still being written.
    let lines = map.rsplit(|byte| *byte == b'\n').skip(1);
    for (start, end, name) in lines.filter_map(parsed) {
        if unnamed.is_empty() {
            break;
        }
        let name = name.get(..NAME_MAX).unwrap_or(name);
        let held: Vec<u64> = unnamed.range(start..end).copied().collect();
        for address in held {
            unnamed.remove(&address);
            names.insert(address, String::from_utf8_lossy(name).into_owned());
        }
    }
    names
}

/// Where the function of a line begins, where it ends, and its name.
fn parsed(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.trim_ascii().splitn(3, u8::is_ascii_whitespace);
    let (start, size, name) = (hexadecimal(words.next()?)?, hexadecimal(words.next()?)?, words.next()?);
    Some((start, start.saturating_add(size.max(1)), name))
}

fn hexadecimal(word: &[u8]) -> Option<u64> {
    let word = std::str::from_utf8(word).ok()?;
    u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(map: &[u8], addresses: &[u64]) -> Vec<Option<String>> {
        let found = told(map, &addresses.iter().copied().collect());
        addresses.iter().map(|address| found.get(address).cloned()).collect()
    }

    #[test]
    fn the_line_that_holds_an_address_names_it() {
        let map = b"5000 10 JS:*slowSquares n.js:1:21\n0x5010 8 py::<module>:/srv/app.py\n6000 0 a_stub\n";
        let names = ["JS:*slowSquares n.js:1:21", "py::<module>:/srv/app.py", "a_stub"];
        let names = names.map(|name| Some(name.to_owned()));
        assert_eq!(named(map, &[0x5000, 0x5017, 0x6000]), names);
        assert_eq!(named(map, &[0x4fff, 0x5018, 0x6001]), vec![None; 3]);
    }

    #[test]
    fn code_that_was_compiled_anew_has_its_last_name() {
        let map = b"5000 100 interpreted\n5040 10 optimized\n";
        let names = ["optimized", "interpreted"].map(|name| Some(name.to_owned()));
        assert_eq!(named(map, &[0x5040, 0x5050]), names);
    }

    #[test]
    fn a_line_that_is_none_takes_no_other_with_it() {
        let map =
            b"5000 10 first\nof two lines\n\n5010\n5020 x y\n5030 10 \xff\n5040 10 last\n5050 10 unfini";
        let names = ["first", "\u{fffd}", "last"].map(|name| Some(name.to_owned()));
        assert_eq!(named(map, &[0x5000, 0x5030, 0x5040]), names);
        assert_eq!(named(map, &[0x5010, 0x5020, 0x5050]), vec![None; 3]);
    }

    #[test]
    fn a_map_is_opened_and_a_link_to_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let [map, link] = ["map", "link"].map(|name| folder.path().join(name));
        fs::write(&map, "5000 10 name\n").expect("a file");
        std::os::unix::fs::symlink(&map, &link).expect("a link");
        assert!(open(&map).is_ok());
        assert!(open(&link).is_err() && open(folder.path()).is_err());
    }

    #[test]
    fn a_process_goes_by_the_number_that_it_has_itself() {
        // A process without name spaces of its own has one number.
        assert_eq!(own_number(std::process::id()), std::process::id());
        assert_eq!(own_number(u32::MAX / 2), u32::MAX / 2, "it has ended");
    }

    proptest! {
        #[test]
        fn whatever_a_map_holds_is_read(map in prop::collection::vec(any::<u8>(), 0..300), start in 0..u64::MAX, size in any::<u64>()) {
            let line = format!("{start:x} {size:x} name\n");
            let whole = [line.as_bytes(), &map[..]].concat();
            prop_assert_eq!(named(&[&map[..], b"\n", line.as_bytes()].concat(), &[start]), [Some("name".to_owned())]);
            named(&whole, &[0, start, u64::MAX]);
        }
    }
}
