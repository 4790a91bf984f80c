//! The tables, and how an older database is brought up to date.

use rusqlite::{Connection, TransactionBehavior};

/// Marks a file as ours (`PRAGMA application_id`): "nsta".
const APPLICATION_ID: i64 = 0x6e73_7461;

/// Step `n` brings a database from version `n` to `n + 1`. Never changed once released; only added to.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE accounts (
        name TEXT PRIMARY KEY,
        password_hash TEXT NOT NULL,
        created_at_s INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE sessions (
        token_digest BLOB PRIMARY KEY,
        name TEXT NOT NULL,
        expires_at_s INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_by_expiry ON sessions (expires_at_s);
"];

/// The version this program writes.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Why a database could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("not a database of accounts")]
    Foreign,
    #[error("schema version {0} is newer than this program")]
    TooNew(i64),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// Brings the database up to date, in one transaction: a crash leaves the old version.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), SchemaError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let ours = application == APPLICATION_ID || (application == 0 && version == 0 && tables == 0);
    if !ours {
        return Err(SchemaError::Foreign);
    }
    if version > VERSION {
        return Err(SchemaError::TooNew(version));
    }
    for step in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    if version < VERSION {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_database_is_made_ours_and_again_is_no_change() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection.execute("INSERT INTO accounts VALUES ('a', 'h', 1)", []).unwrap();
        migrate(&mut connection).unwrap();
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        let kept: i64 = connection.query_row("SELECT count(*) FROM accounts", [], |row| row.get(0)).unwrap();
        assert_eq!((version, kept), (VERSION, 1));
    }

    #[test]
    fn another_programs_database_is_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE accounts (x)").unwrap();
        assert!(matches!(migrate(&mut connection), Err(SchemaError::Foreign)));
    }

    #[test]
    fn a_newer_database_is_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection.pragma_update(None, "user_version", VERSION + 1).unwrap();
        assert!(matches!(migrate(&mut connection), Err(SchemaError::TooNew(v)) if v == VERSION + 1));
    }
}
