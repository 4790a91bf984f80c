//! Ranges, conditions, targets, and rendered heads.

use wire::{
    ByteRange, Limits, Method, conditional,
    range::{self, RangeSelection},
    request, write,
};

fn part(offset: u64, length: u64) -> RangeSelection {
    RangeSelection::Part(ByteRange { offset, length })
}

#[test]
fn ranges_of_rfc_9110() {
    // The examples of section 14.1.2, for a representation of 10 000 bytes, and their edge cases.
    for (value, wanted) in [
        ("bytes=0-499", part(0, 500)),
        ("bytes=500-999", part(500, 500)),
        ("bytes=-500", part(9500, 500)),
        ("bytes=9500-", part(9500, 500)),
        ("bytes=0-0", part(0, 1)),
        ("bytes=0-", part(0, 10_000)),
        ("bytes=9999-20000", part(9999, 1)),
        ("bytes=-20000", part(0, 10_000)),
        ("bytes=0-99999999999999999999999", part(0, 10_000)),
        ("bytes=-99999999999999999999999", part(0, 10_000)),
        ("Bytes = 0-1", RangeSelection::Whole),
        ("BYTES=0-1", part(0, 2)),
        (" bytes=0-1 ", part(0, 2)),
        ("bytes= 0-1", part(0, 2)),
        ("bytes=0-0,-1", RangeSelection::Whole),
        ("bytes=20000-,30000-", RangeSelection::Unsatisfiable),
        ("bytes=10000-", RangeSelection::Unsatisfiable),
        ("bytes=99999999999999999999999-", RangeSelection::Unsatisfiable),
        ("bytes=-0", RangeSelection::Unsatisfiable),
        ("bytes=5-4", RangeSelection::Whole),
        ("bytes=", RangeSelection::Whole),
        ("bytes=-", RangeSelection::Whole),
        ("bytes=a-b", RangeSelection::Whole),
        ("bytes=+1-2", RangeSelection::Whole),
        ("bytes=1", RangeSelection::Whole),
        ("bytes=1-2-3", RangeSelection::Whole),
        ("lines=1-2", RangeSelection::Whole),
        ("", RangeSelection::Whole),
    ] {
        assert_eq!(range::parse(value.as_bytes(), 10_000), wanted, "{value:?}");
    }
    assert_eq!(range::parse(b"bytes=0-", 0), RangeSelection::Unsatisfiable);
    assert_eq!(range::parse(b"bytes=-1", 0), RangeSelection::Unsatisfiable);
    assert_eq!(range::parse(b"bytes=18446744073709551614-", u64::MAX), part(u64::MAX - 1, 1));
}

#[test]
fn content_ranges() {
    let mut out = Vec::new();
    ByteRange { offset: 42, length: 1192 }.content_range(&mut out, 1234);
    assert_eq!(out, b"bytes 42-1233/1234");
    out.clear();
    range::unsatisfied_content_range(&mut out, 1234);
    assert_eq!(out, b"bytes */1234");
}

#[test]
fn entity_tags_of_rfc_9110() {
    // The table of weak and strong comparison in section 8.8.3.2.
    for (one, other, strong, weak) in [
        ("W/\"1\"", "W/\"1\"", false, true),
        ("W/\"1\"", "W/\"2\"", false, false),
        ("W/\"1\"", "\"1\"", false, true),
        ("\"1\"", "\"1\"", true, true),
    ] {
        assert_eq!(conditional::match_names(one.as_bytes(), other.as_bytes()), strong, "{one} {other}");
        assert_eq!(conditional::none_match_names(one.as_bytes(), other.as_bytes()), weak, "{one} {other}");
        assert_eq!(conditional::range_holds(one.as_bytes(), other.as_bytes(), b""), strong, "{one} {other}");
    }
}

