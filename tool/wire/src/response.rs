//! Reading responses: only as much of a head as decides what comes next.

use std::mem::MaybeUninit;

use crate::{Fields, Framing, Limits, MAX_HEADERS, Method, ParseError, framing::Seen};

/// A response's head: its status, and how to find the end of what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The digit after `HTTP/1.`.
    pub minor_version: u8,
    /// How the body's end is found.
    pub framing: Framing,
    /// Whether the connection may be used again once the body is over.
    pub keep_alive: bool,
    /// How many bytes the head takes; the body begins after them.
    pub len: usize,
}

impl Head {
    /// Whether this is only a notice (1xx) and the real response is still to come. 101 is final.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

/// Reads the response head that `bytes` begins with, the answer to a request with method `asked`.
/// `None`: not complete yet, call again with the same bytes and more. Allocates nothing.
///
/// A line may end in a bare LF, as RFC 9112 section 2.2 permits: a client has nobody behind it to be smuggled to,
/// and should be able to measure a server that writes so.
///
/// # Errors
/// Refuses what leaves the end of the body in doubt, and whatever passes `limits`.
pub fn parse(bytes: &[u8], asked: Method, limits: &Limits) -> Result<Option<Head>, ParseError> {
    read(bytes, asked, limits, |_, _| ()).map(|found| found.map(|(head, ())| head))
}

/// Like [`parse`], and also tells where each header is.
///
/// # Errors
/// As [`parse`].
pub fn parse_indexed(
    bytes: &[u8],
    asked: Method,
    limits: &Limits,
) -> Result<Option<(Head, Fields)>, ParseError> {
    read(bytes, asked, limits, Fields::index)
}

fn read<T>(
    bytes: &[u8],
    asked: Method,
    limits: &Limits,
    keep: impl FnOnce(&[httparse::Header<'_>], &[u8]) -> T,
) -> Result<Option<(Head, T)>, ParseError> {
    let window = limits.head_window(bytes);
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        window,
        &mut headers[..limits.header_limit()],
    );
    match parsed? {
        httparse::Status::Complete(len) if len <= limits.head_limit() => {
            let head = complete(&response, len, asked, limits)?;
            Ok(Some((head, keep(response.headers, &window[..len]))))
        }
        httparse::Status::Partial if window.len() <= limits.head_limit() => Ok(None),
        _ => Err(ParseError::HeadTooLong),
    }
}

fn complete(
    response: &httparse::Response<'_, '_>,
    len: usize,
    asked: Method,
    limits: &Limits,
) -> Result<Head, ParseError> {
    let (Some(status), Some(minor_version)) = (response.code, response.version) else {
        return Err(ParseError::StartLine);
    };
    if !(100..1000).contains(&status) {
        return Err(ParseError::StartLine);
    }
    let seen = Seen::read(response.headers, limits)?;
    let framing = framing(&seen, status, minor_version, asked)?;
    let keep_alive =
        seen.persists(minor_version) && framing != Framing::UntilClose && !switches_protocol(status, asked);
    Ok(Head { status, minor_version, framing, keep_alive, len })
}

/// RFC 9112 section 6.3, in its order.
fn framing(seen: &Seen, status: u16, minor_version: u8, asked: Method) -> Result<Framing, ParseError> {
    let bodyless = asked == Method::Head || matches!(status, 100..=199 | 204 | 304);
    if bodyless {
        return Ok(Framing::None);
    }
    if switches_protocol(status, asked) {
        return Ok(Framing::UntilClose);
    }
    if seen.chunked {
        return if minor_version == 0 { Err(ParseError::TransferEncoding) } else { Ok(Framing::Chunked) };
    }
    Ok(match seen.length {
        Some(0) => Framing::None,
        Some(length) => Framing::Length(length),
        None => Framing::UntilClose,
    })
}

/// After these the bytes are no longer HTTP.
fn switches_protocol(status: u16, asked: Method) -> bool {
    status == 101 || (asked == Method::Connect && (200..300).contains(&status))
}
