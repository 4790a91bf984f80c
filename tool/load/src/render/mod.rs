//! Requests as bytes: rendered once where nothing changes, with patch slots where something does.
//!
//! The steady state allocates nothing: a request without slots is sent from where it was rendered at
//! the start, one with slots is put together in a buffer that the thread uses again and again.

mod compile;
mod filler;

use std::io::Write;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use wire::Method;

use crate::scenario::keep::Keep;
use crate::scenario::sizes::Sizes;
use crate::scenario::statuses::Statuses;
use crate::scenario::value::{UserStream, Value};
use crate::scenario::{Body, Request, Scenario, Verify};
use crate::url::Url;
use filler::Filler;

/// How much of a generated body is rendered with its head, so that a short request leaves in one write.
const FILLED_BYTES: u64 = 4 * 1024;

/// A scenario made ready to send to one server.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) requests: Vec<Prepared>,
    values: Vec<Value>,
    /// Upper ends of each request's share of `0..total_weight`.
    shares: Vec<u64>,
    /// Lists in which users keep values of answers.
    lists: usize,
    longest: u64,
    filler: Filler,
}

/// One request, ready to send, and what its response must be.
#[derive(Debug)]
pub(crate) struct Prepared {
    bytes: Rendering,
    pub(crate) method: Method,
    pub(crate) expect: Statuses,
    pub(crate) verify: Verify,
    pub(crate) keep: Option<Keep>,
    /// Lists it takes a value from.
    takes: Vec<usize>,
}

/// What one draw of a request gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Draw {
    /// The next of the value of this index.
    Value(usize),
    /// The oldest that the user kept in the list of this index, which is then forgotten.
    Taken(usize),
}

/// Which request a user makes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) request: usize,
    /// The one that its turn was, which lacked a value to take.
    pub(crate) instead_of: Option<usize>,
}

#[derive(Debug)]
enum Rendering {
    /// The same each time.
    Fixed(Fixed),
    Patched(Patched),
}

/// A request that is the same each time.
#[derive(Debug)]
struct Fixed {
    bytes: Box<[u8]>,
    head: u64,
    whole: u64,
}

/// A request that differs from time to time.
#[derive(Debug)]
struct Patched {
    /// Values drawn for it, each once however often it occurs.
    draws: Vec<Draw>,
    head: Vec<Piece>,
    body: Vec<Piece>,
    /// Sizes of a body that is filled in; `body` is empty then.
    generated: Option<Sizes>,
}

#[derive(Debug)]
enum Piece {
    Literal(Vec<u8>),
    /// The draw of this position in [`Patched::draws`].
    Slot(usize),
    /// The same, percent-encoded for the request target.
    TargetSlot(usize),
    /// Base64 of the pieces.
    Base64(Vec<Piece>),
    /// Length of the body in decimal digits.
    ContentLength,
}

/// A thread's reusable buffers for rendering.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    drawn: Vec<u8>,
    ranges: Vec<Range<usize>>,
    plain: Vec<u8>,
    out: Vec<u8>,
}

/// A request, or the first part of it: of a generated body only the beginning is rendered, and
/// [`Program::fill`] has the rest.
#[derive(Debug)]
pub(crate) struct Rendered<'a> {
    /// The head, and what is rendered of the body.
    pub(crate) bytes: &'a [u8],
    /// Whether [`Program::fixed`] finds the bytes again; else they are gone at the next rendering.
    pub(crate) fixed: bool,
    /// Bytes of the head.
    pub(crate) head: u64,
    /// Bytes of the whole request.
    pub(crate) whole: u64,
}

impl Program {
    /// Renders what can be rendered now; `close` asks the server to close after each response.
    pub(crate) fn new(scenario: &Scenario, base: &Url, close: bool) -> Self {
        let fills = |request: &Request| matches!(request.body, Body::Generated(_));
        let filler = Filler::new(scenario.requests.iter().any(fills));
        let requests: Vec<_> =
            scenario.requests.iter().map(|request| Prepared::new(request, base, close, &filler)).collect();
        let mut total = 0;
        let share = |request: &Request| {
            total += u64::from(request.weight);
            total
        };
        Program {
            shares: scenario.requests.iter().map(share).collect(),
            lists: scenario.lists.names().len(),
            longest: requests.iter().map(Prepared::len).max().unwrap_or_default(),
            requests,
            filler,
            values: scenario.values.clone(),
        }
    }

