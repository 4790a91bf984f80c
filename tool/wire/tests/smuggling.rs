//! Requests that two parsers could interpret differently, and the status for each.

use wire::{
    Framing, Limits, ParseError,
    body::{Decoder, Event},
    request,
};

fn refusal(bytes: &[u8]) -> Result<(), ParseError> {
    let limits = Limits::default();
    let Some(head) = request::parse(bytes, &limits)? else { return Ok(()) };
    let mut decoder = Decoder::new(head.framing, &limits)?;
    let mut rest = &bytes[head.len..];
    loop {
        match decoder.next(rest)? {
            Event::Framing(count) => rest = &rest[count..],
            Event::Data(count) => {
                decoder.advance(count as u64);
                rest = &rest[count..];
            }
            Event::NeedMore | Event::End => return Ok(()),
        }
    }
}

fn check(cases: &[(&str, &str, ParseError, u16)]) {
    for (name, bytes, error, status) in cases {
        assert_eq!(refusal(bytes.as_bytes()), Err(*error), "{name}");
        assert_eq!(error.status(), *status, "{name}");
    }
}

#[test]
fn lengths_that_disagree() {
    use ParseError::*;
    check(&[
        (
            "CL.TE",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
            BothLengths,
            400,
        ),
        (
            "TE.CL",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nG",
            BothLengths,
            400,
        ),
        (
            "CL.0 with TE",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
            BothLengths,
            400,
        ),
        (
            "two lengths that differ",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nContent-Length: 5\r\n\r\n",
            SeveralContentLengths,
            400,
        ),
        (
            "two lengths that agree",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nContent-Length: 6\r\n\r\n",
            SeveralContentLengths,
            400,
        ),
        (
            "two zero lengths",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
            SeveralContentLengths,
            400,
        ),
        (
            "a list of lengths",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6, 6\r\n\r\n",
            ContentLength,
            400,
        ),
        ("a signed length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +6\r\n\r\n", ContentLength, 400),
        ("a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", ContentLength, 400),
        (
            "a hexadecimal length",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x6\r\n\r\n",
            ContentLength,
            400,
        ),
        ("an empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", ContentLength, 400),
        (
            "a length past 64 bits",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\n",
            ContentLength,
            400,
        ),
        (
            "a length past the limit",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n",
            BodyTooLong,
            413,
        ),
    ]);
}

#[test]
fn transfer_codings() {
    use ParseError::*;
    check(&[
        (
            "TE.TE",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
            TransferEncoding,
            400,
        ),
        (
            "chunked twice",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
            TransferEncoding,
            400,
        ),
        (
            "chunked not last",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
            TransferEncoding,
            400,
        ),
        (
            "chunked with a vertical tab",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
            HeaderValue,
            400,
        ),
        (
            "chunked in quotes",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n",
            TransferEncoding,
            400,
        ),
        (
            "an empty coding",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n",
            TransferEncoding,
            400,
        ),
        (
            "gzip before chunked",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            TransferCoding,
            501,
        ),
        (
            "identity",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
            TransferCoding,
            501,
        ),
        (
            "a coding that looks like chunked",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
            TransferCoding,
            501,
        ),
        (
            "chunked in HTTP/1.0",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            TransferEncoding,
            400,
        ),
    ]);
}

