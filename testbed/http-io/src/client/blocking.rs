//! A client whose calls block, for background threads and command lines.

use std::{net::SocketAddr, time::Duration};

use engine::{BlockingConnection, block_on, service::Connection};

use super::{ClientError, ClientOptions, Failure, Request, Response, Upstream, exchange, secured};

/// A client of one server, whose calls block. It keeps one connection, and closes it when dropped.
pub struct BlockingClient {
    upstream: Upstream,
    host: String,
    options: ClientOptions,
    kept: Option<tls::Connection<BlockingConnection>>,
}

impl BlockingClient {
    /// A client of `upstream`. Nothing is opened yet.
    pub fn new(upstream: impl Into<Upstream>, options: ClientOptions) -> Self {
        let upstream = upstream.into();
        Self { host: upstream.host(), upstream, options, kept: None }
    }

    /// The server's address.
    pub fn to(&self) -> SocketAddr {
        self.upstream.at
    }

    /// Changes the time-out and the longest body of the responses to come, for servers that send small and large ones.
    pub fn expect(&mut self, timeout: Duration, body_bytes_max: u64) {
        self.options.timeout = timeout;
        self.options.limits.body_bytes = body_bytes_max;
    }

    /// Sends `request` and waits for the whole response, as [`Client::send`](super::Client::send) does.
    ///
    /// # Errors
    /// See [`ClientError`]. A response of any status is not an error.
    pub fn send(&mut self, request: &Request<'_>) -> Result<Response, ClientError> {
        if let Some(mut kept) = self.kept.take()
            && kept.input().is_empty()
            && !kept.is_stale()
        {
            match self.attempt(kept, request) {
                Err(Failure::Unanswered(_)) if request.is_repeatable() => {}
                outcome => return outcome.map_err(Failure::into_error),
            }
        }
        let fresh = self.dial()?;
        self.attempt(fresh, request).map_err(Failure::into_error)
    }

    fn dial(&self) -> Result<tls::Connection<BlockingConnection>, ClientError> {
        let (to, patience) = (self.upstream.at, self.options.connect_timeout);
        let dialled =
            BlockingConnection::dial(to, patience).map_err(|source| ClientError::Connect { to, source })?;
        block_on(secured(dialled, &self.upstream, patience))
    }

    fn attempt(
        &mut self,
        mut connection: tls::Connection<BlockingConnection>,
        request: &Request<'_>,
    ) -> Result<Response, Failure> {
        connection.set_deadline(Some(self.options.timeout));
        let exchange = exchange::run(&mut connection, request, &self.host, &self.options.limits);
        let (response, reusable) = block_on(exchange)?;
        self.kept = reusable.then_some(connection);
        Ok(response)
    }
}

impl std::fmt::Debug for BlockingClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockingClient").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}
