//! Why a booking server could not be started.

use std::path::PathBuf;

/// Why a booking server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookingError {
    /// The database cannot be had.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// A secret cannot be had.
    #[error("{0} (--key says which)")]
    Secret(#[from] store::SecretError),
    /// The database was begun with a key, and there is none where it is looked for.
    #[error(
        "the key that the identity numbers in {database} were hashed with was looked for in {path}, and there is no \
         such file; name the right one with --key, or restore it from a backup"
    )]
    NoKey {
        /// Where the key's file should be.
        path: PathBuf,
        /// The database.
        database: String,
    },
    /// The database's identity numbers were hashed with another key.
    #[error(
        "the key in {path} is not the one that the identity numbers in {database} were hashed with; \
         name the right one with --key"
    )]
    WrongKey {
        /// The key's file.
        path: PathBuf,
        /// The database.
        database: String,
    },
}
