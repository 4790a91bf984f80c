//! Writes a download to its destination. Never replaces a file, even one created meanwhile.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use nstar::exit::Failure;
use share::Content;

/// Checks, before the download, that a file can be written there.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    let wrong = |what: &str| Err(Failure::usage(format!("-o {}: {what}", path.display())));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match () {
        () if path.is_dir() => wrong("this is a folder; name a file in it"),
        () if path.symlink_metadata().is_ok() => wrong("there is a file already; name another"),
        () if path.file_name().is_none() || folder.is_some_and(|folder| !folder.is_dir()) => {
            wrong("there is no such folder; make it first, or name another")
        }
        () => Ok(()),
    }
}

/// Whether the file at this path has this content.
pub(super) fn holds(path: &Path, content: Content) -> bool {
    let mut hasher = blake3::Hasher::new();
    let hashed = File::open(path).and_then(|file| hasher.update_reader(file).map(|hasher| hasher.finalize()));
    hashed.is_ok_and(|hash| Content::from(hash) == content)
}

/// The temporary file, beside the destination.
pub(super) fn aside(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    name.into()
}

/// Renames the complete file to its destination, unless something has that name by now.
pub(super) fn place(aside: &Path, to: &Path) -> Result<(), Failure> {
    let error = match rename(aside, to) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let at = to.display();
    Err(Failure::failed(match error.kind() {
        io::ErrorKind::AlreadyExists => format!(
            "{at} was created during the download and is left unchanged; the complete file is {}",
            aside.display()
        ),
        _ => format!("{at} cannot be written: {error}; the complete file is {}", aside.display()),
    }))
}

/// Like rename(2), but never replaces anything.
fn rename(aside: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, aside, CWD, to, RenameFlags::NOREPLACE) {
        // File systems that do not know the flag, such as NFS, refuse it. A hard link replaces nothing either.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(aside, to)?;
            // If this fails, the file has both names.
            let _ = fs::remove_file(aside);
            Ok(())
        }
        renamed => Ok(renamed?),
    }
}
