//! Which database, as people name it.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{
    encryption::{self, Encryption},
    network,
};

/// What may be written.
const FORMS: &str = "write sqlite:PATH or just a path, mysql://USER:PASSWORD@HOST/DATABASE, or postgres://USER:PASSWORD@HOST/DATABASE";

/// Letters wrong, at most, in a scheme that is a slip of a known one.
const SLIPS: usize = 2;

/// What to do with a password that URLs cannot hold as it is.
const ESCAPES: &str = "@ : / in a user or password are written %40 %3A %2F (or leave the password out and use \
                       --database-password-file)";

/// Which database to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// An SQLite file; made when it is not there, in a folder that is.
    Sqlite(PathBuf),
    /// A database of a server.
    Server(ServerDatabase),
}

/// A database of a server, by its URL. Neither `Debug` nor `Display` shows the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerDatabase {
    pub(crate) dialect: Dialect,
    pub(crate) url: String,
    /// The same, but for what the driver need not know.
    pub(crate) driver_url: String,
    pub(crate) encryption: Option<Encryption>,
    /// In place of the URL's.
    pub(crate) password: Option<String>,
}

/// What a database server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// MariaDB and MySQL.
    Mysql,
    /// PostgreSQL.
    Postgres,
}

/// Text that names no database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDatabase {
    /// Nothing, or nothing after the scheme.
    #[error("a database is needed: {FORMS}")]
    Empty,
    /// A URL of a kind that is not known.
    #[error("{scheme}: is no kind of database known here; {}", meant(scheme))]
    Scheme {
        /// What stands before `://`.
        scheme: String,
    },
    /// A URL that lacks something. It is not repeated: it may hold a password.
    #[error("this URL cannot be read, or lacks user, host or database; {FORMS}; {ESCAPES}")]
    Url,
    /// A URL with an `@` too many, so that part of the password would be taken for a host. Not repeated either.
    #[error("this URL holds an @ too many; {ESCAPES}")]
    At,
    /// A URL that says of the encryption what is not understood.
    #[error("{parameter} in this URL {wanted}")]
    Encryption {
        /// Which part of its query.
        parameter: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// Something like a URL or like the settings of libpq, which would become the name of a file. Not repeated either.
    #[error("this is neither the URL of a database nor a likely path; {FORMS}")]
    Unlikely,
}

impl Database {
    /// The file, where the database is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Server(_) => None,
        }
    }

    /// Where a file belongs that goes with it: beside an SQLite file, `accounts.db.ENDING`, and else in the working folder,
    /// `NAME.ENDING`.
    pub fn beside(&self, name: &str, ending: &str) -> PathBuf {
        let mut path = self.path().map_or_else(|| name.into(), |path| path.as_os_str().to_owned());
        path.push(".");
        path.push(ending);
        path.into()
    }

    /// What it speaks, where it is a server's.
    pub fn dialect(&self) -> Option<Dialect> {
        match self {
            Self::Sqlite(_) => None,
            Self::Server(server) => Some(server.dialect),
        }
    }

    /// The same with this password, which its URL need not hold then. A file has none.
    #[must_use]
    pub fn with_password(mut self, password: String) -> Self {
        if let Self::Server(server) = &mut self {
            server.password = Some(password);
        }
        self
    }

    /// Whether its URL holds a password.
    pub fn shows_password(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            Self::Server(server) => match server.dialect {
                Dialect::Mysql => network::mysql_url_has_password(&server.driver_url),
                Dialect::Postgres => network::postgres_url_has_password(&server.driver_url),
            },
        }
    }

    /// What names it again, whole: a secret where it holds a password.
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
            Self::Server(server) => server.url.clone(),
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
    /// What it speaks.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }
}

impl fmt::Display for ServerDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What follows `?` may hold a password as well.
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let (user, place) = split(self.dialect, rest);
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

impl FromStr for Database {
    type Err = InvalidDatabase;

