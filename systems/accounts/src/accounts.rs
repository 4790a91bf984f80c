//! Accounts and sessions: made, and recognised again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use engine::offload::{self, Pool};
use http_io::Credentials;
use store::{Commits, Store, StoreError};

use crate::{
    account::{Account, User},
    capacity,
    credentials::{Name, Password},
    error::AccountsError,
    metrics::Metrics,
    options::Options,
    passwords::{HashError, Passwords},
    tables::{SCHEMA, Tables},
    token::{self, Token},
};

/// Hashes that may wait for each hasher, where the options do not say.
const QUEUE_PER_HASHER: usize = 64;

/// Accounts and sessions in a database. Never blocks the caller: hashing happens on threads of its own, reading and
/// writing on the store's.
#[derive(Debug)]
pub struct Accounts {
    hashing: Pool,
    hasher: Arc<Hasher>,
    tables: Tables,
    session_life: Duration,
}

/// Hashes and counts. Accounts opened in several processes have it in common.
#[derive(Debug)]
pub(crate) struct Hasher {
    passwords: Passwords,
    pub(crate) metrics: Metrics,
}

/// Why something asked of [`Accounts`] was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// There is an account of that name already.
    #[error("this name is taken")]
    Taken,
    /// No account has this name and password, or no session this token. Which of them is not told.
    #[error("the name or the password is wrong")]
    Unknown,
    /// Too much is waiting already; asking again in a second may do.
    #[error("the accounts server is busy")]
    Busy,
    /// The disk is full: nothing was changed.
    #[error("the disk of the accounts server is full")]
    DiskFull,
    /// The database, the hashing or the randomness failed; the server's log has the reason.
    #[error("the accounts server has failed; its log has the reason")]
    Failed,
}

/// Who was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Whose account it is.
    pub user: User,
    /// For how long the token is still good, where one was presented.
    pub expires_in: Option<Duration>,
}

/// A new session.
#[derive(Debug)]
pub struct Session {
    token: Token,
    /// How long its token is good for.
    pub life: Duration,
}

impl Session {
    /// The token to present. A secret.
    pub fn token(&self) -> &str {
        self.token.as_str()
    }
}

impl Accounts {
    /// Opens the database and starts the threads. Takes the time of one hash.
    pub fn open(options: &Options) -> Result<Self, AccountsError> {
        Self::with(options, Arc::new(Hasher::new(options)?))
    }

    pub(crate) fn with(options: &Options, hasher: Arc<Hasher>) -> Result<Self, AccountsError> {
        let hashers = options.hashers.unwrap_or_else(capacity::concurrent_hashes).max(1);
        let queue = options.hash_queue.unwrap_or(QUEUE_PER_HASHER.saturating_mul(hashers));
        let mut store = store::Options::default();
        let counts = hasher.metrics.clone();
        store.commits = Commits::new(move |changes, took| counts.committed(changes, took));
        store.queue = options.write_queue;
        Ok(Self {
            hashing: Pool::new("accounts-hash", hashers, queue),
            hasher,
            tables: Tables::new(Store::open(&options.database, &SCHEMA, &store)?),
            session_life: options.session_life,
        })
    }

    /// Makes an account; it is durable when this answers.
    pub async fn create(&self, name: Name, password: Password) -> Result<(), Refused> {
        // A name known to be taken is refused without the work of hashing.
        if self.tables.account(name.as_str()).await?.is_some() {
            return Err(Refused::Taken);
        }
        let hasher = Arc::clone(&self.hasher);
        let password_hash = self.hashing.run(move || hasher.hash(&password)).await??;
        match self.tables.add_account(name.as_str(), &password_hash).await? {
            true => Ok(()),
            false => Err(Refused::Taken),
        }
    }

    /// Checks a name and a password. An unknown name takes as long as a known one.
    pub async fn check(&self, name: Name, password: Password) -> Result<Identity, Refused> {
        let account = self.account(name, password).await?;
        Ok(Identity { user: account.user, expires_in: None })
    }

    /// The open account of this name and password.
    async fn account(&self, name: Name, password: Password) -> Result<Account, Refused> {
        let (account, stored) = self.tables.account(name.as_str()).await?.unzip();
        let hasher = Arc::clone(&self.hasher);
        let is_right = self.hashing.run(move || hasher.verify(&password, stored.as_deref())).await??;
        account.filter(|account| is_right && account.is_open(crate::now_s())).ok_or(Refused::Unknown)
    }

    /// Checks a name and a password and begins a session.
    pub async fn begin_session(&self, name: Name, password: Password) -> Result<Session, Refused> {
        let account = self.account(name, password).await?;
        let token = Token::random().map_err(|error| fail("randomness", &error))?;
        let token_digest = token::digest(token.as_str().as_bytes()).ok_or(Refused::Failed)?;
        let life_s = i64::try_from(self.session_life.as_secs()).unwrap_or(i64::MAX);
        let expires_at_s = crate::now_s().saturating_add(life_s);
        self.tables.add_session(&token_digest, &account, expires_at_s).await?;
        Ok(Session { token, life: self.session_life })
    }

    /// Recognises the owner of a session's token.
    pub async fn session(&self, token: &[u8]) -> Result<Identity, Refused> {
        let digest = token::digest(token).ok_or(Refused::Unknown)?;
        let now_s = crate::now_s();
        let found = self.tables.session(&digest, now_s).await?;
        let (account, expires_at_s) =
            found.filter(|(account, _)| account.is_open(now_s)).ok_or(Refused::Unknown)?;
        let left_s = u64::try_from(expires_at_s.saturating_sub(now_s)).unwrap_or(0);
        Ok(Identity { user: account.user, expires_in: Some(Duration::from_secs(left_s)) })
    }

    /// Recognises whoever presents a password or a token.
    pub async fn identify(&self, presented: &Credentials<'_>) -> Result<Identity, Refused> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| Refused::Unknown);
        match presented {
            Credentials::Bearer(token) => self.session(token).await,
            Credentials::Basic(basic) => {
                let name = Name::new(text(basic.name())?).map_err(|_| Refused::Unknown)?;
                let password = Password::new(text(basic.password())?).map_err(|_| Refused::Unknown)?;
                self.check(name, password).await
            }
        }
    }
}

impl Hasher {
    /// Takes the time of one hash.
    pub(crate) fn new(options: &Options) -> Result<Self, AccountsError> {
        let passwords = Passwords::new().map_err(|HashError(reason)| AccountsError::Hashing(reason))?;
        Ok(Self { passwords, metrics: Metrics::new(Arc::clone(&options.connections)) })
    }

    fn hash(&self, password: &Password) -> Result<String, Refused> {
        let started = Instant::now();
        let hash = self.passwords.hash(password).map_err(|error| fail("hashing", &error))?;
        self.metrics.hashed(started.elapsed());
        Ok(hash)
    }

    fn verify(&self, password: &Password, stored: Option<&str>) -> Result<bool, Refused> {
        let started = Instant::now();
        let right = self.passwords.verify(password, stored).map_err(|error| fail("hashing", &error))?;
        self.metrics.hashed(started.elapsed());
        Ok(right)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy => Self::Busy,
            StoreError::DiskFull => Self::DiskFull,
            _ => Self::Failed,
        }
    }
}

impl From<offload::Error> for Refused {
    fn from(error: offload::Error) -> Self {
        match error {
            offload::Error::Full | offload::Error::NoThread => Self::Busy,
            offload::Error::Panicked => Self::Failed,
        }
    }
}

fn fail(doing: &str, error: &dyn std::fmt::Display) -> Refused {
    tracing::error!(%error, "{doing} failed");
    Refused::Failed
}
