//! Reading, over as many connections as there are reads at once.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use rusqlite::{Connection, params_from_iter};

use super::{open, values};
use crate::{
    error::StoreError,
    rate_limited_log::RateLimitedLog,
    statement::{Row, Statement},
};

static FAILED: RateLimitedLog = RateLimitedLog::new();

/// Reads the database. Its calls block.
#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Reader {
    /// A reader that opens connections as needed.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::new(Vec::new()) }
    }

    pub(crate) fn read(&self, statement: &Statement) -> Result<Vec<Row>, StoreError> {
        self.with(|connection| rows(connection, statement)).map_err(|error| {
            FAILED.write(|suppressed| tracing::error!(%error, ?statement, suppressed, "reading failed"));
            values::reason(&error)
        })
    }

    /// Runs `read` with an idle connection or a new one. A connection that fails is not used again.
    fn with<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = idle.map_or_else(|| open::reader(&self.path), Ok)?;
        let found = read(&connection)?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(found)
    }
}

pub(super) fn rows(connection: &Connection, statement: &Statement) -> rusqlite::Result<Vec<Row>> {
    let mut prepared = connection.prepare_cached(statement.sql)?;
    let columns = prepared.column_count();
    let rows = prepared.query_map(params_from_iter(&statement.values), |row| values::row(row, columns))?;
    rows.collect()
}
