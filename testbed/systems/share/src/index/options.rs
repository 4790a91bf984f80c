//! Settings of an index server.

use std::{path::PathBuf, sync::Arc, time::Duration};

use store::Database;

use crate::group::Members;

/// The settings of an index server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The database. Missing tables are created.
    pub database: Database,
    /// How long a registration lasts without being renewed. Default 2 minutes. A peer that died is still found for that
    /// long.
    pub life: Duration,
    /// The file with the secret that peers must present; created if it does not exist. Default none: everyone who reaches
    /// the server may use it.
    pub secret: Option<PathBuf>,
    /// The members that may use the server by proving their keys instead of the secret. Default none.
    pub members: Option<Members>,
    /// Most requests that may wait for the database; further ones get 503. Default 1024.
    pub queue: usize,
    /// The engine's counters of the server's connections, for `GET /metrics`.
    pub connections: Arc<engine::Counters>,
}

impl Options {
    /// The defaults, with this database.
    pub fn new(database: impl Into<Database>) -> Self {
        Self {
            database: database.into(),
            life: Duration::from_secs(120),
            secret: None,
            members: None,
            queue: 1024,
            connections: Arc::default(),
        }
    }
}

/// Why an index server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexServerError {
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The group's secret cannot be read.
    #[error("{0} (--secret-file says which)")]
    Secret(#[from] store::SecretError),
}
