//! Each limit accepts its last byte and refuses the next one, with the right status.

use wire::{
    Framing, Limits, MAX_HEADERS, Method, ParseError,
    body::{Decoder, Event},
    request, response,
};

fn request(line_bytes: usize, header_bytes: usize, headers: usize) -> Vec<u8> {
    let mut bytes =
        format!("GET /{} HTTP/1.1\r\nHost:a\r\n", "x".repeat(line_bytes - "GET / HTTP/1.1".len()));
    for _ in 1..headers {
        bytes += &format!("X:{}\r\n", "y".repeat(header_bytes - 1));
    }
    (bytes + "\r\n").into_bytes()
}

fn outcome(bytes: &[u8], limits: &Limits) -> Result<(), u16> {
    let whole = request::parse(bytes, limits).map(|head| assert!(head.is_some())).map_err(ParseError::status);
    let mut prefixes = (0..=bytes.len()).map(|end| request::parse(&bytes[..end], limits));
    let by_byte = prefixes.find_map(|outcome| outcome.err()).map_or(Ok(()), |error| Err(error.status()));
    assert_eq!(whole, by_byte, "whole and byte by byte");
    whole
}

#[test]
fn heads() {
    let bytes = request(100, 50, 5);
    for (exact, tight, status) in [
        (
            Limits { head_bytes: bytes.len(), ..Limits::default() },
            Limits { head_bytes: bytes.len() - 1, ..Limits::default() },
            431,
        ),
        (
            Limits { request_line_bytes: 100, ..Limits::default() },
            Limits { request_line_bytes: 99, ..Limits::default() },
            414,
        ),
        (
            Limits { header_bytes: 50, ..Limits::default() },
            Limits { header_bytes: 49, ..Limits::default() },
            431,
        ),
        (Limits { headers: 5, ..Limits::default() }, Limits { headers: 4, ..Limits::default() }, 431),
    ] {
        assert_eq!(outcome(&bytes, &exact), Ok(()), "{exact:?}");
        assert_eq!(outcome(&bytes, &tight), Err(status), "{tight:?}");
    }
}

#[test]
fn limits_cannot_exceed_their_upper_bounds() {
    let boundless =
        Limits { head_bytes: usize::MAX, headers: usize::MAX, header_bytes: usize::MAX, ..Limits::default() };
    assert_eq!(outcome(&request(20, 1, MAX_HEADERS), &boundless), Ok(()));
    assert_eq!(request::parse(&request(20, 1, MAX_HEADERS + 1), &boundless), Err(ParseError::TooManyHeaders));
    let long = request(20, 70_000, 2);
    assert_eq!(request::parse(&long, &boundless), Err(ParseError::HeadTooLong));
    assert_eq!(request::parse(&long[..66_000], &boundless), Err(ParseError::HeadTooLong));
}

#[test]
fn response_heads() {
    let bytes = b"HTTP/1.1 200 OK\r\nX: yyyy\r\nContent-Length: 1\r\n\r\n";
    let exact = Limits { head_bytes: bytes.len(), headers: 2, header_bytes: 15, ..Limits::default() };
    assert!(response::parse(bytes, Method::Get, &exact).unwrap().is_some());
    for (limits, error) in [
        (Limits { head_bytes: bytes.len() - 1, ..exact.clone() }, ParseError::HeadTooLong),
        (Limits { headers: 1, ..exact.clone() }, ParseError::TooManyHeaders),
        (Limits { header_bytes: 14, ..exact.clone() }, ParseError::HeaderTooLong),
    ] {
        assert_eq!(response::parse(bytes, Method::Get, &limits), Err(error));
    }
}

fn body(framing: Framing, bytes: &[u8], limits: &Limits) -> Result<usize, ParseError> {
    let mut decoder = Decoder::new(framing, limits)?;
    let (mut rest, mut total) = (bytes, 0);
    loop {
        match decoder.next(rest)? {
            Event::Framing(count) => rest = &rest[count..],
            Event::Data(count) => {
                decoder.advance(count as u64);
                total += count;
                rest = &rest[count..];
            }
            Event::NeedMore => decoder.close()?,
            Event::End => return Ok(total),
        }
    }
}

#[test]
fn bodies() {
    let three = Limits { body_bytes: 3, ..Limits::default() };
    for (framing, within, beyond) in [
        (Framing::Length(3), "abc", None),
        (Framing::Chunked, "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", Some("1\r\na\r\n3\r\nbcd\r\n0\r\n\r\n")),
        (Framing::UntilClose, "abc", Some("abcd")),
    ] {
        assert_eq!(body(framing, within.as_bytes(), &three), Ok(3));
        if let Some(beyond) = beyond {
            assert_eq!(body(framing, beyond.as_bytes(), &three), Err(ParseError::BodyTooLong));
        }
    }
    assert_eq!(body(Framing::Length(4), b"", &three), Err(ParseError::BodyTooLong));
}

#[test]
fn chunk_extensions_and_trailers() {
    let tight = Limits { chunk_extension_bytes: 8, trailer_bytes: 10, ..Limits::default() };
    // The extensions of all chunks count together.
    assert_eq!(body(Framing::Chunked, b"1;abc\r\na\r\n1;abc\r\nb\r\n0\r\n\r\n", &tight), Ok(2));
    let long = b"1;abc\r\na\r\n1;abc\r\nb\r\n0;\r\n\r\n";
    assert_eq!(body(Framing::Chunked, long, &tight), Err(ParseError::ChunkExtensionTooLong));
    assert_eq!(body(Framing::Chunked, b"0\r\nA: b\r\nC:d\r\n\r\n", &tight), Err(ParseError::TrailerTooLong));
    assert_eq!(body(Framing::Chunked, b"0\r\nA:b\r\nC:d\r\n\r\n", &tight), Ok(0));
}

#[test]
fn a_body_can_be_discarded_unseen() {
    let mut length = Decoder::new(Framing::Length(1 << 33), &Limits::default()).unwrap();
    assert_eq!(length.pending(), 1 << 33);
    length.advance((1 << 33) - 1);
    assert_eq!((length.pending(), length.is_done()), (1, false));
    assert_eq!(length.close(), Err(ParseError::ClosedEarly));
    length.advance(1);
    assert_eq!((length.pending(), length.is_done()), (0, true));

    let mut chunked = Decoder::new(Framing::Chunked, &Limits::default()).unwrap();
    assert_eq!(chunked.pending(), 0);
    assert_eq!(chunked.next(b"10\r\n"), Ok(Event::Framing(4)));
    assert_eq!(chunked.pending(), 16);
    chunked.advance(16);
    assert_eq!(chunked.next(b"\r\n0\r\n\r\nHTTP"), Ok(Event::Framing(7)));
    assert_eq!(chunked.next(b"HTTP"), Ok(Event::End));
}
