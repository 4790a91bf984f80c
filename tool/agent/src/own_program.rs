//! This program as it is copied to other hosts: what it takes to run it. What only debuggers and linkers read lies behind that
//! in the file, and may be four fifths of it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::link::OWN_PROGRAM;

/// How programs begin that can be cut: ELF of 64 bits, the lower byte first.
const MAGIC: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];

/// As much of a program as its header and its list of segments take, with room to spare.
const BEGIN_BYTES: usize = 4096;

/// The length of the header.
const HEADER_BYTES: u64 = 64;

/// Where the header says where the segments are listed, how long an entry is, and how many there are.
const SEGMENTS_AT: usize = 0x20;
const SEGMENT_BYTES_AT: usize = 0x36;
const SEGMENT_COUNT_AT: usize = 0x38;

/// Where an entry says where its segment begins in the file, and how long it is there.
const OFFSET_AT: usize = 0x08;
const LENGTH_AT: usize = 0x20;

/// Where the header says where sections are listed; how many there are, and which of them holds their names.
const SECTIONS: (u64, [u8; 8]) = (0x28, [0; 8]);
const SECTION_COUNT: (u64, [u8; 4]) = (0x3c, [0; 4]);

/// The copy that agents which are started at the same time share, as long as one of them needs it.
static SHARED: Mutex<Weak<OwnProgram>> = Mutex::new(Weak::new());

/// This program as it is copied, in memory.
#[derive(Debug)]
pub(crate) struct OwnProgram {
    file: File,
    /// Its length.
    pub(crate) bytes: u64,
}

impl OwnProgram {
    /// Returns the copy that others use at this time, or else makes it.
    pub(crate) fn get() -> io::Result<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = shared.upgrade() {
            return Ok(program);
        }
        let program = Arc::new(Self::of(&File::open(OWN_PROGRAM)?)?);
        *shared = Arc::downgrade(&program);
        Ok(program)
    }

    /// Copies what it takes to run a program, and all of it where that is not known.
    fn of(program: &File) -> io::Result<Self> {
        let (mut begin, all) = (vec![0; BEGIN_BYTES], program.metadata()?.len());
        let read = program.read_at(&mut begin, 0)?;
        begin.truncate(read);
        let loaded = loaded_bytes(&begin).filter(|loaded| *loaded <= all);
        let mut file = in_memory()?;
        let bytes = io::copy(&mut program.take(loaded.unwrap_or(all)), &mut file)?;
        if loaded.is_some() {
            // Its sections are not there any more, and nothing that runs it asks for them.
            file.write_all_at(&SECTIONS.1, SECTIONS.0)?;
            file.write_all_at(&SECTION_COUNT.1, SECTION_COUNT.0)?;
        }
        Ok(Self { file, bytes })
    }

    /// Opens it at its beginning, wherever others have read to.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(self.path())
    }

    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }
}

/// Makes an empty file in memory. Where the system forbids those that can be executed, it makes one that cannot: it is only read.
fn in_memory() -> io::Result<File> {
    let forbidden = |_| memfd_create("nstar", MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL);
    Ok(memfd_create("nstar", MemfdFlags::CLOEXEC).or_else(forbidden)?.into())
}

/// The length of the part of a program that the kernel and the loader read, by how it begins: up to the end of its last segment.
fn loaded_bytes(begin: &[u8]) -> Option<u64> {
    if !begin.starts_with(&MAGIC) {
        return None;
    }
    let at = usize::try_from(number(begin, SEGMENTS_AT, 8)?).ok()?;
    let size = number(begin, SEGMENT_BYTES_AT, 2)? as usize;
    let count = number(begin, SEGMENT_COUNT_AT, 2)? as usize;
    let list_end = at.checked_add(count * size)? as u64;
    let mut ends = (0..count).map(|index| {
        let segment = begin.get(at.checked_add(index * size)?..)?;
        number(segment, OFFSET_AT, 8)?.checked_add(number(segment, LENGTH_AT, 8)?)
    });
    let end = ends.try_fold(list_end.max(HEADER_BYTES), |furthest, end| Some(end?.max(furthest)));
    end.filter(|_| count > 0)
}

/// A number of so many bytes, the lowest first.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let found = bytes.get(at..)?.get(..size)?;
    Some(found.iter().rev().fold(0, |higher, byte| (higher << 8) | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// How a program begins that has segments of so many bytes from there on in its file.
    fn program(segments: &[(u64, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 * segments.len()];
        bytes[..6].copy_from_slice(&MAGIC);
        bytes[SEGMENTS_AT..][..8].copy_from_slice(&64u64.to_le_bytes());
        bytes[SEGMENT_BYTES_AT..][..2].copy_from_slice(&56u16.to_le_bytes());
        bytes[SEGMENT_COUNT_AT..][..2].copy_from_slice(&(segments.len() as u16).to_le_bytes());
        for (entry, (offset, length)) in bytes[64..].chunks_exact_mut(56).zip(segments) {
            entry[OFFSET_AT..][..8].copy_from_slice(&offset.to_le_bytes());
            entry[LENGTH_AT..][..8].copy_from_slice(&length.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn what_is_loaded_ends_with_the_last_segment() {
        let segments = [(0, 0x1000), (0x2000, 0x0123), (0x1000, 0x0800), (0, 0)];
        assert_eq!(loaded_bytes(&program(&segments)), Some(0x2123));
        assert_eq!(loaded_bytes(&program(&[(0, 3)])), Some(64 + 56), "the list of segments is read too");
    }

    #[test]
    fn what_cannot_be_cut_is_copied_whole() {
        let segments = [(0, 0x1000)];
        let (mut narrow, mut long) = (program(&segments), program(&segments));
        narrow[4] = 1;
        long[SEGMENT_COUNT_AT..][..2].copy_from_slice(&[0xff; 2]);
        let endless = program(&[(u64::MAX, 2)]);
        for begin in [&narrow, &long, &endless, &program(&[]), &b"#!/bin/sh\n".to_vec(), &Vec::new()] {
            assert_eq!(loaded_bytes(begin), None, "{begin:?}");
        }
    }

    #[test]
    fn this_program_runs_without_what_only_debuggers_read() {
        let program = OwnProgram::get().unwrap();
        let whole = fs::metadata(OWN_PROGRAM).unwrap().len();
        assert!(program.bytes < whole && program.bytes == program.file.metadata().unwrap().len(), "{whole}");
        let listed = Command::new(program.path()).arg("--list").output().unwrap();
        let said = String::from_utf8_lossy(&listed.stdout);
        assert!(listed.status.success() && said.contains("this_program_runs_without"), "{listed:?}");
    }

    #[test]
    fn whoever_reads_the_copy_reads_it_from_its_beginning() {
        let program = OwnProgram::get().unwrap();
        for _ in 0..2 {
            let mut begin = [0; 6];
            program.open().unwrap().read_exact(&mut begin).unwrap();
            assert_eq!(begin, MAGIC);
        }
    }

    proptest! {
        #[test]
        fn no_program_makes_it_panic(rest in prop::collection::vec(any::<u8>(), 0..200), is_elf in any::<bool>()) {
            let begin = if is_elf { [&MAGIC[..], &rest].concat() } else { rest };
            let _ = loaded_bytes(&begin);
        }
    }
}
