//! The booking server as a service of an engine.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use engine::service::{Connection, Factory};
use http_io::server::{Error, Exchange, Handler, Http, HttpOptions};

use crate::{
    http::{
        api::{Api, Call},
        requests::BODY_LEN_MAX,
    },
    metrics::Metrics,
    options::Options,
    setup::{self, BookingError},
    values::room::Room,
};

/// Makes the booking server. Prepares the database first, so that its problems show before the server starts.
///
/// # Errors
/// When the database or the key cannot be opened, or do not belong together.
pub fn factory(options: Options) -> Result<BookingFactory, BookingError> {
    let rooms = setup::prepare(&options)?;
    let metrics = Metrics::new(Arc::clone(&options.connections));
    Ok(BookingFactory { options, rooms, metrics, shared: Mutex::new(None) })
}

/// Makes the booking server's services. Those of one process share the database's threads and connections, which the
/// first of them opens, so that a process that is forked before then has its own.
#[derive(Debug)]
pub struct BookingFactory {
    options: Options,
    /// Rooms that need no look-up.
    rooms: Vec<Room>,
    metrics: Metrics,
    shared: Mutex<Option<Arc<Api>>>,
}

impl BookingFactory {
    fn api(&self) -> Result<Arc<Api>, BookingError> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(api) = &*shared {
            return Ok(Arc::clone(api));
        }
        let api = Arc::new(Api::open(&self.options, self.rooms.clone(), self.metrics.clone())?);
        Ok(Arc::clone(shared.insert(api)))
    }
}

impl Factory for BookingFactory {
    type Service<C: Connection> = Http<BookingHandler>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let api = self.api().map_err(io::Error::other)?;
        Ok(Http::new(BookingHandler { api }, HttpOptions::behind(&self.options.proxies)))
    }
}

/// Handles the requests of one worker.
#[derive(Debug)]
pub struct BookingHandler {
    api: Arc<Api>,
}

impl<C: Connection> Handler<C> for BookingHandler {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        exchange.check_origin()?;
        let method = exchange.method_text().to_owned();
        let (path, query) = (exchange.path().to_owned(), exchange.query().map(str::to_owned));
        let header = |name| exchange.header(name).map(<[u8]>::to_owned);
        let authorization = header("authorization");
        let (idempotency_key, if_match) = (header("idempotency-key"), header("if-match"));
        let from = exchange.requester().address;
        let call = Call {
            method: &method,
            path: &path,
            query: query.as_deref(),
            authorization: authorization.as_deref(),
            idempotency_key: idempotency_key.as_deref(),
            if_match: if_match.as_deref(),
            from,
            body: exchange.read_body(BODY_LEN_MAX).await?,
        };
        let (route, answer) = self.api.answer(call).await;
        let (peer, client) = (exchange.peer(), exchange.client());
        tracing::info!(target: "access", %peer, client, method, route, status = answer.status);
        answer.send(exchange)
    }

    fn failed(&self, peer: std::net::SocketAddr, error: &Error) {
        tracing::debug!(target: "access", %peer, %error, "request failed");
    }
}