    /// A user's stream of values.
    pub(crate) fn stream(&self, seed: u64, user: u32) -> UserStream {
        UserStream::new(seed, user, self.values.len()).holding(self.lists)
    }

    /// Which request a user sends next: by weight, from its own random stream. Where that one takes a value of which the
    /// user has none, another, by weight among those that can be made.
    #[inline]
    pub(crate) fn pick(&self, stream: &mut UserStream) -> Choice {
        let request = match self.shares.as_slice() {
            [] | [_] => 0,
            [.., total] => {
                let at = stream.rng.u64(0..*total);
                self.shares.partition_point(|end| *end <= at)
            }
        };
        if self.lists == 0 || self.can_be_made(request, stream) {
            return Choice { request, instead_of: None };
        }
        Choice { request: self.pick_another(stream), instead_of: Some(request) }
    }

    fn pick_another(&self, stream: &mut UserStream) -> usize {
        let weight = |index: usize| {
            let before = index.checked_sub(1).and_then(|before| self.shares.get(before)).copied();
            self.shares.get(index).copied().unwrap_or_default() - before.unwrap_or_default()
        };
        let possible = |stream: &UserStream, index: &usize| self.can_be_made(*index, stream);
        let all = 0..self.shares.len();
        let total: u64 = all.clone().filter(|index| possible(stream, index)).map(weight).sum();
        // A scenario has a request that takes nothing.
        let mut at = stream.rng.u64(0..total.max(1));
        let mut those = all.filter(|index| possible(stream, index));
        let found = those.find(|index| {
            let ends = weight(*index);
            let here = at < ends;
            at = at.saturating_sub(ends);
            here
        });
        found.unwrap_or_default()
    }

    #[inline]
    fn can_be_made(&self, request: usize, stream: &UserStream) -> bool {
        let takes = self.requests.get(request).map(|request| request.takes.as_slice());
        takes.unwrap_or_default().iter().all(|list| stream.held.has(*list))
    }

    /// The first request that takes no kept value.
    pub(crate) fn first(&self) -> usize {
        self.requests.iter().position(|request| request.takes.is_empty()).unwrap_or_default()
    }

    /// The bytes of request number `index`, where they are the same each time.
    pub(crate) fn fixed(&self, index: usize) -> Option<&[u8]> {
        match self.requests.get(index).map(|prepared| &prepared.bytes) {
            Some(Rendering::Fixed(fixed)) => Some(&fixed.bytes),
            Some(Rendering::Patched(_)) | None => None,
        }
    }

    /// What a generated body holds from `position` on: at least one byte, at most `most`.
    #[inline]
    pub(crate) fn fill(&self, position: u64, most: u64) -> &[u8] {
        self.filler.at(position, most)
    }

    /// Length of the longest request, what is drawn left out.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// The bytes of request number `index` for the user whose stream this is.
    #[inline]
    pub(crate) fn render<'a>(
        &'a self,
        index: usize,
        stream: &mut UserStream,
        scratch: &'a mut Scratch,
    ) -> Rendered<'a> {
        match self.requests.get(index).map(|prepared| &prepared.bytes) {
            Some(Rendering::Fixed(Fixed { bytes, head, whole })) => {
                Rendered { bytes, fixed: true, head: *head, whole: *whole }
            }
            Some(Rendering::Patched(patched)) => {
                scratch.draw(patched, &self.values, stream);
                let size = patched.generated.as_ref().map(|sizes| sizes.draw(&mut stream.rng));
                scratch.render(patched, size, &self.filler)
            }
            None => Rendered { bytes: &[], fixed: false, head: 0, whole: 0 },
        }
    }
}

