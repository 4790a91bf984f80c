//! Byte ranges (RFC 9110 section 14).

use crate::{
    syntax::{decimal, list, trim},
    write,
};

/// A satisfiable part of a representation: at least one byte, all within its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Position of the first byte.
    pub offset: u64,
    /// Number of bytes, at least 1.
    pub length: u64,
}

impl ByteRange {
    /// Appends the value of `Content-Range` for this part of `total` bytes: `bytes 0-9/100`.
    pub fn content_range(&self, out: &mut Vec<u8>, total: u64) {
        out.extend_from_slice(b"bytes ");
        write::decimal(out, self.offset);
        out.push(b'-');
        write::decimal(out, self.offset + (self.length - 1));
        out.push(b'/');
        write::decimal(out, total);
    }
}

/// Appends the value of `Content-Range` for a response with status 416: `bytes */100`.
pub fn unsatisfied_content_range(out: &mut Vec<u8>, total: u64) {
    out.extend_from_slice(b"bytes */");
    write::decimal(out, total);
}

/// What a `Range` header selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSelection {
    /// Everything (200): the header is malformed or in another unit and therefore ignored (RFC 9110 section 14.2), or
    /// asks for several parts, which a server may answer with the whole.
    Whole,
    /// One part (206).
    Part(ByteRange),
    /// Nothing: no part exists (416).
    Unsatisfiable,
}

/// Parses the value of a `Range` header for a representation of `length` bytes.
pub fn parse(value: &[u8], length: u64) -> RangeSelection {
    let Some(specs) = byte_specs(value) else { return RangeSelection::Whole };
    let mut satisfiable = None;
    let mut count = 0_usize;
    for spec in list(specs) {
        let Some(part) = one(spec, length) else { return RangeSelection::Whole };
        count += 1;
        satisfiable = satisfiable.or(part);
    }
    match (count, satisfiable) {
        (0, _) => RangeSelection::Whole,
        (_, None) => RangeSelection::Unsatisfiable,
        (1, Some(part)) => RangeSelection::Part(part),
        (_, Some(_)) => RangeSelection::Whole,
    }
}

fn byte_specs(value: &[u8]) -> Option<&[u8]> {
    let value = trim(value);
    let unit = value.get(..5)?;
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    value.get(5..)?.strip_prefix(b"=")
}

/// Parses one range. Returns `None` if it is malformed, and `Some(None)` if it is well-formed but not satisfiable.
fn one(spec: &[u8], length: u64) -> Option<Option<ByteRange>> {
    let dash = spec.iter().position(|&byte| byte == b'-')?;
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    if first.is_empty() {
        let suffix = position(last)?.min(length);
        return Some((suffix > 0).then(|| ByteRange { offset: length - suffix, length: suffix }));
    }
    let first = position(first)?;
    let last = if last.is_empty() { u64::MAX } else { position(last)? };
    if last < first {
        return None;
    }
    let end = last.saturating_add(1).min(length);
    Some((first < end).then(|| ByteRange { offset: first, length: end - first }))
}

/// Parses a position. One that exceeds 64 bits is well-formed and lies beyond any file.
fn position(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits.then(|| decimal(text).unwrap_or(u64::MAX))
}
