//! Content of which a part is had: its bytes, and which of them are right. Both outlive a crash.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use super::super::hashing::{GROUP_LEN, group_count};
use crate::{content::Content, name::Name};

/// Most names that are tried for a file whose own is taken.
const NAMES_MAX: u32 = 1000;

/// A file that is being put together. Its map says which groups were right when they came and are on the disk.
#[derive(Debug)]
pub(crate) struct Part {
    data: File,
    map: File,
    data_path: PathBuf,
    map_path: PathBuf,
}

impl Part {
    /// Goes on with what there is of the content, or begins; tells the map.
    pub(crate) fn open(folder: &Path, content: &Content, size: u64) -> io::Result<(Self, Vec<u8>)> {
        fs::create_dir_all(folder)?;
        let (data_path, map_path) =
            (folder.join(format!("{content}.data")), folder.join(format!("{content}.map")));
        let open = |path| OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let (data, map) = (open(&data_path)?, open(&map_path)?);
        let map_len = group_count(size).div_ceil(8);
        let mut bits = Vec::new();
        if data.metadata()?.len() == size && map.metadata()?.len() == map_len {
            bits = fs::read(&map_path)?;
        } else {
            // Of another size, or torn: begun anew.
            map.set_len(0)?;
            data.set_len(0)?;
            data.set_len(size)?;
            map.set_len(map_len)?;
        }
        Ok((Self { data, map, data_path, map_path }, bits))
    }

    /// Writes groups from this one on.
    pub(crate) fn write(&self, group: u64, bytes: &[u8]) -> io::Result<()> {
        self.data.write_all_at(bytes, group * GROUP_LEN)
    }

    /// What was written so far stays, and the map says so. A map torn in between has bits of both, all of them right.
    pub(crate) fn keep(&self, bits: &[u8]) -> io::Result<()> {
        self.data.sync_data()?;
        self.map.write_all_at(bits, 0)?;
        self.map.sync_data()
    }

    /// Puts the whole content into a folder under its name, or the next that is free; tells which.
    pub(crate) fn place(&self, folder: &Path, name: &Name) -> io::Result<String> {
        self.data.sync_all()?;
        for number in 1..=NAMES_MAX {
            let name = numbered(name, number);
            match renameat_with(CWD, &self.data_path, CWD, folder.join(&name), RenameFlags::NOREPLACE) {
                Ok(()) => {
                    File::open(folder)?.sync_all()?;
                    fs::remove_file(&self.map_path)?;
                    return Ok(name);
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other("too many files of that name are there already"))
    }
}

/// `report.pdf`, `report (2).pdf`, `report (3).pdf`, no longer than file systems take.
fn numbered(name: &Name, number: u32) -> String {
    if number == 1 {
        return name.to_string();
    }
    let suffix = format!(" ({number})");
    let (stem, extension) = match name.as_str().rfind('.') {
        Some(dot) if dot > 0 => name.as_str().split_at(dot),
        _ => (name.as_str(), ""),
    };
    let (extension, room) = match 255_usize.checked_sub(suffix.len() + extension.len()) {
        Some(room) if room > 0 => (extension, room),
        _ => ("", 255 - suffix.len()),
    };
    let cut = (0..=room.min(stem.len())).rev().find(|&at| stem.is_char_boundary(at)).unwrap_or(0);
    format!("{}{suffix}{extension}", &stem[..cut])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_kept_is_there_again_and_another_size_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let content = Content::of(b"x");
        let (part, bits) = Part::open(folder.path(), &content, 40_000).unwrap();
        assert!(bits.is_empty());
        part.write(1, &[7; 16_384]).unwrap();
        part.keep(&[0b10]).unwrap();
        let (_, bits) = Part::open(folder.path(), &content, 40_000).unwrap();
        assert_eq!(bits, [0b10]);
        let (_, bits) = Part::open(folder.path(), &content, 50_000).unwrap();
        assert!(bits.is_empty());
    }

    #[test]
    fn nothing_that_is_there_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let name: Name = "a.tar.gz".parse().unwrap();
        fs::write(folder.path().join("a.tar.gz"), "mine").unwrap();
        let (part, _) = Part::open(&folder.path().join("parts"), &Content::of(b"x"), 1).unwrap();
        part.write(0, b"x").unwrap();
        assert_eq!(part.place(folder.path(), &name).unwrap(), "a.tar (2).gz");
        assert_eq!(fs::read(folder.path().join("a.tar.gz")).unwrap(), b"mine");
        assert_eq!(fs::read(folder.path().join("a.tar (2).gz")).unwrap(), b"x");
    }

    proptest! {
        #[test]
        fn another_name_is_still_a_name(name in "[^/\\x00-\\x1f.][^/]{0,120}", number in 2u32..1000) {
            if let Ok(name) = name.parse::<Name>() {
                prop_assert!(numbered(&name, number).parse::<Name>().is_ok());
            }
        }
    }
}
