//! SQLite: one writer that commits together whatever waits, and readers beside it.

mod open;
mod reader;
mod values;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use engine::offload::{self, Pool};
use rusqlite::Connection;

use self::{reader::Reader, writer::Writer};
use crate::{
    error::{OpenError, StoreError},
    options::Options,
    queue::{Reply, Wanted},
    schema::Schema,
    statement::{Row, Statement},
};

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
        reader::rows(&self.connection, statement).map_err(|error| self.failed(error))
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

    fn failed(&self, source: rusqlite::Error) -> OpenError {
        OpenError::Sqlite { what: self.what, database: self.path.clone(), source }
    }
}
