//! Opening the database, with the settings that make a commit durable.

use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt, path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags};

use crate::{
    error::AccountsError,
    schema::{self, SchemaError},
};

/// How long a connection waits for another process's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the database for writing, makes it if it is not there, and brings it up to date.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, AccountsError> {
    check_folder(path)?;
    make_private(path).map_err(|source| AccountsError::Unwritable { database: path.to_owned(), source })?;
    let failed = |source| AccountsError::Database { database: path.to_owned(), source };
    let mut connection = open(path).map_err(failed)?;
    make_durable(&connection).map_err(failed)?;
    schema::migrate(&mut connection).map_err(|error| match error {
        SchemaError::Foreign => AccountsError::Foreign { database: path.to_owned() },
        SchemaError::TooNew(found) => {
            AccountsError::TooNew { database: path.to_owned(), found, known: schema::VERSION }
        }
        SchemaError::Sqlite(source) => failed(source),
    })?;
    Ok(connection)
}

/// Opens one more connection that only reads, to a database that is there and up to date.
pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open(path)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// WAL lets readers go on during a commit; `synchronous=FULL` syncs the log at every commit, so that what
/// was committed outlives a kill and a power cut (sqlite.org/pragma.html#pragma_synchronous).
fn make_durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")
}

/// Makes the file, if it is not there, readable by its owner only: it holds the hashes of passwords. SQLite gives its
/// log the same permissions.
fn make_private(path: &Path) -> std::io::Result<()> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}

fn check_folder(path: &Path) -> Result<(), AccountsError> {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Ok(()),
    };
    if folder.is_dir() {
        return Ok(());
    }
    Err(AccountsError::NoFolder { database: path.to_owned(), folder: folder.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = open_writer(&folder.path().join("no/such.db")).unwrap_err();
        assert!(matches!(error, AccountsError::NoFolder { .. }));
        assert!(error.to_string().contains("mkdir -p"), "{error}");
    }

    #[test]
    fn a_file_that_is_no_database_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(
            &path,
            "this is not a database, but is longer than a header of one hundred bytes, ".repeat(9),
        )
        .unwrap();
        let error = open_writer(&path).unwrap_err();
        assert!(error.to_string().contains("notes.txt"), "{error}");
    }

    #[test]
    fn only_the_owner_may_read_the_hashes() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let _writer = open_writer(&folder.path().join("accounts.db")).unwrap();
        let mut seen = 0;
        for entry in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", entry.path());
            seen += 1;
        }
        assert!(seen > 1, "the database and its log");
    }

    #[test]
    fn a_folder_in_place_of_the_database_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = open_writer(folder.path()).unwrap_err();
        assert!(matches!(error, AccountsError::Unwritable { .. }));
        assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{error}");
    }

    #[test]
    fn commits_are_synced_and_readers_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts.db");
        let writer = open_writer(&path).unwrap();
        let mode: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        let synchronous: i64 = writer.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        assert_eq!((mode.as_str(), synchronous), ("wal", 2));
        let reader = open_reader(&path).unwrap();
        assert!(reader.execute("DELETE FROM accounts", []).is_err());
    }
}
