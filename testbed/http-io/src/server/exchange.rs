//! One request and its response, as a handler sees them.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use engine::service::Connection;
use tracing::field::DisplayValue;
use wire::{
    Framing, Limits, Method, ParseError,
    body::{Decoder, Event},
    request, write,
};

use wire::request::View as RequestHead;

use super::{connection, error::Error, options::HttpOptions, proxies::Requester};
use crate::{Credentials, Problem};

/// The largest body buffer that a connection keeps between requests, bytes. A buffer that one large upload needed must
/// not be held by every idle connection.
const BODY_KEPT_MAX: usize = 64 * 1024;

/// Buffers that a connection keeps from one exchange to the next, so that a busy one allocates nothing.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The request head, once its place in the input is needed for the body.
    pub(crate) head: Vec<u8>,
    /// A request body read as a whole.
    pub(crate) body: Vec<u8>,
    /// The response head while header fields are added. It reaches the output only when complete.
    pub(crate) head_out: Vec<u8>,
}

impl Scratch {
    /// Prepares the buffers for the next exchange.
    pub(crate) fn tidy(&mut self) {
        self.body.clear();
        self.body.shrink_to(BODY_KEPT_MAX);
    }
}

/// How much of the response has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing.
    NotBegun,
    /// The head with this status, and a part of the body.
    Begun(u16),
    /// Everything.
    Done(u16),
}

/// One request and its response. Header fields and path are borrowed from the connection's input; nothing is copied.
///
/// Read the request first, then call [`respond`](Self::respond), or return a [`Problem`] as the error.
pub struct Exchange<'c, C> {
    pub(crate) connection: &'c mut C,
    pub(crate) options: &'c HttpOptions,
    pub(crate) head: &'c request::Head,
    pub(crate) scratch: &'c mut Scratch,
    pub(crate) body_state: BodyState,
    pub(crate) progress: Progress,
    pub(crate) body_bytes_sent: u64,
    pub(crate) must_close: bool,
    /// The peer, until a trusted proxy's word for another was read.
    requester: Requester,
}

impl<'c, C: Connection> Exchange<'c, C> {
    pub(crate) fn new(
        connection: &'c mut C,
        options: &'c HttpOptions,
        head: &'c request::Head,
        scratch: &'c mut Scratch,
    ) -> Self {
        let requester = Requester::direct(connection.peer().ip());
        Self {
            requester,
            connection,
            options,
            head,
            scratch,
            body_state: BodyState::Untouched,
            progress: Progress::NotBegun,
            body_bytes_sent: 0,
            must_close: false,
        }
    }

    /// The head of the request: its method, target and header fields.
    pub fn request_head(&self) -> RequestHead<'_> {
        let bytes = match self.body_state {
            BodyState::Untouched => self.connection.input(),
            BodyState::Begun { .. } => &self.scratch.head,
        };
        self.head.view(bytes)
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// The method as sent. [`Method`] does not name all.
    pub fn method_text(&self) -> &str {
        self.request_head().method()
    }

    /// The path, still percent-encoded; see [`decode_path`](crate::decode_path).
    pub fn path(&self) -> &str {
        self.request_head().path()
    }

    /// What follows `?`, still percent-encoded; see [`Query`](crate::Query).
    pub fn query(&self) -> Option<&str> {
        self.request_head().query()
    }

    /// The request target as sent.
    pub fn target(&self) -> &str {
        self.request_head().target()
    }

