//! Lets those in whose credential is right: remembered, or else checked by one for all who present it.

use std::time::Instant;

use engine::service::Connection;
use http_io::{Credentials, Problem, server::Exchange};

use crate::{
    authority::Authority,
    fingerprint::{Fingerprint, Key},
    flights::{Boarding, Flights, Landed},
    metrics::{Check, Counts},
    verdict::Verdict,
    verified::{Front, Verified},
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

impl<C: Connection> Keeper<'_, C> {
    /// Lets the request of `exchange` pass, or says why not.
    pub(crate) async fn admit(&self, exchange: &Exchange<'_, C>, now: Instant) -> Result<(), Problem> {
        if matches!(self.authority, Authority::Open) {
            return Ok(());
        }
        let Some(credentials) = exchange.credentials() else {
            return Err(accounts::problem(401, "a name and password, or a token, are needed"));
        };
        let Some(fingerprint) = self.gate.key.fingerprint(&credentials) else {
            return self.conclude(Verdict::Wrong);
        };
        if !self.gate.verified.is_on() {
            return self.conclude(self.authority.check(exchange, &credentials).await);
        }
        if self.front.is_right(&fingerprint, &self.gate.verified, now) {
            self.counts.checked(Check::Remembered);
            return Ok(());
        }
        self.conclude(self.check_once(exchange, &credentials, fingerprint).await)
    }

    /// Checks a credential unless someone does already.
    async fn check_once(
        &self,
        exchange: &Exchange<'_, C>,
        credentials: &Credentials<'_>,
        of: Fingerprint,
    ) -> Verdict {
        loop {
            let began = Instant::now();
            let is_known = || self.gate.verified.until(&of, began).is_some();
            let flight = match self.gate.flights.board(of, is_known) {
                Boarding::Known => return Verdict::Right { expires_in: None },
                Boarding::Follow(flight) => flight,
                Boarding::Lead(lead) => {
                    let verdict = self.authority.check(exchange, credentials).await;
                    if let Verdict::Right { expires_in } = verdict {
                        self.gate.verified.remember(of, began, expires_in);
                    }
                    lead.land(verdict);
                    return verdict;
                }
            };
            if let Landed::Here(verdict) = flight.landed().await {
                return verdict;
            }
        }
    }

    fn conclude(&self, verdict: Verdict) -> Result<(), Problem> {
        match verdict {
            Verdict::Right { .. } => {
                self.counts.checked(Check::Right);
                Ok(())
            }
            Verdict::Wrong => {
                self.counts.checked(Check::Wrong);
                Err(accounts::problem(401, "the name or the password is wrong"))
            }
            Verdict::Unavailable => {
                self.counts.checked(Check::Unavailable);
                Err(accounts::problem(503, "the accounts server cannot say now who is right"))
            }
        }
    }
}
