//! Space on a disk that a server leaves free, so that there is room for what it must still write.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::fs::{Mode, OFlags, fstatvfs, open};

/// The most that is kept free of a disk unless options say how much, bytes.
const KEEP_FREE_MAX: u64 = 1 << 30;
/// The part of the disk that is kept free at most, unless options say how much: one in this many.
const KEEP_FREE_SHARE: u64 = 20;

/// Whether the disk of an open file has space for so many more bytes beside what is kept free: `keep_free` bytes, or else 1 GiB,
/// or 5 % of the disk if that is less.
///
/// # Errors
/// When the file system does not tell.
pub fn has_space(file: impl AsFd, bytes: u64, keep_free: Option<u64>) -> io::Result<bool> {
    let disk = fstatvfs(file)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let kept = kept_free(keep_free, disk.f_blocks.saturating_mul(disk.f_frsize));
    Ok(bytes.saturating_add(kept) <= free)
}

/// How much of a disk of so many bytes is kept free, bytes.
fn kept_free(keep_free: Option<u64>, disk_bytes: u64) -> u64 {
    keep_free.unwrap_or_else(|| (disk_bytes / KEEP_FREE_SHARE).min(KEEP_FREE_MAX))
}

/// The disk with a file that grows.
#[derive(Debug)]
pub struct Disk {
    /// The file's folder, opened to be asked about.
    folder: OwnedFd,
    keep_free: Option<u64>,
}

impl Disk {
    /// The disk with the file at `path`, which need not exist, but its folder has to.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn of(path: &Path, keep_free: Option<u64>) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { folder, keep_free })
    }

    /// Whether more than what is kept free is left.
    ///
    /// # Errors
    /// When the file system does not tell.
    pub fn has_space(&self) -> io::Result<bool> {
        has_space(&self.folder, 0, self.keep_free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_disk_is_kept_free() {
        assert_eq!((kept_free(None, 1 << 40), kept_free(None, 200)), (1 << 30, 10));
        assert_eq!((kept_free(Some(0), 1 << 40), kept_free(Some(500), 200)), (0, 500));
    }

    #[test]
    fn a_disk_of_which_everything_is_kept_free_has_no_space() {
        let folder = tempfile::tempdir().unwrap();
        let has_space = |keep_free| Disk::of(&folder.path().join("b.db"), keep_free).unwrap().has_space();
        assert!(has_space(Some(0)).unwrap());
        assert!(!has_space(Some(u64::MAX)).unwrap());
        assert!(Disk::of(Path::new("/nowhere/at/all/b.db"), None).is_err());
    }
}
