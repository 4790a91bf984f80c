//! Why an exchange failed, sorted by whose fault it is.

use std::io;

use wire::{ParseError, write::WriteError};

use crate::Problem;

/// Why an exchange failed. The server loop responds with it if it still can.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection is gone, and the client with it.
    #[error("the connection failed: {0}")]
    Connection(io::Error),
    /// The client sent something that is not HTTP, or exceeds a limit.
    #[error("the request cannot be read: {0}")]
    Request(#[from] ParseError),
    /// The client was too slow (408).
    #[error("the client took too long to send its request")]
    Timeout,
    /// The handler will not or cannot fulfil the request.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The handler gave a header field that would break the response (500).
    #[error("the response cannot be written: {0}")]
    Response(#[from] WriteError),
    /// The handler responded twice (500).
    #[error("the handler responded to the same request twice")]
    RespondedTwice,
    /// The handler did not respond (500).
    #[error("the handler did not respond to the request")]
    NoResponse,
}

impl Error {
    /// The error of a failed wait for the client: it is slow, or gone.
    pub(crate) fn reading(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::TimedOut { Self::Timeout } else { Self::Connection(error) }
    }

    /// The problem to respond with; `None` if the client is gone.
    pub fn problem(&self) -> Option<Problem> {
        match self {
            Self::Connection(_) => None,
            Self::Request(error) => Some(Problem::new(error.status(), error.to_string())),
            Self::Timeout => Some(Problem::new(408, "the request took too long to arrive")),
            Self::Problem(problem) => Some(problem.clone()),
            Self::Response(_) | Self::RespondedTwice | Self::NoResponse => {
                Some(Problem::new(500, "the server has a bug; its log has the details"))
            }
        }
    }

    /// Whether the position in the input is lost, so that no further request can be read.
    pub(crate) fn loses_place(&self) -> bool {
        matches!(self, Self::Connection(_) | Self::Request(_) | Self::Timeout)
    }
}
