//! Settings of the file server.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use accounts::{Registration, Role};
use http_io::{
    client::{Scheme, ServerUrl},
    server::Proxies,
    without_user,
};
use serve::Reloads;

use crate::{
    access::{identity::Caller, permissions::Permissions},
    error::FilesError,
};

/// The settings of a file server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The folder to serve.
    pub root: PathBuf,
    /// What checks credentials.
    pub accounts: AccountsBackend,
    /// How long a valid credential is cached. Default 60 s; revoked credentials are forgotten within a second. Zero checks
    /// every request.
    pub auth_cache_ttl: Duration,
    /// Maximum number of cached credentials. Default 100 000, each about 150 bytes at most.
    pub auth_cache_entries: u64,
    /// How long a cached file may be sent without comparing it with the disk. Default 1 s: for that long a file that was
    /// replaced or removed is still sent as it was, but always whole, never new bytes with an old length. Zero compares
    /// for every request.
    pub file_check_every: Duration,
    /// Memory for files of up to 256 KiB, bytes. Default 64 MiB. A larger file counts as 64 KiB for its descriptor, so that
    /// at most one file is open for every 64 KiB of this: 1 024 by default.
    pub file_cache_bytes: u64,
    /// How long to wait for a response of the accounts server before responding 503. Default 5 s.
    pub accounts_timeout: Duration,
    /// The file with the certificates to trust for an accounts server over HTTPS. Default: those this machine trusts.
    pub accounts_ca: Option<PathBuf>,
    /// The file with the token that identifies this file server to the accounts server. Default none.
    pub accounts_token: Option<PathBuf>,
    /// Allows other machines to reach the server when there are no accounts. Default no.
    pub open_to_all: bool,
    /// Which uploads are accepted.
    pub uploads: UploadOptions,
    /// Rules for who may read and write what. They need accounts.
    pub permissions: Permissions,
    /// The file that records uploads, deletions and refusals, one line each. Default none.
    pub audit: Option<PathBuf>,
    /// When that file is opened anew. Default never.
    pub reloads: Reloads,
    /// Whether clients connect over TLS, so that browsers must send cookies only that way. Default no.
    pub encrypted: bool,
    /// Who may create accounts, if they are in this process. Default everybody.
    pub registration: accounts::Registration,
    /// Proxies that are trusted to name the client. Default: none.
    pub proxies: Proxies,
    /// Without accounts: names to which the server answers besides its addresses and `localhost`. Default none.
    pub host_names: Vec<String>,
    /// The engine's connection counters, shown by `GET /metrics`: the same as in the engine's options. By default a set of
    /// its own, which stays at zero.
    pub connections: Arc<engine::Counters>,
    /// Whether clients on other machines may see the metrics. Default no.
    pub open_metrics: bool,
}

/// Which uploads are accepted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UploadOptions {
    /// Who may upload.
    pub of: Uploaders,
    /// Maximum length of an upload, bytes; longer ones get 413. Default 10 GiB.
    pub max_bytes: u64,
    /// How long an interrupted upload can be resumed. Default one day. Until then it takes space on the disk and of the
    /// user's quota.
    pub life: Duration,
    /// Quota of users whose accounts have none, bytes. Default: unlimited.
    pub quota_bytes: Option<u64>,
    /// Space on the disk below which uploads are refused, bytes. Default: 1 GiB, or 5 % of the disk if that is less. New
    /// uploads are also refused once fewer than 1 % of the disk's inodes are free.
    pub keep_free_bytes: Option<u64>,
    /// Maximum number of files and folders in a user's own folder. Default 100 000. Empty ones take no space of the quota,
    /// but of the disk.
    pub entries_max: u64,
}

/// Who may upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uploaders {
    /// Nobody: the files are read-only.
    Nobody,
    /// Users, as far as their permissions go. Without accounts, nobody.
    Users,
    /// Also everybody who reaches the server, if there are no accounts.
    Everybody,
}

impl Default for UploadOptions {
    fn default() -> Self {
        Self {
            of: Uploaders::Users,
            max_bytes: 10 << 30,
            life: Duration::from_secs(24 * 60 * 60),
            quota_bytes: None,
            keep_free_bytes: None,
            entries_max: 100_000,
        }
    }
}

impl UploadOptions {
    /// The defaults where other machines can reach the server: smaller uploads, and a quota.
    pub(crate) fn exposed() -> Self {
        Self { max_bytes: 1 << 30, quota_bytes: Some(1 << 30), ..Self::default() }
    }

