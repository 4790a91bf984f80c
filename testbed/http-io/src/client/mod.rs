//! Clients of upstream servers: one request at a time, over connections that are kept.
//!
//! A [`Client`] belongs to one service instance and its thread; it is not shared.

mod blocking;
mod exchange;
mod message;
mod upstream;

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::pin,
    task::Poll,
    time::Duration,
};

use engine::service::Connection;
use wire::{Limits, ParseError, write::WriteError};

pub use blocking::BlockingClient;
pub use message::{Request, Response};
pub use tls::{Failure as Insecurity, Peer, Trust, TrustError};
pub use upstream::{Scheme, ServerUrl, ServerUrlError, Upstream};

/// The time-outs and limits of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How long connecting may take, and then the TLS handshake. Default 1 s each.
    pub connect_timeout: Duration,
    /// How long a response may take, from sending the request to the last byte of the body. Default 10 s.
    pub timeout: Duration,
    /// How many idle connections are kept. Default 64; more are closed after use.
    pub idle_max: usize,
    /// Sizes within a response. `body_bytes` is the longest body accepted; default 1 MiB here.
    pub limits: Limits,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            idle_max: 64,
            limits: Limits { body_bytes: 1024 * 1024, ..Limits::default() },
        }
    }
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server cannot be reached. Nothing was sent.
    #[error("cannot connect to {to}: {source}; is it running?")]
    Connect {
        /// The server's address.
        to: SocketAddr,
        /// What went wrong.
        source: io::Error,
    },
    /// The TLS handshake failed, or the server is not the expected one. Nothing was sent.
    #[error("no secure connection to {to}: {source}")]
    Insecure {
        /// The server's address.
        to: SocketAddr,
        /// What went wrong.
        source: tls::Failure,
    },
    /// It took too long. Whether the request was carried out is unknown.
    #[error("no complete response arrived in time")]
    TimedOut,
    /// The connection was lost. Whether the request was carried out is unknown.
    #[error("the connection was lost before the response was complete: {0}")]
    Lost(io::Error),
    /// The response is malformed, or longer than allowed.
    #[error("the response cannot be read: {0}")]
    Response(#[from] ParseError),
    /// The request is invalid.
    #[error("the request cannot be written: {0}")]
    Request(#[from] WriteError),
}

/// A client of one upstream server, with its idle connections.
pub struct Client<C> {
    upstream: Upstream,
    host: String,
    options: ClientOptions,
    idle: RefCell<Vec<tls::Connection<C>>>,
}

impl<C: Connection> Client<C> {
    /// A client of `upstream`. Nothing is opened yet.
    pub fn new(upstream: impl Into<Upstream>, options: ClientOptions) -> Self {
        let upstream = upstream.into();
        Self { host: upstream.host(), upstream, options, idle: RefCell::new(Vec::new()) }
    }

    /// Sends `request` and waits for the whole response, driven by the same model as `via`.
    ///
    /// The server may close a kept connection just as it is used again. If no byte of a response had arrived, a repeatable
    /// request is sent once more, on a fresh connection.
    ///
    /// # Errors
    /// See [`ClientError`]. A response of any status is not an error.
    pub async fn send(&self, via: &C, request: &Request<'_>) -> Result<Response, ClientError> {
        if let Some(kept) = self.take_idle() {
            match self.attempt(kept, request).await {
                Err(Failure::Unanswered(_)) if request.is_repeatable() => {}
                outcome => return outcome.map_err(Failure::into_error),
            }
        }
        let fresh = self.connect(via).await?;
        self.attempt(fresh, request).await.map_err(Failure::into_error)
    }

    /// How many idle connections are kept.
    pub fn idle(&self) -> usize {
        self.idle.borrow().len()
    }

    async fn attempt(
        &self,
        mut connection: tls::Connection<C>,
        request: &Request<'_>,
    ) -> Result<Response, Failure> {
        connection.set_deadline(Some(self.options.timeout));
        let (response, reusable) =
            exchange::run(&mut connection, request, &self.host, &self.options.limits).await?;
        if reusable {
            self.keep(connection);
        }
        Ok(response)
    }

    async fn connect(&self, via: &C) -> Result<tls::Connection<C>, ClientError> {
        let connection = self.open(via).await?;
        secured(connection, &self.upstream, self.options.connect_timeout).await
    }

    async fn open(&self, via: &C) -> Result<C, ClientError> {
        let to = self.upstream.at;
        let connecting = via.connect(to);
        let expiry = via.sleep(self.options.connect_timeout);
        let outcome = match first(connecting, expiry).await {
            Some(outcome) => outcome,
            None => Err(io::ErrorKind::TimedOut.into()),
        };
        outcome.map_err(|source| ClientError::Connect { to, source })
    }

    fn keep(&self, connection: tls::Connection<C>) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < self.options.idle_max {
            idle.push(connection);
        }
    }

    /// The most recently used connection that is still alive.
    fn take_idle(&self) -> Option<tls::Connection<C>> {
        let mut idle = self.idle.borrow_mut();
        while let Some(mut kept) = idle.pop() {
            // Unsolicited bytes would be taken for the next response.
            if kept.input().is_empty() && !kept.is_stale() {
                return Some(kept);
            }
        }
        None
    }
}

/// Carries out the TLS handshake if `upstream` asks for one.
async fn secured<C: Connection>(
    mut connection: C,
    upstream: &Upstream,
    patience: Duration,
) -> Result<tls::Connection<C>, ClientError> {
    let Some(peer) = &upstream.peer else { return Ok(tls::Connection::plain(connection)) };
    connection.set_deadline(Some(patience));
    let secured = tls::connect(connection, peer).await;
    secured.map_err(|source| ClientError::Insecure { to: upstream.at, source })
}

/// Why an attempt failed, and whether a response had begun.
pub(crate) enum Failure {
    /// The connection died before the first byte of a response.
    Unanswered(io::Error),
    /// Anything else.
    Final(ClientError),
}

impl Failure {
    fn into_error(self) -> ClientError {
        match self {
            Self::Unanswered(error) => ClientError::Lost(error),
            Self::Final(error) => error,
        }
    }
}

/// The output of `work`, or `None` if `expiry` completes first. On a blocking model `work` completes when first polled, and
/// `expiry` never begins.
async fn first<T>(work: impl Future<Output = T>, expiry: impl Future<Output = ()>) -> Option<T> {
    let (mut work, mut expiry) = (pin!(work), pin!(expiry));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => expiry.as_mut().poll(context).map(|()| None),
    })
    .await
}
