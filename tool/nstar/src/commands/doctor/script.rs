//! The file of the script that puts settings back: where it is, and whom it may be believed from.

use std::{
    env,
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use analysis::doctor::Undo;

use crate::exit::Failure;

/// Longer files are none of ours.
const BYTES_MAX: u64 = 1 << 16;

/// Where the script is: as given, or else among what this user's programs keep.
pub(super) fn place(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = || folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
    let usual = || Some(state()?.join("nstar/undo-doctor.sh"));
    given.map(Path::to_owned).or_else(usual).ok_or_else(|| {
        Failure::usage(
            "there is no XDG_STATE_HOME and no HOME: say with --undo-script where the script is to be",
        )
    })
}

/// Fails where there is a script already: what it would put back would be lost.
pub(super) fn check_is_new(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() { Err(not_undone(path)) } else { Ok(()) }
}

fn not_undone(path: &Path) -> Failure {
    Failure::usage(format!(
        "{} is there already: settings that an earlier --apply changed were not put back. Run nstar doctor --undo first, or \
         give another file with --undo-script; nothing was set",
        path.display()
    ))
}

/// Writes the script where there is none, for its owner alone. It is on the disk when this returns.
pub(super) fn write(path: &Path, undo: &Undo) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = || -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let owner = Permissions::from_mode(0o700);
        let mut file = tempfile::Builder::new().prefix(".nstar-").permissions(owner).tempfile_in(folder)?;
        file.write_all(report::undo::script(undo).as_bytes())?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path)?;
        File::open(folder)?.sync_all()
    };
    written().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => not_undone(path),
        _ => Failure::failed(format!(
            "cannot write the script that puts settings back, {}: {error}; nothing was set. Give another file with --undo-script",
            path.display()
        )),
    })
}

/// Reads a script that this user wrote and nobody else may have changed.
pub(super) fn read(path: &Path) -> Result<Undo, Failure> {
    let refused = |why: &str| Failure::usage(format!("{}: {why}; nothing was put back", path.display()));
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refused("there is no such script, so there is nothing to put back"),
        _ => refused(&format!("cannot open it: {error}")),
    })?;
    let about = file.metadata().map_err(|error| refused(&error.to_string()))?;
    if !about.is_file() || about.len() > BYTES_MAX {
        return Err(refused("it is not a file that nstar wrote"));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("it belongs to another user: run this as who applied it"));
    }
    if about.mode() & 0o022 != 0 {
        return Err(refused(
            "others than its owner may write to it: look at what it says before you run it by hand",
        ));
    }
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(|error| refused(&error.to_string()))?;
    report::undo::read(&text).map_err(|error| refused(&error.to_string()))
}
