//! What all processes of a server share.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use api_server::{Attempt, Metrics, Noted, Slowdown, network};
use engine::offload::Ticket;
use store::Secret;

use crate::{
    account::{Account, now_s},
    admission::Sender,
    credentials::Password,
    metrics::{self, HASH},
    options::{AccountsError, Options},
    passwords::{HashError, Passwords},
    refusal::{Refused, fail},
    regulars::Regulars,
};

/// New accounts from one address before it is slowed down.
const REGISTERED_FREE: u16 = 20;

/// Password hashing, the count of failed logins, the administrator's token and the metrics. All processes share it.
#[derive(Debug)]
pub(crate) struct Common {
    passwords: Passwords,
    slowdown: Slowdown,
    regulars: Regulars,
    admin: Secret,
    pub(crate) metrics: Metrics,
}

/// The result of checking a password.
#[derive(Debug)]
pub(crate) enum Checked {
    /// It is right, and the account is open.
    Right(Account),
    /// It is wrong, or there is no such account, or the account is closed.
    Wrong {
        /// The account with that name, if any.
        account: Option<Account>,
        noted: Noted,
    },
}

impl Common {
    /// Takes the time of one hash. Reads the administrator's token, and creates it at the first start.
    pub(crate) fn new(options: &Options) -> Result<Self, AccountsError> {
        let passwords = Passwords::new().map_err(|HashError(reason)| AccountsError::Hashing(reason))?;
        let slowdown = Slowdown::new().map_err(|error| AccountsError::Hashing(error.to_string()))?;
        let regulars = Regulars::new().map_err(|error| AccountsError::Hashing(error.to_string()))?;
        let admin = Secret::open(&options.admin_token).map_err(AccountsError::AdminToken)?;
        Ok(Self {
            passwords,
            slowdown,
            regulars,
            admin,
            metrics: metrics::metrics(Arc::clone(&options.server.connections)),
        })
    }

    /// Whether this is the administrator's token.
    pub(crate) fn is_admin(&self, token: &[u8]) -> bool {
        self.admin.is(token)
    }

    /// An attempt to log in, as failures are counted.
    pub(crate) fn attempt(&self, name: &[u8], from: IpAddr) -> Attempt {
        self.slowdown.attempt(name, from)
    }

    /// The place of a login in the queue: fair by network, with a part kept for those who logged in lately.
    pub(crate) fn ticket(&self, name: &str, from: IpAddr) -> Ticket {
        Ticket { group: group(from), is_known: self.regulars.knows(name, from) }
    }

    /// Notes that somebody logged in.
    pub(crate) fn logged_in(&self, name: &str, from: IpAddr) {
        self.regulars.note(name, from);
    }

    /// Refuses attempts that must wait.
    pub(crate) fn admit(&self, attempt: &Attempt) -> Result<(), Refused> {
        match self.slowdown.wait(attempt) {
            None => Ok(()),
            Some(wait) => Err(Refused::Slowed { retry_after_s: whole_s(wait) }),
        }
    }

    /// Counts a registration, or refuses it if there were too many from this address.
    ///
    /// Programs on this machine never wait, so that accounts can be created from a list or by a load.
    pub(crate) fn admit_registration(&self, from: Sender) -> Result<(), Refused> {
        let wait = if from.is_local { None } else { self.slowdown.act(from.address, REGISTERED_FREE) };
        wait.map_or(Ok(()), |wait| Err(Refused::Crowded { retry_after_s: whole_s(wait) }))
    }

    /// Counts a failure that was found without hashing.
    pub(crate) fn failed_cheaply(&self, attempt: &Attempt) {
        self.slowdown.failed_cheaply(attempt);
    }

    pub(crate) fn hash(&self, password: &Password) -> Result<String, Refused> {
        let started = Instant::now();
        let hash = self.passwords.hash(password).map_err(|error| fail("hashing", &error))?;
        self.metrics.took(HASH.name, started.elapsed());
        Ok(hash)
    }

    /// Checks a password, with the same work and the same result for a wrong password, a missing account and a closed one.
    /// Checks again whether the attempt must wait, as many may have been queued at once.
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
            Some(account) if is_right && account.is_open(now_s()) => Ok(Checked::Right(account)),
            account => Ok(Checked::Wrong { account, noted: self.slowdown.failed(attempt) }),
        }
    }
}

/// The group of an address in the queue: its network, as a number.
pub(crate) fn group(from: IpAddr) -> u64 {
    network(from).into_iter().fold(1, |number, byte| number << 8 | u64::from(byte))
}

fn whole_s(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}