    /// The first value of the header field `name`. Case does not matter.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.request_head().header(name)
    }

    /// All values of the header field `name`, in order.
    pub fn header_all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.request_head().header_all(name)
    }

    /// The names and values of all header fields, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.request_head().headers()
    }

    /// The credentials in the `Authorization` header, if there is exactly one and it is well-formed Basic or Bearer.
    pub fn credentials(&self) -> Option<Credentials<'_>> {
        let mut all = self.header_all("authorization");
        match (all.next(), all.next()) {
            (Some(value), None) => Credentials::parse(value),
            _ => None,
        }
    }

    /// The peer's address: the client's, or a proxy's.
    pub fn peer(&self) -> SocketAddr {
        self.connection.peer()
    }

    /// The client: the peer, or whom a trusted proxy names. A proxy names it in `Forwarded`, or in `X-Forwarded-For` and
    /// `X-Forwarded-Proto`.
    ///
    /// A proxy sets one of the two and may pass the other on as a client sent it. Requests in which they differ never reach
    /// a handler.
    pub fn requester(&self) -> Requester {
        self.requester
    }

    /// Whether the client uses TLS, to this server or to a trusted proxy.
    pub fn came_encrypted(&self) -> bool {
        self.options.encrypted || self.requester.came_encrypted
    }

    /// Whether the peer is a trusted proxy.
    pub fn peer_is_proxy(&self) -> bool {
        self.options.proxies.trust(self.peer().ip())
    }

    /// Whether the request came directly from a program on this machine. What the address of a trusted proxy sends did not: not
    /// every proxy says that it passes a request on.
    pub fn is_local(&self) -> bool {
        self.requester.address.is_loopback() && !self.was_forwarded() && !self.peer_is_proxy()
    }

    /// Whether somebody passed the request on, trusted or not, as far as it tells.
    fn was_forwarded(&self) -> bool {
        let fields = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "via"];
        fields.into_iter().any(|name| self.header(name).is_some())
    }

    /// Refuses to show metrics to a client that is not on this machine, unless they are for everybody. A request that
    /// somebody passed on counts as one from elsewhere, and so does any from a trusted proxy.
    ///
    /// # Errors
    /// 403.
    pub fn check_metrics(&self) -> Result<(), Problem> {
        if self.is_local() || self.options.open_metrics {
            return Ok(());
        }
        Err(Problem::new(403, "the metrics are for programs on this machine")
            .hint("with --open-metrics the server shows them to all"))
    }

    /// Refuses a request whose client is not known, or that another site made a browser send to an open server.
    ///
    /// # Errors
    /// 400, 403 and 421.
    pub(crate) fn check_sender(&mut self) -> Result<(), Problem> {
        self.find_requester()?;
        if self.options.hosts.are_any() {
            return Ok(());
        }
        self.options.hosts.check(self.request_head())?;
        self.check_origin()
    }

    /// Finds out whom a trusted proxy names as the client, and refuses a request in which that is not clear.
    fn find_requester(&mut self) -> Result<(), Problem> {
        if self.options.proxies.are_none() {
            return Ok(());
        }
        let found = self.options.proxies.requester(self.peer().ip(), self.request_head());
        let hint = "let the proxy set one of the two and remove the other";
        self.requester = found.map_err(|unclear| Problem::new(400, unclear.to_string()).hint(hint))?;
        Ok(())
    }

    /// The client's address for a line of an access log, if it is not the peer's.
    pub fn client(&self) -> Option<DisplayValue<IpAddr>> {
        let address = self.requester().address;
        (address != self.peer().ip().to_canonical()).then(|| tracing::field::display(address))
    }

    /// Refuses a request that may change something if another site made a browser send it; see
    /// [`check_site`](Self::check_site).
    ///
    /// # Errors
    /// 403.
    pub fn check_origin(&self) -> Result<(), Problem> {
        if matches!(self.method(), Method::Get | Method::Head) { Ok(()) } else { self.check_site() }
    }

    /// Refuses any request that another site made a browser send, according to `Sec-Fetch-Site` (Fetch Metadata), or to
    /// `Origin` if that is missing. Clients other than browsers send neither, and pass.
    ///
    /// # Errors
    /// 403.
    pub fn check_site(&self) -> Result<(), Problem> {
        check_site(self.request_head())
    }

    /// The connection, for calls to an upstream server ([`Connection::connect`], [`Connection::sleep`]).
    pub fn connection(&self) -> &C {
        self.connection
    }

    /// Waits. Responses to earlier requests are sent first, so that their client need not wait for this one.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn pause(&mut self, how_long: Duration) -> Result<(), Error> {
        connection::send_gathered(self.connection, self.options).await?;
        self.connection.sleep(how_long).await;
        Ok(())
    }

    /// The status of the response, once it has begun.
    pub fn status(&self) -> Option<u16> {
        match self.progress {
            Progress::NotBegun => None,
            Progress::Begun(status) | Progress::Done(status) => Some(status),
        }
    }

    /// How many bytes of the response's body have been written so far.
    pub fn body_bytes_sent(&self) -> u64 {
        self.body_bytes_sent
    }

    /// Closes the connection after this exchange, whatever the client asked for.
    pub fn close_after(&mut self) {
        self.must_close = true;
    }

    /// Whether the connection ends with this exchange.
    pub(crate) fn closes(&self) -> bool {
        self.must_close
            || !self.head.keep_alive
            || self.connection.draining()
            || !self.body_state.can_be_finished(self.head, self.options)
    }
}

