//! What the file server is started with.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use accounts::Role;

use http_io::{server::Proxies, without_user};

use crate::{
    access::{caller::Caller, permissions::Permissions},
    error::FilesError,
};

/// The settings of a file server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The folder whose files are served.
    pub root: PathBuf,
    /// Who knows the users.
    pub accounts: AccountsBackend,
    /// How long a credential that was found right is taken for right again without asking. Default 60 s; what is
    /// revoked meanwhile is forgotten within a second. Zero asks for every request.
    pub auth_cache_ttl: Duration,
    /// How many right credentials are remembered. Default 100 000, at most some 150 bytes each.
    pub auth_cache_entries: u64,
    /// For how long a file may be sent as it was when last looked at. Default 1 s: for so long a file that was
    /// replaced or removed is still seen as it was (as it was in whole: never new bytes with an old length). Zero
    /// looks at every request.
    pub file_check_every: Duration,
    /// Memory for files of up to 256 KiB, bytes. Default 64 MiB. A larger file counts as 64 KiB, for its descriptor, so that at
    /// most one file is kept open for every 64 KiB of this: 1 024 by default.
    pub file_cache_bytes: u64,
    /// How long the accounts server may take to answer. Default 5 s; then 503.
    pub accounts_timeout: Duration,
    /// The file of the certificates that vouch for an accounts server over HTTPS. Default: those this machine trusts.
    pub accounts_ca: Option<PathBuf>,
    /// The file of the token by which the accounts server knows a file server. Default none.
    pub accounts_token: Option<PathBuf>,
    /// Lets everyone in on an address that other machines reach, where there are no accounts. Default no.
    pub open_to_all: bool,
    /// What uploads are taken, and whose.
    pub uploads: Uploads,
    /// Who may read and write what, beyond what holds without rules. They need accounts.
    pub permissions: Permissions,
    /// Where uploads, deletions and refusals are noted, one line each. Default nowhere.
    pub audit: Option<PathBuf>,
    /// Whether clients come over TLS: then they send cookies that way only. Default no.
    pub encrypted: bool,
    /// Who may make accounts, where they are in this process. Default everybody.
    pub registration: accounts::Registration,
    /// The proxies that are believed when they say for whom they ask. Default: none.
    pub proxies: Proxies,
    /// What the engine counts of the server's connections, to be shown by `GET /metrics`: the same as in the engine's
    /// options. Default: its own, that stays at zero.
    pub connections: Arc<engine::Counters>,
}

/// What uploads are taken, and whose.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Uploads {
    /// Whose are taken.
    pub of: Uploaders,
    /// Longest upload, bytes. Default 10 GiB; then 413.
    pub max_bytes: u64,
    /// How long an upload that was broken off can be resumed. Default a day; it takes room on the disk, and of its user's
    /// quota, for so long.
    pub life: Duration,
    /// What a user may keep in their folder whose account does not say, bytes. Default: as much as the disk holds.
    pub quota_bytes: Option<u64>,
}

/// Whose uploads are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uploaders {
    /// Nobody's: the files are only read.
    Nobody,
    /// Those of users, as far as their rights go; without accounts nobody's.
    Users,
    /// Without accounts those of everybody who reaches the server.
    Everybody,
}

impl Default for Uploads {
    fn default() -> Self {
        Self {
            of: Uploaders::Users,
            max_bytes: 10 << 30,
            life: Duration::from_secs(24 * 60 * 60),
            quota_bytes: None,
        }
    }
}

impl Uploads {
    /// What somebody may keep in their folder, bytes: as their account says, or else as all may. Administrators are
    /// bound by their account only.
    pub(crate) fn quota_of(&self, caller: &Caller) -> Option<u64> {
        let user = caller.user()?;
        user.quota_bytes.or(self.quota_bytes.filter(|_| user.role != Role::Admin))
    }
}

/// Who knows the users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountsBackend {
    /// An accounts server, over HTTP.
    Remote(SocketAddr),
    /// An accounts server, over HTTPS: where, and the name that its certificate has to be for.
    Secure(SocketAddr, String),
    /// A database of accounts, in this process.
    Local(PathBuf),
    /// Nobody: every file is open to everyone who reaches the server.
    Open,
}

impl Options {
    /// The defaults, for this folder and these accounts.
    pub fn new(root: impl Into<PathBuf>, accounts: AccountsBackend) -> Self {
        Self {
            root: root.into(),
            accounts,
            auth_cache_ttl: Duration::from_secs(60),
            auth_cache_entries: 100_000,
            file_check_every: Duration::from_secs(1),
            file_cache_bytes: 64 * 1024 * 1024,
            accounts_timeout: Duration::from_secs(5),
            accounts_ca: None,
            accounts_token: None,
            open_to_all: false,
            uploads: Uploads::default(),
            permissions: Permissions::default(),
            audit: None,
            encrypted: false,
            registration: accounts::Registration::default(),
            proxies: Proxies::default(),
            connections: Arc::default(),
        }
    }
}

/// Refuses to serve open files where other machines could reach them, unless that is insisted on; and rules for users
/// where nobody knows any.
///
/// # Errors
/// When there are no accounts, and `listen` is not a loopback address while [`Options::open_to_all`] is not set, or
/// there are [`Options::permissions`].
pub fn check(listen: SocketAddr, options: &Options) -> Result<(), FilesError> {
    if options.accounts == AccountsBackend::Open && options.permissions != Permissions::default() {
        return Err(FilesError::RulesWithoutUsers);
    }
    let open = options.accounts == AccountsBackend::Open && !options.open_to_all;
    if open && !listen.ip().to_canonical().is_loopback() {
        return Err(FilesError::Exposed { listen });
    }
    Ok(())
}

