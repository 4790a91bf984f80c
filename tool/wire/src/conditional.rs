//! Conditional requests (RFC 9110 section 13): comparing entity tags.
//!
//! Tags include their quotes, as in the header: `"abc"` or `W/"abc"`.

use crate::syntax::trim;

/// Whether `If-None-Match: value` names `etag` (weak comparison, section 13.1.2). If so, respond with 304.
pub fn none_match_names(value: &[u8], etag: &[u8]) -> bool {
    trim(value) == b"*" || tags(value).any(|tag| opaque(tag) == opaque(etag))
}

/// Whether `If-Match: value` names `etag` (strong comparison, section 13.1.1). If not, respond with 412.
pub fn match_names(value: &[u8], etag: &[u8]) -> bool {
    trim(value) == b"*" || tags(value).any(|tag| strongly_equal(tag, etag))
}

/// Whether the condition `If-Range: value` holds (section 13.1.5): the same strong tag, or exactly the same `Last-Modified`.
/// If so, send the range, otherwise the whole.
pub fn range_holds(value: &[u8], etag: &[u8], last_modified: &[u8]) -> bool {
    let value = trim(value);
    if value.starts_with(b"\"") || value.starts_with(b"W/") {
        strongly_equal(value, etag)
    } else {
        !last_modified.is_empty() && value == last_modified
    }
}

fn strongly_equal(one: &[u8], other: &[u8]) -> bool {
    !one.starts_with(b"W/") && !other.starts_with(b"W/") && !one.is_empty() && one == other
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Returns the tags of a list, in which commas may stand inside quotes. Stops at the first item that is not a tag.
fn tags(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        let from = &rest[start..];
        let open = if from.starts_with(b"W/") { 2 } else { 0 };
        if from.get(open) != Some(&b'"') {
            return None;
        }
        let inside = from.get(open + 1..)?;
        let close = inside.iter().position(|&byte| byte == b'"')?;
        let (tag, after) = from.split_at(open + 1 + close + 1);
        rest = after;
        Some(tag)
    })
}