    fn from_str(text: &str) -> Result<Self, InvalidDatabase> {
        let path = text.strip_prefix("sqlite:").unwrap_or(text);
        match path.split_once("://") {
            Some(("mysql" | "mariadb", rest)) => server(Dialect::Mysql, format!("mysql://{rest}")),
            Some(("postgres" | "postgresql", rest)) => {
                server(Dialect::Postgres, format!("postgres://{rest}"))
            }
            _ if path.is_empty() => Err(InvalidDatabase::Empty),
            Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) => {
                Err(InvalidDatabase::Scheme { scheme: scheme.to_owned() })
            }
            Some(_) => Err(InvalidDatabase::Unlikely),
            None if path == text && may_hold_password(path) => Err(InvalidDatabase::Unlikely),
            None => Ok(Self::Sqlite(path.into())),
        }
    }
}

/// What to write in place of a scheme that is not known: the one it is a slip of, or any.
fn meant(scheme: &str) -> String {
    let scheme = scheme.to_ascii_lowercase();
    let slips = |known: &str| strsim::damerau_levenshtein(&scheme, known);
    let nearest =
        ["mysql", "mariadb", "postgres", "postgresql", "sqlite"].into_iter().min_by_key(|known| slips(known));
    match nearest.filter(|known| slips(known) <= SLIPS) {
        Some("sqlite") => "did you mean sqlite:PATH?".to_owned(),
        Some(known) => format!("did you mean {known}://USER:PASSWORD@HOST/DATABASE?"),
        None => FORMS.to_owned(),
    }
}

/// Whether what is no URL was meant for one, or for the settings of libpq (`host=x password=y`).
fn may_hold_password(path: &str) -> bool {
    let close: String = path.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
    let begins = |name| close.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '/']));
    let scheme = ["mysql", "mariadb", "postgres", "postgresql"].into_iter().any(begins);
    scheme || (close.contains('@') && close.contains(':')) || close.contains("password=")
}

/// Who is named in a URL, and what follows the `@`, as its driver finds it.
fn split(dialect: Dialect, rest: &str) -> (Option<&str>, &str) {
    let at = match dialect {
        Dialect::Mysql => rest.split(['/', '?', '#']).next().and_then(|authority| authority.rfind('@')),
        Dialect::Postgres => rest.find('@'),
    };
    match at.and_then(|at| rest.split_at_checked(at)) {
        Some((user, place)) => (Some(user), place.trim_start_matches('@')),
        None => (None, rest),
    }
}

