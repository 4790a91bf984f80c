//! Where the unwind tables of an ELF file lie: what its program headers say, which no program can be run without.

use std::sync::Arc;

/// Most program headers that are looked at; a file has a dozen.
const HEADERS_MAX: usize = 64;

/// Tables longer than this are not read. Those of the largest programs take some 30 MB.
const TABLE_MAX: u64 = 32 << 20;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const MAGIC: [u8; 6] = [0x7f, b'E', b'L', b'F', CLASS_64, LITTLE_ENDIAN];
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const LOAD: u32 = 1;
const EXECUTABLE: u32 = 1;
const UNWIND_INDEX: u32 = 0x6474_e550;

/// The version of the index.
const VERSION: u8 = 1;

/// In the index, that the address of the table is 4 bytes with sign, counted from where it stands: what all linkers write.
const RELATIVE_4: u8 = 0x1b;

/// Reads so many bytes of a file at an offset; fewer where it ends.
pub(super) trait Read {
    fn read(&self, offset: u64, length: u64) -> Option<Vec<u8>>;
}

impl Read for &[u8] {
    fn read(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        let rest = self.get(usize::try_from(offset).ok()?..)?;
        Some(rest.get(..usize::try_from(length).ok()?).unwrap_or(rest).to_vec())
    }
}

/// A part of a file that is loaded, and the address that the file gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    kind: u32,
    executable: bool,
    offset: u64,
    address: u64,
    size: u64,
}

/// A table, and the address that the file gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) address: u64,
    pub(super) bytes: Arc<[u8]>,
}

/// What is read of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Elf {
    code: Vec<Segment>,
    /// The index (`.eh_frame_hdr`) and the table (`.eh_frame`), if there are any.
    pub(super) tables: Option<[Table; 2]>,
}

impl Elf {
    /// Reads a file; `None` if it is no ELF file for processors of 64 bits that count from the lowest.
    pub(super) fn read(file: &impl Read) -> Option<Self> {
        let header = file.read(0, HEADER as u64)?;
        if !header.starts_with(&MAGIC) || usize::from(u16_at(&header, 54)?) != PROGRAM_HEADER {
            return None;
        }
        let count = usize::from(u16_at(&header, 56)?).min(HEADERS_MAX);
        let headers = file.read(u64_at(&header, 32)?, (count * PROGRAM_HEADER) as u64)?;
        let all: Vec<_> = headers.chunks_exact(PROGRAM_HEADER).filter_map(Segment::parse).collect();
        let tables = tables(file, &all);
        let code = all.into_iter().filter(|segment| segment.kind == LOAD && segment.executable).collect();
        Some(Self { code, tables })
    }

    /// How many bytes the tables take.
    pub(super) fn size(&self) -> usize {
        self.tables.iter().flatten().map(|table| table.bytes.len()).sum()
    }

    /// The address that the file gives to the code at an offset.
    pub(super) fn address_of(&self, offset: u64) -> Option<u64> {
        // Mappings begin at a page, segments need not.
        let holds = |code: &&Segment| {
            (code.offset - code.offset % PAGE..code.offset.saturating_add(code.size)).contains(&offset)
        };
        let segment = self.code.iter().rfind(holds)?;
        segment.address.checked_add(offset)?.checked_sub(segment.offset)
    }
}

/// The smallest page that Linux has.
const PAGE: u64 = 4_096;

fn tables(file: &impl Read, segments: &[Segment]) -> Option<[Table; 2]> {
    let index = segments.iter().find(|segment| segment.kind == UNWIND_INDEX)?;
    let bytes = file.read(index.offset, Some(index.size).filter(|size| *size <= TABLE_MAX)?)?;
    let relative = u32_at(&bytes, 4).filter(|_| bytes.starts_with(&[VERSION, RELATIVE_4]))?.cast_signed();
    let address = index.address.checked_add(4)?.checked_add_signed(relative.into())?;
    // The header says where the table begins. It ends with an entry of length 0, or with the segment.
    let holds = |segment: &&Segment| segment.kind == LOAD && segment.rest_from(address).is_some();
    let segment = segments.iter().find(holds)?;
    let (within, length) = (address - segment.address, segment.rest_from(address)?.min(TABLE_MAX));
    let table = file.read(segment.offset.checked_add(within)?, length)?;
    Some([Table { address: index.address, bytes: bytes.into() }, Table { address, bytes: table.into() }])
}

