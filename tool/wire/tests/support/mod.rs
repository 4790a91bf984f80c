//! Parses a stream of messages, whole or in pieces, into a list of events that must not depend on the pieces.
#![allow(dead_code, reason = "each test file uses its own part")]

use wire::{
    Framing, Limits, Method, ParseError,
    body::{Decoder, Event},
    request, response,
};

/// An event in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Request {
        method: String,
        target: String,
        headers: Vec<(String, Vec<u8>)>,
        keep_alive: bool,
        framing: Framing,
    },
    Response {
        status: u16,
        keep_alive: bool,
        framing: Framing,
    },
    Body(Vec<u8>),
    /// The stream ended within a message.
    Cut,
    /// The stream cannot be parsed any further.
    Refused,
}

/// A reader that receives bytes in pieces and keeps what it has not parsed, like a connection.
pub(crate) struct Reader<'p> {
    pieces: std::slice::Iter<'p, Vec<u8>>,
    input: Vec<u8>,
    limits: Limits,
    parsed: Vec<Parsed>,
}

/// Why parsing stopped.
enum Stop {
    Cut,
    Refused,
}

impl From<ParseError> for Stop {
    fn from(_: ParseError) -> Self {
        Self::Refused
    }
}

impl<'p> Reader<'p> {
    pub(crate) fn new(pieces: &'p [Vec<u8>], limits: Limits) -> Self {
        Self { pieces: pieces.iter(), input: Vec::new(), limits, parsed: Vec::new() }
    }

    /// Parses requests.
    pub(crate) fn requests(mut self) -> Vec<Parsed> {
        let stop = loop {
            if let Err(stop) = self.request() {
                break stop;
            }
        };
        self.stopped(stop)
    }

    /// Parses the responses to requests with `methods` in turn.
    pub(crate) fn responses(mut self, methods: &[Method]) -> Vec<Parsed> {
        for &asked in methods {
            if let Err(stop) = self.response(asked) {
                return self.stopped(stop);
            }
        }
        self.parsed
    }

    fn stopped(mut self, stop: Stop) -> Vec<Parsed> {
        match stop {
            Stop::Refused => self.parsed.push(Parsed::Refused),
            Stop::Cut if !self.input.is_empty() => self.parsed.push(Parsed::Cut),
            Stop::Cut => {}
        }
        self.parsed
    }

    fn request(&mut self) -> Result<(), Stop> {
        let head = loop {
            if let Some(head) = request::parse(&self.input, &self.limits)? {
                break head;
            }
            self.fill()?;
        };
        let view = head.view(&self.input);
        let headers = view.headers().map(|(name, value)| (name.to_owned(), value.to_vec())).collect();
        self.parsed.push(Parsed::Request {
            method: view.method().to_owned(),
            target: view.target().to_owned(),
            headers,
            keep_alive: head.keep_alive,
            framing: head.framing,
        });
        self.input.drain(..head.len);
        self.body(head.framing)
    }

    fn response(&mut self, asked: Method) -> Result<(), Stop> {
        let head = loop {
            if let Some(head) = response::parse(&self.input, asked, &self.limits)? {
                break head;
            }
            self.fill()?;
        };
        self.parsed.push(Parsed::Response {
            status: head.status,
            keep_alive: head.keep_alive,
            framing: head.framing,
        });
        self.input.drain(..head.len);
        self.body(head.framing)
    }

    fn body(&mut self, framing: Framing) -> Result<(), Stop> {
        let mut decoder = Decoder::new(framing, &self.limits)?;
        let mut body = Vec::new();
        loop {
            match decoder.next(&self.input)? {
                Event::Framing(count) => drop(self.input.drain(..count)),
                Event::Data(count) => {
                    body.extend(self.input.drain(..count));
                    decoder.advance(count as u64);
                }
                Event::NeedMore => {
                    if self.fill().is_err() {
                        decoder.close().map_err(|_| Stop::Cut)?;
                    }
                }
                Event::End => break,
            }
        }
        self.parsed.push(Parsed::Body(body));
        Ok(())
    }

    fn fill(&mut self) -> Result<(), Stop> {
        self.input.extend_from_slice(self.pieces.next().ok_or(Stop::Cut)?);
        Ok(())
    }
}

/// Cuts `bytes` at each of `cuts` modulo the length.
pub(crate) fn cut(bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
}

/// Small limits, which arbitrary input reaches too.
pub(crate) fn tight() -> Limits {
    Limits {
        head_bytes: 200,
        request_line_bytes: 60,
        headers: 4,
        header_bytes: 60,
        body_bytes: 300,
        chunk_extension_bytes: 12,
        trailer_bytes: 30,
    }
}

/// The methods of the requests whose responses are parsed, in turn.
pub(crate) const ASKED: [Method; 4] = [Method::Get, Method::Head, Method::Post, Method::Get];

/// Parses requests whole and cut where the first bytes of `data` say, and compares.
pub(crate) fn compare_requests(data: &[u8]) {
    compare(data, |pieces, limits| Reader::new(pieces, limits).requests());
}

/// Parses responses whole and cut where the first bytes of `data` say, and compares.
pub(crate) fn compare_responses(data: &[u8]) {
    compare(data, |pieces, limits| Reader::new(pieces, limits).responses(&ASKED));
}

fn compare(data: &[u8], read: impl Fn(&[Vec<u8>], Limits) -> Vec<Parsed>) {
    let (cuts, stream) = data.split_at(data.len().min(4));
    let cuts: Vec<_> = cuts.iter().map(|&cut| usize::from(cut)).collect();
    for limits in [Limits::default(), tight()] {
        let whole = read(&[stream.to_vec()], limits.clone());
        assert_eq!(whole, read(&cut(stream, &cuts), limits));
    }
}
