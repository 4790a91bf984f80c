//! The URL of a database, as people write it.

use std::{fmt, str::FromStr};

use analysis::verdict::DatabaseServer;
use percent_encoding::percent_decode_str;
use url::Url;

/// The forms that are accepted.
const FORMS: &str = "write mysql://USER:PASSWORD@HOST/DATABASE or postgres://USER:PASSWORD@HOST/DATABASE";

/// How many letters may differ from a known scheme.
const SLIPS: usize = 2;

/// Advice for a password that URLs cannot hold as it is.
const ESCAPES: &str = "in a user or password write @ : / as %40 %3A %2F (or leave the password out and use \
                       --database-password-file)";

/// Parameters of the testbed's driver for MariaDB and MySQL that mean nothing to a client of theirs.
const DRIVER_PARAMETERS: [&str; 18] = [
    "pool_min",
    "pool_max",
    "inactive_connection_ttl",
    "ttl_check_interval",
    "abs_conn_ttl",
    "abs_conn_ttl_jitter",
    "conn_ttl",
    "tcp_keepalive",
    "tcp_nodelay",
    "stmt_cache_size",
    "wait_timeout",
    "prefer_socket",
    "compression",
    "max_allowed_packet",
    "reset_connection",
    "secure_auth",
    "client_found_rows",
    "enable_cleartext_plugin",
];

/// A database of a server. Neither `Debug` nor `Display` shows the password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    pub(super) address: Address,
    pub(super) encryption: Encryption,
    pub(super) password: Option<String>,
    /// Without password and parameters.
    shown: String,
}

/// Where the database is, as its client is told.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// MariaDB or MySQL.
    Mysql { user: String, host: String, port: u16, socket: Option<String>, database: String },
    /// PostgreSQL, whose client takes a URL; this one has no password.
    Postgres { url: String },
}

/// How the connection is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Encryption {
    /// As the client does unless told otherwise.
    Unsaid,
    /// Not at all.
    Disabled,
    /// By TLS, with a certificate that these vouch for: a file in PEM, or the authorities of this host.
    Verified { roots: Option<String> },
}

/// Text that is not the URL of a database server. It is not repeated: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDatabaseUrl {
    /// A file, it seems.
    #[error(
        "this is not the URL of a database server; {FORMS}. An SQLite file has no server to ask who waits for its locks: \
         whoever has it open writes alone"
    )]
    NoServer,
    /// A URL of an unknown kind.
    #[error("{scheme}: is not a known kind of database; {}", meant(scheme))]
    Scheme {
        /// The part before `://`.
        scheme: String,
    },
    /// A URL that lacks something.
    #[error("this URL cannot be read, or lacks user, host or database; {FORMS}; {ESCAPES}")]
    Incomplete,
    /// A URL with an `@` too many, so that part of the password would be taken for a host.
    #[error("this URL holds an @ too many; {ESCAPES}")]
    At,
    /// A parameter that is unknown, or has an unknown value.
    #[error("{parameter} in this URL {wanted}")]
    Parameter {
        /// The parameter's name.
        parameter: String,
        /// The requirement that it does not meet.
        wanted: &'static str,
    },
}

impl DatabaseUrl {
    /// Whether the URL itself holds a password, so that others on this machine may see it.
    pub fn shows_password(&self) -> bool {
        self.password.is_some()
    }

    /// The same with this password.
    #[must_use]
    pub fn with_password(self, password: String) -> Self {
        Self { password: Some(password), ..self }
    }

