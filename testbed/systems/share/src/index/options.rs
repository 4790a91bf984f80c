//! What the index server is started with.

use std::{path::PathBuf, sync::Arc, time::Duration};

use store::Database;

use crate::members::Members;

/// The settings of an index server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The database. Its tables are made when they are not there.
    pub database: Database,
    /// How long what a peer registered stays without being renewed. Default 2 minutes: for so long a peer that died
    /// is still found.
    pub life: Duration,
    /// The file of the secret that peers must present; made when it is not there. Default none: whoever reaches the
    /// server may use it.
    pub secret: Option<PathBuf>,
    /// The members whose keys are enough, beside the secret. Default none.
    pub members: Option<Members>,
    /// How many requests may wait for the database before the next is refused with 503. Default 1024.
    pub queue: usize,
    /// What the engine counts of the server's connections, to be shown by `GET /metrics`.
    pub connections: Arc<engine::Counters>,
}

impl Options {
    /// The defaults, on this database.
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
