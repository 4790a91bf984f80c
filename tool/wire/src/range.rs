//! Byte ranges (RFC 9110 section 14).

use crate::{
    syntax::{decimal, list, trim},
    write,
};

/// A part of a representation that exists: at least one byte, all within its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Where it starts.
    pub offset: u64,
    /// How many bytes; at least 1.
    pub length: u64,
}

impl ByteRange {
    /// The value of `Content-Range` for this part of `total` bytes, appended to `out`: `bytes 0-9/100`.
    pub fn content_range(&self, out: &mut Vec<u8>, total: u64) {
        out.extend_from_slice(b"bytes ");
        write::decimal(out, self.offset);
        out.push(b'-');
        write::decimal(out, self.offset + (self.length - 1));
        out.push(b'/');
        write::decimal(out, total);
    }
}

/// The value of `Content-Range` that goes with 416, appended to `out`: `bytes */100`.
pub fn unsatisfied_content_range(out: &mut Vec<u8>, total: u64) {
    out.extend_from_slice(b"bytes */");
    write::decimal(out, total);
}

/// What to answer to a `Range` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Everything (200): the header is in another unit or malformed, and so ignored (RFC 9110 section 14.2),
    /// or asks for several parts, which a server may answer as a whole.
    Whole,
    /// One part (206).
    Part(ByteRange),
    /// Nothing that exists (416).
    Unsatisfiable,
}

/// Reads the value of a `Range` header against a representation of `length` bytes.
pub fn parse(value: &[u8], length: u64) -> Wanted {
    let Some(specs) = byte_specs(value) else { return Wanted::Whole };
    let mut satisfiable = None;
    let mut count = 0_usize;
    for spec in list(specs) {
        let Some(part) = one(spec, length) else { return Wanted::Whole };
        count += 1;
        satisfiable = satisfiable.or(part);
    }
    match (count, satisfiable) {
        (0, _) => Wanted::Whole,
        (_, None) => Wanted::Unsatisfiable,
        (1, Some(part)) => Wanted::Part(part),
        (_, Some(_)) => Wanted::Whole,
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

/// `None`: malformed. `Some(None)`: well-formed, but nothing of it exists.
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

/// A number too large for 64 bits lies beyond any file: it is well-formed all the same.
fn position(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits.then(|| decimal(text).unwrap_or(u64::MAX))
}
