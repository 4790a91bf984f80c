//! Settings of an index server.

use std::{path::PathBuf, time::Duration};

use api_server::ServerOptions;
use store::Database;

use crate::group::Members;

/// The settings of an index server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The options that every API server has.
    pub server: ServerOptions,
    /// How long a registration lasts without being renewed. Default 2 minutes. A peer that died is still found for that
    /// long.
    pub life: Duration,
    /// The file with the secret that peers must present; created if it does not exist. Default none: everyone who reaches
    /// the server may use it.
    pub secret: Option<PathBuf>,
    /// The members that may use the server by proving their keys instead of the secret. Default none.
    pub members: Option<Members>,
}

impl Options {
    /// The defaults, with this database.
    pub fn new(database: impl Into<Database>) -> Self {
        Self {
            server: ServerOptions::new(database),
            life: Duration::from_secs(120),
            secret: None,
            members: None,
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
