//! What the headers say about the end of the body and the persistence of the connection. Request smuggling exploits
//! disagreement about this, so it is decided in one place for requests and responses.

use crate::{
    ParseError,
    limits::Limits,
    syntax::{decimal, is_host_byte, is_token, list, trim},
};

/// How the end of a body is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks, each preceded by its size.
    Chunked,
    /// Everything until the sender closes the connection; only in responses.
    UntilClose,
}

/// The headers that affect framing and persistence.
#[derive(Debug, Default)]
pub(crate) struct FramingHeaders {
    pub(crate) length: Option<u64>,
    pub(crate) lengths: usize,
    pub(crate) chunked: bool,
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) hosts: usize,
    pub(crate) malformed_host: bool,
    pub(crate) expects_continue: bool,
    pub(crate) expects_else: bool,
}

impl FramingHeaders {
    /// Reads all headers once.
    pub(crate) fn read(headers: &[httparse::Header<'_>], limits: &Limits) -> Result<Self, ParseError> {
        let mut found = Self::default();
        for header in headers {
            if header.name.len() + header.value.len() > limits.header_bytes {
                return Err(ParseError::HeaderTooLong);
            }
            found.note(header.name, header.value)?;
        }
        if found.chunked && found.lengths > 0 {
            return Err(ParseError::BothLengths);
        }
        Ok(found)
    }

    /// Whether the connection persists (RFC 9112 section 9.3).
    pub(crate) fn persists(&self, minor_version: u8) -> bool {
        !self.close && (minor_version >= 1 || self.keep_alive)
    }

    fn note(&mut self, name: &str, value: &[u8]) -> Result<(), ParseError> {
        // Few names have these lengths, so most headers cost one comparison.
        match name.len() {
            4 if name.eq_ignore_ascii_case("host") => self.note_host(value),
            6 if name.eq_ignore_ascii_case("expect") => self.note_expect(value),
            10 if name.eq_ignore_ascii_case("connection") => self.note_connection(value),
            14 if name.eq_ignore_ascii_case("content-length") => return self.note_length(value),
            17 if name.eq_ignore_ascii_case("transfer-encoding") => return self.note_coding(value),
            _ => {}
        }
        Ok(())
    }

    fn note_host(&mut self, value: &[u8]) {
        self.hosts += 1;
        self.malformed_host |= !trim(value).iter().copied().all(is_host_byte);
    }

    fn note_expect(&mut self, value: &[u8]) {
        let known = trim(value).eq_ignore_ascii_case(b"100-continue");
        self.expects_continue |= known;
        self.expects_else |= !known;
    }

    fn note_connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn note_length(&mut self, value: &[u8]) -> Result<(), ParseError> {
        let length = decimal(trim(value)).ok_or(ParseError::ContentLength)?;
        if self.length.is_some_and(|earlier| earlier != length) {
            return Err(ParseError::SeveralContentLengths);
        }
        self.length = Some(length);
        self.lengths += 1;
        Ok(())
    }

    fn note_coding(&mut self, value: &[u8]) -> Result<(), ParseError> {
        let value = trim(value);
        if self.chunked || value.is_empty() {
            return Err(ParseError::TransferEncoding);
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            return Err(refused_coding(value));
        }
        self.chunked = true;
        Ok(())
    }
}

/// Distinguishes unknown codings (501) from those with which the end of the body cannot be found (400, RFC 9112 section 6.1).
fn refused_coding(value: &[u8]) -> ParseError {
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let before_last = list(value).count().saturating_sub(1);
    let chunked_early = list(value).take(before_last).any(is_chunked);
    if !chunked_early && list(value).all(is_token) {
        ParseError::TransferCoding
    } else {
        ParseError::TransferEncoding
    }
}
