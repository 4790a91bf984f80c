//! SQLite: one writer that commits together what waits, and readers beside it.

mod open;
mod reader;
mod setup;
mod values;
mod writer;

use std::{path::Path, sync::Arc};

use engine::offload::{self, Pool};

pub(crate) use self::setup::Setup;
use self::{reader::Reader, writer::Writer};
use crate::{
    error::{OpenError, StoreError},
    order::{Ask, Reply},
    schema::Schema,
    statement::Statement,
    store::Options,
};

/// Threads that read. Reads are short.
const READERS: usize = 2;

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

    pub(crate) async fn run(&self, ask: Ask, statement: Statement) -> Result<Reply, StoreError> {
        if ask != Ask::Rows {
            return self.writer.write(ask, statement).await;
        }
        let reader = Arc::clone(&self.reader);
        match self.readers.run(move || reader.read(&statement)).await {
            Ok(read) => read.map(Reply::Rows),
            Err(offload::Error::Full | offload::Error::NoThread) => Err(StoreError::Busy),
            Err(offload::Error::Panicked) => Err(StoreError::Failed),
        }
    }
}
