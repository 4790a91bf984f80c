//! The database under a system: a file, or a server of its own, fresh for each trial.

use std::path::Path;

use database_server::{DatabaseError, DatabaseServer, Kind, Settings};
use store::Database;

use crate::definition::DatabaseKind;

/// The program of a kind of database; `None` for one that needs none.
fn program(kind: DatabaseKind) -> Option<Kind> {
    match kind {
        DatabaseKind::Sqlite => None,
        DatabaseKind::Mariadb => Some(Kind::Mariadb),
        DatabaseKind::Postgres => Some(Kind::Postgres),
    }
}

/// A new, empty database.
#[derive(Debug)]
pub(crate) struct Fresh {
    /// How it is reached.
    pub(crate) database: Database,
    /// Its server, if it has one; stops when this is dropped.
    _server: Option<DatabaseServer>,
}

impl Fresh {
    /// Makes one; an SQLite file in `folder`, named by `number` so that none is used twice.
    pub(crate) fn start(
        kind: DatabaseKind,
        folder: &Path,
        number: u32,
        processors: Option<&[usize]>,
    ) -> Result<Self, DatabaseError> {
        let Some(server) = program(kind) else {
            let path = folder.join(format!("booking-{number}.db"));
            return Ok(Fresh { database: Database::Sqlite(path), _server: None });
        };
        let settings = Settings { processors: processors.map(<[usize]>::to_vec), ..Settings::default() };
        let server = DatabaseServer::start(server, settings)?;
        server.create(NAME)?;
        let url = server.url(NAME, "");
        let database = url.parse().unwrap_or_else(|_| unreachable!("{url} is a URL that the store reads"));
        Ok(Fresh { database, _server: Some(server) })
    }
}

/// The name of the database on its server.
const NAME: &str = "nstar_booking";
