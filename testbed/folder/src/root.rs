//! Opens paths beneath a folder.
//!
//! Every path is opened by `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_MAGICLINKS`: the kernel itself refuses every
//! path that leaves the folder, by `..`, as an absolute path or through a symbolic link, without a race between checking
//! and opening (openat2(2)). Links that stay beneath the folder are followed.

mod folders;

use std::{
    fs::{self, File, Metadata},
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2},
    io::Errno,
};

pub use self::folders::{Changed, split};
use crate::{error::FolderError, file_state::FileState};

/// Without O_NONBLOCK, opening a named pipe would wait for its writer.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// Through no symbolic link.
const PLAIN: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// An open folder. It stays the same one if its path comes to name another.
#[derive(Debug)]
pub struct Root(OwnedFd);

/// What a path names.
#[derive(Debug)]
pub enum Opened {
    /// A regular file.
    File(File, FileState),
    /// A directory.
    Directory,
}

/// Why something could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such file beneath the folder, or it is neither a file nor a directory.
    #[error("no such file")]
    NotFound,
    /// The server's user may not read it.
    #[error("not readable")]
    Forbidden,
    /// The system failed: too many open files, or a failing disk.
    #[error(transparent)]
    System(io::Error),
}

impl Root {
    /// Opens the folder, and makes sure that it can be read.
    ///
    /// # Errors
    /// See [`FolderError`].
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, path, flags, Mode::empty()).map_err(|error| root_error(path, error))?;
        let root = Self(fd);
        let readable = root.openat2("", OFlags::RDONLY | OFlags::DIRECTORY);
        readable.map_err(|error| root_error(path, error)).map(|_| root)
    }

    /// Opens what the path names; the empty path is the folder itself.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_beneath(&self, path: &str) -> Result<Opened, OpenError> {
        Self::opened(self.openat2(path, READ)?)
    }

    fn opened(file: OwnedFd) -> Result<Opened, OpenError> {
        let file = File::from(file);
        let metadata = file.metadata()?;
        match metadata.file_type() {
            kind if kind.is_file() => Ok(Opened::File(file, FileState::of(&metadata))),
            kind if kind.is_dir() => Ok(Opened::Directory),
            _ => Err(OpenError::NotFound),
        }
    }

    /// The same, and where it really is if the path leads through a symbolic link.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub(crate) fn open_with_target(&self, path: &str) -> Result<(Opened, Option<String>), OpenError> {
        match self.resolve(path, READ, PLAIN) {
            Err(Errno::LOOP) => {
                let file = self.openat2(path, READ)?;
                let target = self.path_of(&file)?;
                Ok((Self::opened(file)?, Some(target)))
            }
            other => Ok((Self::opened(other?)?, None)),
        }
    }

    /// Where the path really leads, relative to the root, if it leads through a symbolic link.
    ///
    /// # Errors
    /// When it leads nowhere, or out.
    pub fn link_target(&self, path: &str) -> Result<Option<String>, OpenError> {
        match self.resolve(path, OFlags::PATH, PLAIN) {
            Ok(_) => Ok(None),
            Err(Errno::LOOP) => self.path_of(&self.openat2(path, OFlags::PATH)?).map(Some),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Where an open file is, relative to the root.
    fn path_of(&self, file: &OwnedFd) -> Result<String, OpenError> {
        let [root, file] =
            [&self.0, file].map(|open| fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd())));
        let (root, file) = (root?, file?);
        let within = file.strip_prefix(&root).ok().and_then(Path::to_str);
        within.map(str::to_owned).ok_or(OpenError::NotFound)
    }

    /// Opens a directory for reading.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_directory(&self, path: &str) -> Result<Dir, OpenError> {
        let fd = self.openat2(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Dir::new(fd)?)
    }

    /// The metadata of what the path names, without opening it for reading. `None` if it is not beneath the folder.
    pub fn metadata(&self, path: &str) -> Option<Metadata> {
        File::from(self.openat2(path, OFlags::PATH).ok()?).metadata().ok()
    }

    fn openat2(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.resolve(path, flags, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
    }

    fn resolve(&self, path: &str, flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        let path = if path.is_empty() { "." } else { path };
        loop {
            // EAGAIN: a rename elsewhere raced with `..` inside a link; the kernel asks for another try.
            match openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => continue,
                other => return other,
            }
        }
    }
}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::XDEV | Errno::LOOP => Self::NotFound,
            // A device without a driver, a socket.
            Errno::NXIO | Errno::NODEV | Errno::INVAL => Self::NotFound,
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            other => Self::System(other.into()),
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

