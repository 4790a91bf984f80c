//! Why a store cannot be opened, and why a statement was not executed.

use std::path::PathBuf;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder of the file does not exist.
    #[error(
        "the {what} database {database} cannot be created: there is no folder {folder}; \
         create it with `mkdir -p {folder}` or name another database"
    )]
    NoFolder {
        /// What it would store.
        what: &'static str,
        /// The database.
        database: PathBuf,
        /// The folder it should be in.
        folder: PathBuf,
    },
    /// The file cannot be created or written.
    #[error(
        "the {what} database {database} cannot be written: {source}; check that this user may write the file and its \
         folder, or name another database"
    )]
    Unwritable {
        /// What it would store.
        what: &'static str,
        /// The database.
        database: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite could not open, read or write the database.
    #[error(
        "the {what} database {database} cannot be opened for writing: {source}; \
         check that this user may write the file and its folder, and that the disk is not full"
    )]
    Sqlite {
        /// What it would store.
        what: &'static str,
        /// The database.
        database: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The file is a database of another program.
    #[error("{database} is an SQLite database, but not one of nstar's {what}; name another file")]
    Foreign {
        /// What it should store.
        what: &'static str,
        /// The database.
        database: PathBuf,
    },
    /// The file is not a database.
    #[error("{database} exists but is not a database, so it cannot store nstar's {what}; name another file")]
    NoDatabase {
        /// What it should store.
        what: &'static str,
        /// The file.
        database: PathBuf,
    },
    /// The database was written by a later version of this program.
    #[error(
        "the {what} database {database} has schema version {found}, and this program knows versions up to \
         {known}; use the newer nstar that wrote it"
    )]
    TooNew {
        /// What it stores.
        what: &'static str,
        /// The database.
        database: String,
        /// Its schema version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The tables could not be created or migrated.
    #[error("the tables of the {what} database {database} cannot be brought up to date: {reason}")]
    Migration {
        /// What it stores.
        what: &'static str,
        /// The database.
        database: String,
        /// What went wrong.
        reason: String,
    },
    /// A database server cannot be used.
    #[error("the {what} database {server} cannot be used: {trouble}")]
    Server {
        /// What it would store.
        what: &'static str,
        /// The server, without the password.
        server: String,
        /// Why, and what to do.
        trouble: Trouble,
    },
    /// A thread could not be started.
    #[error("a thread for the database could not be started: {0}; check `ulimit -u` and the free memory")]
    Thread(std::io::Error),
}

/// Why a statement was not executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Too many statements wait already; a retry in a second may succeed. Nothing was changed.
    #[error("the database is busy")]
    Busy,
    /// The disk, or the space allowed to the database, is full. Nothing was changed.
    #[error("the disk of the database is full")]
    DiskFull,
    /// There is no connection to the database. Nothing was changed.
    #[error("the database is not available: {0}")]
    Unavailable(&'static str),
    /// The connection was lost before the reply: whether the statement took effect is unknown.
    #[error("the connection to the database was lost: the change may or may not have been made")]
    Uncertain,
    /// The database failed; the log has the reason. Nothing was changed.
    #[error("the database failed; the server's log has the reason")]
    Failed,
}

/// Why a database server could not be connected to, or a connection broke.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Nothing answers at its address.
    #[error("it cannot be reached: {0}; check that it runs and listens at that address")]
    Unreachable(String),
    /// It is starting up or shutting down.
    #[error("it accepts no connections just now: {0}; try again in some seconds")]
    NotReady(String),
    /// It closed the connection, or the connection broke.
    #[error("the connection was lost (the server has gone away): {0}")]
    Lost(String),
    /// It has reached its connection limit.
    #[error(
        "it allows no more connections (too many connections); raise its max_connections, or close others"
    )]
    TooMany,
    /// The user or the password is wrong.
    #[error("it refuses this user or password: {0}")]
    Login(String),
    /// There is no such database.
    #[error("it has no database of that name; create it with CREATE DATABASE: {0}")]
    NoDatabase(String),
    /// The user lacks privileges.
    #[error("this user lacks privileges there; GRANT it all privileges on that database: {0}")]
    NoRights(String),
    /// The user lacks privileges on PostgreSQL, where those on a database do not extend to what is in it.
    #[error(
        "this user lacks privileges there; in that database `GRANT CREATE, USAGE ON SCHEMA public TO USER` lets it create \
         its tables (required since PostgreSQL 15), or make it the database's owner: {0}"
    )]
    NoSchemaRights(String),
    /// It is too old.
    #[error("it is version {found}, and {wanted} or newer is needed")]
    Version {
        /// Its version.
        found: String,
        /// The oldest supported version.
        wanted: &'static str,
    },
    /// The connection cannot be encrypted as the URL demands.
    #[error("the connection to it cannot be encrypted: {0}")]
    Encryption(String),
    /// Another kind of server answers at its address.
    #[error("what answers there is {0}")]
    Foreign(&'static str),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Trouble {
    /// Whether another host of the same database may serve instead.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::NotReady(_) | Self::Lost(_) | Self::TooMany)
    }

    /// What was said, without advice.
    fn said(&self) -> &str {
        match self {
            Self::Unreachable(said) | Self::NotReady(said) | Self::Lost(said) => said,
            Self::TooMany => "it allows no more connections",
            _ => "it cannot be used",
        }
    }

    /// The trouble with several hosts, none of which can serve. One that is merely not ready is worth waiting for.
    pub(crate) fn of_all(troubles: &[(&str, Self)]) -> Self {
        let each: Vec<String> =
            troubles.iter().map(|(host, trouble)| format!("{host}: {}", trouble.said())).collect();
        let waits = |trouble: &Self| matches!(trouble, Self::NotReady(_) | Self::TooMany);
        let said = format!("none of its hosts takes changes ({})", each.join("; "));
        match troubles.iter().any(|(_, trouble)| waits(trouble)) {
            true => Self::NotReady(said),
            false => Self::Unreachable(said),
        }
    }

    /// The error for clients: no more than they can use.
    pub(crate) fn for_clients(&self) -> StoreError {
        StoreError::Unavailable(match self {
            Self::Unreachable(_) | Self::Lost(_) => "it cannot be reached",
            Self::NotReady(_) => "it accepts no connections just now",
            Self::TooMany => "it allows no more connections",
            _ => "it refuses this server; the log has the reason",
        })
    }
}