#[test]
fn lines_and_names() {
    use ParseError::*;
    check(&[
        ("a bare LF after a header", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", LineEnd, 400),
        ("a bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", LineEnd, 400),
        ("a bare LF for the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\n", LineEnd, 400),
        ("nothing but bare LFs", "GET / HTTP/1.1\nHost: a\n\n", LineEnd, 400),
        ("a bare CR in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n", HeaderValue, 400),
        ("a bare CR in a name", "GET / HTTP/1.1\r\nHost: a\r\nX\ry: z\r\n\r\n", HeaderName, 400),
        ("a folded line", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", HeaderName, 400),
        ("a line folded with a tab", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tz\r\n\r\n", HeaderName, 400),
        ("a blank before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", HeaderName, 400),
        (
            "a blank before the colon",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 6\r\n\r\n",
            HeaderName,
            400,
        ),
        (
            "a tab before the colon",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n",
            HeaderName,
            400,
        ),
        ("a header without a name", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", HeaderName, 400),
        ("a header without a colon", "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", HeaderName, 400),
        ("a NUL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: y\0\r\n\r\n", HeaderValue, 400),
        ("no Host", "GET / HTTP/1.1\r\n\r\n", Host, 400),
        ("two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", Host, 400),
        ("a Host with a blank", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Host, 400),
        ("a Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Host, 400),
    ]);
}

#[test]
fn start_lines() {
    use ParseError::*;
    check(&[
        ("HTTP/0.9", "GET /\r\n\r\n", StartLine, 400),
        ("HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", Version, 505),
        ("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Version, 505),
        ("HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", Version, 505),
        ("lower-case http", "GET / http/1.1\r\nHost: a\r\n\r\n", StartLine, 400),
        ("a blank in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", StartLine, 400),
        ("two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", StartLine, 400),
        ("a blank after the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", LineEnd, 400),
        ("a greeting of TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}", StartLine, 400),
        ("a relative target", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", Target, 400),
        ("a fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", Target, 400),
        ("a target outside ASCII", "GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", Target, 400),
        ("an asterisk for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", Target, 400),
        ("an absolute target without a host", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", Target, 400),
        ("an unknown expectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n", Expectation, 417),
    ]);
}

#[test]
fn chunks() {
    use ParseError::*;
    let cases: [(&str, &str, ParseError, u16); 15] = [
        ("no size", "\r\n", ChunkSize, 400),
        ("a sign", "+5\r\nhello\r\n", ChunkSize, 400),
        ("a prefix", "0x5\r\nhello\r\n", ChunkSize, 400),
        ("a blank before", " 5\r\nhello\r\n", ChunkSize, 400),
        ("a blank after", "5 \r\nhello\r\n", ChunkSize, 400),
        ("a size past 64 bits", "10000000000000005\r\nhello\r\n", ChunkSize, 400),
        ("seventeen zeros", "00000000000000000\r\n", ChunkSize, 400),
        ("a size past the limit", "ffffffffffffffff\r\n", BodyTooLong, 413),
        ("a bare LF after the size", "5\nhello\r\n", ChunkSize, 400),
        ("a bare CR after the size", "5\rhello\r\n", Chunk, 400),
        ("a bare LF in the extension", "5;a\nhello\r\n", Chunk, 400),
        ("more data than the size", "5\r\nhello!\r\n", Chunk, 400),
        ("a bare LF after the data", "5\r\nhello\n0\r\n\r\n", Chunk, 400),
        ("a trailer without a colon", "0\r\nX\r\n\r\n", Trailer, 400),
        ("a folded trailer", "0\r\nX: y\r\n z\r\n\r\n", Trailer, 400),
    ];
    for (name, body, error, status) in cases {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        check(&[(name, &request, error, status)]);
    }
}

#[test]
fn valid_requests_are_accepted() {
    for (name, bytes) in [
        ("an empty line before", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
        ("HTTP/1.0 without a Host", "GET / HTTP/1.0\r\n\r\n"),
        ("an empty header", "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n"),
        ("chunked in capitals", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"),
        (
            "an extension",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 ;a=\"b\"\r\nhello\r\n0\r\n\r\n",
        ),
        ("a trailer", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n"),
        ("an address of IPv6", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"),
    ] {
        assert_eq!(refusal(bytes.as_bytes()), Ok(()), "{name}");
    }
}

#[test]
fn the_second_request_starts_where_the_first_ends() {
    let stream =
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /second HTTP/1.1\r\nHost: a\r\n\r\n";
    let first = request::parse(stream, &Limits::default()).unwrap().unwrap();
    assert_eq!(first.framing, Framing::Length(3));
    let rest = &stream[first.len + 3..];
    let second = request::parse(rest, &Limits::default()).unwrap().unwrap();
    assert_eq!(second.view(rest).path(), "/second");
}
