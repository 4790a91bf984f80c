//! Keeps a server's own files out of the folder that it serves, where users could read or replace them.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// The first of these paths that would be served with the files in `root`, and what it is for. Inside the root,
/// `is_served` decides from the path relative to it. Paths need not exist.
pub fn first_inside<'a>(
    root: &Path,
    own: &[(&'a str, Option<&'a PathBuf>)],
    is_served: impl Fn(&Path) -> bool,
) -> Option<(&'a str, &'a Path)> {
    // A missing root is reported when it is opened.
    let root = fs::canonicalize(root).ok()?;
    let is_inside = |place: &PathBuf| place.strip_prefix(&root).is_ok_and(&is_served);
    let mut given = own.iter().filter_map(|(what, path)| path.map(|path| (*what, path.as_path())));
    given.find(|(_, path)| places(path).iter().any(is_inside))
}

/// Where a file is or will be: its path as given, as other files are created beside it, and where that leads if it is a
/// link.
fn places(path: &Path) -> Vec<PathBuf> {
    [resolved(path), fs::canonicalize(path).ok()].into_iter().flatten().collect()
}

/// The path as given, with links resolved in as much of its folder as exists.
fn resolved(path: &Path) -> Option<PathBuf> {
    let folder =
        Some(path.parent()?).filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder =
        fs::canonicalize(folder).ok().or_else(|| if folder == path { None } else { resolved(folder) })?;
    match path.components().next_back()? {
        Component::Normal(name) => Some(folder.join(name)),
        // A folder that does not exist yet cannot be a link.
        Component::ParentDir => folder.parent().map(Path::to_owned),
        _ => Some(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_inside_the_root_are_found_through_links_and_before_they_exist() {
        let folder = tempfile::tempdir().unwrap();
        let (root, beside) = (folder.path().join("root"), folder.path().join("beside"));
        fs::create_dir_all(&root).unwrap();
        std::os::unix::fs::symlink(&root, &beside).unwrap();
        let is_found = |path: PathBuf| {
            let own = [("nothing", None), ("the key", Some(&path))];
            first_inside(&root, &own, |_| true).is_some_and(|(what, _)| what == "the key")
        };
        assert!(is_found(root.join("key.pem")) && is_found(beside.join("new/key.pem")));
        assert!(!is_found(root.join("../key.pem")) && !is_found(folder.path().join("key.pem")));
    }

    #[test]
    fn the_server_decides_what_inside_the_root_is_served() {
        let root = tempfile::tempdir().unwrap();
        let hidden = root.path().join(".key");
        let own = [("the key", Some(&hidden))];
        assert_eq!(first_inside(root.path(), &own, |path| !path.starts_with(".key")), None);
    }
}
