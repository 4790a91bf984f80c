//! Both ends parse the same messages however a stream is cut into pieces, and never panic.

mod support;

use proptest::{collection::vec, prelude::*};
use support::{ASKED, Parsed, Reader, compare_requests, compare_responses, cut, tight};
use wire::{Limits, Method, write};

#[derive(Clone, Debug)]
enum Body {
    None,
    Length(Vec<u8>),
    Chunked(Vec<Vec<u8>>),
}

impl Body {
    fn render_headers(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Length(body) => write::content_length(out, body.len() as u64),
            Self::Chunked(_) => write::chunked(out),
        }
        write::end(out);
    }

    fn render(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Length(body) => out.extend_from_slice(body),
            Self::Chunked(chunks) => {
                chunks.iter().for_each(|chunk| write::chunk(out, chunk));
                write::last_chunk(out);
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::None => Vec::new(),
            Self::Length(body) => body.clone(),
            Self::Chunked(chunks) => chunks.concat(),
        }
    }
}

fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::None),
        vec(any::<u8>(), 0..80).prop_map(Body::Length),
        vec(vec(any::<u8>(), 0..40), 0..5).prop_map(Body::Chunked),
    ]
}

type Headers = Vec<(String, String)>;

fn any_headers() -> impl Strategy<Value = Headers> {
    vec(("X-[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}", "([!-~]([ -~]{0,20}[!-~])?)?"), 0..5)
}

#[derive(Clone, Debug)]
struct Asked {
    method: &'static str,
    target: String,
    headers: Headers,
    body: Body,
}

fn any_request() -> impl Strategy<Value = Asked> {
    let method = prop_oneof![Just("GET"), Just("POST"), Just("BREW")];
    (method, "/[a-z0-9/%?=&;_.~-]{0,30}", any_headers(), any_body())
        .prop_map(|(method, target, headers, body)| Asked { method, target, headers, body })
}

impl Asked {
    fn render(&self, out: &mut Vec<u8>) {
        write::request_line(out, self.method, &self.target).expect("valid");
        write::header(out, "Host", b"localhost").expect("valid");
        for (name, value) in &self.headers {
            write::header(out, name, value.as_bytes()).expect("valid");
        }
        self.body.render_headers(out);
        self.body.render(out);
    }
}

fn rendered(requests: &[Asked]) -> Vec<u8> {
    let mut out = Vec::new();
    requests.iter().for_each(|request| request.render(&mut out));
    out
}

fn rendered_responses(responses: &[(u16, Headers, Body)]) -> Vec<u8> {
    let mut out = Vec::new();
    for ((status, headers, body), asked) in responses.iter().zip(ASKED) {
        write::status_line(&mut out, *status);
        for (name, value) in headers {
            write::header(&mut out, name, value.as_bytes()).expect("valid");
        }
        body.render_headers(&mut out);
        if asked != Method::Head && !wire::status::is_bodyless(*status) {
            body.render(&mut out);
        }
    }
    out
}

fn any_responses() -> impl Strategy<Value = Vec<(u16, Headers, Body)>> {
    vec(
        (
            prop_oneof![Just(200_u16), Just(204), Just(304), Just(404), 200..600_u16],
            any_headers(),
            any_body(),
        ),
        1..4,
    )
}

fn damaged(mut bytes: Vec<u8>, damage: &[(usize, u8)]) -> Vec<u8> {
    for &(place, byte) in damage {
        let length = bytes.len();
        bytes[place % length] = byte;
    }
    bytes
}

/// Bytes with a meaning somewhere in HTTP.
fn significant_byte() -> impl Strategy<Value = u8> {
    prop_oneof![prop::sample::select(b"\r\n \t:;,0123aF/?\0\x7f\"-".to_vec()), any::<u8>()]
}

proptest! {
    #[test]
    fn rendered_requests_are_parsed_back(requests in vec(any_request(), 1..4), cuts in vec(any::<usize>(), 0..8)) {
        let stream = rendered(&requests);
        let pieces = cut(&stream, &cuts);
        let seen = Reader::new(&pieces, Limits::default()).requests();
        prop_assert_eq!(seen.len(), requests.len() * 2);
        for (request, pair) in requests.iter().zip(seen.chunks(2)) {
            let [Parsed::Request { method, target, headers, .. }, Parsed::Body(body)] = pair else {
                return Err(TestCaseError::fail(format!("{pair:?}")));
            };
            prop_assert_eq!(method, request.method);
            prop_assert_eq!(target, &request.target);
            prop_assert_eq!(body, &request.body.bytes());
            for (name, value) in &request.headers {
                prop_assert!(headers.contains(&(name.clone(), value.as_bytes().to_vec())));
            }
        }
    }

    #[test]
    fn a_server_parses_the_same_however_the_bytes_are_cut(
        requests in vec(any_request(), 1..4),
        damage in vec((any::<usize>(), significant_byte()), 0..3),
        cuts in vec(any::<usize>(), 0..12),
    ) {
        let stream = damaged(rendered(&requests), &damage);
        for limits in [Limits::default(), tight()] {
            let whole = Reader::new(std::slice::from_ref(&stream), limits.clone()).requests();
            prop_assert_eq!(&whole, &Reader::new(&cut(&stream, &cuts), limits.clone()).requests());
            let bytes: Vec<_> = stream.iter().map(|&byte| vec![byte]).collect();
            prop_assert_eq!(&whole, &Reader::new(&bytes, limits).requests());
        }
    }

    #[test]
    fn a_client_parses_the_same_however_the_bytes_are_cut(
        responses in any_responses(),
        damage in vec((any::<usize>(), significant_byte()), 0..3),
        cuts in vec(any::<usize>(), 0..12),
    ) {
        let stream = damaged(rendered_responses(&responses), &damage);
        for limits in [Limits::default(), tight()] {
            let whole = Reader::new(std::slice::from_ref(&stream), limits.clone()).responses(&ASKED);
            prop_assert_eq!(&whole, &Reader::new(&cut(&stream, &cuts), limits.clone()).responses(&ASKED));
            let bytes: Vec<_> = stream.iter().map(|&byte| vec![byte]).collect();
            prop_assert_eq!(&whole, &Reader::new(&bytes, limits).responses(&ASKED));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(cuts in any::<[u8; 4]>(), bytes in vec(significant_byte(), 0..200)) {
        for start in ["", "GET / HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"] {
            compare_requests(&[&cuts, start.as_bytes(), &bytes].concat());
        }
        for start in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"] {
            compare_responses(&[&cuts, start.as_bytes(), &bytes].concat());
        }
    }

    #[test]
    fn header_values_on_arbitrary_bytes_never_panic(value in vec(significant_byte(), 0..60), length in any::<u64>()) {
        if let wire::range::RangeSelection::Part(part) = wire::range::parse(&value, length) {
            prop_assert!(part.length >= 1 && part.offset.checked_add(part.length).is_some_and(|end| end <= length));
        }
        wire::conditional::none_match_names(&value, b"\"a\"");
        wire::conditional::match_names(&value, b"\"a\"");
        wire::conditional::range_holds(&value, b"\"a\"", b"");
    }

    #[test]
    fn line_ends_are_never_written(value in vec(significant_byte(), 0..30)) {
        let mut out = Vec::new();
        let written = write::header(&mut out, "X", &value);
        let holds_control = value.iter().any(|&byte| byte < b' ' && byte != b'\t' || byte == 0x7f);
        prop_assert_eq!(written.is_err(), holds_control);
        prop_assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), usize::from(written.is_ok()));
    }
}
