//! One user: a connection, a request under way, and a random stream of its own.

use std::sync::Arc;

use super::sending::Outgoing;
use super::target::Target;
use crate::response::Response;
use crate::scenario::value::UserStream;
use crate::transport::stream::Stream;

/// What a user is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not taking part.
    Absent,
    /// Taking part, with nothing to do until told: its share of the work is done, or (open loop) no
    /// request is due.
    Idle,
    /// Waiting for its turn to connect for the first time.
    Queued,
    /// Between two requests: thinking, or backing off after an error.
    Pausing,
    /// A request is under way: the connection is being made.
    Connecting,
    /// A request is under way: it is not wholly sent.
    Sending,
    /// A request is under way: its response is not wholly there.
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
    /// Its place in its thread.
    pub(crate) slot: usize,
    /// The server it sends to.
    pub(crate) target: Arc<Target>,
    pub(crate) phase: Phase,
    pub(crate) stream: Option<Stream>,
    /// Tells events of this connection from late ones of an earlier one.
    pub(crate) connection: u32,
    /// Which of the program's requests is under way.
    pub(crate) request: usize,
    /// When its response time began to count.
    pub(crate) started_ns: u64,
    /// When the request times out.
    pub(crate) deadline_ns: u64,
    /// Whether a time-out alarm is set.
    pub(crate) timeout_set: bool,
    /// When the pause ends.
    pub(crate) resume_ns: u64,
    /// How much of the request has left.
    pub(crate) outgoing: Outgoing,
    pub(crate) response: Response,
    /// Body bytes of the response that were recorded already.
    pub(crate) recorded_bytes: u64,
    /// Whether its first request is under way, on a connection that the server may not have taken yet.
    pub(crate) opening: bool,
    pub(crate) values: UserStream,
    /// Requests it may still make.
    pub(crate) allowance: u64,
    /// Connections lost in a row.
    pub(crate) failures: u32,
    /// Leaves when its request is over.
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
            recorded_bytes: 0,
            opening: false,
            values,
            allowance: 0,
            failures: 0,
            leaving: false,
        }
    }

    /// Keeps of a response of 2xx what is to be kept; whether that was there.
    #[inline]
    pub(crate) fn keep(&mut self, status: u16) -> bool {
        let Some(asked) = self.target.program.requests.get(self.request) else { return true };
        match &asked.keep {
            Some(keep) if (200..300).contains(&status) => {
                self.values.held.keep(keep.list, self.response.value(asked))
            }
            _ => true,
        }
    }

    /// What its events are registered under.
    pub(crate) fn token(&self) -> u64 {
        (self.slot as u64) << 32 | u64::from(self.connection)
    }

    /// Place and connection of a token.
    #[inline]
    pub(crate) fn of_token(token: u64) -> (usize, u32) {
        ((token >> 32) as usize, token as u32)
    }
}