impl Prepared {
    fn new(request: &Request, base: &Url, close: bool, filler: &Filler) -> Self {
        let patched = Patched::compile(request, base, close);
        let size = patched.generated.as_ref().map(Sizes::only);
        let bytes = match size {
            // The size differs, or something else does.
            Some(None) => Rendering::Patched(patched),
            _ if !patched.draws.is_empty() => Rendering::Patched(patched),
            size => {
                let mut scratch = Scratch::default();
                let Rendered { bytes, head, whole, .. } = scratch.render(&patched, size.flatten(), filler);
                Rendering::Fixed(Fixed { bytes: bytes.into(), head, whole })
            }
        };
        let method = Method::from_token(&request.method);
        let (verify, keep) = (request.verify.clone(), request.keep.clone());
        Prepared { bytes, method, expect: request.expect, verify, keep, takes: request.takes().collect() }
    }

    fn len(&self) -> u64 {
        let literal = |piece: &Piece| if let Piece::Literal(bytes) = piece { bytes.len() as u64 } else { 0 };
        match &self.bytes {
            Rendering::Fixed(fixed) => fixed.whole,
            Rendering::Patched(patched) => {
                let written: u64 = patched.head.iter().chain(&patched.body).map(literal).sum();
                written + patched.generated.as_ref().map_or(0, Sizes::largest)
            }
        }
    }
}

impl Scratch {
    fn draw(&mut self, patched: &Patched, values: &[Value], stream: &mut UserStream) {
        self.drawn.clear();
        self.ranges.clear();
        for draw in &patched.draws {
            let start = self.drawn.len();
            match *draw {
                Draw::Value(index) => {
                    if let Some(value) = values.get(index) {
                        stream.draw(index, value, &mut self.drawn);
                    }
                }
                Draw::Taken(list) => stream.held.take(list, &mut self.drawn),
            }
            self.ranges.push(start..self.drawn.len());
        }
    }

    /// Renders the head, and the body or the beginning of it: a body of `size` bytes is filled in.
    fn render(&mut self, patched: &Patched, size: Option<u64>, filler: &Filler) -> Rendered<'_> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let written: usize = patched.body.iter().map(|piece| self.len(piece)).sum();
        let body_len = size.unwrap_or(written as u64);
        for piece in &patched.head {
            self.write(piece, body_len, &mut out);
        }
        let head = out.len() as u64;
        for piece in &patched.body {
            self.write(piece, body_len, &mut out);
        }
        if let Some(size) = size {
            out.extend_from_slice(filler.at(0, size.min(FILLED_BYTES)));
        }
        self.out = out;
        Rendered { bytes: &self.out, fixed: false, head, whole: head + body_len }
    }

    /// Length of a piece of a body: bodies hold literals and plain slots only.
    fn len(&self, piece: &Piece) -> usize {
        match piece {
            Piece::Literal(bytes) => bytes.len(),
            Piece::Slot(draw) => self.drawn(*draw).len(),
            Piece::TargetSlot(_) | Piece::Base64(_) | Piece::ContentLength => 0,
        }
    }

    fn write(&mut self, piece: &Piece, body_len: u64, out: &mut Vec<u8>) {
        match piece {
            Piece::Literal(bytes) => out.extend_from_slice(bytes),
            Piece::Slot(draw) => out.extend_from_slice(self.drawn(*draw)),
            Piece::TargetSlot(draw) => write_target(self.drawn(*draw), out),
            Piece::Base64(pieces) => self.write_base64(pieces, out),
            Piece::ContentLength => {
                // Writing to a Vec cannot fail.
                let _ = write!(out, "{body_len}");
            }
        }
    }

    fn write_base64(&mut self, pieces: &[Piece], out: &mut Vec<u8>) {
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        for piece in pieces {
            self.write(piece, 0, &mut plain);
        }
        let start = out.len();
        out.resize(start + plain.len().div_ceil(3) * 4, 0);
        if let Some(room) = out.get_mut(start..) {
            // The room is exactly what the encoding needs.
            let _ = BASE64.encode_slice(&plain, room);
        }
        self.plain = plain;
    }

    fn drawn(&self, draw: usize) -> &[u8] {
        self.ranges.get(draw).and_then(|range| self.drawn.get(range.clone())).unwrap_or_default()
    }
}

/// Percent-encodes all but unreserved characters and slashes (RFC 3986 section 2.3).
fn write_target(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(byte);
        } else {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests;
