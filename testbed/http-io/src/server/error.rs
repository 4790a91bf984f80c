//! Why an exchange failed, sorted by whose fault it is.

use std::io;

use wire::{ParseError, write::WriteError};

use crate::Problem;

/// Why an exchange failed. Where the client can still be told, the server loop tells it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection is gone; nobody is there to be told.
    #[error("the connection failed: {0}")]
    Connection(io::Error),
    /// The client sent something that is not HTTP, or too much of it.
    #[error("the request cannot be read: {0}")]
    Request(#[from] ParseError),
    /// The client was too slow (408).
    #[error("the client took too long to send its request")]
    Timeout,
    /// The handler's answer to a request it will not or cannot fulfil.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The handler gave a header that would break the response (500).
    #[error("the response cannot be written: {0}")]
    Response(#[from] WriteError),
    /// The handler answered twice (500).
    #[error("the handler answered the same request twice")]
    RespondedTwice,
    /// The handler did not answer (500).
    #[error("the handler did not answer the request")]
    NoResponse,
}

impl Error {
    /// For a failed wait on the client: slow, or gone.
    pub(crate) fn reading(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::TimedOut { Self::Timeout } else { Self::Connection(error) }
    }

    /// What to tell the client; `None` when nobody is there.
    pub fn problem(&self) -> Option<Problem> {
        match self {
            Self::Connection(_) => None,
            Self::Request(error) => Some(Problem::new(error.status(), error.to_string())),
            Self::Timeout => Some(Problem::new(408, "the request took too long to arrive")),
            Self::Problem(problem) => Some(problem.clone()),
            Self::Response(_) | Self::RespondedTwice | Self::NoResponse => {
                Some(Problem::new(500, "the server made a mistake"))
            }
        }
    }

    /// Whether the place in the input is lost, so that nothing more can be read from the connection.
    pub(crate) fn loses_place(&self) -> bool {
        matches!(self, Self::Connection(_) | Self::Request(_) | Self::Timeout)
    }
}
