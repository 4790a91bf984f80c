//! Answering requests on one connection, one after the other, until it is to be closed.

mod body;
mod chunks;
mod error;
mod exchange;
mod forwarded;
mod head;
mod io;
mod json;
mod options;
mod origin;
mod prepared;
mod proxies;
mod response_writer;
mod secured;

use std::{future::Future, net::SocketAddr};

use engine::service::{Connection, Service};
use wire::request::Head;
pub use wire::request::View as RequestHead;

pub use chunks::Chunks;
pub use error::Error;
pub use exchange::Exchange;
pub use head::unavailable;
pub use options::HttpOptions;
pub use prepared::Prepared;
pub use proxies::{Network, NetworkError, Proxies, Requester};
pub use response_writer::ResponseWriter;
pub use secured::{HTTPS_ONLY, Secured, SecuredService};

use exchange::{Progress, Scratch};

/// What a server does with a request.
pub trait Handler<C: Connection> {
    /// Answers one request, through [`Exchange::respond`] and its kin, or by returning the error to answer with:
    /// a [`Problem`](crate::Problem) becomes an answer of its status, everything else what [`Error`] says.
    fn handle(&self, exchange: &mut Exchange<'_, C>) -> impl Future<Output = Result<(), Error>>;

    /// Hears of requests that failed before or after a handler could answer: malformed, too slow, or cut off.
    /// For logs and counters.
    fn failed(&self, _peer: SocketAddr, _error: &Error) {}
}

/// A handler as an engine's service.
pub struct Http<H> {
    handler: H,
    options: HttpOptions,
}

impl<H> Http<H> {
    /// Serves HTTP by `handler`.
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

/// What becomes of the connection after an exchange.
enum Next {
    /// Another request may follow.
    Again,
    /// The client expects the end.
    Close,
    /// The answer cannot be completed: the client is not to take the end for a good one.
    Break,
    /// The client may still be sending: close so that it sees the answer.
    Linger,
}

/// Serves requests on `connection` by `handler` until either side has had enough.
pub async fn serve<C: Connection, H: Handler<C>>(mut connection: C, handler: &H, options: &HttpOptions) {
    let mut scratch = Scratch::default();
    let mut head = None;
    let next = loop {
        let arrived = head::read(&mut connection, options, &mut head).await;
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

/// Sends what is still to be sent, so that the client can tell whether that was all.
async fn end<C: Connection>(connection: &mut C, next: &Next, options: &HttpOptions) {
    let sent = match next {
        Next::Break => io::send_gathered(connection, options).await,
        Next::Again | Next::Close | Next::Linger => io::finish(connection, options).await,
    };
    if sent.is_ok() && matches!(next, Next::Linger) {
        io::linger(connection, options).await;
    }
}

/// One request, from its head to its answer.
async fn exchange<C: Connection, H: Handler<C>>(
    connection: &mut C,
    handler: &H,
    options: &HttpOptions,
    head: &Head,
    scratch: &mut Scratch,
) -> Next {
    let mut exchange = Exchange::new(connection, options, head, scratch);
    let outcome = match handler.handle(&mut exchange).await {
        Ok(()) if exchange.progress == Progress::NotBegun => Err(Error::NoResponse),
        other => other,
    };
    if let Err(error) = outcome {
        handler.failed(exchange.peer(), &error);
        exchange.must_close |= error.loses_place();
        tell(&mut exchange, &error);
    }
    conclude(&mut exchange).await
}

/// Tells the client of an error, if it has not been told anything else.
fn tell<C: Connection>(exchange: &mut Exchange<'_, C>, error: &Error) {
    let Some(problem) = error.problem() else { return };
    if exchange.progress == Progress::NotBegun && exchange.answer_problem(&problem).is_err() {
        // One of the problem's own headers was refused: answer without them.
        let _ = exchange.respond(500).empty();
    }
}

/// Leaves the connection ready for the next request, or says why it cannot be.
async fn conclude<C: Connection>(exchange: &mut Exchange<'_, C>) -> Next {
    match exchange.progress {
        // Cut short, or nobody is there: only closing tells the client that this is not all.
        Progress::NotBegun | Progress::Begun(_) => return Next::Break,
        Progress::Done(_) => {}
    }
    if !exchange.must_close {
        return if exchange.finish_body().await { Next::Again } else { Next::Linger };
    }
    if exchange.intake.is_finished(exchange.head) { Next::Close } else { Next::Linger }
}

/// Answers what could not be read as a request.
fn refuse<C: Connection, H: Handler<C>>(connection: &mut C, handler: &H, error: &Error) -> Next {
    handler.failed(connection.peer(), error);
    let Some(problem) = error.problem() else { return Next::Break };
    head::refuse(connection.output(), &problem);
    Next::Linger
}
