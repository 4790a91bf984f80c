//! Reading the database: connections that go round, as many as read at once.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use rusqlite::{Connection, OptionalExtension, params};

use crate::database;

/// A session ends with its time, and with its account.
const SESSION: &str = "SELECT name, expires_at_s FROM sessions JOIN accounts USING (name) \
                       WHERE token_digest = ?1 AND expires_at_s > ?2";

/// Reads the database. Blocks: for use away from the loops.
#[derive(Debug)]
pub(crate) struct Reader {
    database: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Reader {
    /// Opens connections as they are needed.
    pub(crate) fn new(database: PathBuf) -> Self {
        Self { database, idle: Mutex::new(Vec::new()) }
    }

    /// The stored hash of a name's password.
    pub(crate) fn password_hash(&self, name: &str) -> rusqlite::Result<Option<String>> {
        self.with(|connection| {
            connection
                .prepare_cached("SELECT password_hash FROM accounts WHERE name = ?1")?
                .query_row(params![name], |row| row.get(0))
                .optional()
        })
    }

    /// The name and the expiry (Unix seconds) of a session that is still good.
    pub(crate) fn session(&self, digest: &[u8; 32], now_s: i64) -> rusqlite::Result<Option<(String, i64)>> {
        self.with(|connection| {
            connection
                .prepare_cached(SESSION)?
                .query_row(params![digest, now_s], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
    }

    /// A connection that failed is not used again.
    fn with<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = idle.map_or_else(|| database::open_reader(&self.database), Ok)?;
        let found = read(&connection)?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sessions_are_found_until_they_expire() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts.db");
        let writer = database::open_writer(&path).unwrap();
        writer.execute("INSERT INTO accounts VALUES ('ann', 'hash', 1)", []).unwrap();
        writer.execute("INSERT INTO sessions VALUES (?1, 'ann', 100)", params![[7u8; 32]]).unwrap();
        let reader = Reader::new(path);
        assert_eq!(reader.password_hash("ann").unwrap().as_deref(), Some("hash"));
        assert_eq!(reader.password_hash("Ann").unwrap(), None);
        assert_eq!(reader.session(&[7; 32], 99).unwrap(), Some(("ann".into(), 100)));
        assert_eq!(reader.session(&[7; 32], 100).unwrap(), None);
        assert_eq!(reader.session(&[8; 32], 99).unwrap(), None);
        writer.execute("DELETE FROM accounts", []).unwrap();
        assert_eq!(reader.session(&[7; 32], 99).unwrap(), None, "a session ends with its account");
    }
}
