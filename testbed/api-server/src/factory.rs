//! An API as a service of an engine, and the options that every API server has.

use std::{
    error::Error as StdError,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use engine::service::{Connection, Factory};
use http_io::server::{Error, Exchange, Handler, Hosts, Http, HttpOptions, Proxies};
use store::{Database, OpenError, Schema, Store};

use crate::{
    api::{Api, Call, respond},
    metrics::Metrics,
    route::METRICS,
};

/// Makes the services of a server. The services of one process share an API, which the first of them opens: a forked
/// process has its own, with its own threads and connections to the database.
pub struct ApiFactory<A, E> {
    open: Box<dyn Fn() -> Result<A, E> + Send + Sync>,
    http: HttpOptions,
    shared: Mutex<Option<Arc<A>>>,
}

impl<A: Api, E> ApiFactory<A, E> {
    /// A factory that calls `open` once in each process. Nothing is opened yet.
    pub fn new(options: &ServerOptions, open: impl Fn() -> Result<A, E> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), http: options.http(), shared: Mutex::default() }
    }

    /// The API that all services of this process share; opened by the first call.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn api(&self) -> Result<Arc<A>, E> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(api) = &*shared {
            return Ok(Arc::clone(api));
        }
        let api = Arc::new((self.open)()?);
        Ok(Arc::clone(shared.insert(api)))
    }
}

impl<A: Api, E: StdError + Send + Sync + 'static> Factory for ApiFactory<A, E> {
    type Service<C: Connection> = Http<ApiHandler<A>>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let api = self.api().map_err(io::Error::other)?;
        Ok(Http::new(ApiHandler { api }, self.http.clone()))
    }
}

/// Answers the requests of one worker.
pub struct ApiHandler<A> {
    api: Arc<A>,
}

impl<C: Connection, A: Api> Handler<C> for ApiHandler<A> {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        if exchange.path() == METRICS.path {
            exchange.check_metrics()?;
        }
        let sender = self.api.admit(exchange)?;
        exchange.read_body(A::BODY_LEN_MAX).await?;
        let (route, response) = respond(&*self.api, Call::of(exchange, sender)).await;
        log::<A, C>(exchange, route, response.status);
        response.send(exchange)
    }

    fn failed(&self, peer: SocketAddr, error: &Error) {
        tracing::debug!(target: "access", %peer, %error, "request failed");
    }
}

/// Writes a line of the access log.
fn log<A: Api, C: Connection>(exchange: &Exchange<'_, C>, route: &'static str, status: u16) {
    let (peer, client, method) = (exchange.peer(), exchange.client(), exchange.method_text());
    if A::PATHS_ARE_SECRET {
        tracing::info!(target: "access", %peer, client, method, route, status);
    } else {
        tracing::info!(target: "access", %peer, client, method, path = exchange.path(), status);
    }
}

/// The options that every API server has.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The database. Its tables are created if they do not exist.
    pub database: Database,
    /// How many statements may wait for the database before a request is refused with 503. Default 1024.
    pub queue: usize,
    /// The proxies whose `Forwarded` and `X-Forwarded-For` are trusted. Default: none.
    pub proxies: Proxies,
    /// The names to which the server answers. Default: any.
    pub hosts: Hosts,
    /// Whether clients connect over TLS. Default no.
    pub encrypted: bool,
    /// Whether clients on other machines may see the metrics. Default no.
    pub open_metrics: bool,
    /// The engine's counters of the server's connections, shown by `GET /metrics`. Pass the ones in the engine's options.
    /// Default: counters that stay at zero.
    pub connections: Arc<engine::Counters>,
}

impl ServerOptions {
    /// The defaults, on this database.
    pub fn new(database: impl Into<Database>) -> Self {
        Self {
            database: database.into(),
            queue: 1024,
            proxies: Proxies::default(),
            hosts: Hosts::default(),
            encrypted: false,
            open_metrics: false,
            connections: Arc::default(),
        }
    }

    /// Opens the database and starts its threads. Commits are counted in `metrics`.
    ///
    /// # Errors
    /// When the database cannot be opened, does not hold this schema, or no thread can be started.
    pub fn open_store(&self, schema: &Schema, metrics: &Metrics) -> Result<Store, OpenError> {
        let mut options = store::Options::default();
        options.commits = metrics.commits();
        options.queue = self.queue;
        Store::open(&self.database, schema, &options)
    }

    pub(crate) fn http(&self) -> HttpOptions {
        let (hosts, encrypted, open_metrics) = (self.hosts.clone(), self.encrypted, self.open_metrics);
        HttpOptions { hosts, encrypted, open_metrics, ..HttpOptions::behind(&self.proxies) }
    }
}