/// Reading the body: only when the handler asks, never more than it allows, never for longer than the time-outs.
impl<C: Connection> Exchange<'_, C> {
    /// The length of the request's body: 0 without a body, `None` if it comes in chunks.
    pub fn body_length(&self) -> Option<u64> {
        match self.head.framing {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::UntilClose => None,
        }
    }

    /// The next piece of the request's body, as it arrived; `None` at its end. The server's limit applies to the whole.
    ///
    /// # Errors
    /// 413 past the limit, 408 when the client is too slow, 400 when it closes early or the chunking is broken.
    pub async fn next_piece(&mut self) -> Result<Option<&[u8]>, Error> {
        self.next_piece_within(self.options.limits.body_bytes).await
    }

    /// Like [`next_piece`](Self::next_piece), with a limit on the whole body that replaces the server's. The limit given
    /// for the first piece holds.
    ///
    /// # Errors
    /// As [`next_piece`](Self::next_piece).
    pub async fn next_piece_within(&mut self, limit: u64) -> Result<Option<&[u8]>, Error> {
        self.begin_body(limit).await?;
        let found = self.await_piece().await?;
        Ok((found > 0).then(|| &self.connection.input()[..found]))
    }

    /// Reads the whole body, of at most `limit` bytes. [`body`](Self::body) returns it again.
    ///
    /// # Errors
    /// As [`next_piece`](Self::next_piece).
    pub async fn read_body(&mut self, limit: u64) -> Result<&[u8], Error> {
        self.scratch.body.clear();
        self.begin_body(limit).await?;
        loop {
            let found = self.await_piece().await?;
            if found == 0 {
                return Ok(&self.scratch.body);
            }
            self.scratch.body.extend_from_slice(&self.connection.input()[..found]);
        }
    }

    /// The body that [`read_body`](Self::read_body) has read; empty before that.
    pub fn body(&self) -> &[u8] {
        &self.scratch.body
    }

    /// Moves the head aside, so that the body is at the front of the input.
    async fn begin_body(&mut self, limit: u64) -> Result<(), Error> {
        if matches!(self.body_state, BodyState::Begun { .. }) {
            return Ok(());
        }
        let limits = Limits { body_bytes: limit, ..self.options.limits.clone() };
        let decoder = Decoder::new(self.head.framing, &limits)?;
        if !decoder.is_done() {
            self.connection.set_deadline(Some(self.options.body_timeout));
            self.ask_for_body().await?;
        }
        let head = self.connection.input().get(..self.head.len).unwrap_or_default();
        self.scratch.head.clear();
        self.scratch.head.extend_from_slice(head);
        self.connection.consume(self.head.len);
        self.body_state = BodyState::Begun { decoder, lent: 0, since_deadline: 0 };
        Ok(())
    }

    /// Sends "100 Continue" if the client waits for it, and waits for the first byte of the body. The head stays in the
    /// input meanwhile: an engine that drains must not mistake the connection for one between requests.
    async fn ask_for_body(&mut self) -> Result<(), Error> {
        if !self.head.expects_continue || self.connection.input().len() > self.head.len {
            return Ok(());
        }
        self.connection.output().extend_from_slice(write::CONTINUE);
        connection::flush(self.connection, self.options).await?;
        self.connection.set_deadline(Some(self.options.body_timeout));
        self.await_input().await
    }

    /// Waits until body bytes are at the front of the input. Returns how many, 0 at the end of the body.
    async fn await_piece(&mut self) -> Result<usize, Error> {
        loop {
            let BodyState::Begun { decoder, lent, .. } = &mut self.body_state else { return Ok(0) };
            self.connection.consume(std::mem::take(lent));
            match decoder.next(self.connection.input())? {
                Event::Framing(count) => self.connection.consume(count),
                Event::Data(count) => {
                    decoder.advance(count as u64);
                    *lent = count;
                    return Ok(count);
                }
                Event::End => return Ok(0),
                Event::NeedMore => self.await_input().await?,
            }
        }
    }

    async fn await_input(&mut self) -> Result<(), Error> {
        if !self.connection.output().is_empty() {
            connection::flush(self.connection, self.options).await?;
            self.connection.set_deadline(Some(self.options.body_timeout));
        }
        let received = self.connection.fill().await.map_err(Error::reading)? as u64;
        if received == 0 {
            return Err(ParseError::ClosedEarly.into());
        }
        let BodyState::Begun { since_deadline, .. } = &mut self.body_state else { return Ok(()) };
        *since_deadline += received;
        if *since_deadline >= self.options.progress_bytes {
            *since_deadline = 0;
            self.connection.set_deadline(Some(self.options.body_timeout));
        }
        Ok(())
    }

    /// Reads the rest of the body, so that the input is at the start of the next request. Returns `false` if there is too
    /// much of it, or it cannot be read.
    pub(crate) async fn finish_body(&mut self) -> bool {
        if matches!(self.body_state, BodyState::Untouched) && self.head.framing == Framing::None {
            self.connection.consume(self.head.len);
            return true;
        }
        if !self.body_state.can_be_finished(self.head, self.options) {
            return false;
        }
        let mut allowance = self.options.drain_bytes;
        if self.begin_body(u64::MAX).await.is_err() {
            return false;
        }
        loop {
            match self.await_piece().await {
                Ok(0) => return true,
                Ok(count) if count as u64 <= allowance => allowance -= count as u64,
                _ => return false,
            }
        }
    }
}

