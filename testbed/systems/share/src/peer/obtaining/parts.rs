//! What is left of content that was never had whole: kept for a while, so that asking again goes on where it was.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::content::Content;

/// What was written to this lately may be in hand.
const IN_HAND: Duration = Duration::from_secs(3600);
/// Kept so long after it was written to last.
const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Most bytes that all take on the disk, the newest apart.
const BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;

/// The files of some content that was begun.
#[derive(Debug)]
struct Left {
    paths: Vec<PathBuf>,
    written: SystemTime,
    bytes: u64,
    /// Whether there is a map: without it nothing is known of the rest.
    mapped: bool,
}

/// Takes away what was abandoned: too old, of no use, or the oldest where all take too much room.
///
/// # Errors
/// When the folder cannot be read, or a file of it not be removed.
pub(crate) fn clean(folder: &Path, now: SystemTime) -> io::Result<()> {
    clean_to(folder, now, BYTES_MAX)
}

fn clean_to(folder: &Path, now: SystemTime, bytes_max: u64) -> io::Result<()> {
    let mut all = left_in(folder)?;
    all.sort_by_key(|left| std::cmp::Reverse(left.written));
    let mut bytes = 0;
    for (place, left) in all.iter().enumerate() {
        let age = now.duration_since(left.written).unwrap_or_default();
        bytes += left.bytes;
        let too_much = bytes > bytes_max && place > 0;
        if age > AGE_MAX || (age > IN_HAND && (too_much || !left.mapped)) {
            left.paths.iter().try_for_each(fs::remove_file)?;
        }
    }
    Ok(())
}

fn left_in(folder: &Path) -> io::Result<Vec<Left>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut all: HashMap<_, Left> = HashMap::new();
    for entry in entries {
        let path = entry?.path();
        // Gone meanwhile: it was put into its place.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let begun = Left { paths: Vec::new(), written: SystemTime::UNIX_EPOCH, bytes: 0, mapped: false };
        let left = all.entry(path.file_stem().map(ToOwned::to_owned)).or_insert(begun);
        left.written = left.written.max(metadata.modified()?);
        left.bytes += metadata.blocks() * 512;
        left.mapped |= path.extension().is_some_and(|extension| extension == "map");
        left.paths.push(path);
    }
    Ok(all.into_values().collect())
}

/// The contents of which there is something.
pub(crate) fn contents(folder: &Path) -> io::Result<HashSet<Content>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        other => other?,
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    Ok(paths.iter().filter_map(|path| path.file_stem()?.to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two days ago, then three days ago, and so on.
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
