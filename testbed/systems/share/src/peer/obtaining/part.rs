//! Content of which a part is had: its bytes, and which of them are right. Both outlive a crash.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::super::hashing::{GROUP_LEN, group_count};
use crate::content::Content;

/// A file that is being put together. Its map says which groups were right when they came and are on the disk.
#[derive(Debug)]
pub(crate) struct Part {
    data: File,
    map: File,
    data_path: PathBuf,
}

impl Part {
    /// Goes on with what there is of the content, or begins; tells the map.
    pub(crate) fn open(folder: &Path, content: &Content, size: u64) -> io::Result<(Self, Vec<u8>)> {
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
        // Left behind once more, it is as young as this.
        data.set_modified(SystemTime::now())?;
        Ok((Self { data, map, data_path }, bits))
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

    /// All of it is on the disk; tells where.
    pub(crate) fn finish(&self) -> io::Result<&Path> {
        self.data.sync_all()?;
        Ok(&self.data_path)
    }
}

#[cfg(test)]
mod tests {
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
}