/// How far a request's body has been read.
pub(crate) enum BodyState {
    /// The head is still at the front of the input.
    Untouched,
    /// The head has been moved aside and the body follows.
    Begun {
        decoder: Decoder,
        /// Bytes that the handler borrows as the last piece, to be consumed before the next.
        lent: usize,
        /// Bytes received since the deadline was last set.
        since_deadline: u64,
    },
}

impl BodyState {
    /// Whether the whole body has been read.
    pub(crate) fn is_finished(&self, head: &request::Head) -> bool {
        match self {
            Self::Untouched => head.framing == Framing::None,
            Self::Begun { decoder, .. } => decoder.is_done(),
        }
    }

    /// Whether the unread rest of the body is short enough to read and discard, so that the connection can be kept.
    pub(crate) fn can_be_finished(&self, head: &request::Head, options: &HttpOptions) -> bool {
        match (self, head.framing) {
            (Self::Begun { decoder, .. }, _) => decoder.is_done() || decoder.pending() <= options.drain_bytes,
            (Self::Untouched, Framing::None) => true,
            // A client that was answered without "100 Continue" may send the body or omit it: there is no telling.
            (Self::Untouched, _) if head.expects_continue => false,
            (Self::Untouched, Framing::Length(length)) => length <= options.drain_bytes,
            (Self::Untouched, _) => true,
        }
    }
}

/// Refuses a request that another site made a browser send.
fn check_site(head: RequestHead<'_>) -> Result<(), Problem> {
    let own = match (head.header("sec-fetch-site"), head.header("origin")) {
        (Some(site), _) => matches!(site, b"same-origin" | b"none"),
        (None, Some(origin)) => {
            let host = origin.strip_prefix(b"https://").or_else(|| origin.strip_prefix(b"http://"));
            host.is_some() && host == head.header("host")
        }
        (None, None) => true,
    };
    if own { Ok(()) } else { Err(Problem::new(403, "another site may not send this request")) }
}
