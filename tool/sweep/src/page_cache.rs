//! Takes files out of the page cache, so that the next read comes from the disk.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use rustix::fs::{Advice, fadvise};

/// Drops every file of a folder from the page cache. Works without root and touches no other file,
/// unlike `/proc/sys/vm/drop_caches`.
pub(crate) fn drop_folder(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let file = File::open(entry?.path())?;
        // Dirty pages are not dropped, so they go to the disk first.
        file.sync_data()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}
