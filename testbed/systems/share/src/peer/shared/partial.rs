//! Incomplete content on the disk: the bytes received so far, and which of them were verified. It survives crashes, and is
//! kept for a while so that a later download can continue.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    entry::Content,
    peer::shared::hashing::{GROUP_LEN, group_count},
};

/// Files written to within this time may be in use.
const IN_USE: Duration = Duration::from_secs(3600);
/// How long files are kept after they were last written to.
const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Most bytes that all files take on the disk, not counting the newest.
const BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;

/// An incomplete file. Its map says which groups were verified and are durable.
#[derive(Debug)]
pub(crate) struct PartialFile {
    data: File,
    map: File,
    data_path: PathBuf,
    map_path: PathBuf,
}

/// Where the bytes of some content gather. The size is part of the name: what came of the true size is not to be lost when
/// somebody claims another.
pub(crate) fn data_path(folder: &Path, content: &Content, size: u64) -> PathBuf {
    folder.join(format!("{content}-{size}.data"))
}

impl PartialFile {
    /// Opens or creates the file of some content. Also returns its map.
    pub(crate) fn open(folder: &Path, content: &Content, size: u64) -> io::Result<(Self, Vec<u8>)> {
        let data_path = data_path(folder, content, size);
        let map_path = data_path.with_extension("map");
        let open = |path| OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let (data, map) = (open(&data_path)?, open(&map_path)?);
        let map_len = group_count(size).div_ceil(8);
        let mut bits = Vec::new();
        if data.metadata()?.len() == size && map.metadata()?.len() == map_len {
            bits = fs::read(&map_path)?;
        } else {
            // It is new, or a write was cut short: start again.
            if map.metadata()?.len() > 0 {
                // Otherwise a power failure might bring these bits back beside a file that has none of their groups.
                map.set_len(0)?;
                map.sync_data()?;
            }
            data.set_len(0)?;
            data.set_len(size)?;
            map.set_len(map_len)?;
        }
        // The age of a partial file counts from its last use.
        data.set_modified(SystemTime::now())?;
        Ok((Self { data, map, data_path, map_path }, bits))
    }

    /// Writes bytes, starting with this group.
    pub(crate) fn write(&self, group: u64, bytes: &[u8]) -> io::Result<()> {
        self.data.write_all_at(bytes, group * GROUP_LEN)
    }

    /// Makes everything written so far durable, and then the map. If a crash cuts the map's write short, it mixes old and new
    /// bits, all of which are true.
    pub(crate) fn sync(&self, bits: &[u8]) -> io::Result<()> {
        self.data.sync_data()?;
        self.map.write_all_at(bits, 0)?;
        self.map.sync_data()
    }

    /// Removes the files, if nothing came.
    pub(crate) fn discard(&self) {
        for path in [&self.data_path, &self.map_path] {
            // If it cannot be removed, it is cleaned up later.
            let _ = fs::remove_file(path);
        }
    }

    /// Makes the complete file durable, and returns its path.
    pub(crate) fn finish(&self) -> io::Result<&Path> {
        self.data.sync_all()?;
        Ok(&self.data_path)
    }
}

/// The files of some content.
#[derive(Debug)]
struct Leftover {
    paths: Vec<PathBuf>,
    written: SystemTime,
    bytes: u64,
    /// Whether there is a map. Without it the data is useless.
    mapped: bool,
}

/// Deletes files that are too old or useless, and the oldest if all take too much space.
///
/// # Errors
/// When the folder cannot be read, or a file cannot be removed.
pub(crate) fn clean(folder: &Path, now: SystemTime) -> io::Result<()> {
    clean_to(folder, now, BYTES_MAX)
}

