//! Databases of the systems, with their passwords.

use nstar::{exit::Failure, flags::DatabaseLogin};
use store::Database;

/// The database that `--database` names, with its password from wherever that is.
pub(super) fn with_password(database: &Database, login: &DatabaseLogin) -> Result<Database, Failure> {
    let database = database.clone();
    if database.path().is_some() {
        return match login.database_password_file {
            None => Ok(database),
            Some(_) => Err(Failure::usage(
                "--database-password-file goes with a database server: SQLite asks for none",
            )),
        };
    }
    let password = login.password("--database", database.shows_password())?;
    Ok(match password {
        None => database,
        Some(password) => database.with_password(password),
    })
}
