//! Servers that speak HTTPS only.

use std::{io::Result, sync::Arc};

use engine::{
    Counters, Handshake,
    service::{Connection, Factory, Service},
};
use tls::{Failure, Identity, Unsecured};

use super::{connection, options::HttpOptions};
use crate::Problem;

/// The error sent, with status 400, to clients that do not encrypt.
pub const HTTPS_ONLY: &str = "this port speaks HTTPS only";

/// Puts the services of `inner` behind a TLS handshake, of which they know nothing.
pub struct Secured<F> {
    inner: F,
    handshakes: Arc<Handshakes>,
}

/// A service behind the handshake.
pub struct SecuredService<S> {
    inner: S,
    handshakes: Arc<Handshakes>,
}

/// Carries out the handshakes of all connections.
struct Handshakes {
    identity: Identity,
    options: HttpOptions,
    counters: Arc<Counters>,
}

impl<F> Secured<F> {
    /// Services of `inner` behind a handshake that presents `identity` and may take as long as `options` allow for a request
    /// head. Its outcomes are counted in `counters`.
    pub fn new(inner: F, identity: Identity, options: HttpOptions, counters: Arc<Counters>) -> Self {
        Self { inner, handshakes: Arc::new(Handshakes { identity, options, counters }) }
    }
}

impl<F: Factory> Factory for Secured<F> {
    type Service<C: Connection> = SecuredService<F::Service<tls::Connection<C>>>;

    fn make<C: Connection>(&self) -> Result<Self::Service<C>> {
        Ok(SecuredService { inner: self.inner.make()?, handshakes: Arc::clone(&self.handshakes) })
    }

    fn refresh(&self) {
        self.handshakes.identity.refresh();
        self.inner.refresh();
    }
}

impl<C: Connection, S: Service<tls::Connection<C>>> Service<C> for SecuredService<S> {
    async fn serve(&self, connection: C) {
        if let Some(secured) = self.handshakes.accept(connection).await {
            self.inner.serve(secured).await;
        }
    }
}

impl Handshakes {
    async fn accept<C: Connection>(&self, connection: C) -> Option<tls::Connection<C>> {
        match tls::accept(connection, &self.identity, self.options.head_timeout).await {
            Ok(secured) => {
                let outcome = if secured.was_resumed() { Handshake::Resumed } else { Handshake::Full };
                self.counters.count_handshake(outcome);
                Some(secured)
            }
            Err(Unsecured { connection, failure }) => {
                self.refuse(connection, &failure).await;
                None
            }
        }
    }

    async fn refuse<C: Connection>(&self, mut connection: C, failure: &Failure) {
        let peer = connection.peer();
        match failure {
            // The client only checked whether the port is open, or went away.
            Failure::Silent => return,
            Failure::NotTls if connection::looks_like_one(connection.input()) => {
                if self.counters.handshakes(Handshake::Unasked) == 0 {
                    tracing::warn!(%peer, "a client used http:// on a port that speaks HTTPS only; from now on only /metrics counts such clients");
                }
                self.counters.count_handshake(Handshake::Unasked);
                self.refuse_plain_http(&mut connection).await;
            }
            _ => self.counters.count_handshake(Handshake::Failed),
        }
        tracing::info!(target: "access", %peer, error = %failure, "no TLS handshake");
    }

    /// Responds in plain HTTP to a client that does not encrypt.
    async fn refuse_plain_http<C: Connection>(&self, connection: &mut C) {
        let problem = Problem::new(400, HTTPS_ONLY).hint("use https:// instead of http://");
        connection::refuse(connection.output(), &problem);
        if connection::finish(connection, &self.options).await.is_ok() {
            connection::linger(connection, &self.options).await;
        }
    }
}
