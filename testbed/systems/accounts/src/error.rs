//! Why an accounts server could not be started.

/// Why an accounts server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccountsError {
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The administrator's token cannot be read or created.
    #[error("{0} (--admin-token names the file)")]
    AdminToken(#[source] store::SecretError),
    /// The service token cannot be read or created.
    #[error("{0} (--service-token-file names the file)")]
    ServiceToken(#[source] store::SecretError),
    /// A password could not be hashed, or the system provided no random bytes.
    #[error("passwords cannot be hashed on this machine: {0}")]
    Hashing(String),
    /// A thread could not be started.
    #[error(
        "a thread of the accounts server could not be started: {0}; check `ulimit -u` and the free memory"
    )]
    Thread(std::io::Error),
}
