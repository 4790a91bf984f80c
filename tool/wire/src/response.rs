//! Parsing responses: only as much of a head as determines what follows.

use std::mem::MaybeUninit;

use crate::{Fields, Framing, Limits, MAX_HEADERS, Method, ParseError, framing::FramingHeaders};

/// The head of a response: its status, and how to find the end of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The digit after `HTTP/1.`.
    pub minor_version: u8,
    /// How the end of the body is found.
    pub framing: Framing,
    /// Whether the connection can be used again after the body.
    pub keep_alive: bool,
    /// Length of the head in bytes; the body starts after it.
    pub len: usize,
}

impl Head {
    /// Whether this is an interim response (1xx), which the final response follows. 101 is final.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

/// Parses the head at the start of `bytes`, of the response to a request with method `asked`. Returns `None` if it is
/// incomplete: call again with the same bytes and more. Does not allocate.
///
/// A line may end in a bare LF, as RFC 9112 section 2.2 permits: a client forwards nothing, so nothing can be smuggled past
/// it, and it should be able to measure a server that writes this.
///
/// # Errors
/// The head exceeds `limits`, or leaves the end of the body in doubt.
pub fn parse(bytes: &[u8], asked: Method, limits: &Limits) -> Result<Option<Head>, ParseError> {
    read(bytes, asked, limits, |_, _| ()).map(|parsed| parsed.map(|(head, ())| head))
}

/// Like [`parse`], but also returns the positions of the headers.
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
    index: impl FnOnce(&[httparse::Header<'_>], &[u8]) -> T,
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
            Ok(Some((head, index(response.headers, &window[..len]))))
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
    let found = FramingHeaders::read(response.headers, limits)?;
    let framing = framing(&found, status, minor_version, asked)?;
    let keep_alive =
        found.persists(minor_version) && framing != Framing::UntilClose && !switches_protocol(status, asked);
    Ok(Head { status, minor_version, framing, keep_alive, len })
}

/// Determines the framing by the rules of RFC 9112 section 6.3, in their order.
fn framing(
    found: &FramingHeaders,
    status: u16,
    minor_version: u8,
    asked: Method,
) -> Result<Framing, ParseError> {
    let bodyless = asked == Method::Head || crate::status::is_bodyless(status);
    if bodyless {
        return Ok(Framing::None);
    }
    if switches_protocol(status, asked) {
        return Ok(Framing::UntilClose);
    }
    if found.chunked {
        return if minor_version == 0 { Err(ParseError::TransferEncoding) } else { Ok(Framing::Chunked) };
    }
    Ok(match found.length {
        Some(0) => Framing::None,
        Some(length) => Framing::Length(length),
        None => Framing::UntilClose,
    })
}

/// Whether the bytes after this response are no longer HTTP.
fn switches_protocol(status: u16, asked: Method) -> bool {
    status == 101 || (asked == Method::Connect && (200..300).contains(&status))
}
