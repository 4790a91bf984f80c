//! The end of responses and the persistence of their connections, case by case (RFC 9112 sections 6.3 and 9.3).

use wire::{
    Framing::{self, Chunked, Length, UntilClose},
    Limits, Method, ParseError, response,
};

fn read(head: &str, asked: Method) -> Result<(Framing, bool), ParseError> {
    let found = response::parse(head.as_bytes(), asked, &Limits::default())?.expect("a whole head");
    assert_eq!(found.len, head.len());
    Ok((found.framing, found.keep_alive))
}

#[test]
fn framing_and_persistence() {
    use Method::{Connect, Get, Head};
    for (asked, head, framing, keep_alive) in [
        (Get, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Length(5), true),
        (Get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Framing::None, true),
        (Get, "HTTP/1.1 200 OK\r\ncontent-LENGTH: 5\r\nContent-Length: 5\r\n\r\n", Length(5), true),
        (Get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Chunked, true),
        (Get, "HTTP/1.1 200 OK\r\n\r\n", UntilClose, false),
        (Get, "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", Length(5), true),
        (Get, "HTTP/1.1 200 OK\nContent-Length: 5\n\n", Length(5), true),
        (Get, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n", Length(5), false),
        (Get, "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 5\r\n\r\n", Length(5), false),
        (Get, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Length(5), false),
        (Get, "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\n", Length(5), true),
        (Get, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", UntilClose, false),
        (Get, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", Framing::None, true),
        (Get, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Framing::None, true),
        (Get, "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", Framing::None, true),
        (Get, "HTTP/1.1 100 Continue\r\n\r\n", Framing::None, true),
        (Get, "HTTP/1.1 101 Switching Protocols\r\n\r\n", Framing::None, false),
        (Head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Framing::None, true),
        (Head, "HTTP/1.1 200 OK\r\n\r\n", Framing::None, true),
        (Connect, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", UntilClose, false),
        (Get, "HTTP/1.1 500 x\r\nHost: a b\r\nExpect: odd\r\nContent-Length: 5\r\n\r\n", Length(5), true),
    ] {
        assert_eq!(read(head, asked), Ok((framing, keep_alive)), "{asked:?} {head:?}");
    }
}

#[test]
fn doubt_about_the_end_is_an_error() {
    for (head, error) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            ParseError::SeveralContentLengths,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n", ParseError::ContentLength),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            ParseError::BothLengths,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", ParseError::TransferCoding),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ParseError::TransferEncoding),
        ("HTTP/1.1 099 Odd\r\n\r\n", ParseError::StartLine),
        ("HTTP/1.1 2000 Odd\r\n\r\n", ParseError::StartLine),
        ("HTTP/1.1 20 Odd\r\n\r\n", ParseError::StartLine),
        ("HTTP/2 200\r\n\r\n", ParseError::Version),
        ("ICY 200 OK\r\n\r\n", ParseError::Version),
        ("HTTP/1.1 200 OK\r\nX : y\r\n\r\n", ParseError::HeaderName),
        ("HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n", ParseError::HeaderName),
    ] {
        assert_eq!(read(head, Method::Get), Err(error), "{head:?}");
    }
}

#[test]
fn interim_responses() {
    for (status, interim) in [(100, true), (101, false), (103, true), (199, true), (200, false)] {
        let head = format!("HTTP/1.1 {status} x\r\n\r\n");
        let found = response::parse(head.as_bytes(), Method::Get, &Limits::default()).unwrap().unwrap();
        assert_eq!(found.is_interim(), interim, "{status}");
    }
}

#[test]
fn headers_can_be_looked_up() {
    let head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nX:\r\nset-cookie:  b \r\n\r\n";
    let (_, fields) = response::parse_indexed(head, Method::Get, &Limits::default()).unwrap().unwrap();
    assert_eq!(fields.get(head, "X"), Some(&b""[..]));
    assert_eq!(fields.get(head, "Y"), None);
    assert_eq!(fields.all(head, "Set-Cookie").collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(
        fields.iter(head).map(|(name, _)| name).collect::<Vec<_>>(),
        ["Set-Cookie", "X", "set-cookie"]
    );
    assert_eq!((fields.len(), fields.is_empty()), (3, false));
}
