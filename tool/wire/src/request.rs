//! Requests: their methods, and parsing them.

use std::mem::MaybeUninit;

use crate::{Fields, Framing, Limits, MAX_HEADERS, ParseError, fields::Span, framing::FramingHeaders};

/// A request's method (RFC 9110 section 9, RFC 5789). Methods are case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `CONNECT`
    Connect,
    /// `OPTIONS`
    Options,
    /// `TRACE`
    Trace,
    /// `PATCH`
    Patch,
    /// Any other token. Its text is in the head.
    Other,
}

impl Method {
    /// Returns the method with this name.
    pub fn from_token(token: &str) -> Self {
        match token {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "CONNECT" => Self::Connect,
            "OPTIONS" => Self::Options,
            "TRACE" => Self::Trace,
            "PATCH" => Self::Patch,
            _ => Self::Other,
        }
    }

    /// Returns the name; empty for [`Method::Other`], whose name is in the head.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
            Self::Patch => "PATCH",
            Self::Other => "",
        }
    }

    /// Whether sending the request twice has the same effect as sending it once (RFC 9110 section 9.2.2).
    pub fn is_idempotent(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Put | Self::Delete | Self::Options | Self::Trace)
    }
}

/// The head of a request: what every server needs, and the positions of the rest. It borrows nothing, so it can be kept
/// beside the buffer; [`Head::view`] combines it with the bytes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The method.
    pub method: Method,
    /// How the end of the body is found; never [`Framing::UntilClose`].
    pub framing: Framing,
    /// Whether the client wants to use the connection again.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// The digit after `HTTP/1.`.
    pub minor_version: u8,
    /// Length of the head in bytes; the body starts after it.
    pub len: usize,
    method_text: Span,
    target: Span,
    fields: Fields,
}

/// Parses the head at the start of `bytes`. Returns `None` if it is incomplete: call again with the same bytes and more.
///
/// # Errors
/// The head exceeds `limits`, or breaks a rule of RFC 9112 in a way in which two parsers could disagree about it.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Option<Head>, ParseError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let window = limits.head_window(bytes);
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(window, &mut headers[..limits.header_limit()]);
    match parsed {
        Ok(httparse::Status::Complete(len)) => complete(&request, window, len, limits).map(Some),
        Ok(httparse::Status::Partial) => incomplete(window, limits).map(|()| None),
        Err(error) => Err(refusal(error, window, limits)),
    }
}

#[inline(always)] // The result is large and should be built in place.
fn complete(
    request: &httparse::Request<'_, '_>,
    window: &[u8],
    len: usize,
    limits: &Limits,
) -> Result<Head, ParseError> {
    let (Some(method), Some(target), Some(minor_version)) = (request.method, request.path, request.version)
    else {
        return Err(ParseError::StartLine);
    };
    let target_span = Span::of(target.as_bytes(), window);
    if target_span.end() + " HTTP/1.1".len() > limits.request_line_bytes {
        return Err(ParseError::RequestLineTooLong);
    }
    if len > limits.head_limit() {
        return Err(ParseError::HeadTooLong);
    }
    check_line_ends(request, target_span.end(), window, len)?;
    let found = FramingHeaders::read(request.headers, limits)?;
    check_host(&found, minor_version)?;
    if found.expects_else {
        return Err(ParseError::Expectation);
    }
    let method_text = Span::of(method.as_bytes(), window);
    let method = Method::from_token(method);
    check_target(method, target.as_bytes())?;
    Ok(Head {
        method,
        framing: framing(&found, minor_version)?,
        keep_alive: found.persists(minor_version),
        expects_continue: found.expects_continue && minor_version >= 1,
        minor_version,
        len,
        method_text,
        target: target_span,
        fields: Fields::index(request.headers, window),
    })
}

/// Checks that more bytes could still make this a head within the limits.
fn incomplete(window: &[u8], limits: &Limits) -> Result<(), ParseError> {
    if request_line_len(window) > limits.request_line_bytes {
        return Err(ParseError::RequestLineTooLong);
    }
    if window.len() > limits.head_limit() {
        return Err(ParseError::HeadTooLong);
    }
    Ok(())
}

fn refusal(error: httparse::Error, window: &[u8], limits: &Limits) -> ParseError {
    if request_line_len(window) > limits.request_line_bytes {
        return ParseError::RequestLineTooLong;
    }
    match error {
        // httparse reports "version" for anything that follows the target, but only another HTTP/d.d is a version.
        httparse::Error::Version if !names_a_version(window) => ParseError::StartLine,
        other => other.into(),
    }
}

fn names_a_version(window: &[u8]) -> bool {
    let line = window.split(|&byte| byte == b'\n').find(|line| line.len() > 1).unwrap_or_default();
    let Some(version) = line.split(|&byte| byte == b' ').nth(2) else { return false };
    matches!(version, [b'H', b'T', b'T', b'P', b'/', major, b'.', minor, ..]
        if major.is_ascii_digit() && minor.is_ascii_digit() && !version.starts_with(b"HTTP/1.1"))
}

/// Returns the length of the first line that is not empty, as far as it has been received.
fn request_line_len(window: &[u8]) -> usize {
    let start = window.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(window.len());
    let line = &window[start..];
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.strip_suffix(b"\r").unwrap_or(line).len()
}