    /// The kind of database server.
    pub(super) fn server(&self) -> DatabaseServer {
        match self.address {
            Address::Mysql { .. } => DatabaseServer::Mysql,
            Address::Postgres { .. } => DatabaseServer::Postgres,
        }
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

impl FromStr for DatabaseUrl {
    type Err = InvalidDatabaseUrl;

    fn from_str(text: &str) -> Result<Self, InvalidDatabaseUrl> {
        match text.split_once("://") {
            Some(("mysql" | "mariadb", rest)) => mysql(rest),
            Some(("postgres" | "postgresql", rest)) => postgres(rest),
            Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) => {
                Err(InvalidDatabaseUrl::Scheme { scheme: scheme.to_owned() })
            }
            _ => Err(InvalidDatabaseUrl::NoServer),
        }
    }
}

/// Says what to write in place of an unknown scheme: the one it is a slip of, or any.
fn meant(scheme: &str) -> String {
    let scheme = scheme.to_ascii_lowercase();
    let slips = |known: &str| strsim::damerau_levenshtein(&scheme, known);
    let nearest = ["mysql", "mariadb", "postgres", "postgresql"].into_iter().min_by_key(|known| slips(known));
    match nearest.filter(|known| slips(known) <= SLIPS) {
        Some(known) => format!("did you mean {known}://USER:PASSWORD@HOST/DATABASE?"),
        None => FORMS.to_owned(),
    }
}

fn mysql(rest: &str) -> Result<DatabaseUrl, InvalidDatabaseUrl> {
    let url = Url::parse(&format!("mysql://{rest}")).map_err(|_| InvalidDatabaseUrl::Incomplete)?;
    let database = url.path().trim_start_matches('/');
    if database.contains('@') {
        return Err(InvalidDatabaseUrl::At);
    }
    let host = url.host_str().unwrap_or_default();
    if url.username().is_empty() || host.is_empty() || database.is_empty() {
        return Err(InvalidDatabaseUrl::Incomplete);
    }
    let Query { kept, encryption } = Query::read(url.query().unwrap_or_default())?;
    let mut socket = None;
    for (name, value) in &kept {
        match *name {
            "socket" => socket = Some(decoded(value)),
            name if DRIVER_PARAMETERS.contains(&name) => {}
            name => {
                let wanted = "is not known; see that it is spelt right";
                return Err(InvalidDatabaseUrl::Parameter { parameter: name.to_owned(), wanted });
            }
        }
    }
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    Ok(DatabaseUrl {
        shown: format!("mysql://{}@{host}{port}/{database}", url.username()),
        password: url.password().map(decoded),
        encryption,
        address: Address::Mysql {
            user: decoded(url.username()),
            host: decoded(host).trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(3306),
            socket,
            database: decoded(database),
        },
    })
}

/// Splits by hand what the client itself reads: it may name several hosts, or a socket, which other URLs cannot.
fn postgres(rest: &str) -> Result<DatabaseUrl, InvalidDatabaseUrl> {
    let (login, place) = rest.split_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    if place.contains('@') {
        return Err(InvalidDatabaseUrl::At);
    }
    let Query { mut kept, encryption } = Query::read(query)?;
    let (user, mut password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
        Some((user, password)) => (user, Some(password).filter(|password| !password.is_empty()).map(decoded)),
        None => ("", None),
    };
    kept.retain(|(name, value)| {
        if *name == "password" {
            password = Some(decoded(value));
        }
        *name != "password"
    });
    let (host, database) = place.split_once('/').unwrap_or((place, ""));
    let given = |part: &str, names: &[&str]| {
        !part.is_empty() || kept.iter().any(|(name, value)| names.contains(name) && !value.is_empty())
    };
    if !(given(user, &["user"]) && given(host, &["host", "hostaddr"]) && given(database, &["dbname"])) {
        return Err(InvalidDatabaseUrl::Incomplete);
    }
    let login = if user.is_empty() { String::new() } else { format!("{user}@") };
    let shown = format!("postgres://{login}{place}");
    let parameters: Vec<_> = kept.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let url = if kept.is_empty() { shown.clone() } else { format!("{shown}?{}", parameters.join("&")) };
    Ok(DatabaseUrl { address: Address::Postgres { url }, encryption, password, shown })
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The parameters of a URL: those that say how to encrypt, whichever of the words for it is written, and the others.
struct Query<'a> {
    kept: Vec<(&'a str, &'a str)>,
    encryption: Encryption,
}

impl<'a> Query<'a> {
    fn read(query: &'a str) -> Result<Self, InvalidDatabaseUrl> {
        let wrong = |parameter: &str, wanted| {
            Err(InvalidDatabaseUrl::Parameter { parameter: parameter.to_owned(), wanted })
        };
        let (mut kept, mut wanted, mut roots) = (Vec::new(), None, None);
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=').unwrap_or((part, "")) {
                ("sslmode", "disable") | ("require_ssl", "false") => wanted = Some(false),
                ("sslmode", "require" | "verify-ca" | "verify-full") | ("require_ssl", "true") => {
                    wanted = Some(true);
                }
                ("sslmode", _) => return wrong("sslmode", "must be disable or verify-full"),
                ("require_ssl", _) => return wrong("require_ssl", "must be true or false"),
                ("sslrootcert", "") => {
                    return wrong("sslrootcert", "must name a file of certificates in PEM");
                }
                ("sslrootcert", path) => roots = Some(decoded(path)),
                (name @ ("verify_ca" | "verify_identity" | "built_in_roots"), _) => {
                    return wrong(
                        name,
                        "is not known: certificates are always checked in full, by sslrootcert=PATH",
                    );
                }
                other => kept.push(other),
            }
        }
        let encryption = match (wanted, roots) {
            (Some(false), Some(_)) => return wrong("sslrootcert", "goes with sslmode=verify-full"),
            (Some(false), None) => Encryption::Disabled,
            (None, None) => Encryption::Unsaid,
            (_, roots) => Encryption::Verified { roots },
        };
        Ok(Self { kept, encryption })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> DatabaseUrl {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn servers_are_shown_without_their_password() {
        for (text, shown, password) in [
            ("mysql://ann:hu%3Ash@db:3307/rooms", "mysql://ann@db:3307/rooms", Some("hu:sh")),
            ("mariadb://ann:hush@[::1]/rooms?socket=/run/x", "mysql://ann@[::1]/rooms", Some("hush")),
            ("mysql://ann:hu@sh@db/rooms", "mysql://ann@db/rooms", Some("hu@sh")),
            ("postgresql://ann:hush@db/rooms", "postgres://ann@db/rooms", Some("hush")),
            ("postgres://ann@a:1,b:2/rooms?password=hush", "postgres://ann@a:1,b:2/rooms", Some("hush")),
            ("postgres://ann@%2Frun%2Fdb/rooms", "postgres://ann@%2Frun%2Fdb/rooms", None),
        ] {
            let url = read(text);
            assert_eq!((url.to_string().as_str(), url.password.as_deref()), (shown, password));
            assert_eq!(url.shows_password(), password.is_some());
            assert!(!format!("{url:?}").contains("hu"));
        }
        assert!(!format!("{:?}", read("mysql://ann@db/x").with_password("hush".into())).contains("hush"));
    }

    #[test]
    fn a_client_is_told_the_parts_it_needs() {
        let Address::Mysql { user, host, port, socket, database } =
            read("mysql://a%20n@[::1]/r%20s?socket=%2Frun%2Fdb&pool_max=3").address
        else {
            panic!("MariaDB's");
        };
        assert_eq!((user.as_str(), host.as_str(), port, database.as_str()), ("a n", "::1", 3306, "r s"));
        assert_eq!(socket.as_deref(), Some("/run/db"));
        let text = "postgres://ann:hush@db/x?application_name=y&sslmode=require&password=hush";
        let Address::Postgres { url } = read(text).address else { panic!("PostgreSQL's") };
        assert_eq!(url, "postgres://ann@db/x?application_name=y");
    }

    #[test]
    fn encryption_is_said_in_the_words_of_either_database() {
        let of = |query: &str| read(&format!("postgres://ann@db/x?{query}")).encryption;
        assert_eq!(of(""), Encryption::Unsaid);
        assert_eq!(of("sslmode=disable"), Encryption::Disabled);
        assert_eq!(of("require_ssl=true"), Encryption::Verified { roots: None });
        assert_eq!(of("sslrootcert=/a%20b.pem"), Encryption::Verified { roots: Some("/a b.pem".into()) });
        for query in [
            "sslmode=prefer",
            "require_ssl=maybe",
            "sslrootcert=",
            "sslmode=disable&sslrootcert=x",
            "verify_ca=false",
        ] {
            let error = format!("postgres://ann@db/x?{query}").parse::<DatabaseUrl>().unwrap_err();
            assert!(matches!(error, InvalidDatabaseUrl::Parameter { .. }), "{query}: {error}");
        }
        assert!("mysql://ann@db/x?pol_max=1".parse::<DatabaseUrl>().is_err());
    }

    #[test]
    fn what_is_no_url_of_a_server_is_told_without_repeating_it() {
        for (text, said) in [
            ("rooms.db", "SQLite"),
            ("sqlite:rooms.db", "SQLite"),
            ("mysql:/ann:hush@127.0.0.1/db", "not the URL"),
            ("host=127.0.0.1 user=ann password=hush dbname=x", "not the URL"),
            ("oracle://ann:hush@x/y", "not a known kind of database; write"),
            ("mysqll://ann:hush@x/y", "did you mean mysql://USER"),
            ("mysql://ann:hush@db", "lacks user, host or database"),
            ("mysql://db/x", "lacks user, host or database"),
            ("postgres://ann:hush@db", "lacks user, host or database"),
            ("postgres://ann:hu@sh@127.0.0.1/db", "%40"),
            ("mysql://ann@127.0.0.1/hu@sh", "%40"),
        ] {
            let error = text.parse::<DatabaseUrl>().expect_err(text).to_string();
            assert!(error.contains(said) && !error.contains("hu"), "{text}: {error}");
        }
    }
}
