//! What must not lie among the files that are served: whoever may read those would read it, or write it.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use files::AccountsBackend;

use crate::{exit::Failure, flags::Files};

/// Refuses state of the server's own that lies beneath its root. The database stands for what is kept beside it: the
/// administrator's token, the service token, the journal.
pub(super) fn check(flags: &Files, accounts: &AccountsBackend) -> Result<(), Failure> {
    // A root that is not there is told when it is opened.
    let Ok(root) = fs::canonicalize(&flags.root) else { return Ok(()) };
    let database = match accounts {
        AccountsBackend::Local(path) => Some(path),
        _ => None,
    };
    for (what, path) in [
        ("the accounts' database (--accounts)", database),
        ("the audit trail (--audit)", flags.audit.as_ref()),
        ("the certificate's key (--tls-key)", flags.server.encryption.tls_key.as_ref()),
        ("the service token (--accounts-token-file)", flags.accounts_token_file.as_ref()),
        ("the rules (--permissions)", flags.permissions.as_ref()),
    ] {
        if let Some(path) = path.filter(|path| places(path).iter().any(|place| place.starts_with(&root))) {
            return Err(Failure::usage(format!(
                "{what} at {} would be served with the files in {}; keep it outside that folder",
                path.display(),
                flags.root.display()
            )));
        }
    }
    Ok(())
}

/// Where a file is or will be: as it is named, for what is made beside it, and where a link of this name leads.
fn places(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map_or_else(OsString::new, OsString::from);
    let named = fs::canonicalize(folder).map(|folder| folder.join(name));
    [named, fs::canonicalize(path)].into_iter().flatten().collect()
}