fn clean_to(folder: &Path, now: SystemTime, bytes_max: u64) -> io::Result<()> {
    let mut all = leftovers(folder)?;
    all.sort_by_key(|left| std::cmp::Reverse(left.written));
    let mut bytes = 0;
    for (place, left) in all.iter().enumerate() {
        let age = now.duration_since(left.written).unwrap_or_default();
        bytes += left.bytes;
        let too_much = bytes > bytes_max && place > 0;
        if age > AGE_MAX || (age > IN_USE && (too_much || !left.mapped)) {
            left.paths.iter().try_for_each(fs::remove_file)?;
        }
    }
    Ok(())
}

fn leftovers(folder: &Path) -> io::Result<Vec<Leftover>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut all: HashMap<_, Leftover> = HashMap::new();
    for entry in entries {
        let path = entry?.path();
        // It was moved to its final place meanwhile.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let begun = Leftover { paths: Vec::new(), written: SystemTime::UNIX_EPOCH, bytes: 0, mapped: false };
        let left = all.entry(path.file_stem().map(ToOwned::to_owned)).or_insert(begun);
        left.written = left.written.max(metadata.modified()?);
        left.bytes += metadata.blocks() * 512;
        left.mapped |= path.extension().is_some_and(|extension| extension == "map");
        left.paths.push(path);
    }
    Ok(all.into_values().collect())
}

/// All content that has files here.
pub(crate) fn contents(folder: &Path) -> io::Result<HashSet<Content>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        other => other?,
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let content = |path: &PathBuf| path.file_stem()?.to_str()?.split('-').next()?.parse().ok();
    Ok(paths.iter().filter_map(content).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_there_again_whatever_size_somebody_claims_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let content = Content::of(b"x");
        let (part, bits) = PartialFile::open(folder.path(), &content, 40_000).unwrap();
        assert!(bits.is_empty());
        part.write(1, &[7; 16_384]).unwrap();
        part.sync(&[0b10]).unwrap();
        let (_, bits) = PartialFile::open(folder.path(), &content, 40_000).unwrap();
        assert_eq!(bits, [0b10]);
        let (other, bits) = PartialFile::open(folder.path(), &content, 50_000).unwrap();
        assert!(bits.is_empty());
        assert_eq!(contents(folder.path()).unwrap(), HashSet::from([content]));
        other.discard();
        let (_, bits) = PartialFile::open(folder.path(), &content, 40_000).unwrap();
        assert_eq!(bits, [0b10], "a false size wiped what had come");
        assert_eq!(names(folder.path()).len(), 2);
    }

    /// Writes a file that is `days` old.
    fn write(folder: &Path, name: &str, days: u64, now: SystemTime) {
        let path = folder.join(name);
        fs::write(&path, vec![1; 100_000]).unwrap();
        let then = now - Duration::from_secs(days * 24 * 3600);
        fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_abandoned_goes_and_what_may_be_gone_on_with_stays() {
        let (folder, now) = (tempfile::tempdir().unwrap(), SystemTime::now());
        for (name, days) in [
            ("fresh.data", 0),
            ("kept.data", 6),
            ("kept.map", 6),
            ("old.data", 8),
            ("old.map", 8),
            ("resumed.data", 9),
            ("resumed.map", 2),
            ("mapless.data", 1),
        ] {
            write(folder.path(), name, days, now);
        }
        clean(folder.path(), now).unwrap();
        assert_eq!(
            names(folder.path()),
            ["fresh.data", "kept.data", "kept.map", "resumed.data", "resumed.map"]
        );
        clean(&folder.path().join("none"), now).unwrap();
    }

    #[test]
    fn the_oldest_go_when_all_take_too_much_room() {
        let (folder, now) = (tempfile::tempdir().unwrap(), SystemTime::now());
        for (name, days) in [("a.map", 1), ("b.map", 2), ("c.map", 3), ("now.map", 0)] {
            write(folder.path(), name, days, now);
        }
        clean_to(folder.path(), now, 250_000).unwrap();
        assert_eq!(names(folder.path()), ["a.map", "now.map"]);
        clean_to(folder.path(), now, 1).unwrap();
        assert_eq!(names(folder.path()), ["now.map"], "the newest is never too much");
    }
}
