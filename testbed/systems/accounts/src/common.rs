//! What all processes of a server have in common.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api_server::Metrics;
use store::Secret;

use crate::{
    account::Account,
    accounts::{Refused, fail},
    credentials::Password,
    error::AccountsError,
    metrics::{self, HASH},
    options::Options,
    passwords::{HashError, Passwords},
    slowdown::{Attempt, Noted, Slowdown},
};

/// Hashes and counts, and knows who administers. Accounts opened in several processes have it in common.
#[derive(Debug)]
pub(crate) struct Common {
    passwords: Passwords,
    slowdown: Slowdown,
    admin: Secret,
    pub(crate) metrics: Metrics,
}

/// What came of a look at a password.
#[derive(Debug)]
pub(crate) enum Checked {
    /// It is the account's, which is open.
    Right(Account),
    /// It is not, or there is no such account, or it is shut.
    Wrong {
        /// The account of that name, if there is one.
        account: Option<Account>,
        noted: Noted,
    },
}

impl Common {
    /// Takes the time of one hash. Reads the administrator's token, and makes it at the first start.
    pub(crate) fn new(options: &Options) -> Result<Self, AccountsError> {
        let passwords = Passwords::new().map_err(|HashError(reason)| AccountsError::Hashing(reason))?;
        let slowdown = Slowdown::new().map_err(|error| AccountsError::Hashing(error.to_string()))?;
        let admin = Secret::open(&options.admin_token).map_err(AccountsError::AdminToken)?;
        Ok(Self {
            passwords,
            slowdown,
            admin,
            metrics: metrics::metrics(Arc::clone(&options.server.connections)),
        })
    }

    /// Whether this is the administrator's token.
    pub(crate) fn is_admin(&self, token: &[u8]) -> bool {
        self.admin.is(token)
    }

    /// What somebody's try is counted by.
    pub(crate) fn attempt(&self, name: &[u8], from: std::net::IpAddr) -> Attempt {
        self.slowdown.attempt(name, from)
    }

    /// Refuses whoever is to wait.
    pub(crate) fn admit(&self, attempt: &Attempt) -> Result<(), Refused> {
        match self.slowdown.wait(attempt) {
            None => Ok(()),
            Some(wait) => Err(Refused::Slowed { retry_after_s: whole_s(wait) }),
        }
    }

    /// Refuses whoever has made too many accounts, and counts one more.
    pub(crate) fn admit_registration(&self, from: std::net::IpAddr) -> Result<(), Refused> {
        let wait = self.slowdown.register(from);
        wait.map_or(Ok(()), |wait| Err(Refused::Crowded { retry_after_s: whole_s(wait) }))
    }

    /// Counts a failure that needed no hash to be seen.
    pub(crate) fn failed_cheaply(&self, attempt: &Attempt) {
        self.slowdown.failed_cheaply(attempt);
    }

    pub(crate) fn hash(&self, password: &Password) -> Result<String, Refused> {
        let started = Instant::now();
        let hash = self.passwords.hash(password).map_err(|error| fail("hashing", &error))?;
        self.metrics.took(HASH.name, started.elapsed());
        Ok(hash)
    }

    /// Checks a password, with the same work and the same answer whether there is an account or not, open or shut. Looks
    /// once more whether whoever tries is to wait: many tries may have been queued at once.
    pub(crate) fn check(
        &self,
        attempt: &Attempt,
        password: &Password,
        found: Option<(Account, String)>,
    ) -> Result<Checked, Refused> {
        self.admit(attempt)?;
        let (account, stored) = found.unzip();
        let started = Instant::now();
        let verified = self.passwords.verify(password, stored.as_deref());
        let is_right = verified.map_err(|error| fail("hashing", &error))?;
        self.metrics.took(HASH.name, started.elapsed());
        match account {
            Some(account) if is_right && account.is_open(crate::time::now_s()) => Ok(Checked::Right(account)),
            account => Ok(Checked::Wrong { account, noted: self.slowdown.failed(attempt) }),
        }
    }
}

fn whole_s(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}
