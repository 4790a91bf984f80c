//! What is done on SQLite before a server starts.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::{open, reader, writer};
use crate::{
    error::OpenError,
    order::Ask,
    schema::Schema,
    statement::{Row, Statement},
};

#[derive(Debug)]
pub(crate) struct Setup {
    connection: Connection,
    path: PathBuf,
    what: &'static str,
}

impl Setup {
    pub(crate) fn open(path: &Path, schema: &Schema) -> Result<Self, OpenError> {
        let connection = open::writer(path, schema)?;
        Ok(Self { connection, path: path.to_owned(), what: schema.name })
    }

    pub(crate) fn query(&mut self, statement: &Statement) -> Result<Vec<Row>, OpenError> {
        reader::rows(&self.connection, statement).map_err(|error| self.failed(error))
    }

    pub(crate) fn insert_all(&mut self, statements: &[Statement]) -> Result<(), OpenError> {
        let batch = statements.iter().map(|statement| (Ask::Inserted, statement));
        let answers = writer::commit(&mut self.connection, batch).map_err(|error| self.failed(error))?;
        match answers.into_iter().find_map(Result::err) {
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
