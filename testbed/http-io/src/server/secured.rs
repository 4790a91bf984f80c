//! A server whose connections are encrypted.

use std::{io::Result, sync::Arc};

use engine::{
    Counters, Handshake,
    service::{Connection, Factory, Service},
};
use tls::{Failure, Identity, Unsecured};

use super::{HttpOptions, head, io};
use crate::Problem;

/// What a client that does not encrypt is told, with status 400.
pub const HTTPS_ONLY: &str = "this port speaks HTTPS only";

/// Makes the services of `inner`, for connections that are encrypted. They know nothing of it.
pub struct Secured<F> {
    inner: F,
    gate: Arc<Gate>,
}

/// One service behind the handshake.
pub struct SecuredService<S> {
    inner: S,
    gate: Arc<Gate>,
}

/// What all connections have to pass.
struct Gate {
    identity: Identity,
    options: HttpOptions,
    counters: Arc<Counters>,
}

impl<F> Secured<F> {
    /// The services of `inner` behind a handshake that shows `identity`, and may take as long as a request's head does by
    /// `options`. What comes of handshakes goes to `counters`.
    pub fn new(inner: F, identity: Identity, options: HttpOptions, counters: Arc<Counters>) -> Self {
        Self { inner, gate: Arc::new(Gate { identity, options, counters }) }
    }
}

impl<F: Factory> Factory for Secured<F> {
    type Service<C: Connection> = SecuredService<F::Service<tls::Connection<C>>>;

    fn make<C: Connection>(&self) -> Result<Self::Service<C>> {
        Ok(SecuredService { inner: self.inner.make()?, gate: Arc::clone(&self.gate) })
    }
}

impl<C: Connection, S: Service<tls::Connection<C>>> Service<C> for SecuredService<S> {
    async fn serve(&self, connection: C) {
        if let Some(secured) = self.gate.admit(connection).await {
            self.inner.serve(secured).await;
        }
    }
}

impl Gate {
    async fn admit<C: Connection>(&self, connection: C) -> Option<tls::Connection<C>> {
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
            // Somebody only looked whether the port is open, or went away.
            Failure::Silent => return,
            Failure::NotTls if head::may_be_one(connection.input()) => {
                if self.counters.handshakes(Handshake::Unasked) == 0 {
                    tracing::warn!(%peer, "a client spoke HTTP where HTTPS is spoken; from now on only /metrics tells");
                }
                self.counters.count_handshake(Handshake::Unasked);
                self.tell(&mut connection).await;
            }
            _ => self.counters.count_handshake(Handshake::Failed),
        }
        tracing::info!(target: "access", %peer, error = %failure, "no TLS handshake");
    }

    /// Tells a client that does not encrypt, in its own language.
    async fn tell<C: Connection>(&self, connection: &mut C) {
        let problem = Problem::new(400, HTTPS_ONLY).hint("use https:// instead of http://");
        head::refuse(connection.output(), &problem);
        if io::finish(connection, &self.options).await.is_ok() {
            io::linger(connection, &self.options).await;
        }
    }
}
