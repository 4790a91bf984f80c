//! Keeps secrets and logs out of the served folder, where users could read or replace them.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use files::AccountsBackend;

use nstar::exit::Failure;

use crate::flags::{Files, Peer};

/// Refuses files of the server itself in the folder that it serves. The database stands for all that is kept beside it:
/// the administrator's token, the service token, the journal.
pub(super) fn check(flags: &Files, accounts: &AccountsBackend) -> Result<(), Failure> {
    let database = match accounts {
        AccountsBackend::Local(path) => Some(path),
        _ => None,
    };
    let own = [
        ("the accounts' database (--accounts)", database),
        ("the audit trail (--audit)", flags.audit.as_ref()),
        ("the certificate's key (--tls-key)", flags.server.encryption.tls_key.as_ref()),
        ("the service token (--accounts-token-file)", flags.accounts_token_file.as_ref()),
        ("the rules (--permissions)", flags.permissions.as_ref()),
    ];
    match among(&flags.root, &own, |_| true) {
        Some((what, path)) => Err(Failure::usage(format!(
            "{what} at {} would be served with the files in {}; keep it outside that folder",
            path.display(),
            flags.root.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses secrets of a peer in places that it would share. Its own folder, `state`, holds its key.
pub(super) fn check_shared(flags: &Peer, state: &PathBuf) -> Result<(), Failure> {
    let own = [
        ("the peer's own folder with its key (--state)", Some(state)),
        ("the secret (--secret-file)", flags.secret_file.as_ref()),
        ("the certificate's key (--tls-key)", flags.server.encryption.tls_key.as_ref()),
    ];
    match among(&flags.share, &own, |path| !share::peer::is_hidden(path)) {
        Some((what, path)) => Err(Failure::usage(format!(
            "{what} at {} would be shared with the files in {}; keep it outside that folder, or under a name that \
             begins with a dot",
            path.display(),
            flags.share.display()
        ))),
        None => Ok(()),
    }
}

/// The first of these paths inside `root` that would be served.
fn among<'a>(
    root: &Path,
    own: &[(&'a str, Option<&'a PathBuf>)],
    served: impl Fn(&Path) -> bool,
) -> Option<(&'a str, &'a Path)> {
    // A missing root is reported when it is opened.
    let root = fs::canonicalize(root).ok()?;
    let is_served = |place: &PathBuf| place.strip_prefix(&root).is_ok_and(&served);
    let mut given = own.iter().filter_map(|(what, path)| path.map(|path| (*what, path.as_path())));
    given.find(|(_, path)| places(path).iter().any(is_served))
}

/// Where a file is or will be: its path as given, as other files are created beside it, and where that leads if it is a
/// link.
fn places(path: &Path) -> Vec<PathBuf> {
    [named(path), fs::canonicalize(path).ok()].into_iter().flatten().collect()
}

/// The path as given, with links resolved in as much of its folder as exists.
fn named(path: &Path) -> Option<PathBuf> {
    let folder =
        Some(path.parent()?).filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder =
        fs::canonicalize(folder).ok().or_else(|| if folder == path { None } else { named(folder) })?;
    match path.components().next_back()? {
        Component::Normal(name) => Some(folder.join(name)),
        // A folder that does not exist yet cannot be a link.
        Component::ParentDir => folder.parent().map(Path::to_owned),
        _ => Some(folder),
    }
}
