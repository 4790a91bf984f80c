//! Why a booking server could not be started.

use std::path::PathBuf;

/// Why a booking server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookingError {
    /// The database cannot be had.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// A secret's file cannot be read or made.
    #[error(
        "the secret in {path} cannot be read or made: {source}; check that the folder is there and may be \
         written by this user, or name another file with --key"
    )]
    Secret {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Others may read a secret's file.
    #[error("others than its owner may read the secret in {path} (mode {mode:o}); run `chmod 600 {path}`")]
    SecretShared {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file holds something else.
    #[error(
        "{path} holds no secret of nstar's booking; restore it from a backup, or name another file with --key"
    )]
    SecretUnreadable {
        /// The file.
        path: PathBuf,
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
