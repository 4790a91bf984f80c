//! Rendering heads, lengths and chunks into a buffer of the caller.
//!
//! Line ends are refused inside names and values, so that data cannot add headers (CWE-113).

use crate::{
    status,
    syntax::{is_token, is_value_byte},
};

/// Why a name, value or target is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The method or the name of a header is not a token.
    #[error("a method or header name must be a token: letters, digits and !#$%&'*+-.^_`|~")]
    Name,
    /// The value of a header contains CR, LF, NUL or another control character.
    #[error("a header value must not contain control characters")]
    Value,
    /// The request target contains a blank, a control character, or a character outside ASCII.
    #[error("a request target must be printable ASCII without blanks")]
    Target,
}

/// Writes `HTTP/1.1 200 OK`.
pub fn status_line(out: &mut Vec<u8>, status: u16) {
    out.extend_from_slice(b"HTTP/1.1 ");
    decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(status::reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Writes `GET /path HTTP/1.1`.
///
/// # Errors
/// The method is not a token, or the target could end the line early.
pub fn request_line(out: &mut Vec<u8>, method: &str, target: &str) -> Result<(), WriteError> {
    if !is_token(method.as_bytes()) {
        return Err(WriteError::Name);
    }
    if target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(WriteError::Target);
    }
    for part in [method, " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    Ok(())
}

/// Writes one header line.
///
/// # Errors
/// The name is not a token, or the value contains control characters. Nothing is written then.
pub fn header(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), WriteError> {
    if !is_token(name.as_bytes()) {
        return Err(WriteError::Name);
    }
    if !value.iter().copied().all(is_value_byte) {
        return Err(WriteError::Value);
    }
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
    Ok(())
}

/// Writes `Content-Length: n`.
pub fn content_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Length: ");
    decimal(out, length);
    out.extend_from_slice(b"\r\n");
}

/// Writes `Transfer-Encoding: chunked`.
pub fn chunked(out: &mut Vec<u8>) {
    out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
}

/// Writes `Connection: close`.
pub fn connection_close(out: &mut Vec<u8>) {
    out.extend_from_slice(b"Connection: close\r\n");
}

/// Writes the empty line that ends a head.
pub fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Writes one chunk. An empty one is left out because it would end the body.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    hexadecimal(out, data.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Writes the last chunk, without trailers, which ends the body.
pub fn last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

/// The interim response that asks for the body.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Writes `number` in decimal digits.
pub fn decimal(out: &mut Vec<u8>, number: u64) {
    digits(out, number, 10);
}

fn hexadecimal(out: &mut Vec<u8>, number: u64) {
    digits(out, number, 16);
}

fn digits(out: &mut Vec<u8>, mut number: u64, base: u64) {
    let start = out.len();
    loop {
        out.push(b"0123456789abcdef"[(number % base) as usize]);
        number /= base;
        if number == 0 {
            break;
        }
    }
    out[start..].reverse();
}