fn server(dialect: Dialect, url: String) -> Result<Database, InvalidDatabase> {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let (_, place) = split(dialect, rest);
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    if place.contains('@') {
        return Err(InvalidDatabase::At);
    }
    let (kept, encryption) = encryption::read(query)?;
    let base = url.strip_suffix(query).and_then(|url| url.strip_suffix('?')).unwrap_or(&url);
    let driver_url = if kept.is_empty() { base.to_owned() } else { format!("{base}?{kept}") };
    let whole = match dialect {
        Dialect::Mysql => network::is_mysql_url(&driver_url),
        Dialect::Postgres => network::is_postgres_url(&driver_url),
    };
    let server = ServerDatabase { dialect, url, driver_url, encryption, password: None };
    if whole { Ok(Database::Server(server)) } else { Err(InvalidDatabase::Url) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_an_sqlite_file_with_or_without_its_scheme() {
        let file = Database::Sqlite("a/b.db".into());
        assert_eq!("a/b.db".parse(), Ok(file.clone()));
        assert_eq!("sqlite:a/b.db".parse(), Ok(file.clone()));
        assert_eq!(file.to_string(), "a/b.db");
    }

    #[test]
    fn what_goes_with_a_database_lies_beside_it() {
        let beside = |text: &str| text.parse::<Database>().unwrap().beside("rooms", "key");
        assert_eq!(beside("a/b.db"), PathBuf::from("a/b.db.key"));
        assert_eq!(beside("mysql://ann:hush@db/x"), PathBuf::from("rooms.key"));
    }

    #[test]
    fn servers_are_shown_without_their_password() {
        for (url, shown) in [
            ("mysql://ann:hu:sh@db:3306/rooms", "mysql://ann@db:3306/rooms"),
            ("mariadb://ann:hush@db/rooms", "mysql://ann@db/rooms"),
            ("postgresql://ann:hush@db/rooms?password=hush", "postgres://ann@db/rooms"),
            ("postgres://ann:h?ush@db/rooms?password=hu@sh", "postgres://ann@db/rooms"),
            ("mysql://ann:hu@sh@db/rooms", "mysql://ann@db/rooms"),
        ] {
            let database: Database = url.parse().unwrap();
            assert_eq!(database.to_string(), shown);
            assert!(!format!("{database:?}").contains("hush"));
        }
    }

    #[test]
    fn a_password_in_a_url_is_found_and_one_from_elsewhere_is_not_shown() {
        let database = |text: &str| text.parse::<Database>().unwrap();
        for url in ["mysql://ann:hush@db/x", "postgres://ann:hush@db/x", "postgres://ann@db/x?password=hush"]
        {
            assert!(database(url).shows_password(), "{url}");
        }
        for url in ["mysql://ann@db/x", "postgres://ann@db/x", "a.db"] {
            assert!(!database(url).shows_password(), "{url}");
        }
        let database = database("mysql://ann@db/x").with_password("hush".into());
        assert!(!format!("{database:?} {database} {}", database.url()).contains("hush"));
    }

    #[test]
    fn what_may_hold_a_password_is_neither_taken_for_a_file_nor_repeated() {
        for text in [
            "mysql:/ann:hush@127.0.0.1/db",
            "mysql//ann:hush@127.0.0.1/db",
            "mysqll:/ann:hush@127.0.0.1/db",
            "ann:hush@127.0.0.1/db",
            "ann:hush@://db",
            "host=127.0.0.1 user=ann password=hush dbname=x",
            "host=127.0.0.1 user=ann Password = hush dbname=x",
            "postgres:hush",
            "mysql://ann@127.0.0.1/hu@sh",
            "postgres://ann:hu@sh@127.0.0.1/db",
        ] {
            let error = text.parse::<Database>().unwrap_err();
            let said = format!("{error} {error:?}");
            assert!(!said.contains("hu"), "{text}: {said}");
            assert!(said.contains("sqlite:PATH") || said.contains("%40"), "{text}: {said}");
        }
        for path in ["mysql.db", "./mysql/rooms.db", "a@b.db", "C:rooms.db", "sqlite:mysql:/a:b@c"] {
            assert!(matches!(path.parse(), Ok(Database::Sqlite(_))), "{path}");
        }
    }

    #[test]
    fn a_scheme_that_is_mistyped_is_told_the_nearest() {
        for (text, meant) in [
            ("mysqll://ann:hush@db/x", "mysql://USER"),
            ("MariaDB://ann:hush@db/x", "mariadb://USER"),
            ("postgress://ann:hush@db/x", "postgres://USER"),
            ("oracle://ann:hush@db/x", "sqlite:PATH or just"),
            ("sqllite://x", "sqlite:PATH?"),
        ] {
            let error = text.parse::<Database>().unwrap_err().to_string();
            assert!(error.contains(meant) && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn nonsense_is_answered_with_what_may_be_written() {
        for text in [
            "",
            "sqlite:",
            "oracle://x/y",
            "mysql://ann:hush@db",
            "postgres://ann:hush@/",
            "mysql://ann:hush@db:x/y",
        ] {
            let error = text.parse::<Database>().unwrap_err().to_string();
            assert!(error.contains("sqlite:PATH") && !error.contains("hush"), "{error}");
        }
    }
}