    /// The quota of a caller's folder, bytes: that of their account, or else the default, which does not apply to
    /// administrators.
    pub(crate) fn quota_of(&self, caller: &Caller) -> Option<u64> {
        let user = caller.user()?;
        user.quota_bytes.or(self.quota_bytes.filter(|_| user.role != Role::Admin))
    }
}

/// What others may do at a server that they can reach, where it was not left at what is usual there.
pub(crate) fn open_to_others(options: &Options) -> Vec<&'static str> {
    let usual = UploadOptions::exposed();
    let Options { accounts, uploads, registration, .. } = options;
    let by_users = *accounts != AccountsBackend::Open && uploads.of == Uploaders::Users;
    let is_open = [
        (*accounts == AccountsBackend::Open, "anybody may read every file (--open-to-all)"),
        (uploads.of == Uploaders::Everybody, "anybody may upload, without a quota (--open-uploads)"),
        (
            matches!(accounts, AccountsBackend::Local(_)) && *registration == Registration::Open,
            "anybody may create an account (--registration open)",
        ),
        (by_users && uploads.quota_bytes.is_none(), "users have no quota (--quota none)"),
        (
            uploads.of != Uploaders::Nobody && uploads.max_bytes > usual.max_bytes,
            "an upload may be larger than 1 GiB (--max-upload)",
        ),
    ];
    is_open.into_iter().filter_map(|(open, what)| open.then_some(what)).collect()
}

/// What checks credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountsBackend {
    /// An accounts server over HTTP.
    Remote(SocketAddr),
    /// An accounts server over HTTPS: its address, and the name that its certificate must have.
    Secure(SocketAddr, String),
    /// Accounts in this process, in an SQLite database.
    Local(PathBuf),
    /// Nothing: everyone who reaches the server can read every file.
    Open,
}

impl Options {
    /// The defaults for this folder and these accounts.
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
            uploads: UploadOptions::default(),
            permissions: Permissions::default(),
            audit: None,
            reloads: Reloads::default(),
            encrypted: false,
            registration: accounts::Registration::default(),
            proxies: Proxies::default(),
            host_names: Vec::new(),
            connections: Arc::default(),
            open_metrics: false,
        }
    }
}

/// Checks that files without accounts stay on this machine, and that rules for users come with accounts.
///
/// # Errors
/// When there are no accounts, and either `listen` is not a loopback address without [`Options::open_to_all`], or there
/// are [`Options::permissions`].
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

/// What to do with the URL of a database server.
const THROUGH_ACCOUNTS: &str = "only an accounts server uses a database server: start `nstar serve accounts \
    --database URL` and name its http address here";

/// Parses `http://HOST:PORT`, `https://HOST:PORT`, `sqlite:PATH` or `none`. Resolves a host name once, now.
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
            return if missing {
                Err(wrong("there is no path after sqlite:"))
            } else {
                Ok(Self::Local(path.into()))
            };
        }
        if ["mysql", "mariadb", "postgres", "postgresql"]
            .into_iter()
            .any(|scheme| given.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://")))
        {
            return Err(wrong(THROUGH_ACCOUNTS));
        }
        let url = ServerUrl::parse(given).map_err(|error| wrong(&error.to_string()))?;
        let scheme = url.scheme.ok_or_else(|| wrong("unknown form"))?;
        let usual_port = if scheme == Scheme::Https { 443 } else { 80 };
        let to = url.address(url.port.unwrap_or(usual_port)).map_err(|error| wrong(&error.to_string()))?;
        Ok(if scheme == Scheme::Https { Self::Secure(to, url.host) } else { Self::Remote(to) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed() {
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
    fn other_text_is_explained() {
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
    fn database_urls_are_explained_without_their_password() {
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
    fn what_is_open_to_others_is_named_only_if_somebody_chose_it() {
        let mut options = Options::new("/srv", AccountsBackend::Local("a.db".into()));
        (options.uploads, options.registration) = (UploadOptions::exposed(), Registration::Closed);
        assert_eq!(open_to_others(&options), [""; 0]);
        (options.uploads, options.registration) = (UploadOptions::default(), Registration::Open);
        let said = open_to_others(&options).join("; ");
        for flag in ["--registration open", "--quota none", "--max-upload"] {
            assert!(said.contains(flag), "{said}");
        }
        options.uploads.of = Uploaders::Nobody;
        assert_eq!(open_to_others(&options).len(), 1, "{:?}", open_to_others(&options));
        (options.accounts, options.uploads.of) = (AccountsBackend::Open, Uploaders::Everybody);
        let said = open_to_others(&options).join("; ");
        assert!(said.contains("--open-to-all") && said.contains("--open-uploads"), "{said}");
    }

    #[test]
    fn open_files_stay_on_this_machine_unless_allowed() {
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
