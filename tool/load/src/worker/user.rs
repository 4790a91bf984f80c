//! One user: a connection, the request under way and how far it has been sent, and a random stream.

use std::sync::Arc;

use super::target::Target;
use crate::requests::response::Response;
use crate::requests::{Program, Rendered};
use crate::transport::socket::MoreToSend;
use crate::transport::stream::Stream;
use crate::values::stream::UserStream;

/// Memory that a user keeps for the unsent part of its next request.
const KEPT_UNSENT: usize = 4 * 1024;

/// What a user is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not taking part.
    Absent,
    /// Taking part, but with nothing to do: its share of the requests is done, or (open loop) no request is due.
    Idle,
    /// Waiting for its turn to connect for the first time.
    Queued,
    /// Between two requests: thinking, or backing off after an error.
    Pausing,
    /// A request is under way: connecting.
    Connecting,
    /// A request is under way: sending.
    Sending,
    /// A request is under way: sent, and the response is not complete.
    Receiving,
}

impl Phase {
    /// Whether a request is under way.
    #[inline]
    pub(crate) fn is_busy(self) -> bool {
        matches!(self, Phase::Connecting | Phase::Sending | Phase::Receiving)
    }
}

/// One user.
pub(crate) struct User {
    /// Its index in its thread.
    pub(crate) slot: usize,
    /// The server that it sends to.
    pub(crate) target: Arc<Target>,
    pub(crate) phase: Phase,
    pub(crate) stream: Option<Stream>,
    /// Number of the connection: tells its events from late ones of an earlier connection.
    pub(crate) connection: u32,
    /// Index of the request that is under way.
    pub(crate) request: usize,
    /// The time from which its response time counts.
    pub(crate) started_ns: u64,
    /// When it began to connect; 0 once its connection has taken something to send.
    pub(crate) connecting_ns: u64,
    /// When the last part of the response so far had been read; 0 while there is none, or all of it.
    pub(crate) paused_ns: u64,
    /// When the request times out.
    pub(crate) deadline_ns: u64,
    /// Whether a time-out alarm is set.
    pub(crate) timeout_set: bool,
    /// When the pause ends.
    pub(crate) resume_ns: u64,
    pub(crate) outgoing: Outgoing,
    pub(crate) response: Response,
    /// Body bytes of the response that have been counted already.
    pub(crate) counted_bytes: u64,
    /// Whether its first request is under way, on a connection that the server may not have accepted yet.
    pub(crate) opening: bool,
    pub(crate) values: UserStream,
    /// Requests that it may still make.
    pub(crate) allowance: u64,
    /// Number of connections lost in a row.
    pub(crate) failures: u32,
    /// Whether it leaves when its request ends.
    pub(crate) leaving: bool,
}

impl User {
    pub(crate) fn new(slot: usize, target: Arc<Target>, values: UserStream) -> Self {
        User {
            slot,
            target,
            phase: Phase::Absent,
            stream: None,
            connection: 0,
            request: 0,
            started_ns: 0,
            connecting_ns: 0,
            paused_ns: 0,
            deadline_ns: 0,
            timeout_set: false,
            resume_ns: 0,
            outgoing: Outgoing::default(),
            response: Response::default(),
            counted_bytes: 0,
            opening: false,
            values,
            allowance: 0,
            failures: 0,
            leaving: false,
        }
    }

    /// Captures a value from a response with this status, if the scenario says so. Returns false if there is none to
    /// capture.
    #[inline]
    pub(crate) fn capture(&mut self, status: u16) -> bool {
        let Some(asked) = self.target.program.requests.get(self.request) else { return true };
        match &asked.capture {
            Some(capture) if (200..300).contains(&status) => {
                self.values.captured.add(capture.list, self.response.value(asked))
            }
            _ => true,
        }
    }

    /// Closes the connection, if there is one.
    pub(crate) fn close(&mut self) {
        self.outgoing.clear();
        if let Some(stream) = self.stream.take() {
            stream.close();
        }
    }

    /// The token under which its events are registered.
    pub(crate) fn token(&self) -> u64 {
        (self.slot as u64) << 32 | u64::from(self.connection)
    }

    /// Slot and connection number of a token.
    #[inline]
    pub(crate) fn of_token(token: u64) -> (usize, u32) {
        ((token >> 32) as usize, token as u32)
    }
}

/// How far a request has been sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// The rendered part of a request that differs every time and did not leave in one go; empty otherwise.
    unsent: Vec<u8>,
    /// Bytes sent so far.
    sent: u64,
    /// Length of the rendered part.
    rendered: u64,
    /// Length of the head.
    head: u64,
    /// Length of the whole request.
    whole: u64,
}

impl Outgoing {
    /// Starts a new request.
    #[inline]
    pub(super) fn begin(&mut self, rendered: &Rendered<'_>) {
        self.sent = 0;
        self.rendered = rendered.bytes.len() as u64;
        self.head = rendered.head;
        self.whole = rendered.whole;
    }

    /// Notes that this many bytes were sent. Returns how many of them belong to the body.
    #[inline]
    pub(super) fn advance(&mut self, count: usize) -> u64 {
        let before = self.sent.max(self.head);
        self.sent += count as u64;
        self.sent.max(self.head) - before
    }

    /// Keeps a copy of rendered bytes that the next rendering will overwrite.
    pub(super) fn keep_unsent(&mut self, rendered: &[u8]) {
        self.unsent.clear();
        self.unsent.extend_from_slice(rendered);
    }

    /// Whether everything has been sent.
    pub(super) fn is_whole(&self) -> bool {
        self.sent == self.whole
    }

    /// The next bytes of a request to send; empty once everything has been sent.
    pub(super) fn next<'a>(&'a self, program: &'a Program, request: usize) -> &'a [u8] {
        if self.sent < self.rendered {
            let rendered = program.fixed(request).unwrap_or(&self.unsent);
            return usize::try_from(self.sent).ok().and_then(|sent| rendered.get(sent..)).unwrap_or_default();
        }
        program.fill(self.sent - self.head, self.whole - self.sent)
    }

    /// Whether more follows after this many bytes.
    pub(super) fn more_after(&self, count: usize) -> MoreToSend {
        if self.sent + (count as u64) < self.whole { MoreToSend::Yes } else { MoreToSend::No }
    }

    /// Forgets the unsent bytes but keeps their memory.
    pub(super) fn forget_unsent(&mut self) {
        self.unsent.clear();
    }

    /// Forgets the request and limits the memory kept for the next one.
    pub(super) fn clear(&mut self) {
        self.unsent.clear();
        self.unsent.shrink_to(KEPT_UNSENT);
    }
}
