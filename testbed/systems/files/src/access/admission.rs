//! Admits requests with a valid credential.

use std::{rc::Rc, time::Instant};

use accounts::{Refused, User};
use engine::service::Connection;
use http_io::{Credentials, Problem, server::Exchange};

use crate::{
    access::{
        authority::Authority,
        credential_cache::{CredentialCache, WorkerCache},
        identity::{Caller, CredentialCheck},
        session,
    },
    metrics::{CheckOutcome, Counts},
};

/// What one worker needs to admit requests.
pub(crate) struct Admission<'w, C> {
    /// Shared by all workers.
    pub(crate) shared: &'w CredentialCache,
    pub(crate) own: &'w WorkerCache,
    pub(crate) authority: &'w Authority<C>,
    pub(crate) counts: &'w Counts,
}

/// Futures on rare paths are boxed, as in [`crate::service`].
impl<C: Connection> Admission<'_, C> {
    /// Admits a request and returns its caller, or says why not.
    pub(crate) async fn admit(&self, exchange: &Exchange<'_, C>, now: Instant) -> Result<Caller, Problem> {
        if matches!(self.authority, Authority::Open) {
            return Ok(Caller::Anyone);
        }
        let Some(credentials) = session::presented(exchange) else {
            return Err(accounts::problem(401, "log in with a name and password, or send a token"));
        };
        let Some(fingerprint) = self.shared.key.fingerprint(&credentials) else {
            return self.conclude(CredentialCheck::Invalid, &credentials);
        };
        let check = || self.authority.check(exchange, &credentials);
        if !self.shared.is_on() {
            return self.conclude(Box::pin(check()).await, &credentials);
        }
        if self.shared.revocations.is_due(now) {
            Box::pin(self.update_revocations(exchange)).await;
        }
        let mut user = self.own.get(&fingerprint, self.shared, now);
        if user.is_none() {
            user = Box::pin(self.own.load(&fingerprint, self.shared, now)).await;
        }
        if let Some(user) = user {
            self.counts.checked(CheckOutcome::Remembered);
            return Ok(Caller::User(user));
        }
        self.conclude(Box::pin(self.shared.get_or_check(fingerprint, check())).await, &credentials)
    }

    /// Asks the accounts what was revoked since the last time.
    async fn update_revocations(&self, exchange: &Exchange<'_, C>) {
        let revocations = &self.shared.revocations;
        let (asked, after) = (Instant::now(), revocations.revision());
        match self.authority.revocations(exchange, after).await {
            Some(update) => revocations.apply(&update, after, asked),
            None => revocations.failed(Instant::now()),
        }
    }

    fn conclude(&self, check: CredentialCheck, of: &Credentials<'_>) -> Result<Caller, Problem> {
        match check {
            CredentialCheck::Valid { user, .. } => {
                self.counts.checked(CheckOutcome::Right);
                Ok(Caller::User(Rc::new(User::clone(&user))))
            }
            CredentialCheck::Invalid => {
                self.counts.checked(CheckOutcome::Wrong);
                let wrong = match of {
                    Credentials::Basic(_) => Refused::Unknown,
                    Credentials::Bearer(_) => Refused::NoSession,
                };
                Err(accounts::problem(401, wrong.to_string()))
            }
            CredentialCheck::Throttled { retry_after_s } => {
                self.counts.checked(CheckOutcome::Slowed);
                Err(Problem::new(429, Refused::Slowed { retry_after_s }.to_string())
                    .header("Retry-After", retry_after_s.to_string()))
            }
            CredentialCheck::Unavailable => {
                self.counts.checked(CheckOutcome::Unavailable);
                Err(accounts::problem(503, "the accounts server cannot check credentials now"))
            }
        }
    }
}
