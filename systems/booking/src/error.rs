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