fn root_error(path: &Path, error: Errno) -> FolderError {
    let folder: PathBuf = path.to_owned();
    match error {
        Errno::NOENT => FolderError::Missing { folder },
        Errno::NOTDIR => FolderError::NotAFolder { folder },
        Errno::NOSYS => FolderError::NoOpenat2,
        other => FolderError::Unreadable { folder, source: other.into() },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/a.txt"), "inside").unwrap();
        fs::write(folder.path().join("secret"), "outside").unwrap();
        let opened = Root::open(&root).unwrap();
        (folder, opened)
    }

    fn found(root: &Root, path: &str) -> bool {
        match root.open_beneath(path) {
            Ok(_) => true,
            Err(OpenError::NotFound) => false,
            Err(other) => panic!("{path}: {other}"),
        }
    }

    #[test]
    fn files_and_directories_are_told_apart() {
        let (_folder, root) = tree();
        assert!(matches!(root.open_beneath("sub/a.txt"), Ok(Opened::File(_, id)) if id.size() == 6));
        assert!(matches!(root.open_beneath("sub"), Ok(Opened::Directory)));
        assert!(matches!(root.open_beneath(""), Ok(Opened::Directory)));
        assert!(!found(&root, "sub/a.txt/b"));
        assert!(!found(&root, &"n".repeat(300)));
        assert!(!found(&root, &"n/".repeat(5000)));
    }

    #[test]
    fn no_path_leads_out() {
        let (folder, root) = tree();
        let secret = folder.path().join("secret");
        let at = |name: &str| folder.path().join("root").join(name);
        symlink(&secret, at("absolute")).unwrap();
        symlink("../secret", at("relative")).unwrap();
        symlink("..", at("up")).unwrap();
        symlink("/proc/self/root", at("magic")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let out = [
            "../secret",
            "absolute",
            "relative",
            "up/secret",
            "magic/etc/passwd",
            "loop",
            "sub/../../secret",
        ];
        for path in out.into_iter().chain([secret.to_str().unwrap()]) {
            assert!(!found(&root, path), "{path}");
        }
        symlink("sub/a.txt", at("within")).unwrap();
        assert!(found(&root, "within"), "a link that stays beneath the root is followed");
    }

    #[test]
    fn where_a_link_leads_is_known() {
        let (folder, root) = tree();
        let at = |name: &str| folder.path().join("root").join(name);
        symlink("sub", at("there")).unwrap();
        symlink("../there/a.txt", at("sub/again")).unwrap();
        symlink(".", at("here")).unwrap();
        symlink("../secret", at("out")).unwrap();
        for (path, target) in [
            ("sub/a.txt", None),
            ("", None),
            ("there/a.txt", Some("sub/a.txt")),
            ("here/sub/again", Some("sub/a.txt")),
            ("here", Some("")),
        ] {
            assert_eq!(root.link_target(path).unwrap().as_deref(), target, "{path}");
        }
        for nowhere in ["out", "none", "there/none"] {
            assert!(matches!(root.link_target(nowhere), Err(OpenError::NotFound)), "{nowhere}");
        }
    }

    #[test]
    fn a_pipe_is_not_a_file_and_does_not_block() {
        let (folder, root) = tree();
        let pipe = folder.path().join("root/pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(!found(&root, "pipe"));
    }

    #[test]
    fn a_root_that_cannot_be_served_is_explained() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Root::open(&folder.path().join("none")).unwrap_err();
        assert!(matches!(missing, FolderError::Missing { .. }));
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(Root::open(&file).unwrap_err(), FolderError::NotAFolder { .. }));
    }
}
