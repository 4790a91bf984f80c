//! Why an index server could not be started.

/// Why an index server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexServerError {
    /// The database cannot be had.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The group's secret cannot be had.
    #[error("{0} (--secret-file says which)")]
    Secret(#[from] store::SecretError),
}
