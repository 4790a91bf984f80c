//! One request and its answer, as a handler sees them.

use std::{net::SocketAddr, time::Duration};

use engine::service::Connection;
use wire::{Framing, Method, request};

use super::{Error, HttpOptions, RequestHead, body::Intake, io, response_writer::ResponseWriter};
use crate::Credentials;

/// Buffers of a connection that are kept from one exchange to the next, so that a busy one allocates nothing.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The head, once its place in the input is needed for the body.
    pub(crate) head: Vec<u8>,
    /// A body read as a whole.
    pub(crate) body: Vec<u8>,
    /// The head of an answer while its headers are being added: it reaches the output only when complete.
    pub(crate) head_out: Vec<u8>,
}

/// The largest body buffer a connection keeps between exchanges, in bytes. What was needed once for a large upload
/// must not be held by every idle connection.
const BODY_KEPT_MAX: usize = 64 * 1024;

impl Scratch {
    /// Makes the buffers ready for the next exchange.
    pub(crate) fn tidy(&mut self) {
        self.body.clear();
        self.body.shrink_to(BODY_KEPT_MAX);
    }
}

/// How far the answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Not begun.
    NotBegun,
    /// Its head is out, its body is not complete.
    Begun(u16),
    /// Complete.
    Done(u16),
}

/// One request and its answer. Headers and path are lent from the connection's input; nothing is copied.
///
/// Read first, then [`respond`](Self::respond), or return a [`Problem`](crate::Problem) as the error.
pub struct Exchange<'c, C> {
    pub(crate) connection: &'c mut C,
    pub(crate) options: &'c HttpOptions,
    pub(crate) head: &'c request::Head,
    pub(crate) scratch: &'c mut Scratch,
    pub(crate) intake: Intake,
    pub(crate) progress: Progress,
    pub(crate) body_bytes_sent: u64,
    pub(crate) must_close: bool,
}

impl<'c, C: Connection> Exchange<'c, C> {
    pub(crate) fn new(
        connection: &'c mut C,
        options: &'c HttpOptions,
        head: &'c request::Head,
        scratch: &'c mut Scratch,
    ) -> Self {
        Self {
            connection,
            options,
            head,
            scratch,
            intake: Intake::Untouched,
            progress: Progress::NotBegun,
            body_bytes_sent: 0,
            must_close: false,
        }
    }

    /// The head of the request: its method, target and header fields.
    pub fn request_head(&self) -> RequestHead<'_> {
        self.view()
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// The method as sent, for those [`Method`] does not name.
    pub fn method_text(&self) -> &str {
        self.view().method()
    }

    /// The path, still percent-encoded; see [`decode_path`](crate::decode_path).
    pub fn path(&self) -> &str {
        self.view().path()
    }

    /// What follows `?`, still percent-encoded.
    pub fn query(&self) -> Option<&str> {
        self.view().query()
    }

    /// The request target as sent.
    pub fn target(&self) -> &str {
        self.view().target()
    }

    /// The first value of the header `name`, in any case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.view().header(name)
    }

    /// Every value of the header `name`, in order.
    pub fn header_all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.view().header_all(name)
    }

    /// Every header, in order: name and value.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.view().headers()
    }

    /// What the `Authorization` header holds, if there is exactly one, and it is a well-formed Basic or Bearer.
    pub fn credentials(&self) -> Option<Credentials<'_>> {
        let mut all = self.header_all("authorization");
        match (all.next(), all.next()) {
            (Some(value), None) => Credentials::parse(value),
            _ => None,
        }
    }

    /// The body as [`read_body`](Self::read_body) took it in; empty before that. To be looked at beside the headers.
    pub fn body(&self) -> &[u8] {
        &self.scratch.body
    }

    /// The length of the request's body, if it was announced; 0 without a body, `None` when it comes in chunks.
    pub fn body_length(&self) -> Option<u64> {
        match self.head.framing {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::UntilClose => None,
        }
    }

    /// The client's address.
    pub fn peer(&self) -> SocketAddr {
        self.connection.peer()
    }

    /// The connection, to reach another tier by ([`Connection::connect`], [`Connection::sleep`]).
    pub fn connection(&self) -> &C {
        self.connection
    }

    /// Waits. Answers to earlier requests are sent first: their client need not wait for this one.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn pause(&mut self, how_long: Duration) -> Result<(), Error> {
        io::send_gathered(self.connection, self.options).await?;
        self.connection.sleep(how_long).await;
        Ok(())
    }

    /// Begins the answer.
    pub fn respond(&mut self, status: u16) -> ResponseWriter<'_, 'c, C> {
        ResponseWriter::new(self, status)
    }

    /// The status answered with, once there is one.
    pub fn status(&self) -> Option<u16> {
        match self.progress {
            Progress::NotBegun => None,
            Progress::Begun(status) | Progress::Done(status) => Some(status),
        }
    }

    /// Bytes of body answered with so far.
    pub fn body_bytes_sent(&self) -> u64 {
        self.body_bytes_sent
    }

    /// Closes the connection after this exchange, whatever the client wanted.
    pub fn close_after(&mut self) {
        self.must_close = true;
    }

    /// Whether the connection ends with this exchange.
    pub(crate) fn closes(&self) -> bool {
        self.must_close
            || !self.head.keep_alive
            || self.connection.draining()
            || !self.intake.can_be_finished(self.head, self.options)
    }

    fn view(&self) -> request::View<'_> {
        let bytes = match self.intake {
            Intake::Untouched => self.connection.input(),
            Intake::Begun { .. } => &self.scratch.head,
        };
        self.head.view(bytes)
    }
}