#[test]
fn lists_of_tags() {
    for (value, names) in [
        ("*", true),
        ("\"a\", \"b\"", true),
        ("\"a\",\"x\"", false),
        ("W/\"b\"", true),
        ("\"a,\"b\"", false),
        ("\"a\", nonsense, \"b\"", false),
        ("b", false),
        ("\"b", false),
        ("", false),
    ] {
        assert_eq!(conditional::none_match_names(value.as_bytes(), b"\"b\""), names, "{value:?}");
    }
    assert!(conditional::none_match_names(b"\"x\", \"a,b\"", b"\"a,b\""));
}

#[test]
fn if_range_with_a_date() {
    let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
    assert!(conditional::range_holds(date, b"\"a\"", date));
    assert!(!conditional::range_holds(b"Sun, 06 Nov 1994 08:49:38 GMT", b"\"a\"", date));
    assert!(!conditional::range_holds(b"", b"\"a\"", b""));
}

#[test]
fn targets_in_every_form() {
    for (line, path, query) in [
        ("GET /a/b?c=d?e HTTP/1.1", "/a/b", Some("c=d?e")),
        ("GET / HTTP/1.1", "/", None),
        ("GET /? HTTP/1.1", "/", Some("")),
        ("GET http://h/a?b HTTP/1.1", "/a", Some("b")),
        ("GET HTTP://h:80 HTTP/1.1", "/", None),
        ("GET http://h?b HTTP/1.1", "/", Some("b")),
        ("OPTIONS * HTTP/1.1", "*", None),
        ("CONNECT h:443 HTTP/1.1", "h:443", None),
        ("GET //h/a HTTP/1.1", "//h/a", None),
    ] {
        let bytes = format!("{line}\r\nHost: h\r\n\r\n").into_bytes();
        let head = request::parse(&bytes, &Limits::default()).unwrap().unwrap();
        assert_eq!((head.view(&bytes).path(), head.view(&bytes).query()), (path, query), "{line}");
    }
}

#[test]
fn requests_determine_whether_the_connection_persists() {
    for (version, header, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: keep-alive, CLOSE\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let bytes = format!("GET / HTTP/{version}\r\nHost: h\r\n{header}\r\n").into_bytes();
        let head = request::parse(&bytes, &Limits::default()).unwrap().unwrap();
        assert_eq!(head.keep_alive, keep_alive, "{version} {header}");
    }
}

#[test]
fn methods_keep_their_names() {
    for name in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "get", "BREW"] {
        let bytes = format!("{name} / HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes();
        let head = request::parse(&bytes, &Limits::default()).unwrap().unwrap();
        assert_eq!(head.view(&bytes).method(), name);
        assert_eq!(head.method == Method::Other, ["get", "BREW"].contains(&name));
    }
}

#[test]
fn heads_are_rendered_by_the_grammar() {
    let mut out = Vec::new();
    write::status_line(&mut out, 404);
    write::header(&mut out, "X", b"y").unwrap();
    write::content_length(&mut out, u64::MAX);
    write::connection_close(&mut out);
    write::end(&mut out);
    write::chunk(&mut out, &[b'z'; 26]);
    write::chunk(&mut out, b"");
    write::last_chunk(&mut out);
    let expected = format!(
        "HTTP/1.1 404 Not Found\r\nX: y\r\nContent-Length: 18446744073709551615\r\nConnection: close\r\n\r\n\
         1a\r\n{}\r\n0\r\n\r\n",
        "z".repeat(26)
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn request_lines_cannot_be_ended_early() {
    for (method, target) in [
        ("GET", "/a b"),
        ("GET", "/a\r\nX: y"),
        ("GET", ""),
        ("GET", "/\u{e9}"),
        ("G T", "/"),
        ("", "/"),
        ("GET\r\n", "/"),
    ] {
        let mut out = Vec::new();
        assert!(write::request_line(&mut out, method, target).is_err(), "{method:?} {target:?}");
        assert!(out.is_empty());
    }
}
