//! How far a request's body has been read.

use wire::{Framing, body::Decoder, request};

use super::HttpOptions;

/// How far a request's body has been read.
pub(crate) enum Intake {
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

impl Intake {
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
