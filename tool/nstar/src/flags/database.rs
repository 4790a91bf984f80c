//! The password of a database, which need not stand on the command line.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use clap::Args;
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

/// Reads the password in a file, and warns if others may, too.
pub(super) fn read_password_file(path: &Path) -> Result<String, Failure> {
    let password = read_password(path).map_err(Failure::usage)?;
    let mode = fs::metadata(path).map_or(0, |about| about.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let shown = path.display();
        exit::warn(format_args!(
            "the password in {shown} may be read by others (mode {mode:03o}): `chmod 600 {shown}`"
        ));
    }
    Ok(password)
}
