//! SQLite: one writer that commits together whatever waits, and readers beside it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use engine::offload::{self, Pool};
use rusqlite::{Connection, params_from_iter};

use self::writer::Writer;
use crate::{
    error::{OpenError, StoreError},
    options::Options,
    queue::{Reply, Wanted},
    rate_limited_log::RateLimitedLog,
    schema::Schema,
    statement::{Row, Statement},
};

mod open;
mod values;
mod writer;

/// How many threads read. Reads are short.
const READERS: usize = 2;

/// An open database.
#[derive(Debug)]
pub(crate) struct Sqlite {
    readers: Pool,
    reader: Arc<Reader>,
    writer: Writer,
}

impl Sqlite {
    pub(crate) fn open(path: &Path, schema: &Schema, options: &Options) -> Result<Self, OpenError> {
        let connection = open::writer(path, schema)?;
        let name = schema.name;
        Ok(Self {
            readers: Pool::new(&format!("{name}-read"), READERS, options.queue),
            reader: Arc::new(Reader::new(path.to_owned())),
            writer: Writer::start(connection, name, options).map_err(OpenError::Thread)?,
        })
    }

    pub(crate) async fn run(&self, wanted: Wanted, statement: Statement) -> Result<Reply, StoreError> {
        if wanted != Wanted::Rows {
            return self.writer.write(wanted, statement).await;
        }
        let reader = Arc::clone(&self.reader);
        match self.readers.run(move || reader.read(&statement)).await {
            Ok(read) => read.map(Reply::Rows),
            Err(offload::Error::Full | offload::Error::NoThread) => Err(StoreError::Busy),
            Err(offload::Error::Panicked) => Err(StoreError::Failed),
        }
    }
}

/// A connection to a database whose tables are up to date, for work before a server starts.
#[derive(Debug)]
pub(crate) struct SqliteSetup {
    connection: Connection,
    path: PathBuf,
    what: &'static str,
}

impl SqliteSetup {
    pub(crate) fn open(path: &Path, schema: &Schema) -> Result<Self, OpenError> {
        let connection = open::writer(path, schema)?;
        Ok(Self { connection, path: path.to_owned(), what: schema.name })
    }

    pub(crate) fn query(&mut self, statement: &Statement) -> Result<Vec<Row>, OpenError> {
        rows(&self.connection, statement).map_err(|error| self.failed(error))
    }

    pub(crate) fn insert_all(&mut self, statements: &[Statement]) -> Result<(), OpenError> {
        let batch = statements.iter().map(|statement| (Wanted::Inserted, statement));
        let replies = writer::commit(&mut self.connection, batch).map_err(|error| self.failed(error))?;
        match replies.into_iter().find_map(Result::err) {
            Some(error) => Err(OpenError::Migration {
                what: self.what,
                database: self.path.display().to_string(),
                reason: error.to_string(),
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn settle(&mut self) -> Result<(), OpenError> {
        let settled = self.connection.execute_batch("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)");
        settled.map_err(|error| self.failed(error))
    }

    fn failed(&self, source: rusqlite::Error) -> OpenError {
        OpenError::Sqlite { what: self.what, database: self.path.clone(), source }
    }
}

static FAILED: RateLimitedLog = RateLimitedLog::new();

/// Reads the database. Its calls block.
#[derive(Debug)]
struct Reader {
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

fn rows(connection: &Connection, statement: &Statement) -> rusqlite::Result<Vec<Row>> {
    let mut prepared = connection.prepare_cached(statement.sql)?;
    let columns = prepared.column_count();
    let rows = prepared.query_map(params_from_iter(&statement.values), |row| values::row(row, columns))?;
    rows.collect()
}
