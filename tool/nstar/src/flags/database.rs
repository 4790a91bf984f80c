//! The password of a database, which need not stand on the command line.

use std::{
    env, fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use clap::Args;
use rustix::process::geteuid;
use sweep::database::read_password;

use crate::exit::{self, Failure};

/// Where the password may be when no file of it is named.
const VARIABLE: &str = "NSTAR_DATABASE_PASSWORD";

/// How to log in to a database server.
#[derive(Debug, Args)]
pub struct DatabaseLogin {
    /// File with the database's password: other users of this machine can see one in the URL. Without this flag
    /// NSTAR_DATABASE_PASSWORD may hold it
    #[arg(long, value_name = "FILE")]
    pub database_password_file: Option<PathBuf>,
}

impl DatabaseLogin {
    /// Returns the password to use for the database that `flag` names, from the file or the environment; `None` where
    /// its URL holds one, or none is given.
    ///
    /// # Errors
    /// Where the file holds none, or the URL holds one too.
    pub fn password(&self, flag: &str, url_holds_one: bool) -> Result<Option<String>, Failure> {
        match &self.database_password_file {
            Some(_) if url_holds_one => Err(Failure::usage(format!(
                "--database-password-file: {flag} holds a password already; leave out one of them"
            ))),
            Some(path) => read_password_file(path).map(Some),
            None if url_holds_one => {
                exit::warn(format_args!(
                    "others on this machine can see the password in {flag}; --database-password-file or {VARIABLE} hides \
                     it"
                ));
                Ok(None)
            }
            None => Ok(env::var(VARIABLE).ok()),
        }
    }
}

/// Reads the password in a file, and warns if others may, too. Refuses a file that somebody else owns.
pub(super) fn read_password_file(path: &Path) -> Result<String, Failure> {
    let password = read_password(path).map_err(Failure::usage)?;
    let (shown, about) = (path.display(), fs::metadata(path).ok());
    if about.as_ref().is_some_and(|about| !is_trusted_owner(about.uid())) {
        return Err(Failure::usage(format!(
            "the password in {shown} belongs to another user, who may change it; \
             run `chown {} {shown}`, or name another file",
            geteuid().as_raw()
        )));
    }
    let mode = about.map_or(0, |about| about.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        exit::warn(format_args!(
            "the password in {shown} may be read by others (mode {mode:03o}): `chmod 600 {shown}`"
        ));
    }
    Ok(password)
}

/// Whether a file that this user owns may decide what this process does: this user, root, and who became root by sudo.
pub fn is_trusted_owner(owner: u32) -> bool {
    let user = geteuid();
    let before = env::var("SUDO_UID").ok().and_then(|text| text.parse().ok()).filter(|_| user.is_root());
    owner == user.as_raw() || owner == 0 || Some(owner) == before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_somebody_else_owns_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        fs::write(&path, "hush\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_password_file(&path).unwrap(), "hush");
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
            eprintln!("skipped: only root gives files away");
            return;
        }
        let error = format!("{:?}", read_password_file(&path).unwrap_err());
        assert!(
            error.contains("another user") && error.contains("chown 0 ") && !error.contains("hush"),
            "{error}"
        );
    }
}
