//! The databases under a system: a file, or a server of its own, started fresh for each measurement.

use std::{fmt, path::Path, str::FromStr};

use database_server::{DatabaseError, DatabaseServer, Kind, Settings};
use store::Database;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// SQLite, within the server.
    Sqlite,
    /// MariaDB, a process of its own.
    Mariadb,
    /// PostgreSQL, processes of its own.
    Postgres,
}

impl DatabaseKind {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Sqlite, Self::Mariadb, Self::Postgres];

    fn server(self) -> Option<Kind> {
        match self {
            Self::Sqlite => None,
            Self::Mariadb => Some(Kind::Mariadb),
            Self::Postgres => Some(Kind::Postgres),
        }
    }
}

impl fmt::Display for DatabaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite",
            Self::Mariadb => "mariadb",
            Self::Postgres => "postgres",
        })
    }
}

impl FromStr for DatabaseKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| {
            format!("'{text}' is no database known here; there are sqlite, mariadb and postgres")
        })
    }
}

/// A new, empty database.
#[derive(Debug)]
pub(crate) struct Fresh {
    /// How it is reached.
    pub(crate) database: Database,
    /// Its server, if it has one: ends with this.
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
        let Some(server) = kind.server() else {
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

/// What the database is called on its server.
const NAME: &str = "nstar_booking";
