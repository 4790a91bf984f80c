//! How a request leaves: rendered bytes first, then what a generated body is filled with.

use analysis::sample::ErrorKind;

use super::Core;
use super::user::{Phase, User};
use crate::render::{Program, Rendered};
use crate::transport::stream::Rest;

/// Sends of one user before others get their turn.
const SENDS_PER_TURN: usize = 4;

/// Memory a user keeps for the unsent part of its next request.
const KEPT_UNSENT: usize = 4 * 1024;

/// How much of a request has left.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// The rendered part of a request that differs each time and did not leave in one go; empty otherwise.
    kept: Vec<u8>,
    /// Bytes that left.
    sent: u64,
    /// Bytes of the rendered part; the rest is filled in.
    rendered: u64,
    /// Bytes of the head.
    head: u64,
    /// Bytes of the whole request.
    whole: u64,
}

/// What became of an attempt to send more.
enum Sent {
    /// All of the request has left.
    Whole,
    /// The kernel takes no more until the next event.
    Blocked,
    /// Others get their turn.
    TurnOver,
}

impl Outgoing {
    /// Takes note of a new request.
    #[inline]
    fn begin(&mut self, rendered: &Rendered<'_>) {
        self.sent = 0;
        self.rendered = rendered.bytes.len() as u64;
        self.head = rendered.head;
        self.whole = rendered.whole;
    }

    /// Takes note that so many bytes left; how many of them were of the body.
    #[inline]
    fn advance(&mut self, count: usize) -> u64 {
        let before = self.sent.max(self.head);
        self.sent += count as u64;
        self.sent.max(self.head) - before
    }

    /// The next bytes to send of request number `request`; none when all have left.
    fn next<'a>(&'a self, program: &'a Program, request: usize) -> &'a [u8] {
        if self.sent < self.rendered {
            let rendered = program.fixed(request).unwrap_or(&self.kept);
            return usize::try_from(self.sent).ok().and_then(|sent| rendered.get(sent..)).unwrap_or_default();
        }
        program.fill(self.sent - self.head, self.whole - self.sent)
    }

    /// Whether more follows after so many bytes.
    fn rest_after(&self, count: usize) -> Rest {
        if self.sent + (count as u64) < self.whole { Rest::Follows } else { Rest::Nothing }
    }

    /// Forgets the request; what it may keep for the next is bounded.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.kept.shrink_to(KEPT_UNSENT);
    }
}

impl Core {
    /// Renders the request and sends what the kernel takes of it.
    #[inline]
    pub(super) fn send(&mut self, user: &mut User) {
        let Some(stream) = &mut user.stream else { return };
        let rendered = user.target.program.render(user.request, &mut user.values, &mut self.scratch);
        user.outgoing.begin(&rendered);
        let bytes = rendered.bytes;
        match stream.send(bytes, user.outgoing.rest_after(bytes.len())) {
            Ok(sent) => {
                self.recorder.sent(user.outgoing.advance(sent));
                if user.outgoing.sent == user.outgoing.whole && stream.is_flushed() {
                    user.phase = Phase::Receiving;
                    return;
                }
                user.phase = Phase::Sending;
                if sent < bytes.len() && !rendered.fixed {
                    user.outgoing.kept.clear();
                    user.outgoing.kept.extend_from_slice(bytes);
                }
                if sent == bytes.len() {
                    // A refusal is met again at the user's next turn: to look into it here could begin the next
                    // request within this one, and so on without end.
                    let outcome = self.send_a_turn(user).unwrap_or(Sent::TurnOver);
                    self.after_sending(user, outcome);
                }
            }
            Err(kind) => self.fail(user, kind),
        }
    }

    /// Sends more of a request that did not leave in one go.
    pub(super) fn send_more(&mut self, user: &mut User) {
        match self.send_a_turn(user) {
            Ok(outcome) => self.after_sending(user, outcome),
            Err(kind) => self.on_refusal(user, kind),
        }
    }

    fn after_sending(&mut self, user: &mut User, outcome: Sent) {
        match outcome {
            Sent::Whole => {
                user.phase = Phase::Receiving;
                user.outgoing.kept.clear();
            }
            Sent::Blocked => {}
            // No event will say that there is room, for there was some.
            Sent::TurnOver => self.unfinished.push_back(user.slot),
        }
    }

    fn send_a_turn(&mut self, user: &mut User) -> Result<Sent, ErrorKind> {
        let Some(stream) = &mut user.stream else { return Ok(Sent::Blocked) };
        for _ in 0..SENDS_PER_TURN {
            let next = user.outgoing.next(&user.target.program, user.request);
            if next.is_empty() {
                return Ok(if stream.flush()? { Sent::Whole } else { Sent::Blocked });
            }
            match stream.send(next, user.outgoing.rest_after(next.len()))? {
                0 => return Ok(Sent::Blocked),
                sent => self.recorder.sent(user.outgoing.advance(sent)),
            }
        }
        Ok(Sent::TurnOver)
    }
}
