//! Accounts and sessions.

use std::{net::IpAddr, sync::Arc, time::Duration};

use api_server::Noted;
use engine::offload::{Pool, Ticket};
use http_io::Credentials;

use crate::{
    account::{Account, User, now_s, show_time},
    admission::Sender,
    audit::{Action, By, Entry, Record},
    common::{Checked, Common, group},
    credentials::{self, Name, Password, Token},
    options::{AccountsError, Options},
    passwords,
    refusal::{Refused, fail},
    revocations::Revocations,
    tables::{Change, SCHEMA, Tables},
};

/// Maximum number of accounts or entries in one response.
pub(crate) const PAGE_MAX: i64 = 1000;
/// Default number of hashes that may wait for each hasher.
const QUEUE_PER_HASHER: usize = 64;

/// Accounts and sessions in a database. Never blocks the caller: passwords are hashed on separate threads, and the store has
/// its own.
#[derive(Debug)]
pub struct Accounts {
    pub(crate) hashing: Pool,
    pub(crate) common: Arc<Common>,
    pub(crate) tables: Tables,
    session_life: Duration,
}

/// The owner of a valid credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user: User,
    /// How long this holds at most, if the session or the account ends.
    pub expires_in: Option<Duration>,
}

/// A new session.
#[derive(Debug)]
pub struct Session {
    token: Token,
    /// How long its token is valid.
    pub life: Duration,
}

impl Session {
    /// The token, which is secret.
    pub fn token(&self) -> &str {
        self.token.as_str()
    }
}

impl Accounts {
    /// Opens the database and starts the threads. Takes the time of one hash.
    pub fn open(options: &Options) -> Result<Self, AccountsError> {
        Self::with(options, Arc::new(Common::new(options)?))
    }

    pub(crate) fn with(options: &Options, common: Arc<Common>) -> Result<Self, AccountsError> {
        let hashers = options.hashers.unwrap_or_else(passwords::concurrent_hashes).max(1);
        let queue = options.hash_queue.unwrap_or(QUEUE_PER_HASHER.saturating_mul(hashers));
        let store = options.server.open_store(&SCHEMA, &common.metrics)?;
        Ok(Self {
            hashing: Pool::new("password-hash", hashers, queue),
            common,
            tables: Tables::new(store),
            session_life: options.session_life,
        })
    }

    /// Creates an account, which is durable when this returns. Names of deleted accounts stay taken, as what their owners left
    /// elsewhere, such as files, must not go to others.
    pub async fn create(&self, name: Name, password: Password, from: Sender) -> Result<(), Refused> {
        // Counted first: otherwise anybody could try out without limit which names are taken.
        self.common.admit_registration(from)?;
        // A taken name is refused without hashing. In this order, an account that is deleted meanwhile is found by one of the
        // two queries.
        if self.tables.account(name.as_str()).await?.is_some() || self.was_deleted(&name).await? {
            return Err(Refused::Taken);
        }
        let ticket = Ticket { group: group(from.address), is_known: false };
        let by = By { actor: name.as_str(), address: from.address };
        self.make(&name, password, by, ticket).await
    }

    async fn make(&self, name: &Name, password: Password, by: By<'_>, ticket: Ticket) -> Result<(), Refused> {
        let common = Arc::clone(&self.common);
        let password_hash = self.hashing.run_for(ticket, move || common.hash(&password)).await??;
        let entry = entry(by, Action::Created, name.as_str());
        match self.tables.add_account(&password_hash, &entry).await? {
            true => Ok(()),
            false => Err(Refused::Taken),
        }
    }

    /// Checks a name and a password. Repeated failures are slowed down. Unknown names take as long as known ones, and are slowed
    /// down alike.
    pub async fn check(&self, name: &str, password: &str, from: IpAddr) -> Result<Identity, Refused> {
        let account = self.account(name, password, from).await?;
        let expires_in = account.expires_at_s.map(left);
        Ok(Identity { user: account.user, expires_in })
    }

