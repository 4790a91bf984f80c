//! One response, byte by byte, without I/O: what came is checked, what nobody checks may be discarded.

use analysis::sample::ErrorKind;
use wire::body::{Decoder, Event};
use wire::{Limits, response};

use crate::catch::Catch;
use crate::render::Prepared;
use crate::scenario::Verify;

/// Where a response is.
#[derive(Debug, Default)]
pub(crate) struct Response {
    body: Option<Body>,
    /// The beginning of a head whose end has not come; empty nearly always.
    partial: Vec<u8>,
    /// What the user keeps of it, where the request says that it does.
    catch: Catch,
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
    /// Whether the body is what the scenario says it must be.
    pub(crate) as_expected: bool,
    /// Whether the server is too busy and says when to come back.
    pub(crate) retry_later: bool,
}

impl Response {
    /// Makes ready for the next response.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.body = None;
        self.partial.clear();
        self.catch.reset();
    }

    /// Takes in what was received. Bytes after the end of the response are an error: nobody asked for them.
    #[inline]
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        asked: &Prepared,
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

    /// Body bytes so far.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.received)
    }

    /// Status of the response, once its head is there.
    pub(crate) fn status(&self) -> Option<u16> {
        self.body.as_ref().map(|body| body.status)
    }

    /// Bytes that may be dropped unseen before the response needs looking at again.
    #[inline]
    pub(crate) fn discardable(&self, asked: &Prepared) -> u64 {
        match (&self.body, &asked.verify) {
            (None, _) | (_, Verify::Bytes(_)) => 0,
            _ if asked.keep.is_some() => 0,
            (Some(body), Verify::Nothing | Verify::Length(_)) => body.decoder.pending(),
        }
    }

    /// What of the whole answer the user keeps; empty where it holds nothing to be kept.
    pub(crate) fn value(&mut self, asked: &Prepared) -> &[u8] {
        asked.keep.as_ref().map_or(&[], |keep| self.catch.value(&keep.from))
    }

    /// Whether the whole answer should hold something to keep and does not.
    pub(crate) fn lacks_value(&mut self, asked: &Prepared) -> bool {
        let succeeded = self.status().is_some_and(|status| (200..300).contains(&status));
        asked.keep.is_some() && succeeded && self.value(asked).is_empty()
    }

    /// Takes note that so many bytes of the body were dropped, at most [`Response::discardable`].
    pub(crate) fn discarded(&mut self, count: u64, asked: &Prepared) -> Option<Completed> {
        let body = self.body.as_mut()?;
        body.received += count;
        body.decoder.advance(count);
        body.decoder.is_done().then(|| body.completed(asked))
    }

    /// Takes note that the server has closed.
    pub(crate) fn end(&mut self, asked: &Prepared) -> Result<Completed, ErrorKind> {
        let body = self.body.as_mut().ok_or(ErrorKind::ClosedEarly)?;
        body.decoder.close().map_err(|_| ErrorKind::ClosedEarly)?;
        Ok(body.completed(asked))
    }

    fn feed_head(
        &mut self,
        mut bytes: &[u8],
        asked: &Prepared,
        limits: &Limits,
    ) -> Result<Option<Completed>, ErrorKind> {
        let malformed = |_| ErrorKind::Malformed;
        loop {
            let Some(head) = response::parse(bytes, asked.method, limits).map_err(malformed)? else {
                self.partial.extend_from_slice(bytes);
                return Ok(None);
            };
            let retry_later = matches!(head.status, 429 | 503) && says_when(bytes, asked, limits);
            if let Some(keep) = &asked.keep {
                self.catch.head(&keep.from, bytes, asked.method, limits);
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
    fn feed_body(&mut self, mut bytes: &[u8], asked: &Prepared) -> Result<Option<Completed>, ErrorKind> {
        let Some(body) = &mut self.body else { return Err(ErrorKind::Malformed) };
        loop {
            let taken = match body.decoder.next(bytes).map_err(|_| ErrorKind::Malformed)? {
                Event::Framing(count) => count,
                Event::Data(count) => {
                    let data = bytes.get(..count).unwrap_or_default();
                    body.take(data, &asked.verify);
                    if let Some(keep) = &asked.keep {
                        self.catch.body(&keep.from, data);
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

    fn completed(&self, asked: &Prepared) -> Completed {
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

/// Whether a response says when to come back (RFC 9110 section 10.2.3). Only asked of servers that are too busy: it
/// takes the head apart a second time.
#[cold]
fn says_when(head: &[u8], asked: &Prepared, limits: &Limits) -> bool {
    let parsed = response::parse_indexed(head, asked.method, limits);
    matches!(parsed, Ok(Some((_, fields))) if fields.get(head, "retry-after").is_some())
}

#[cfg(test)]
mod tests;