/// Checks that every line ends in CR LF. httparse accepts a bare LF as the end of a line, but LF and CR nowhere else, so it is
/// enough to check the ends of lines.
fn check_line_ends(
    request: &httparse::Request<'_, '_>,
    target_end: usize,
    window: &[u8],
    len: usize,
) -> Result<(), ParseError> {
    let start = offset(request.method.unwrap_or_default().as_bytes(), window);
    let (before, last) = (window.get(..start), window.get(..len));
    let strict = before.is_some_and(|lines| lines.chunks(2).all(|line| line == b"\r\n"))
        && window.get(target_end + " HTTP/1.1".len()) == Some(&b'\r')
        && request.headers.iter().all(|header| ends_in_cr(header.value, window))
        && last.is_some_and(|head| head.ends_with(b"\r\n"));
    if strict { Ok(()) } else { Err(ParseError::LineEnd) }
}

/// Whether CR follows `value` in `window`, possibly after blanks.
fn ends_in_cr(value: &[u8], window: &[u8]) -> bool {
    let rest = window.get(offset(value, window) + value.len()..).unwrap_or_default();
    rest.iter().find(|byte| !matches!(byte, b' ' | b'\t')) == Some(&b'\r')
}

/// Returns the position of `part`, a slice of `window`.
fn offset(part: &[u8], window: &[u8]) -> usize {
    (part.as_ptr() as usize).wrapping_sub(window.as_ptr() as usize)
}

/// Checks the Host header (RFC 9112 section 3.2).
fn check_host(found: &FramingHeaders, minor_version: u8) -> Result<(), ParseError> {
    match found.hosts {
        _ if found.malformed_host => Err(ParseError::Host),
        1 => Ok(()),
        0 if minor_version == 0 => Ok(()),
        _ => Err(ParseError::Host),
    }
}

/// Checks the request target (RFC 9112 section 3.2): origin, absolute, authority or asterisk form, in ASCII, without a
/// fragment.
fn check_target(method: Method, target: &[u8]) -> Result<(), ParseError> {
    if !target.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'#') {
        return Err(ParseError::Target);
    }
    let known_form = match target {
        [b'/', ..] => true,
        b"*" => method == Method::Options,
        _ => method == Method::Connect || authority_end(target).is_some(),
    };
    if known_form { Ok(()) } else { Err(ParseError::Target) }
}

/// Returns the end of the authority in a target in absolute form.
fn authority_end(target: &[u8]) -> Option<usize> {
    let scheme = ["http://", "https://"].into_iter().find(|scheme| {
        target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    })?;
    let rest = target.get(scheme.len()..)?;
    let authority = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    (authority > 0).then_some(scheme.len() + authority)
}

fn framing(found: &FramingHeaders, minor_version: u8) -> Result<Framing, ParseError> {
    if found.chunked {
        // In HTTP/1.0 this framing is faulty, even if it could be parsed (RFC 9112 section 6.1).
        return if minor_version == 0 { Err(ParseError::TransferEncoding) } else { Ok(Framing::Chunked) };
    }
    match found.length {
        _ if found.lengths > 1 => Err(ParseError::SeveralContentLengths),
        None | Some(0) => Ok(Framing::None),
        Some(length) => Ok(Framing::Length(length)),
    }
}

impl Head {
    /// Combines the head with the bytes that it was parsed from.
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> View<'a> {
        View { head: self, bytes }
    }
}

/// A head and its bytes. Not `Debug`, because headers may contain credentials.
#[derive(Clone, Copy)]
pub struct View<'a> {
    head: &'a Head,
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// The method as sent.
    pub fn method(self) -> &'a str {
        self.text(self.head.method_text)
    }

    /// The request target as sent.
    pub fn target(self) -> &'a str {
        self.text(self.head.target)
    }

    /// The path of the target, percent-encoded as sent; `/` if an absolute target has none, and `*` for `OPTIONS *`.
    pub fn path(self) -> &'a str {
        let local = self.local();
        let path = local.split_once('?').map_or(local, |(path, _)| path);
        if path.is_empty() { "/" } else { path }
    }

    /// The part after the first `?`, percent-encoded as sent.
    pub fn query(self) -> Option<&'a str> {
        self.local().split_once('?').map(|(_, query)| query)
    }

    /// The first value of the header `name`, in any case.
    pub fn header(self, name: &str) -> Option<&'a [u8]> {
        self.head.fields.get(self.bytes, name)
    }

    /// All values of the header `name`, in order.
    pub fn header_all(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.head.fields.all(self.bytes, name)
    }

    /// Name and value of every header, in order.
    pub fn headers(self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.head.fields.iter(self.bytes)
    }

    /// The target without scheme and authority.
    fn local(self) -> &'a str {
        let target = self.target();
        if target.starts_with('/') {
            return target;
        }
        authority_end(target.as_bytes()).and_then(|end| target.get(end..)).unwrap_or(target)
    }

    fn text(self, span: Span) -> &'a str {
        // Both were checked to be ASCII. With the wrong bytes the result is empty.
        std::str::from_utf8(span.slice(self.bytes)).unwrap_or_default()
    }
}
