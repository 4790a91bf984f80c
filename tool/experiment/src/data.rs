//! Files of random bytes, and whether the page cache holds them.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    ops::Range,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::fs::{Advice, fadvise, statfs, syncfs};

/// Most bytes that are written at once.
const BUFFER: u64 = 1 << 20;

/// Fills a folder with a file of `size` bytes for each number, named `0.bin`, `1.bin`, .., and removes all other files.
///
/// The bytes do not compress and differ from file to file, so that no layer below can cheat.
///
/// # Errors
/// When a file cannot be written, or `interrupt` is set before the last is whole ([`io::ErrorKind::Interrupted`]).
pub(crate) fn make_files(
    folder: &Path,
    mut numbers: Range<u64>,
    size: u64,
    interrupt: &AtomicBool,
) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        fs::remove_file(entry?.path())?;
    }
    numbers.try_for_each(|number| make_file(&folder.join(format!("{number}.bin")), number, size, interrupt))
}

/// Drops every file of a folder from the page cache, so that the next read comes from the disk. Works without root and
/// drops no other file, unlike `/proc/sys/vm/drop_caches`.
pub(crate) fn drop_from_page_cache(folder: &Path) -> io::Result<()> {
    // Dirty pages are not dropped, so they go to the disk first: all at once, because there may be many files.
    syncfs(File::open(folder)?)?;
    for entry in fs::read_dir(folder)? {
        fadvise(File::open(entry?.path())?, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

/// Whether the files of a folder are held in memory alone, so that none of them can come from a disk.
pub(crate) fn is_in_memory(folder: &Path) -> io::Result<bool> {
    const TMPFS: i128 = 0x0102_1994;
    const RAMFS: i128 = 0x8584_58f6;
    Ok([TMPFS, RAMFS].contains(&i128::from(statfs(folder)?.f_type)))
}

fn make_file(path: &Path, number: u64, size: u64, interrupt: &AtomicBool) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(size.min(BUFFER) as usize, File::create(path)?);
    let mut words = Words(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut left = size;
    while left > 0 {
        // A file may be gigabytes.
        if interrupt.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let word = words.next_word().to_le_bytes();
        let take = left.min(8);
        out.write_all(&word[..take as usize])?;
        left -= take;
    }
    out.flush()
}

/// SplitMix64 (Steele, Lea and Flood 2014): fast bytes that do not compress.
struct Words(u64);

impl Words {
    fn next_word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static GO_ON: AtomicBool = AtomicBool::new(false);

    #[test]
    fn files_have_the_size_asked_for_and_differ() {
        let folder = tempfile::tempdir().expect("a folder");
        make_files(folder.path(), 0..3, 1_001, &GO_ON).expect("files");
        let bytes: Vec<_> =
            (0..3).map(|n| fs::read(folder.path().join(format!("{n}.bin"))).expect("a file")).collect();
        assert!(bytes.iter().all(|file| file.len() == 1_001));
        assert_ne!(bytes[0], bytes[1]);
        make_files(folder.path(), 0..1, 0, &GO_ON).expect("files again");
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
    }

    /// Ctrl-C had no effect until gigabytes had been made.
    #[test]
    fn files_are_not_made_to_their_end_once_that_is_interrupted() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = make_files(folder.path(), 0..1_000_000, 1 << 40, &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn memory_is_told_from_a_disk() {
        assert!(is_in_memory(Path::new("/dev/shm")).expect("a file system"));
        assert!(!is_in_memory(Path::new("/proc")).expect("a file system"));
    }
}
