//! The index server as a service of an engine.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use engine::service::{Connection, Factory};
use http_io::server::{Error, Exchange, Handler, Http, HttpOptions};
use store::Store;

use super::{
    api::{Api, Call},
    metrics::Metrics,
    options::{IndexServerError, Options},
    requests::BODY_LEN_MAX,
    tables::SCHEMA,
};
use crate::group::{Access, Authentication, Group};

/// Prepares an index server. Creates the database and the secret where they are missing, so that errors show before the
/// server starts.
///
/// # Errors
/// When the database or the secret cannot be opened.
pub fn factory(options: Options) -> Result<IndexFactory, IndexServerError> {
    Store::prepare(&options.database, &SCHEMA)?;
    Group::open(options.secret.as_deref(), None)?;
    let metrics = Metrics::new(Arc::clone(&options.connections));
    Ok(IndexFactory { options, metrics, shared: Mutex::new(None) })
}

/// Makes the index server's services. All services of a process share the threads and database connections that the first
/// one starts; a process forked before that has its own.
#[derive(Debug)]
pub struct IndexFactory {
    options: Options,
    /// SharedFile by all processes.
    metrics: Metrics,
    shared: Mutex<Option<Arc<Api>>>,
}

impl IndexFactory {
    fn api(&self) -> Result<Arc<Api>, IndexServerError> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(api) = &*shared {
            return Ok(Arc::clone(api));
        }
        let api = Arc::new(Api::open(&self.options, self.metrics.clone())?);
        Ok(Arc::clone(shared.insert(api)))
    }
}

impl Factory for IndexFactory {
    type Service<C: Connection> = Http<IndexHandler>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let api = self.api().map_err(io::Error::other)?;
        Ok(Http::new(IndexHandler { api }, HttpOptions::default()))
    }
}

/// Answers the requests of one worker.
#[derive(Debug)]
pub struct IndexHandler {
    api: Arc<Api>,
}

impl<C: Connection> Handler<C> for IndexHandler {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let client = Authentication::of(exchange);
        if !matches!(exchange.path(), "/healthz" | "/metrics") {
            let admitted = self.api.group.admit(&client, Access::Member);
            admitted.inspect_err(|_| self.api.metrics.turned_away())?;
        }
        let member = self.api.group.member(&client);
        let method = exchange.method_text().to_owned();
        let (path, query) = (exchange.path().to_owned(), exchange.query().map(str::to_owned));
        let body = exchange.read_body(BODY_LEN_MAX).await?;
        let call = Call { method: &method, path: &path, query: query.as_deref(), body, member };
        let answer = self.api.answer(call).await;
        tracing::info!(target: "access", peer = %exchange.peer(), method, path, status = answer.status);
        answer.send(exchange)
    }

    fn failed(&self, peer: std::net::SocketAddr, error: &Error) {
        tracing::debug!(target: "access", %peer, %error, "request failed");
    }
}
