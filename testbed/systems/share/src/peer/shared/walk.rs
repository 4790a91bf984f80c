//! Finds the files in a folder, and says which of them are not shared and why.

use std::{
    fs::{self, DirEntry, Metadata},
    os::unix::fs::FileTypeExt,
    path::Path,
};

use folder::FileState;

use crate::entry::{Entry, Name};

/// Deepest subfolder.
const DEPTH_MAX: usize = 64;
/// Most files that a peer shares.
const FILES_MAX: usize = 1_000_000;

/// A file that may be shared.
#[derive(Debug)]
pub(crate) struct WalkedFile {
    /// Path within the folder.
    pub(crate) path: String,
    pub(crate) name: Name,
    pub(crate) state: FileState,
}

/// What a walk has found.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) files: Vec<WalkedFile>,
    /// Subfolders to watch, as paths within the folder.
    pub(crate) folders: Vec<String>,
    /// Paths that are left out, and why.
    pub(crate) left_out: Vec<(String, String)>,
}

impl Walk {
    /// Walks through a folder. Skips hidden files and folders silently, and does not follow links.
    pub(crate) fn through(root: &Path) -> Self {
        let mut walk = Self::default();
        let mut waiting = vec![(String::new(), 0)];
        while let Some((folder, depth)) = waiting.pop() {
            match fs::read_dir(root.join(&folder)) {
                Ok(entries) => {
                    for entry in entries.filter_map(Result::ok) {
                        walk.add(&entry, &folder, depth, &mut waiting);
                    }
                }
                Err(error) => walk.left_out.push((folder.clone(), error.to_string())),
            }
            walk.folders.push(folder);
        }
        walk
    }

    fn add(&mut self, entry: &DirEntry, folder: &str, depth: usize, waiting: &mut Vec<(String, usize)>) {
        let shown = |folder: &str| Path::new(folder).join(entry.file_name()).to_string_lossy().into_owned();
        let name = match entry.file_name().into_string() {
            Ok(name) => name,
            Err(_) => return self.leave_out(shown(folder), "its name is not UTF-8"),
        };
        if is_hidden(Path::new(&name)) {
            return;
        }
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        // Of the entry itself, not of a link's target. An entry that is gone by now was never there.
        let Ok(metadata) = entry.metadata() else { return };
        if metadata.is_dir() && depth < DEPTH_MAX {
            // A folder whose name is invalid could not be shown in paths either.
            return match name.parse::<Name>() {
                Ok(_) => waiting.push((path, depth + 1)),
                Err(error) => self.leave_out(path, &format!("its name {error}")),
            };
        }
        if let Some(kind) = unshareable(&metadata) {
            return self.leave_out(path, kind);
        }
        match name.parse() {
            Ok(_) if self.files.len() >= FILES_MAX => self.leave_out(path, "there are too many files"),
            Ok(_) if metadata.len() > Entry::SIZE_MAX => {
                self.leave_out(path, "it is longer than 64 GiB, which no peer takes");
            }
            Ok(name) => self.files.push(WalkedFile { path, name, state: FileState::of(&metadata) }),
            Err(error) => self.leave_out(path, &format!("its name {error}")),
        }
    }

    fn leave_out(&mut self, path: String, why: &str) {
        self.left_out.push((path, why.to_owned()));
    }
}

/// Whether a path within the folder is skipped, because a part of it starts with a dot.
pub fn is_hidden(path: &Path) -> bool {
    path.iter().any(|part| part.as_encoded_bytes().starts_with(b"."))
}

fn unshareable(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("it lies too deep"),
        () if kind.is_symlink() => Some("it is a symbolic link"),
        () if kind.is_socket() => Some("it is a socket"),
        () if kind.is_fifo() => Some("it is a pipe"),
        () => Some("it is a device"),
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt, os::unix::fs::symlink, os::unix::net::UnixListener};

    use super::*;

    #[test]
    fn only_plain_files_with_names_that_can_be_told_are_shared() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("sub/deep")).unwrap();
        fs::create_dir_all(at(".git")).unwrap();
        for name in ["a", "sub/b c", "sub/deep/\u{e9}", ".hidden", ".git/config", "turn\u{202e}ed", "-rf"] {
            fs::write(at(name), "x").unwrap();
        }
        fs::write(folder.path().join(OsStr::from_bytes(b"latin-\xe9")), "x").unwrap();
        fs::create_dir(at("turn\u{1b}ed")).unwrap();
        fs::File::create(at("huge")).unwrap().set_len(Entry::SIZE_MAX + 1).unwrap();
        symlink("/etc/passwd", at("link")).unwrap();
        symlink("/etc", at("sub/folder-link")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();

        let walk = Walk::through(folder.path());
        let mut paths: Vec<_> = walk.files.iter().map(|file| file.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["-rf", "a", "sub/b c", "sub/deep/\u{e9}"]);
        assert_eq!(walk.left_out.len(), 7, "{:?}", walk.left_out);
        assert_eq!(walk.folders.len(), 3, "{:?}", walk.folders);
    }

    #[test]
    fn a_folder_that_is_gone_is_told() {
        let walk = Walk::through(Path::new("/nowhere/at/all"));
        assert_eq!((walk.files.len(), walk.left_out.len()), (0, 1));
    }
}
