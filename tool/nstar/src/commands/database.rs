//! A database, with a password that need not stand on the command line.

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path};

use store::{Database, ServerDatabase};

use crate::{exit::Failure, flags::DatabaseLogin};

/// Where the password may be when no file of it is named.
const VARIABLE: &str = "NSTAR_DATABASE_PASSWORD";
/// Longer is no password.
const LEN_MAX: u64 = 4096;

/// The database that a flag names, with its password from wherever that is.
pub(super) fn with_password(
    flag: &str,
    database: &Database,
    login: &DatabaseLogin,
) -> Result<Database, Failure> {
    let database = database.clone();
    let is_file = database.path().is_some();
    match &login.database_password_file {
        Some(_) if is_file => {
            Err(Failure::usage("--database-password-file goes with a database server: SQLite asks for none"))
        }
        Some(_) if database.shows_password() => Err(Failure::usage(format!(
            "--database-password-file: {flag} holds a password already; leave out one of them"
        ))),
        Some(path) => Ok(database.with_password(read(path)?)),
        None if database.shows_password() => {
            eprintln!(
                "nstar: others on this machine can see the password in {flag}; \
                 --database-password-file or {VARIABLE} hides it"
            );
            Ok(database)
        }
        None => Ok(match env::var(VARIABLE) {
            Ok(password) => database.with_password(password),
            Err(_) => database,
        }),
    }
}

/// The server of a database that is to be asked who waits for its locks.
pub(super) fn to_watch(
    database: Option<&Database>,
    login: &DatabaseLogin,
) -> Result<Option<ServerDatabase>, Failure> {
    let Some(database) = database else {
        return match login.database_password_file {
            Some(_) => Err(Failure::usage("--database-password-file goes with --watch-database")),
            None => Ok(None),
        };
    };
    match with_password("--watch-database", database, login)? {
        Database::Server(server) => Ok(Some(server)),
        Database::Sqlite(_) => Err(Failure::usage(
            "--watch-database: an SQLite file has no server to ask who waits for its locks: whoever has it open writes \
             alone; give the URL of a database server",
        )),
    }
}

/// The first line of a file.
fn read(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let unreadable =
        |error| Failure::usage(format!("the database's password in {shown} cannot be read: {error}"));
    let about = fs::metadata(path).map_err(unreadable)?;
    if about.len() > LEN_MAX {
        return Err(Failure::usage(format!("{shown} holds no password: it has {} bytes", about.len())));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let password = text.lines().next().unwrap_or_default();
    if password.is_empty() {
        return Err(Failure::usage(format!("{shown} holds no password: its first line is empty")));
    }
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        eprintln!(
            "nstar: the password in {shown} may be read by others (mode {mode:03o}): `chmod 600 {shown}`"
        );
    }
    Ok(password.to_owned())
}
