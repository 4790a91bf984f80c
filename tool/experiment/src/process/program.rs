//! Where a program is.

use std::{
    env,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

/// Finds a program: at its path if it has one; otherwise beside `own`, then on PATH and where administrators' tools are.
pub(crate) fn find(name: &str, own: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        // It runs in another folder than this program.
        return std::path::absolute(name).ok().filter(|program| runs(program));
    }
    let beside = own.parent().map(Path::to_path_buf);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders =
        beside.into_iter().chain(env::split_paths(&path)).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|program| runs(program))
}

fn runs(program: &Path) -> bool {
    program.is_file() && access(program, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_path_or_by_name() {
        let own = Path::new("/nowhere/nstar");
        assert_eq!(find("/bin/sh", own), Some("/bin/sh".into()));
        assert!(find("sh", own).is_some_and(|path| path.ends_with("sh")));
        assert_eq!(find("/bin", own), None);
        assert_eq!(find("no-such-program-anywhere", own), None);
    }
}
