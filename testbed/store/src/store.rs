//! The seam: statements in, answers out.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    database::Database,
    error::{OpenError, StoreError},
    network::{self, Network},
    order::{Ask, Reply},
    schema::Schema,
    sqlite::{self, Sqlite},
    statement::{Row, Statement},
};

/// How a store is to be opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Statements that may wait for their turn before the next is refused as [`StoreError::Busy`]. Default 1024. More
    /// make the last of them wait longer than its client does.
    pub queue: usize,
    /// Connections to a database server, at most; opened as they are needed. Default 16. More let it commit more
    /// together, and take more of its memory and of its limit.
    pub connections: usize,
    /// Hears of every commit.
    pub commits: Commits,
}

impl Default for Options {
    fn default() -> Self {
        Self { queue: 1024, connections: 16, commits: Commits::default() }
    }
}

/// Hears of every commit: how many statements it made durable, and how long it took.
#[derive(Clone)]
pub struct Commits(Arc<dyn Fn(usize, Duration) + Send + Sync>);

impl Commits {
    /// Calls `heard` after each commit, on the thread that made it.
    pub fn new(heard: impl Fn(usize, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(heard))
    }

    pub(crate) fn tell(&self, statements: usize, took: Duration) {
        (self.0)(statements, took);
    }
}

impl Default for Commits {
    fn default() -> Self {
        Self::new(|_, _| ())
    }
}

impl fmt::Debug for Commits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Commits")
    }
}

/// An open database. Never blocks the caller: statements run on threads of the store's own. Dropped, it finishes what
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
    /// Brings the tables up to date and stays connected, without a thread, for what else is to be done before a server
    /// starts or forks. What is wrong with a database shows here. Safe when several programs start at once.
    ///
    /// # Errors
    /// When the database cannot be opened, is not one of this schema, or was written by a later version.
    pub fn prepare(database: &Database, schema: &Schema) -> Result<Setup, OpenError> {
        match database {
            Database::Sqlite(path) => sqlite::Setup::open(path, schema).map(SetupBackend::Sqlite),
            Database::Server(server) => network::Setup::open(server, schema).map(|mut setup| {
                setup.tell_of_settings(server.dialect);
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

    /// The rows that a `SELECT` finds.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn query(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        match self.run(Ask::Rows, statement).await? {
            Reply::Rows(rows) => Ok(rows),
            _ => Err(StoreError::Failed),
        }
    }

    /// Changes rows, and tells how many were found to be changed; durable when this answers.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn execute(&self, statement: Statement) -> Result<u64, StoreError> {
        match self.run(Ask::Changed, statement).await? {
            Reply::Changed(rows) => Ok(rows),
            _ => Err(StoreError::Failed),
        }
    }

    /// Inserts a row by an `INSERT`; `false` when a unique index refused it, or its `SELECT` found none. Durable when
    /// this answers.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn insert(&self, statement: Statement) -> Result<bool, StoreError> {
        match self.run(Ask::Inserted, statement).await? {
            Reply::Inserted(id) => Ok(id.is_some()),
            _ => Err(StoreError::Failed),
        }
    }

    /// As [`insert`](Self::insert), into a table whose `id` the database counts up: tells the new row's.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn insert_id(&self, statement: Statement) -> Result<Option<i64>, StoreError> {
        match self.run(Ask::InsertedId, statement).await? {
            Reply::Inserted(id) => Ok(id),
            _ => Err(StoreError::Failed),
        }
    }

    async fn run(&self, ask: Ask, statement: Statement) -> Result<Reply, StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.run(ask, statement).await,
            Backend::Network(network) => network.run(ask, statement).await,
        }
    }
}

/// One connection to a database that is up to date; blocks. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Setup {
    backend: SetupBackend,
}

#[derive(Debug)]
enum SetupBackend {
    Sqlite(sqlite::Setup),
    Network(network::Setup),
}

impl Setup {
    /// The rows that a `SELECT` finds.
    ///
    /// # Errors
    /// When the database fails.
    pub fn query(&mut self, statement: &Statement) -> Result<Vec<Row>, OpenError> {
        match &mut self.backend {
            SetupBackend::Sqlite(sqlite) => sqlite.query(statement),
            SetupBackend::Network(network) => network.query(statement),
        }
    }

    /// Does the `INSERT`s in one transaction; rows that a unique index refuses are there already.
    ///
    /// # Errors
    /// When the database fails; then nothing was inserted.
    pub fn insert_all(&mut self, statements: &[Statement]) -> Result<(), OpenError> {
        match &mut self.backend {
            SetupBackend::Sqlite(sqlite) => sqlite.insert_all(statements),
            SetupBackend::Network(network) => network.insert_all(statements),
        }
    }
}
