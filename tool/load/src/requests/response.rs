//! One response, byte by byte, without I/O. Bodies that nobody checks may be discarded unseen.

use analysis::ticks::ErrorKind;
use wire::body::{Decoder, Event};
use wire::{Limits, response};

use super::capture::ResponseCapture;
use super::program::PreparedRequest;
use crate::scenario::definition::Verify;

/// The state of a response that is being received.
#[derive(Debug, Default)]
pub(crate) struct Response {
    body: Option<Body>,
    /// The beginning of an incomplete head; nearly always empty.
    partial: Vec<u8>,
    /// What the user captures, if the request says so.
    capture: ResponseCapture,
}

#[derive(Debug)]
struct Body {
    status: u16,
    keep_alive: bool,
    decoder: Decoder,
    received: u64,
    as_expected: bool,
    retry_later: bool,
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Completed {
    pub(crate) status: u16,
    /// Whether the connection may carry another request.
    pub(crate) keep_alive: bool,
    pub(crate) body_bytes: u64,
    /// Whether the body passes the verification that the scenario asks for.
    pub(crate) as_expected: bool,
    /// Whether the server is overloaded and says when to retry.
    pub(crate) retry_later: bool,
}

impl Response {
    /// Prepares for the next response.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.body = None;
        self.partial.clear();
        self.capture.reset();
    }

    /// Processes received bytes. Returns the response when it is complete. Bytes after its end are an error because nobody
    /// asked for them.
    #[inline]
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        asked: &PreparedRequest,
        limits: &Limits,
    ) -> Result<Option<Completed>, ErrorKind> {
        if self.body.is_some() {
            return self.feed_body(bytes, asked);
        }
        if self.partial.is_empty() {
            return self.feed_head(bytes, asked, limits);
        }
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(bytes);
        self.feed_head(&whole, asked, limits)
    }

    /// Number of body bytes so far.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.received)
    }

    /// Status of the response, once its head has arrived.
    pub(crate) fn status(&self) -> Option<u16> {
        self.body.as_ref().map(|body| body.status)
    }

    /// Number of bytes that may be discarded before the response has to be inspected again.
    #[inline]
    pub(crate) fn discardable(&self, asked: &PreparedRequest) -> u64 {
        match (&self.body, &asked.verify) {
            (None, _) | (_, Verify::Bytes(_)) => 0,
            _ if asked.capture.is_some() => 0,
            (Some(body), Verify::Nothing | Verify::Length(_)) => body.decoder.pending(),
        }
    }

    /// Returns the value captured from the whole response; empty if there is none.
    pub(crate) fn value(&mut self, asked: &PreparedRequest) -> &[u8] {
        asked.capture.as_ref().map_or(&[], |capture| self.capture.value(&capture.from))
    }

    /// Whether the whole response lacks a value that the user should capture.
    pub(crate) fn lacks_value(&mut self, asked: &PreparedRequest) -> bool {
        let succeeded = self.status().is_some_and(|status| (200..300).contains(&status));
        asked.capture.is_some() && succeeded && self.value(asked).is_empty()
    }

    /// Notes that this many bytes of the body were discarded, at most [`Response::discardable`].
    pub(crate) fn discarded(&mut self, count: u64, asked: &PreparedRequest) -> Option<Completed> {
        let body = self.body.as_mut()?;
        body.received += count;
        body.decoder.advance(count);
        body.decoder.is_done().then(|| body.completed(asked))
    }

    /// Notes that the server has closed the connection.
    pub(crate) fn end(&mut self, asked: &PreparedRequest) -> Result<Completed, ErrorKind> {
        let body = self.body.as_mut().ok_or(ErrorKind::ClosedEarly)?;
        body.decoder.close().map_err(|_| ErrorKind::ClosedEarly)?;
        Ok(body.completed(asked))
    }

    fn feed_head(
        &mut self,
        mut bytes: &[u8],
        asked: &PreparedRequest,
        limits: &Limits,
    ) -> Result<Option<Completed>, ErrorKind> {
        let malformed = |_| ErrorKind::Malformed;
        loop {
            let Some(head) = response::parse(bytes, asked.method, limits).map_err(malformed)? else {
                self.partial.extend_from_slice(bytes);
                return Ok(None);
            };
            let retry_later = matches!(head.status, 429 | 503) && says_when_to_retry(bytes, asked, limits);
            if let Some(capture) = &asked.capture {
                self.capture.head(&capture.from, bytes, asked.method, limits);
            }
            bytes = bytes.get(head.len..).unwrap_or_default();
            if head.is_interim() {
                if bytes.is_empty() {
                    return Ok(None);
                }
                continue;
            }
            self.body = Some(Body {
                status: head.status,
                keep_alive: head.keep_alive,
                decoder: Decoder::new(head.framing, limits).map_err(malformed)?,
                received: 0,
                as_expected: true,
                retry_later,
            });
            return self.feed_body(bytes, asked);
        }
    }

    #[inline]
    fn feed_body(
        &mut self,
        mut bytes: &[u8],
        asked: &PreparedRequest,
    ) -> Result<Option<Completed>, ErrorKind> {
        let Some(body) = &mut self.body else { return Err(ErrorKind::Malformed) };
        loop {
            let taken = match body.decoder.next(bytes).map_err(|_| ErrorKind::Malformed)? {
                Event::Framing(count) => count,
                Event::Data(count) => {
                    let data = bytes.get(..count).unwrap_or_default();
                    body.take(data, &asked.verify);
                    if let Some(capture) = &asked.capture {
                        self.capture.body(&capture.from, data);
                    }
                    count
                }
                Event::NeedMore => return Ok(None),
                Event::End if bytes.is_empty() => return Ok(Some(body.completed(asked))),
                Event::End => return Err(ErrorKind::Malformed),
            };
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }
}

impl Body {
    #[inline]
    fn take(&mut self, bytes: &[u8], verify: &Verify) {
        if let Verify::Bytes(expected) = verify {
            let rest = usize::try_from(self.received).ok().and_then(|at| expected.get(at..));
            self.as_expected &= rest.is_some_and(|rest| rest.starts_with(bytes));
        }
        self.received += bytes.len() as u64;
        self.decoder.advance(bytes.len() as u64);
    }

    fn completed(&self, asked: &PreparedRequest) -> Completed {
        let whole = match &asked.verify {
            Verify::Nothing => true,
            Verify::Length(length) => self.received == *length,
            Verify::Bytes(expected) => self.received == expected.len() as u64,
        };
        Completed {
            status: self.status,
            keep_alive: self.keep_alive,
            body_bytes: self.received,
            as_expected: self.as_expected && whole,
            retry_later: self.retry_later,
        }
    }
}

/// Whether a response says when to retry (RFC 9110 section 10.2.3). Used only for overloaded servers, because it parses
/// the head a second time.
#[cold]
fn says_when_to_retry(head: &[u8], asked: &PreparedRequest, limits: &Limits) -> bool {
    let parsed = response::parse_indexed(head, asked.method, limits);
    matches!(parsed, Ok(Some((_, fields))) if fields.get(head, "retry-after").is_some())
}

#[cfg(test)]
mod tests;
