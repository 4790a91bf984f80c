//! Opening a file with durable commits and up-to-date tables.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use refinery::error::Kind;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::{error::OpenError, schema::Schema};

/// How long a connection waits for another process's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it pauses after it was refused at once.
const RETRY_PAUSE: Duration = Duration::from_millis(5);
/// How many pages the log collects before a checkpoint: 64 MiB, sixteen times SQLite's default. A page that is written many
/// times in between is copied once. In a table of ten million rows, where inserts go to random pages of an index, this makes
/// 1.7 times as many inserts as 16 MiB; 256 MiB would make hardly more. Recovery after a crash reads that much.
const CHECKPOINT_PAGES: u32 = 16_000;
/// How many pages a writer and a reader may each keep in memory: kibibytes, negative as SQLite wants sizes. The default of
/// 2 MiB holds the upper levels of an index only up to some 100 000 rows; then every insert reads pages again. A connection
/// takes the memory only as it comes by as many pages, and never more, so that a server with a process for each connection
/// stays bounded.
const WRITER_CACHE_KIB: i64 = -32 * 1024;
const READER_CACHE_KIB: i64 = -8 * 1024;
/// The log's file is cut back to this many bytes after a reader kept it from being written over; without a limit, it keeps
/// the size of its longest time.
const LOG_BYTES: i64 = 128 << 20;
/// How often to try to create tables while another program does the same.
const MIGRATION_TRIES: usize = 3;

/// Opens the database for writing, creates it if necessary, and brings its tables up to date.
pub(super) fn writer(path: &Path, schema: &Schema) -> Result<Connection, OpenError> {
    let what = schema.name;
    check_folder(path, what)?;
    make_private(path).and_then(|()| sync_left_over(path)).map_err(|source| OpenError::Unwritable {
        what,
        database: path.to_owned(),
        source,
    })?;
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NoDatabase { what, database: path.to_owned() },
        _ => OpenError::Sqlite { what, database: path.to_owned(), source },
    };
    let mut connection = connection(path).map_err(failed)?;
    retrying(|| make_durable(&connection)).map_err(failed)?;
    bound_memory(&connection, WRITER_CACHE_KIB).map_err(failed)?;
    if !retrying(|| claim(&mut connection, schema)).map_err(failed)? {
        return Err(OpenError::Foreign { what, database: path.to_owned() });
    }
    migrate(&mut connection, schema).map_err(|error| schema.refused(&error, &path.display().to_string()))?;
    Ok(connection)
}

/// Opens a read-only connection to a database that exists and is up to date.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connection(path)?;
    bound_memory(&connection, READER_CACHE_KIB)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connection(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // A server that is confined to its own files has no folder for temporary ones.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// WAL lets readers continue during a commit. `synchronous=FULL` syncs the log at every commit, so that commits survive a
/// kill and a power failure (sqlite.org/pragma.html#pragma_synchronous).
fn make_durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)
}

/// The file is not mapped (`mmap_size`): an error of the disk would then end the process with a signal.
fn bound_memory(connection: &Connection, cache_kib: i64) -> rusqlite::Result<()> {
    connection.pragma_update(None, "cache_size", cache_kib)
}

/// Retries while another program holds a lock. SQLite waits by itself, except where two programs would wait for each other,
/// as when both turn on the log of a new file. Then it refuses one of them at once.
fn retrying<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let end = Instant::now() + BUSY_TIMEOUT;
    loop {
        match attempt() {
            Err(error) if is_locked(&error) && Instant::now() < end => thread::sleep(RETRY_PAUSE),
            outcome => return outcome,
        }
    }
}

fn is_locked(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Marks an empty database as ours. Returns `false` if it belongs to another program.
fn claim(connection: &mut Connection, schema: &Schema) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let application: i64 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application == schema.application_id {
        return Ok(true);
    }
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != 0 || tables != 0 {
        return Ok(false);
    }
    transaction.pragma_update(None, "application_id", schema.application_id)?;
    transaction.commit()?;
    Ok(true)
}

/// Migrates in one transaction, so that a crash leaves the old version. If two programs start at once, one conflicts with
/// the other's tables, retries, and finds nothing left to do.
fn migrate(connection: &mut Connection, schema: &Schema) -> Result<(), refinery::Error> {
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    let runner = schema.runner(|step| step.sqlite)?;
    let mut tries = 1;
    loop {
        match runner.run(connection) {
            Err(error) if tries < MIGRATION_TRIES && matches!(error.kind(), Kind::Connection(..)) => {
                tries += 1;
            }
            outcome => return outcome.map(drop),
        }
    }
}

