//! The options that every API server has.

use std::sync::Arc;

use http_io::server::{HttpOptions, Proxies};
use store::{Database, OpenError, Schema, Store};

use crate::metrics::Metrics;

/// The options that every API server has.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The database. Its tables are created if they do not exist.
    pub database: Database,
    /// How many statements may wait for the database before a request is refused with 503. Default 1024.
    pub queue: usize,
    /// The proxies whose `Forwarded` and `X-Forwarded-For` are trusted. Default: none.
    pub proxies: Proxies,
    /// The engine's counters of the server's connections, shown by `GET /metrics`. Pass the ones in the engine's options.
    /// Default: counters that stay at zero.
    pub connections: Arc<engine::Counters>,
}

impl ServerOptions {
    /// The defaults, on this database.
    pub fn new(database: impl Into<Database>) -> Self {
        Self {
            database: database.into(),
            queue: 1024,
            proxies: Proxies::default(),
            connections: Arc::default(),
        }
    }

    /// Opens the database and starts its threads. Commits are counted in `metrics`.
    ///
    /// # Errors
    /// When the database cannot be opened, does not hold this schema, or no thread can be started.
    pub fn open_store(&self, schema: &Schema, metrics: &Metrics) -> Result<Store, OpenError> {
        let mut options = store::Options::default();
        options.commits = metrics.commits();
        options.queue = self.queue;
        Store::open(&self.database, schema, &options)
    }

    pub(crate) fn http(&self) -> HttpOptions {
        HttpOptions::behind(&self.proxies)
    }
}
