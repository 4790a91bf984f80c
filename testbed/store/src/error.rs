//! Why a store cannot be opened, and why it does not do what it is asked.

use std::path::PathBuf;

use crate::network::Trouble;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder that should hold the file is not there.
    #[error(
        "the {what} database {database} cannot be made: there is no folder {folder}; \
         make it with `mkdir -p {folder}` or name another database"
    )]
    NoFolder {
        /// What it would hold.
        what: &'static str,
        /// The database asked for.
        database: PathBuf,
        /// The folder it should be in.
        folder: PathBuf,
    },
    /// The file cannot be made or written.
    #[error(
        "the {what} database {database} cannot be written: {source}; check that the file and its folder may be \
         written by this user, or name another database"
    )]
    Unwritable {
        /// What it would hold.
        what: &'static str,
        /// The database asked for.
        database: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite could not open, read or write the database.
    #[error(
        "the {what} database {database} cannot be opened for writing: {source}; \
         check that the file and its folder may be written by this user and that the disk is not full"
    )]
    Sqlite {
        /// What it would hold.
        what: &'static str,
        /// The database asked for.
        database: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The file is a database of something else.
    #[error("{database} is an SQLite database, but not one of nstar's {what}; name another file")]
    Foreign {
        /// What it should hold.
        what: &'static str,
        /// The database asked for.
        database: PathBuf,
    },
    /// The file is no database at all.
    #[error("{database} is there and is no database, so it cannot hold nstar's {what}; name another file")]
    NoDatabase {
        /// What it should hold.
        what: &'static str,
        /// The file asked for.
        database: PathBuf,
    },
    /// The database was written by a later version of this program.
    #[error(
        "the {what} database {database} has schema version {found}, and this program knows versions up to \
         {known}; use the newer nstar that wrote it"
    )]
    TooNew {
        /// What it holds.
        what: &'static str,
        /// The database asked for.
        database: String,
        /// Its schema version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The tables could not be made, or are not what this program makes.
    #[error("the tables of the {what} database {database} cannot be brought up to date: {reason}")]
    Migration {
        /// What it holds.
        what: &'static str,
        /// The database asked for.
        database: String,
        /// What went wrong.
        reason: String,
    },
    /// A database server cannot be used.
    #[error("the {what} database {server} cannot be used: {trouble}")]
    Server {
        /// What it would hold.
        what: &'static str,
        /// The server, without the password.
        server: String,
        /// Why not, and what to do.
        trouble: Trouble,
    },
    /// A thread could not be started.
    #[error("a thread for the database could not be started: {0}; check `ulimit -u` and the free memory")]
    Thread(std::io::Error),
}

/// Why a statement was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Too much is waiting already; asking again in a second may do. Nothing was changed.
    #[error("the database is busy")]
    Busy,
    /// The disk, or the space allowed to the database, is full. Nothing was changed.
    #[error("the disk of the database is full")]
    DiskFull,
    /// There is no connection to the database. Nothing was changed.
    #[error("the database is not available: {0}")]
    Unavailable(&'static str),
    /// The connection was lost before the answer came: whether it was done is not known.
    #[error("the connection to the database was lost on the way: it may or may not have been done")]
    Uncertain,
    /// The database failed; the log has the reason. Nothing was changed.
    #[error("the database has failed; the server's log has the reason")]
    Failed,
}