/// What to do with a database server's URL, which is no accounts server.
const THROUGH_ACCOUNTS: &str = "a database server is asked by an accounts server: start `nstar serve accounts \
    --database URL` and name its http address here";

/// `http://HOST:PORT`, `https://HOST:PORT`, `sqlite:PATH` or `none`. A host's name is looked up now, once.
impl FromStr for AccountsBackend {
    type Err = FilesError;

    fn from_str(given: &str) -> Result<Self, FilesError> {
        let wrong = |reason: &str| FilesError::Accounts {
            given: without_user(given).into(),
            reason: reason.to_owned(),
        };
        if given == "none" {
            return Ok(Self::Open);
        }
        if let Some(path) = given.strip_prefix("sqlite:") {
            let missing = path.is_empty();
            return if missing { Err(wrong("no path after sqlite:")) } else { Ok(Self::Local(path.into())) };
        }
        let (scheme, rest) = given.split_once("://").ok_or_else(|| wrong("unknown form"))?;
        let (secure, port) = match scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            "mysql" | "mariadb" | "postgres" | "postgresql" => {
                return Err(wrong(THROUGH_ACCOUNTS));
            }
            _ => return Err(wrong("unknown form")),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#', '@']) {
            return Err(wrong("a path or a user cannot be given"));
        }
        let (host, port) = host_and_port(authority, port).ok_or_else(|| wrong("the port is no number"))?;
        let found = (host, port).to_socket_addrs().map_err(|error| wrong(&error.to_string()))?.next();
        let to = found.ok_or_else(|| wrong("the name has no address"))?;
        Ok(if secure { Self::Secure(to, host.to_owned()) } else { Self::Remote(to) })
    }
}

/// The two parts of `HOST:PORT`, or of `[ADDRESS]:PORT`, and this port where none is given.
fn host_and_port(authority: &str, port: u16) -> Option<(&str, u16)> {
    match authority.rsplit_once(':') {
        Some((host, given)) if !host.contains(':') || host.ends_with(']') => {
            Some((host.trim_matches(['[', ']']), given.parse().ok()?))
        }
        _ => Some((authority.trim_matches(['[', ']']), port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let read = |given: &str| given.parse::<AccountsBackend>();
        assert_eq!(read("none").unwrap(), AccountsBackend::Open);
        assert_eq!(read("sqlite:a b.db").unwrap(), AccountsBackend::Local("a b.db".into()));
        let remote = |at: &str| AccountsBackend::Remote(at.parse().unwrap());
        assert_eq!(read("http://127.0.0.1:9000/").unwrap(), remote("127.0.0.1:9000"));
        assert_eq!(read("http://127.0.0.1").unwrap(), remote("127.0.0.1:80"));
        assert_eq!(read("http://[::1]:9000").unwrap(), remote("[::1]:9000"));
        assert_eq!(read("http://[::1]").unwrap(), remote("[::1]:80"));
        let secure = |at: &str, name: &str| AccountsBackend::Secure(at.parse().unwrap(), name.to_owned());
        assert_eq!(read("https://127.0.0.1:9000/").unwrap(), secure("127.0.0.1:9000", "127.0.0.1"));
        assert_eq!(read("https://[::1]").unwrap(), secure("[::1]:443", "::1"));
    }

    #[test]
    fn anything_else_is_explained() {
        for given in [
            "",
            "sqlite:",
            "ftp://127.0.0.1:1",
            "https://127.0.0.1:x",
            "https://u@127.0.0.1:1",
            "127.0.0.1:1",
            "http://127.0.0.1:1/x",
            "http://u@h",
            "http://",
        ] {
            let error = given.parse::<AccountsBackend>().unwrap_err().to_string();
            assert!(error.contains("http://HOST:PORT"), "{given}: {error}");
        }
    }

    #[test]
    fn a_database_is_asked_by_an_accounts_server_and_its_password_is_not_repeated() {
        for given in ["mysql://u:hush@h/d", "postgres://u:hush@h/d"] {
            let error = given.parse::<AccountsBackend>().unwrap_err().to_string();
            assert!(error.contains("nstar serve accounts") && !error.contains("hush"), "{error}");
        }
        for given in ["http://u:hush@h:1", "u:hush@h:1"] {
            let error = given.parse::<AccountsBackend>().unwrap_err().to_string();
            assert!(error.contains("@h:1") && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn open_files_stay_on_this_machine_unless_insisted_on() {
        let mut options = Options::new("/srv", AccountsBackend::Open);
        for here in ["127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            assert!(check(here.parse().unwrap(), &options).is_ok(), "{here}");
        }
        let everywhere = "0.0.0.0:80".parse().unwrap();
        assert!(matches!(check(everywhere, &options), Err(FilesError::Exposed { .. })));
        options.open_to_all = true;
        assert!(check(everywhere, &options).is_ok());
        let closed = Options::new("/srv", AccountsBackend::Local("a.db".into()));
        assert!(check(everywhere, &closed).is_ok());
    }
}
