//! One user: a connection, the request under way, and a random stream.

use std::sync::Arc;

use super::outgoing::Outgoing;
use super::target::Target;
use crate::requests::response::Response;
use crate::transport::stream::Stream;
use crate::values::stream::UserStream;

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