    /// The open account with this name and password.
    pub(crate) async fn account(&self, name: &str, password: &str, from: IpAddr) -> Result<Account, Refused> {
        let attempt = self.common.attempt(name.as_bytes(), from);
        self.common.admit(&attempt)?;
        let (Ok(name), Ok(password)) = (Name::new(name), Password::new(password)) else {
            // Text that cannot be a name or password is treated like any wrong one.
            self.common.failed_cheaply(&attempt);
            return Err(Refused::Unknown);
        };
        let found = self.tables.account(name.as_str()).await?;
        let common = Arc::clone(&self.common);
        let ticket = common.ticket(name.as_str(), from);
        match self.hashing.run_for(ticket, move || common.check(&attempt, &password, found)).await?? {
            Checked::Right(account) => {
                self.common.logged_in(name.as_str(), from);
                Ok(account)
            }
            Checked::Wrong { account, noted } => {
                self.note(account, noted, from).await?;
                Err(Refused::Unknown)
            }
        }
    }

    /// Adds an audit entry when failures start to be slowed down. This takes as long for unknown names, which are not recorded,
    /// as they may be mistyped passwords.
    async fn note(&self, account: Option<Account>, noted: Noted, from: IpAddr) -> Result<(), Refused> {
        if noted.name_slowed || noted.address_slowed {
            let account = account.filter(|_| noted.name_slowed).map(|account| account.user.name);
            let by = By { actor: By::NOBODY, address: from };
            let entry = entry(by, Action::Slowed, account.as_deref().unwrap_or_default());
            self.tables.note_failures(&entry).await?;
        }
        Ok(())
    }

    /// Checks a name and a password and starts a session.
    pub async fn begin_session(&self, name: &str, password: &str, from: IpAddr) -> Result<Session, Refused> {
        let account = self.account(name, password, from).await?;
        let token = Token::random().map_err(|error| fail("randomness", &error))?;
        let token_digest = credentials::token_digest(token.as_str().as_bytes()).ok_or(Refused::Failed)?;
        let life_s = i64::try_from(self.session_life.as_secs()).unwrap_or(i64::MAX);
        let expires_at_s = now_s().saturating_add(life_s);
        self.tables.add_session(&token_digest, &account, expires_at_s).await?;
        Ok(Session { token, life: self.session_life })
    }

    /// Ends a session, whose token is invalid from now on.
    pub async fn end_session(&self, token: &[u8], from: IpAddr) -> Result<(), Refused> {
        let Identity { user, .. } = self.session(token).await?;
        let digest = credentials::token_digest(token).ok_or(Refused::NoSession)?;
        let entry = entry(By { actor: &user.name, address: from }, Action::LoggedOut, &user.name);
        self.tables.end_session(&digest, &entry).await?.then_some(()).ok_or(Refused::NoSession)
    }

    /// The owner of a session's token.
    pub async fn session(&self, token: &[u8]) -> Result<Identity, Refused> {
        let digest = credentials::token_digest(token).ok_or(Refused::NoSession)?;
        let now_s = now_s();
        let found = self.tables.session(&digest, now_s).await?;
        let (account, session_ends_at_s) =
            found.filter(|(account, _)| account.is_open(now_s)).ok_or(Refused::NoSession)?;
        let ends_at_s = account.expires_at_s.map_or(session_ends_at_s, |at_s| at_s.min(session_ends_at_s));
        Ok(Identity { user: account.user, expires_in: Some(left(ends_at_s)) })
    }

    /// The owner of a password or token.
    pub async fn identify(&self, presented: &Credentials<'_>, from: IpAddr) -> Result<Identity, Refused> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| Refused::Unknown);
        match presented {
            Credentials::Bearer(token) => self.session(token).await,
            Credentials::Basic(basic) => self.check(text(basic.name())?, text(basic.password())?, from).await,
        }
    }

    /// Whether this is the administrator's token.
    pub fn is_admin_token(&self, token: &[u8]) -> bool {
        self.common.is_admin(token)
    }

    /// Changes the password of an owner. Ends their sessions. Caches forget the old password with the next request for
    /// [`revocations`](Self::revocations).
    ///
    /// # Errors
    /// [`Refused::Unknown`] if the old password is wrong, and the errors of [`check`](Self::check).
    pub async fn change_password(
        &self,
        name: &str,
        old: &str,
        new: Password,
        from: IpAddr,
    ) -> Result<(), Refused> {
        let account = self.account(name, old, from).await?;
        let by = By { actor: &account.user.name, address: from };
        let entry = entry(by, Action::PasswordChanged, &account.user.name);
        let changed = self.store_password(new, Some(account.credential_version), &entry).await?;
        // It was changed meanwhile, so the old password is no longer right.
        changed.then_some(()).ok_or(Refused::Unknown)
    }

