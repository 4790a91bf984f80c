//! Why an accounts server could not be started.

use std::path::PathBuf;

/// Why an accounts server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccountsError {
    /// The folder that should hold the database is not there.
    #[error(
        "the accounts database {database} cannot be made: there is no folder {folder}; \
         make it with `mkdir -p {folder}` or name another database"
    )]
    NoFolder {
        /// The database asked for.
        database: PathBuf,
        /// The folder it should be in.
        folder: PathBuf,
    },
    /// The database's file cannot be made or written.
    #[error(
        "the accounts database {database} cannot be written: {source}; check that the file and its folder may be \
         written by this user, or name another database"
    )]
    Unwritable {
        /// The database asked for.
        database: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite could not open, read or write the database.
    #[error(
        "the accounts database {database} cannot be opened for writing: {source}; \
         check that the file and its folder may be written by this user and that the disk is not full"
    )]
    Database {
        /// The database asked for.
        database: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The file is a database of something else.
    #[error("{database} is an SQLite database, but not one of nstar's accounts; name another file")]
    Foreign {
        /// The database asked for.
        database: PathBuf,
    },
    /// The database was written by a later version of this program.
    #[error(
        "the accounts database {database} has schema version {found}, and this program knows versions up to \
         {known}; use the newer nstar that wrote it"
    )]
    TooNew {
        /// The database asked for.
        database: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// A password could not be hashed, or no randomness was to be had.
    #[error("passwords cannot be hashed on this machine: {0}")]
    Hashing(String),
    /// A thread could not be started.
    #[error(
        "a thread of the accounts server could not be started: {0}; check `ulimit -u` and the free memory"
    )]
    Thread(std::io::Error),
}
