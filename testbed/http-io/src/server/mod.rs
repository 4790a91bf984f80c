//! Responding to the requests of a connection, one after the other, until it closes.

mod connection;
mod error;
mod exchange;
mod forwarded;
mod hosts;
mod options;
mod prepared;
mod proxies;
mod response_writer;
mod secured;

use std::{future::Future, net::SocketAddr};

use engine::service::{Connection, Service};
use wire::request::Head;
pub use wire::request::View as RequestHead;

pub use connection::unavailable;
pub use error::Error;
pub use exchange::Exchange;
pub use hosts::Hosts;
pub use options::HttpOptions;
pub use prepared::Prepared;
pub use proxies::{Network, NetworkError, Proxies, Requester, UnclearRequester};
pub use response_writer::{Chunks, ResponseWriter};
pub use secured::{HTTPS_ONLY, Secured, SecuredService};

use exchange::{Progress, Scratch};

/// What a server does with a request.
pub trait Handler<C: Connection> {
    /// Responds to one request with [`Exchange::respond`] or one of its siblings, or returns an error: a
    /// [`Problem`](crate::Problem) is sent with its status, any other error as [`Error::problem`] says.
    fn handle(&self, exchange: &mut Exchange<'_, C>) -> impl Future<Output = Result<(), Error>>;

    /// Called for requests that failed, such as malformed, slow or interrupted ones. For logs and counters.
    fn failed(&self, _peer: SocketAddr, _error: &Error) {}
}

/// A handler as a service of an engine.
pub struct Http<H> {
    handler: H,
    options: HttpOptions,
}

impl<H> Http<H> {
    /// Serves HTTP with `handler`.
    pub fn new(handler: H, options: HttpOptions) -> Self {
        Self { handler, options }
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        &self.handler
    }
}

impl<C: Connection, H: Handler<C> + 'static> Service<C> for Http<H> {
    fn serve(&self, connection: C) -> impl Future<Output = ()> {
        serve(connection, &self.handler, &self.options)
    }
}

/// What to do with the connection after an exchange.
enum Next {
    /// Wait for another request.
    Again,
    /// Close it: the client expects that.
    Close,
    /// Close it abruptly: the response is incomplete, and the client must be able to tell.
    Break,
    /// Close it slowly: the client may still be sending, and must see the response.
    Linger,
}

/// Serves the requests of `connection` with `handler` until either side ends it.
pub async fn serve<C: Connection, H: Handler<C>>(mut connection: C, handler: &H, options: &HttpOptions) {
    let mut scratch = Scratch::default();
    let mut head = None;
    let next = loop {
        let arrived = connection::read_head(&mut connection, options, &mut head).await;
        let next = match (arrived, &head) {
            (Ok(()), Some(head)) => exchange(&mut connection, handler, options, head, &mut scratch).await,
            (Ok(()), None) => Next::Close,
            (Err(error), _) => refuse(&mut connection, handler, &error),
        };
        if !matches!(next, Next::Again) {
            break next;
        }
        scratch.tidy();
    };
    end(&mut connection, &next, options).await;
}

/// Sends the rest of the output, and ends the connection so that the client can tell whether it is complete.
async fn end<C: Connection>(connection: &mut C, next: &Next, options: &HttpOptions) {
    let sent = match next {
        Next::Break => connection::send_gathered(connection, options).await,
        Next::Again | Next::Close | Next::Linger => connection::finish(connection, options).await,
    };
    if sent.is_ok() && matches!(next, Next::Linger) {
        connection::linger(connection, options).await;
    }
}

/// Serves one request, from its head to its response.
async fn exchange<C: Connection, H: Handler<C>>(
    connection: &mut C,
    handler: &H,
    options: &HttpOptions,
    head: &Head,
    scratch: &mut Scratch,
) -> Next {
    let mut exchange = Exchange::new(connection, options, head, scratch);
    let handled = match exchange.check_sender() {
        Ok(()) => handler.handle(&mut exchange).await,
        Err(problem) => Err(problem.into()),
    };
    let outcome = match handled {
        Ok(()) if exchange.progress == Progress::NotBegun => Err(Error::NoResponse),
        other => other,
    };
    if let Err(error) = outcome {
        handler.failed(exchange.peer(), &error);
        exchange.must_close |= error.loses_place();
        if matches!(error, Error::Connection(_)) {
            // How much of it has arrived is not known, and the client has had its time to take it.
            exchange.connection.output().clear();
        }
        report(&mut exchange, &error);
    }
    conclude(&mut exchange).await
}

/// Responds with an error, if no response has begun.
fn report<C: Connection>(exchange: &mut Exchange<'_, C>, error: &Error) {
    let Some(problem) = error.problem() else { return };
    if exchange.progress == Progress::NotBegun && exchange.respond_with(&problem).is_err() {
        // One of the problem's own header fields was refused: respond without them.
        let _ = exchange.respond(500).empty();
    }
}

/// Makes the connection ready for the next request, or returns how to close it.
async fn conclude<C: Connection>(exchange: &mut Exchange<'_, C>) -> Next {
    match exchange.progress {
        // Interrupted, or the client is gone. Only an abrupt end tells the client that the response is incomplete.
        Progress::NotBegun | Progress::Begun(_) => return Next::Break,
        Progress::Done(_) => {}
    }
    if !exchange.must_close {
        return if exchange.finish_body().await { Next::Again } else { Next::Linger };
    }
    if exchange.body_state.is_finished(exchange.head) { Next::Close } else { Next::Linger }
}

/// Responds to input that is not a request.
fn refuse<C: Connection, H: Handler<C>>(connection: &mut C, handler: &H, error: &Error) -> Next {
    handler.failed(connection.peer(), error);
    let Some(problem) = error.problem() else { return Next::Break };
    connection::refuse(connection.output(), &problem);
    Next::Linger
}
