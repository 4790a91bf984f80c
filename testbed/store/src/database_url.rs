//! How people name a database.
//!
//! URLs are split by hand, exactly as the drivers split them. Another parser, such as the `url` crate, sees some passwords
//! as parts of a host or path, and would show them.

use std::str::FromStr;

use mysql_async::Opts;
use tokio_postgres::Config;

use crate::{
    database::{Database, Dialect, Node, ServerDatabase},
    encryption::{self, InvalidEncryption},
    hosts::{self, InvalidHosts},
};

/// The valid forms.
const FORMS: &str = "write sqlite:PATH or just a path, mysql://USER:PASSWORD@HOST/DATABASE, or postgres://USER:PASSWORD@HOST/DATABASE";

/// How many letters may be wrong in a scheme that is taken for a typo of a known one.
const TYPOS: usize = 2;

/// How to write a password with characters that have a meaning in URLs.
const ESCAPES: &str = "@ : / in a user or password are written %40 %3A %2F (or leave the password out and use \
                       --database-password-file)";

/// Text that does not name a database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDatabase {
    /// Empty, or nothing after the scheme.
    #[error("a database is needed: {FORMS}")]
    Empty,
    /// A URL with an unknown scheme.
    #[error("{scheme}: is not a known kind of database; {}", suggestion(scheme))]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// A malformed or incomplete URL. It is not repeated: it may contain a password.
    #[error("this URL is malformed, or lacks user, host or database; {FORMS}; {ESCAPES}")]
    Url,
    /// A URL with an extra `@`, so that part of the password would be taken for a host. It is not repeated either.
    #[error("this URL has an extra @; {ESCAPES}")]
    At,
    /// A URL with invalid parameters about encryption.
    #[error(transparent)]
    Encryption(#[from] InvalidEncryption),
    /// A URL with an invalid list of hosts.
    #[error(transparent)]
    Hosts(#[from] InvalidHosts),
    /// Text like a URL or libpq settings, which would be taken for a file name. It is not repeated either.
    #[error("this is neither the URL of a database nor a likely path; {FORMS}")]
    Unlikely,
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

/// What to write instead of an unknown scheme: the one that it is a typo of, or any.
fn suggestion(scheme: &str) -> String {
    let scheme = scheme.to_ascii_lowercase();
    let typos = |known: &str| strsim::damerau_levenshtein(&scheme, known);
    let nearest =
        ["mysql", "mariadb", "postgres", "postgresql", "sqlite"].into_iter().min_by_key(|known| typos(known));
    match nearest.filter(|known| typos(known) <= TYPOS) {
        Some("sqlite") => "did you mean sqlite:PATH?".to_owned(),
        Some(known) => format!("did you mean {known}://USER:PASSWORD@HOST/DATABASE?"),
        None => FORMS.to_owned(),
    }
}

/// Whether text that is not a URL was meant to be one, or to be libpq settings (`host=x password=y`).
fn may_hold_password(path: &str) -> bool {
    let close: String = path.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
    let begins = |name| close.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '/']));
    let scheme = ["mysql", "mariadb", "postgres", "postgresql"].into_iter().any(begins);
    scheme || (close.contains('@') && close.contains(':')) || close.contains("password=")
}

fn server(dialect: Dialect, url: String) -> Result<Database, InvalidDatabase> {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let (_, place) = dialect.split_user(rest);
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    if place.contains('@') {
        return Err(InvalidDatabase::At);
    }
    let (kept, encryption) = encryption::read(query)?;
    let (kept, balance) = hosts::read_balance(&kept)?;
    let base = url.strip_suffix(query).and_then(|url| url.strip_suffix('?')).unwrap_or(&url);
    let nodes = nodes(base, place, &kept)?;
    for node in &nodes {
        match dialect {
            Dialect::Mysql => check_for_mysql(&node.driver_url)?,
            Dialect::Postgres => check_for_postgres(&node.driver_url)?,
        }
    }
    let url = url.into();
    Ok(Database::Server(ServerDatabase { dialect, url, nodes, balance, encryption, password: None }))
}

/// The servers of a URL that ends in `place`: its hosts and the name of the database.
fn nodes(base: &str, place: &str, query: &str) -> Result<Vec<Node>, InvalidHosts> {
    let before = base.strip_suffix(place).unwrap_or(base);
    let (list, database) =
        place.split_at_checked(place.find('/').unwrap_or(place.len())).unwrap_or((place, ""));
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    let node = |host: &str| Node {
        host: host.to_owned(),
        driver_url: format!("{before}{host}{database}{query}").into(),
    };
    Ok(hosts::split(list)?.into_iter().map(node).collect())
}

/// Whether the driver accepts the URL, and it names a database.
fn check_for_mysql(url: &str) -> Result<(), InvalidDatabase> {
    let options = Opts::from_url(url).map_err(|_| InvalidDatabase::Url)?;
    if options.db_name().is_none_or(str::is_empty) { Err(InvalidDatabase::Url) } else { Ok(()) }
}

/// Whether the driver accepts the URL, and it names a host, a user and a database.
fn check_for_postgres(url: &str) -> Result<(), InvalidDatabase> {
    let config: Config = url.parse().map_err(|_| InvalidDatabase::Url)?;
    match config.get_hosts() {
        [_] if config.get_user().is_some() && config.get_dbname().is_some() => Ok(()),
        [_, _, ..] => Err(InvalidHosts::Parameter.into()),
        _ => Err(InvalidDatabase::Url),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

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
    fn a_url_names_several_hosts() {
        let hosts = |text: &str| {
            let database: Database = text.parse().unwrap();
            database.each_host().iter().map(Database::url).collect::<Vec<_>>()
        };
        let url = "mysql://ann:h,u@a:1,b,[::1]:2/x?load_balance_hosts=random&sslmode=disable";
        let each = ["mysql://ann:h,u@a:1/x", "mysql://ann:h,u@b/x", "mysql://ann:h,u@[::1]:2/x"];
        assert_eq!(hosts(url), each);
        assert_eq!(url.parse::<Database>().unwrap().to_string(), "mysql://ann@a:1,b,[::1]:2/x");
        assert_eq!(
            hosts("postgres://ann@a,b/x?connect_timeout=1"),
            ["postgres://ann@a/x?connect_timeout=1", "postgres://ann@b/x?connect_timeout=1"]
        );
    }

    #[test]
    fn a_wrong_list_of_hosts_is_explained_without_it() {
        for (url, said) in [
            ("mysql://ann:hush@a:1,,b/x", "host 2 of 3"),
            ("mysql://hush:hush,b/x", "host 1 of 2"),
            ("postgres://ann:hush@a,b:x/x", "host 2 of 2"),
            ("postgres://ann:hush@a/x?host=b", "several hosts go before"),
            ("postgres://ann:hush@a,b/x?load_balance_hosts=hush", "must be disable or random"),
            ("mysql://ann:hush@a,b", "lacks user, host or database"),
        ] {
            let error = url.parse::<Database>().unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(said) && !shown.contains("hush"), "{url}: {shown}");
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
