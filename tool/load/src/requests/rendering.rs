//! From a compiled request to bytes.
//!
//! The steady state allocates nothing: a request without slots is sent from where it was rendered at the start, and one
//! with slots is assembled in a buffer that its thread reuses.

use std::io::Write;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::filler::Filler;
use crate::scenario::sizes::Sizes;
use crate::scenario::value::Value;
use crate::values::stream::UserStream;

/// How much of a generated body is rendered with its head, so that a short request leaves in one write.
const FILLED_BYTES: u64 = 4 * 1024;

/// A request after compilation.
#[derive(Debug)]
pub(super) enum Rendering {
    Fixed(Fixed),
    Patched(Patched),
}

/// A request that is the same every time.
#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) bytes: Box<[u8]>,
    /// Length of the head.
    pub(super) head: u64,
    /// Length of the whole request.
    pub(super) whole: u64,
}

/// A request that differs from time to time.
#[derive(Debug)]
pub(super) struct Patched {
    /// Values to draw, each once however often it occurs.
    pub(super) draws: Vec<Draw>,
    pub(super) head: Vec<Piece>,
    pub(super) body: Vec<Piece>,
    /// Sizes of a generated body; `body` is empty in that case.
    pub(super) generated: Option<Sizes>,
}

impl Patched {
    /// Length without drawn values, bytes.
    pub(super) fn len(&self) -> u64 {
        let literal = |piece: &Piece| if let Piece::Literal(bytes) = piece { bytes.len() as u64 } else { 0 };
        let written: u64 = self.head.iter().chain(&self.body).map(literal).sum();
        written + self.generated.as_ref().map_or(0, Sizes::largest)
    }
}

/// One value that a request draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Draw {
    /// The next draw of the value with this index.
    Value(usize),
    /// The oldest captured value in the list with this index, which is removed.
    Taken(usize),
}

/// One piece of a head or body.
#[derive(Debug)]
pub(super) enum Piece {
    Literal(Vec<u8>),
    /// The draw with this index in [`Patched::draws`].
    Slot(usize),
    /// The same, percent-encoded for the request target.
    TargetSlot(usize),
    /// Base64 of the pieces.
    Base64(Vec<Piece>),
    /// Length of the body in decimal digits.
    ContentLength,
}

/// Buffers that a thread reuses for rendering.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    drawn: Vec<u8>,
    ranges: Vec<Range<usize>>,
    plain: Vec<u8>,
    out: Vec<u8>,
}

/// A rendered request. Only the beginning of a generated body is rendered; [`super::Program::fill`] has the rest.
#[derive(Debug)]
pub(crate) struct Rendered<'a> {
    /// The head, and the rendered part of the body.
    pub(crate) bytes: &'a [u8],
    /// Whether [`super::Program::fixed`] returns the same bytes. Otherwise the next rendering overwrites them.
    pub(crate) fixed: bool,
    /// Length of the head.
    pub(crate) head: u64,
    /// Length of the whole request.
    pub(crate) whole: u64,
}

impl Scratch {
    /// Draws the values that a request needs.
    pub(super) fn draw(&mut self, patched: &Patched, values: &[Value], stream: &mut UserStream) {
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
                Draw::Taken(list) => stream.captured.take(list, &mut self.drawn),
            }
            self.ranges.push(start..self.drawn.len());
        }
    }

    /// Renders the head and the body; of a generated body of `size` bytes, only the beginning.
    pub(super) fn render(&mut self, patched: &Patched, size: Option<u64>, filler: &Filler) -> Rendered<'_> {
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

    /// Length of a piece of a body. Bodies consist of literals and plain slots.
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

/// Percent-encodes everything but unreserved characters and slashes (RFC 3986 section 2.3).
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