    /// Sets a password for an administrator.
    ///
    /// # Errors
    /// [`Refused::NoAccount`].
    pub async fn set_password(&self, name: &Name, new: Password, by: By<'_>) -> Result<(), Refused> {
        let entry = entry(by, Action::PasswordChanged, name.as_str());
        let changed = self.store_password(new, None, &entry).await?;
        changed.then_some(()).ok_or(Refused::NoAccount)
    }

    async fn store_password(
        &self,
        new: Password,
        version: Option<i64>,
        entry: &Entry<'_>,
    ) -> Result<bool, Refused> {
        let common = Arc::clone(&self.common);
        let ticket = Ticket { group: group(entry.by.address), is_known: true };
        let hash = self.hashing.run_for(ticket, move || common.hash(&new)).await??;
        Ok(self.tables.change_password(&hash, version, entry).await?)
    }

    /// The account with this name.
    ///
    /// # Errors
    /// [`Refused::NoAccount`].
    pub async fn get(&self, name: &Name) -> Result<Account, Refused> {
        let found = self.tables.account(name.as_str()).await?;
        found.map(|(account, _)| account).ok_or(Refused::NoAccount)
    }

    /// At most `limit` accounts with names after `after`, in order; 1 000 at most.
    pub async fn list(&self, after: &str, limit: i64) -> Result<Vec<Account>, Refused> {
        Ok(self.tables.list(after, limit.clamp(1, PAGE_MAX)).await?)
    }

    /// Changes an account and returns it.
    ///
    /// # Errors
    /// [`Refused::NoAccount`].
    pub async fn change(&self, name: &Name, change: &Change, by: By<'_>) -> Result<Account, Refused> {
        let entry = Entry { detail: detail(change), ..entry(by, Action::Changed, name.as_str()) };
        match self.tables.change(change, &entry).await? {
            true => self.get(name).await,
            false => Err(Refused::NoAccount),
        }
    }

    /// Whether an account with this name was deleted.
    pub async fn was_deleted(&self, name: &Name) -> Result<bool, Refused> {
        Ok(self.tables.was_deleted(name.as_str()).await?)
    }

    /// Creates an account for an administrator, even if one with its name was deleted.
    ///
    /// # Errors
    /// [`Refused::Taken`].
    pub async fn create_anew(&self, name: &Name, password: Password, by: By<'_>) -> Result<(), Refused> {
        self.make(name, password, by, Ticket { group: group(by.address), is_known: true }).await
    }

    /// Deletes an account and its sessions. Its name stays reserved.
    ///
    /// # Errors
    /// [`Refused::NoAccount`].
    pub async fn delete(&self, name: &Name, by: By<'_>) -> Result<(), Refused> {
        let entry = entry(by, Action::Deleted, name.as_str());
        self.tables.delete(&entry).await?.then_some(()).ok_or(Refused::NoAccount)
    }

    /// What was revoked since a revision, or nothing if none is given.
    pub async fn revocations(&self, after: Option<u64>) -> Result<Revocations, Refused> {
        Ok(self.tables.revocations(after).await?)
    }

    /// At most `limit` audit entries after `after`, in order; 1 000 at most.
    pub(crate) async fn audit(&self, after: i64, limit: i64) -> Result<Vec<Record>, Refused> {
        Ok(self.tables.audit(after, limit.clamp(1, PAGE_MAX)).await?)
    }
}

/// The time until then.
fn left(at_s: i64) -> Duration {
    Duration::from_secs(u64::try_from(at_s.saturating_sub(now_s())).unwrap_or(0))
}

pub(crate) fn entry<'a>(by: By<'a>, action: Action, account: &'a str) -> Entry<'a> {
    Entry { by, action, account, detail: String::new() }
}

/// Describes a change, as in `disabled=true quota=none`.
fn detail(change: &Change) -> String {
    let none = || "none".to_owned();
    let parts = [
        change.role.map(|role| format!("role={role}")),
        change.disabled.map(|disabled| format!("disabled={disabled}")),
        change.expires_at_s.map(|at_s| format!("expires={}", at_s.map_or_else(none, show_time))),
        change
            .quota_bytes
            .map(|bytes| format!("quota={}", bytes.map_or_else(none, |bytes| bytes.to_string()))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
