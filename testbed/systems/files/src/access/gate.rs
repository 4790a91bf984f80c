//! Lets those in whose credential is right: remembered, or else checked by one for all who present it.

use std::{rc::Rc, time::Instant};

use accounts::{Refused, User};
use engine::service::Connection;
use http_io::{Credentials, Problem, server::Exchange};

use crate::{
    access::{
        authority::Authority,
        caller::Caller,
        fingerprint::{Fingerprint, Key},
        flights::{Boarding, Flights, Landed},
        session,
        verdict::Verdict,
        verified::{Front, Verified},
    },
    metrics::{Check, Counts},
};

/// What the workers of a server share to let people in.
pub(crate) struct Gate {
    pub(crate) key: Key,
    pub(crate) verified: Verified,
    pub(crate) flights: Flights,
}

/// One worker at the gate.
pub(crate) struct Keeper<'w, C> {
    pub(crate) gate: &'w Gate,
    pub(crate) front: &'w Front,
    pub(crate) authority: &'w Authority<C>,
    pub(crate) counts: &'w Counts,
}

/// What is rare is boxed, as in [`crate::service`].
impl<C: Connection> Keeper<'_, C> {
    /// Lets the request of `exchange` pass and tells whose it is, or says why not.
    pub(crate) async fn admit(&self, exchange: &Exchange<'_, C>, now: Instant) -> Result<Caller, Problem> {
        if matches!(self.authority, Authority::Open) {
            return Ok(Caller::Anyone);
        }
        let Some(credentials) = session::presented(exchange) else {
            return Err(accounts::problem(401, "a name and password, or a token, are needed"));
        };
        let Some(fingerprint) = self.gate.key.fingerprint(&credentials) else {
            return self.conclude(Verdict::Wrong, &credentials);
        };
        if !self.gate.verified.is_on() {
            return self.conclude(Box::pin(self.authority.check(exchange, &credentials)).await, &credentials);
        }
        if self.gate.verified.revocations.is_due(now) {
            Box::pin(self.keep_up(exchange)).await;
        }
        if let Some(user) = self.front.user(&fingerprint, &self.gate.verified, now) {
            self.counts.checked(Check::Remembered);
            return Ok(Caller::User(user));
        }
        self.conclude(Box::pin(self.check_once(exchange, &credentials, fingerprint)).await, &credentials)
    }

    /// Hears what was revoked since it was last asked.
    async fn keep_up(&self, exchange: &Exchange<'_, C>) {
        let revocations = &self.gate.verified.revocations;
        let (asked, after) = (Instant::now(), revocations.revision());
        match self.authority.revocations(exchange, after).await {
            Some(told) => revocations.take_in(&told, after, asked),
            None => revocations.failed(Instant::now()),
        }
    }

    /// Checks a credential unless someone does already.
    async fn check_once(
        &self,
        exchange: &Exchange<'_, C>,
        credentials: &Credentials<'_>,
        of: Fingerprint,
    ) -> Verdict {
        loop {
            let now = Instant::now();
            let began = (now, self.gate.verified.revocations.known(now));
            let flight = match self.gate.flights.board(of, || self.gate.verified.get(&of, now)) {
                Boarding::Known(right) => return Verdict::Right { user: right.user, expires_in: None },
                Boarding::Follow(flight) => flight,
                Boarding::Lead(lead) => {
                    let verdict = self.authority.check(exchange, credentials).await;
                    if let Verdict::Right { user, expires_in } = &verdict {
                        self.gate.verified.remember(of, user, began, *expires_in);
                    }
                    lead.land(verdict.clone());
                    return verdict;
                }
            };
            if let Landed::Here(verdict) = flight.landed().await {
                return verdict;
            }
        }
    }

    fn conclude(&self, verdict: Verdict, of: &Credentials<'_>) -> Result<Caller, Problem> {
        match verdict {
            Verdict::Right { user, .. } => {
                self.counts.checked(Check::Right);
                Ok(Caller::User(Rc::new(User::clone(&user))))
            }
            Verdict::Wrong => {
                self.counts.checked(Check::Wrong);
                let wrong = match of {
                    Credentials::Basic(_) => Refused::Unknown,
                    Credentials::Bearer(_) => Refused::NoSession,
                };
                Err(accounts::problem(401, wrong.to_string()))
            }
            Verdict::Slowed { retry_after_s } => {
                self.counts.checked(Check::Slowed);
                Err(Problem::new(429, Refused::Slowed { retry_after_s }.to_string())
                    .header("Retry-After", retry_after_s.to_string()))
            }
            Verdict::Unavailable => {
                self.counts.checked(Check::Unavailable);
                Err(accounts::problem(503, "the accounts server cannot say now who is right"))
            }
        }
    }
}
