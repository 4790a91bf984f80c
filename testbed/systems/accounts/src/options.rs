//! Settings of the accounts server, and why it could not start.

use std::{path::PathBuf, time::Duration};

use api_server::ServerOptions;
use clap::ValueEnum;
use store::Database;

use crate::refusal::Refused;

/// The settings of an accounts server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// What every API server has: the database, its queue, proxies, connection counters.
    pub server: ServerOptions,
    /// The file with the administrator's token. Created at the first start, readable by its owner only.
    pub admin_token: PathBuf,
    /// The file with the token that identifies file servers. Created at the first start, readable by its owner only. Default
    /// none: there is no token.
    pub service_token: Option<PathBuf>,
    /// Whether clients without the token are refused. Default no.
    pub service_token_required: bool,
    /// Who may create accounts, besides administrators. Default everybody.
    pub registration: Registration,
    /// How long a session's token is valid. Default one hour. A stolen token is useful for as long.
    pub session_life: Duration,
    /// How many passwords are hashed at once, each in 19 MiB. `None`: one per core, as far as they fit in a quarter of the
    /// free memory. More than one per core only makes every request slower.
    pub hashers: Option<usize>,
    /// How many requests may wait for a hasher before the next is refused with 503. `None`: 64 for each hasher; at about
    /// 20 ms a hash, the last one waits about 1.3 s. With a longer queue, hashers work for clients that gave up.
    pub hash_queue: Option<usize>,
}

impl Options {
    /// The default path of the service token: `accounts.db.service` beside the database.
    pub fn usual_service_token(&self) -> PathBuf {
        self.server.database.beside("accounts", "service")
    }

    /// The defaults for this database. The administrator's token lies beside an SQLite file as `accounts.db.admin`, otherwise
    /// in the working directory as `accounts.admin`.
    pub fn new(database: impl Into<Database>) -> Self {
        let server = ServerOptions::new(database);
        let admin_token = server.database.beside("accounts", "admin");
        Self {
            server,
            admin_token,
            service_token: None,
            service_token_required: false,
            registration: Registration::default(),
            session_life: Duration::from_secs(3600),
            hashers: None,
            hash_queue: None,
        }
    }
}

/// Who may create accounts besides administrators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Registration {
    /// Everybody, a few at a time from one address.
    #[default]
    Open,
    /// Administrators only.
    Closed,
}

impl Registration {
    /// What was chosen; otherwise open, but closed where others can reach the server.
    pub fn or_default(chosen: Option<Self>, is_exposed: bool) -> Self {
        chosen.unwrap_or(if is_exposed { Self::Closed } else { Self::Open })
    }

    /// Decides whether a caller who is not an administrator may create an account. `refused` says why they are not one.
    pub(crate) fn admit(self, refused: Refused) -> Result<(), Refused> {
        match (self, refused) {
            (Self::Open, _) => Ok(()),
            (Self::Closed, Refused::Nameless | Refused::Forbidden) => Err(Refused::Closed),
            (Self::Closed, refused) => Err(refused),
        }
    }
}

/// Why an accounts server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccountsError {
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The administrator's token cannot be read or created.
    #[error("{0} (--admin-token names the file)")]
    AdminToken(#[source] store::SecretError),
    /// The service token cannot be read or created.
    #[error("{0} (--service-token-file names the file)")]
    ServiceToken(#[source] store::SecretError),
    /// A password could not be hashed, or the system provided no random bytes.
    #[error("passwords cannot be hashed on this machine: {0}")]
    Hashing(String),
    /// A thread could not be started.
    #[error(
        "a thread of the accounts server could not be started: {0}; check `ulimit -u` and the free memory"
    )]
    Thread(std::io::Error),
}
