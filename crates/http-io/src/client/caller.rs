//! Asking a server from outside of any: work in the background, and command lines. Calls block.

use std::{net::SocketAddr, time::Duration};

use engine::{Dialled, block_on, service::Connection};

use super::{ClientError, ClientOptions, Failure, Request, Response, exchange};

/// One server, and the connection to it that is kept. For one thread; dropped, it closes the connection.
#[derive(Debug)]
pub struct Caller {
    to: SocketAddr,
    host: String,
    options: ClientOptions,
    kept: Option<Dialled>,
}

impl Caller {
    /// Asks the server at `to`. Nothing is opened yet.
    pub fn new(to: SocketAddr, options: ClientOptions) -> Self {
        Self { to, host: to.to_string(), options, kept: None }
    }

    /// Whom it asks.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// From now on an answer may take so long, and its body be so long: for one server that is asked for little and for much.
    pub fn expect(&mut self, timeout: Duration, body_bytes_max: u64) {
        self.options.timeout = timeout;
        self.options.limits.body_bytes = body_bytes_max;
    }

    /// Sends `request` and waits for the whole answer, as [`Client::send`](super::Client::send) does.
    ///
    /// # Errors
    /// See [`ClientError`]. An answer of any status is an answer, not an error.
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
        let fresh = Dialled::dial(self.to, self.options.connect_timeout)
            .map_err(|source| ClientError::Connect { to: self.to, source })?;
        self.attempt(fresh, request).map_err(Failure::into_error)
    }

    fn attempt(&mut self, mut connection: Dialled, request: &Request<'_>) -> Result<Response, Failure> {
        connection.set_deadline(Some(self.options.timeout));
        let exchange = exchange::run(&mut connection, request, &self.host, &self.options.limits);
        let (response, reusable) = block_on(exchange)?;
        self.kept = reusable.then_some(connection);
        Ok(response)
    }
}
