//! How far a request has been sent: first its rendered bytes, then the rest of a generated body.

use crate::requests::{Program, Rendered};
use crate::transport::socket::MoreToSend;

/// Memory that a user keeps for the unsent part of its next request.
const KEPT_UNSENT: usize = 4 * 1024;

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