impl Segment {
    fn parse(header: &[u8]) -> Option<Self> {
        Some(Self {
            kind: u32_at(header, 0)?,
            executable: u32_at(header, 4)? & EXECUTABLE != 0,
            offset: u64_at(header, 8)?,
            address: u64_at(header, 16)?,
            size: u64_at(header, 32)?,
        })
    }

    /// How many bytes there are from an address on; `None` if it is outside.
    fn rest_from(&self, address: u64) -> Option<u64> {
        self.size.checked_sub(address.checked_sub(self.address)?).filter(|rest| *rest > 0)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Takes the mark from the tables of a file, which then has none that could be found.
#[cfg(test)]
pub(super) fn without_tables(file: &mut [u8]) {
    let headers = u64_at(file, 32).expect("an ELF file") as usize;
    for header in file[headers..].chunks_exact_mut(PROGRAM_HEADER).take(HEADERS_MAX) {
        if u32_at(header, 0) == Some(UNWIND_INDEX) {
            header[..4].fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file with code at offset 0x1080 and address 0x401080, and tables in a segment at 0x100, which is loaded at 0x400100.
    fn file(index: &[u8]) -> Vec<u8> {
        let mut file = vec![0; HEADER];
        file[..6].copy_from_slice(&MAGIC);
        file[32..40].copy_from_slice(&(HEADER as u64).to_le_bytes());
        file[54..58].copy_from_slice(&[PROGRAM_HEADER as u8, 0, 3, 0]);
        let segments = [
            (LOAD, 4, 0x100, 0x40_0100, 0x40),
            (LOAD, 5, 0x1080, 0x40_1080, 0x80),
            (UNWIND_INDEX, 4, 0x110, 0x40_0110, 16),
        ];
        for (kind, flags, offset, address, size) in segments {
            let words = [offset, address, address, size, size, 0].map(u64::to_le_bytes);
            file.extend([u32::to_le_bytes(kind), u32::to_le_bytes(flags)].concat());
            file.extend(words.concat());
        }
        file.resize(0x110, 0);
        file.extend(index);
        file.resize(0x1100, 7);
        file
    }

    #[test]
    fn tables_are_found() {
        let index = [&[VERSION, RELATIVE_4, 3, 0x3b][..], &12_u32.to_le_bytes()].concat();
        let elf = Elf::read(&&file(&index)[..]).expect("a file");
        let [index, table] = elf.tables.clone().expect("tables");
        assert_eq!((index.address, index.bytes.len()), (0x40_0110, 16));
        assert_eq!((table.address, table.bytes.len()), (0x40_0120, 0x20));
        assert_eq!(elf.address_of(0x1000), Some(0x40_1000), "where the mapping begins");
        assert_eq!(elf.address_of(0x10ff), Some(0x40_10ff));
        assert_eq!(elf.address_of(0x110), None, "no code");
    }

    #[test]
    fn a_file_without_tables_has_code_all_the_same() {
        let backwards = [&[VERSION, RELATIVE_4, 3, 0x3b][..], &(-0x1000_i32).to_le_bytes()].concat();
        for index in [&backwards[..], &[9, RELATIVE_4], &[]] {
            let elf = Elf::read(&&file(index)[..]).expect("a file");
            assert_eq!((elf.tables.is_none(), elf.address_of(0x1080)), (true, Some(0x40_1080)), "{index:?}");
        }
        assert_eq!(Elf::read(&&b"#!/bin/sh\n"[..]), None);
    }

    proptest! {
        #[test]
        fn whatever_a_file_holds_is_read(cut in 0_usize..0x1100, changes in prop::collection::vec((0_usize..0x130, any::<u8>()), 0..8)) {
            let mut file = file(&[VERSION, RELATIVE_4, 3, 0x3b, 12, 0, 0, 0]);
            file.truncate(cut);
            for (at, byte) in changes {
                if let Some(at) = file.get_mut(at) {
                    *at = byte;
                }
            }
            if let Some(elf) = Elf::read(&&file[..]) {
                elf.address_of(cut as u64);
            }
        }
    }
}
