//! The seam: statements in, replies out.

use crate::{
    database::Database,
    error::{OpenError, StoreError},
    network::{Network, NetworkSetup},
    options::Options,
    queue::{Reply, Wanted},
    schema::Schema,
    sqlite::{Sqlite, SqliteSetup},
    statement::{Row, Statement},
};

/// An open database. It never blocks the caller: statements run on the store's own threads. When dropped, it finishes what
/// is queued.
#[derive(Debug)]
pub struct Store {
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Sqlite(Sqlite),
    Network(Network),
}

impl Store {
    /// Brings the tables up to date and stays connected, without a thread, for other work before a server starts or forks.
    /// Problems with the database show here. Several programs may do this at once.
    ///
    /// # Errors
    /// When the database cannot be opened, is not one of this schema, or was written by a later version.
    pub fn prepare(database: &Database, schema: &Schema) -> Result<Setup, OpenError> {
        match database {
            Database::Sqlite(path) => SqliteSetup::open(path, schema).map(SetupBackend::Sqlite),
            Database::Server(server) => NetworkSetup::open(server, schema).map(|mut setup| {
                setup.warn_of_settings();
                SetupBackend::Network(setup)
            }),
        }
        .map(|backend| Setup { backend })
    }

    /// Brings the tables up to date and opens the store.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), or when no thread can be started.
    pub fn open(database: &Database, schema: &Schema, options: &Options) -> Result<Self, OpenError> {
        match database {
            Database::Sqlite(path) => Sqlite::open(path, schema, options).map(Backend::Sqlite),
            Database::Server(server) => Network::open(server, schema, options).map(Backend::Network),
        }
        .map(|backend| Self { backend })
    }

    /// Returns the rows that a `SELECT` finds.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn query(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        match self.run(Wanted::Rows, statement).await? {
            Reply::Rows(rows) => Ok(rows),
            _ => Err(StoreError::Failed),
        }
    }

    /// Changes rows and returns how many were found. The change is durable when this returns.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn execute(&self, statement: Statement) -> Result<u64, StoreError> {
        match self.run(Wanted::Changed, statement).await? {
            Reply::Changed(rows) => Ok(rows),
            _ => Err(StoreError::Failed),
        }
    }

    /// Inserts a row. Returns `false` if a unique index refused it, or the `SELECT` of the `INSERT` found none. The row is
    /// durable when this returns.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn insert(&self, statement: Statement) -> Result<bool, StoreError> {
        match self.run(Wanted::Inserted, statement).await? {
            Reply::Inserted(id) => Ok(id.is_some()),
            _ => Err(StoreError::Failed),
        }
    }

    /// As [`insert`](Self::insert), into a table with an automatic `id`. Returns that of the new row.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn insert_id(&self, statement: Statement) -> Result<Option<i64>, StoreError> {
        match self.run(Wanted::InsertedId, statement).await? {
            Reply::Inserted(id) => Ok(id),
            _ => Err(StoreError::Failed),
        }
    }

    async fn run(&self, wanted: Wanted, statement: Statement) -> Result<Reply, StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.run(wanted, statement).await,
            Backend::Network(network) => network.run(wanted, statement).await,
        }
    }
}

/// A connection to a database whose tables are up to date. Its calls block.
#[derive(Debug)]
pub struct Setup {
    backend: SetupBackend,
}

#[derive(Debug)]
enum SetupBackend {
    Sqlite(SqliteSetup),
    Network(NetworkSetup),
}

impl Setup {
    /// Returns the rows that a `SELECT` finds.
    ///
    /// # Errors
    /// When the database fails.
    pub fn query(&mut self, statement: &Statement) -> Result<Vec<Row>, OpenError> {
        match &mut self.backend {
            SetupBackend::Sqlite(sqlite) => sqlite.query(statement),
            SetupBackend::Network(network) => network.query(statement),
        }
    }

    /// Executes `INSERT`s in one transaction. Rows that a unique index refuses are taken to exist already.
    ///
    /// # Errors
    /// When the database fails. Then nothing was inserted.
    pub fn insert_all(&mut self, statements: &[Statement]) -> Result<(), OpenError> {
        match &mut self.backend {
            SetupBackend::Sqlite(sqlite) => sqlite.insert_all(statements),
            SetupBackend::Network(network) => network.insert_all(statements),
        }
    }

    /// After many inserts into a table: gathers the statistics that plans are made from, and writes what is only in the
    /// log, so that whoever uses the database next does not pay for it. Logs a warning if the user has no right to.
    ///
    /// # Errors
    /// When the database fails.
    pub fn settle(&mut self, table: &str) -> Result<(), OpenError> {
        match &mut self.backend {
            SetupBackend::Sqlite(sqlite) => sqlite.settle(),
            SetupBackend::Network(network) => network.settle(table),
        }
    }
}
