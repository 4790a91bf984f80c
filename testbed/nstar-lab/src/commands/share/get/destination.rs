//! Where a file is copied to: nothing that is there is replaced, also where it comes while the file is got.

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

/// Sees that a file can be written there before it is obtained.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    let wrong = |what: &str| Err(Failure::usage(format!("-o {}: {what}", path.display())));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match () {
        () if path.is_dir() => wrong("this is a folder; name the file in it that is to be written"),
        () if path.symlink_metadata().is_ok() => wrong("there is a file already; name another"),
        () if path.file_name().is_none() || folder.is_some_and(|folder| !folder.is_dir()) => {
            wrong("there is no folder of this name; make it first, or name another")
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

/// Where a file is written before it is whole and right: beside the place that is meant.
pub(super) fn aside(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    name.into()
}

/// Gives a file that is whole and right its name. It stays where it is when something else has that name by now.
pub(super) fn place(aside: &Path, to: &Path) -> Result<(), Failure> {
    let error = match rename(aside, to) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let at = to.display();
    Err(Failure::failed(match error.kind() {
        io::ErrorKind::AlreadyExists => format!(
            "{at} has come into being meanwhile, and is left as it is; what was got is whole, in {}",
            aside.display()
        ),
        _ => format!("{at} cannot be written: {error}; what was got is whole, in {}", aside.display()),
    }))
}

/// As rename(2), unless something is there.
fn rename(aside: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, aside, CWD, to, RenameFlags::NOREPLACE) {
        // File systems that do not know the flag, as NFS, refuse it; a link replaces nothing either.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(aside, to)?;
            // It is there by both names where this fails.
            let _ = fs::remove_file(aside);
            Ok(())
        }
        renamed => Ok(renamed?),
    }
}