/// Creates the file, if it does not exist, readable by its owner only. SQLite gives its log the same permissions. A file
/// that exists is not opened: closing it would release the locks of this process on it (fcntl(2)).
fn make_private(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Syncs what an earlier process wrote to the log and was killed before it synced. From now on clients hear of it, and must
/// not lose it if the power fails. SQLite does so only at the next commit. It locks the database, not the log, so closing the
/// log here releases no lock.
fn sync_left_over(path: &Path) -> io::Result<()> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    match File::open(log) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        log => log?.sync_data()?,
    }
    // As SQLite, which goes on if the folder may not be read.
    File::open(folder_of(path)).map_or(Ok(()), |folder| folder.sync_all())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn check_folder(path: &Path, what: &'static str) -> Result<(), OpenError> {
    let folder = folder_of(path);
    if folder.is_dir() {
        return Ok(());
    }
    Err(OpenError::NoFolder { what, database: path.to_owned(), folder: folder.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Migration;

    const SCHEMA: Schema = Schema {
        name: "names",
        application_id: 0x7465_7374,
        migrations: &[step("V1__names", "CREATE TABLE names (name TEXT)")],
    };

    const fn step(name: &'static str, sqlite: &'static str) -> Migration {
        Migration { name, sqlite, mysql: "", postgres: "" }
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = writer(&folder.path().join("no/such.db"), &SCHEMA).unwrap_err();
        assert!(matches!(error, OpenError::NoFolder { .. }));
        assert!(error.to_string().contains("mkdir -p"), "{error}");
    }

    #[test]
    fn a_file_that_is_no_database_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        let text = "this is not a database, but is longer than a header of one hundred bytes, ";
        for text in [text.repeat(9), "short".to_owned()] {
            std::fs::write(&path, &text).unwrap();
            let error = writer(&path, &SCHEMA).unwrap_err();
            assert!(matches!(error, OpenError::NoDatabase { .. }), "{error}");
            assert!(error.to_string().contains("notes.txt"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "it stays as it was");
        }
    }

    #[test]
    fn only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let _writer = writer(&folder.path().join("names.db"), &SCHEMA).unwrap();
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
        let error = writer(folder.path(), &SCHEMA).unwrap_err();
        assert!(matches!(error, OpenError::Unwritable { .. }));
        assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{error}");
    }

    #[test]
    fn commits_are_synced_and_readers_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.db");
        let writer = writer(&path, &SCHEMA).unwrap();
        let mode: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        let synchronous: i64 = writer.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        assert_eq!((mode.as_str(), synchronous), ("wal", 2));
        let reader = reader(&path).unwrap();
        assert!(reader.execute("DELETE FROM names", []).is_err());
    }

    #[test]
    fn caches_and_the_log_have_the_sizes_given_here() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.db");
        let pragma = |connection: &Connection, name: &str| -> i64 {
            connection.pragma_query_value(None, name, |row| row.get(0)).unwrap()
        };
        let (writer, reader) = (writer(&path, &SCHEMA).unwrap(), reader(&path).unwrap());
        assert_eq!(pragma(&writer, "cache_size"), -32_768);
        assert_eq!(pragma(&reader, "cache_size"), -8_192);
        assert_eq!(pragma(&writer, "mmap_size"), 0);
        assert_eq!(pragma(&writer, "wal_autocheckpoint"), 16_000);
        assert_eq!(pragma(&writer, "journal_size_limit"), 128 << 20);
    }

    #[test]
    fn another_programs_database_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE names (x)").unwrap();
        assert!(matches!(writer(&path, &SCHEMA).unwrap_err(), OpenError::Foreign { .. }));
    }

    #[test]
    fn a_newer_database_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.db");
        const NEWER: [Migration; 2] = [SCHEMA.migrations[0], step("V2__more", "CREATE TABLE more (x)")];
        writer(&path, &Schema { migrations: &NEWER, ..SCHEMA }).unwrap();
        let error = writer(&path, &SCHEMA).unwrap_err();
        assert!(matches!(error, OpenError::TooNew { found: 2, known: 1, .. }), "{error}");
        assert!(error.to_string().contains("newer nstar"), "{error}");
    }

    #[test]
    fn a_start_that_another_one_refuses_at_once_is_retried() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.db");
        let first = Connection::open(&path).unwrap();
        first.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let second = connection(&path).unwrap();
        second.busy_timeout(Duration::ZERO).unwrap();
        let mut tries = 0;
        let made = retrying(|| {
            tries += 1;
            let outcome = make_durable(&second);
            if tries == 2 {
                first.execute_batch("COMMIT").unwrap();
            }
            outcome
        });
        assert_eq!((made.is_ok(), tries), (true, 3), "{made:?}");
        let wrong = retrying(|| second.execute_batch("nonsense").inspect_err(|_| tries += 1));
        assert!(wrong.is_err() && tries == 4, "other errors are returned at once");
    }

    #[test]
    fn programs_that_start_at_once_create_the_tables_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.db");
        std::thread::scope(|scope| {
            let starting: Vec<_> = (0..4).map(|_| scope.spawn(|| writer(&path, &SCHEMA).map(drop))).collect();
            for started in starting {
                started.join().unwrap().unwrap();
            }
        });
        let steps = "SELECT count(*) FROM names_schema_history";
        let steps: i64 = reader(&path).unwrap().query_row(steps, [], |row| row.get(0)).unwrap();
        assert_eq!(steps, 1);
    }
}
