//! Which database to use.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use mysql_async::Opts;
use tokio_postgres::Config;
use zeroize::Zeroizing;

use crate::encryption::Encryption;

/// Which database to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// An SQLite file. It is created if it does not exist, but its folder is not.
    Sqlite(PathBuf),
    /// A database on a server.
    Server(ServerDatabase),
}

/// A database on a server, by its URL. Neither `Debug` nor `Display` shows the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerDatabase {
    pub(crate) dialect: Dialect,
    pub(crate) url: Zeroizing<String>,
    /// The servers that are this database, in order. At least one.
    pub(crate) nodes: Vec<Node>,
    /// Whether each connection begins with a random node.
    pub(crate) balance: bool,
    pub(crate) encryption: Option<Encryption>,
    /// Replaces the password in the URL.
    pub(crate) password: Option<Zeroizing<String>>,
}

/// A server, maybe one of several that are one database.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// `HOST` or `HOST:PORT`.
    pub(crate) host: String,
    /// The URL with this host alone, without the parameters that are not for the driver.
    pub(crate) driver_url: Zeroizing<String>,
}

/// The SQL dialect and protocol of a database server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// MariaDB and MySQL.
    Mysql,
    /// PostgreSQL.
    Postgres,
}

impl Database {
    /// The path, if the database is a file.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Server(_) => None,
        }
    }

    /// The file of the authorities to trust, if the database is on a server and names one.
    pub fn authorities(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(_) => None,
            Self::Server(server) => server.encryption.as_ref()?.roots.as_deref(),
        }
    }

    /// The path of a file that belongs to the database: beside an SQLite file, such as `accounts.db.ENDING`, else in the
    /// working directory, `NAME.ENDING`.
    pub fn beside(&self, name: &str, ending: &str) -> PathBuf {
        let mut path = self.path().map_or_else(|| name.into(), |path| path.as_os_str().to_owned());
        path.push(".");
        path.push(ending);
        path.into()
    }

    /// Its dialect, if it is on a server.
    pub fn dialect(&self) -> Option<Dialect> {
        match self {
            Self::Sqlite(_) => None,
            Self::Server(server) => Some(server.dialect),
        }
    }

    /// Sets the password, so that the URL need not contain it. Does nothing for a file.
    #[must_use]
    pub fn with_password(mut self, password: String) -> Self {
        if let Self::Server(server) = &mut self {
            server.password = Some(password.into());
        }
        self
    }

    /// Whether the URL contains a password.
    pub fn shows_password(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            Self::Server(server) => server.nodes.iter().any(|node| match server.dialect {
                Dialect::Mysql => Opts::from_url(&node.driver_url).is_ok_and(|url| url.pass().is_some()),
                Dialect::Postgres => {
                    node.driver_url.parse::<Config>().is_ok_and(|url| url.get_password().is_some())
                }
            }),
        }
    }

    /// The same database on each of its hosts alone, to compare what they hold. One for a file.
    pub fn each_host(&self) -> Vec<Self> {
        match self {
            Self::Sqlite(_) => vec![self.clone()],
            Self::Server(server) => {
                server.nodes.iter().map(|node| Self::Server(server.alone(node))).collect()
            }
        }
    }

    /// The whole URL, including the password if it contains one.
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
            Self::Server(server) => server.url.to_string(),
        }
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
            Self::Server(server) => server.fmt(f),
        }
    }
}

impl ServerDatabase {
    /// Its dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether it is several servers.
    pub(crate) fn is_several(&self) -> bool {
        self.nodes.len() > 1
    }

    /// The number of the node that all programs prefer for creating tables, whatever the order in their URLs: locks by
    /// which they take turns hold on one node only.
    pub(crate) fn node_for_setup(&self) -> usize {
        let hosts = self.nodes.iter().enumerate();
        hosts.min_by_key(|(_, node)| node.host.as_str()).map_or(0, |(number, _)| number)
    }

    fn alone(&self, node: &Node) -> Self {
        Self { url: node.driver_url.clone(), nodes: vec![node.clone()], balance: false, ..self.clone() }
    }
}

impl Dialect {
    /// Splits what follows `://` at the `@` into the user and the rest, exactly as the driver does: a password must never
    /// be taken for a host and shown.
    pub(crate) fn split_user(self, rest: &str) -> (Option<&str>, &str) {
        let at = match self {
            Self::Mysql => rest.split(['/', '?', '#']).next().and_then(|authority| authority.rfind('@')),
            Self::Postgres => rest.find('@'),
        };
        match at.and_then(|at| rest.split_at_checked(at)) {
            Some((user, place)) => (Some(user), place.trim_start_matches('@')),
            None => (None, rest),
        }
    }
}

impl fmt::Display for ServerDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What follows `?` may contain a password too.
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let (user, place) = self.dialect.split_user(rest);
        let place = place.split('?').next().unwrap_or_default();
        match user {
            Some(user) => {
                let user = user.split([':', '/', '?']).next().unwrap_or_default();
                write!(f, "{scheme}://{user}@{place}")
            }
            None => write!(f, "{scheme}://{place}"),
        }
    }
}

impl fmt::Debug for ServerDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerDatabase({self})")
    }
}

impl From<&PathBuf> for Database {
    fn from(path: &PathBuf) -> Self {
        Self::Sqlite(path.clone())
    }
}

impl From<PathBuf> for Database {
    fn from(path: PathBuf) -> Self {
        Self::Sqlite(path)
    }
}
