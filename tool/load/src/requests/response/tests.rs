use proptest::prelude::*;

use super::*;
use crate::requests::Program;
use crate::{RequestTemplate, Scenario, Url};

fn asked(method: &str, verify: Verify) -> PreparedRequest {
    let url: Url = "http://h/".parse().unwrap();
    let template = RequestTemplate { method: method.into(), ..RequestTemplate::default() };
    let mut scenario = Scenario::single(&url, template).unwrap();
    scenario.requests[0].verify = verify;
    Program::new(&scenario, &url, false).requests.remove(0)
}

/// Feeds `parts` one after the other, then the end.
fn feed(parts: &[&[u8]], asked: &PreparedRequest) -> Result<Completed, ErrorKind> {
    let mut response = Response::default();
    for (index, part) in parts.iter().enumerate() {
        if let Some(completed) = response.feed(part, asked, &Limits::default())? {
            let rest = parts.iter().skip(index + 1).any(|part| !part.is_empty());
            return if rest { Err(ErrorKind::Malformed) } else { Ok(completed) };
        }
    }
    response.end(asked)
}

const MESSAGES: [&[u8]; 7] = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: v\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nhello",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more",
    b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
];

proptest! {
    #[test]
    fn the_outcome_does_not_depend_on_how_the_bytes_are_split(message in 0usize..MESSAGES.len(), cuts in prop::collection::vec(0usize..160, 0..6)) {
        let message = MESSAGES[message];
        let asked = asked("GET", Verify::Bytes(b"hello"[..].into()));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(message.len())).collect();
        cuts.sort_unstable();
        let mut parts = Vec::new();
        let mut from = 0;
        for cut in cuts {
            // An empty read would mean the end.
            if cut > from {
                parts.push(&message[from..cut]);
                from = cut;
            }
        }
        parts.push(&message[from..]);
        prop_assert_eq!(feed(&parts, &asked), feed(&[message], &asked));
    }

    #[test]
    fn any_bytes_are_taken_without_a_panic(bytes: Vec<u8>) {
        let _ = feed(&[&bytes], &asked("GET", Verify::Nothing));
    }
}

#[test]
fn each_message_is_read_to_its_end() {
    let get = asked("GET", Verify::Nothing);
    let outcome = |message: &[u8]| feed(&[message], &get).map(|c| (c.status, c.body_bytes, c.keep_alive));
    let found = MESSAGES.map(outcome);
    assert_eq!(found[0], Ok((200, 5, true)));
    assert_eq!(found[1], Ok((200, 5, true)));
    assert_eq!(found[2], Ok((200, 5, false)));
    assert_eq!(found[3], Ok((200, 5, true)));
    assert_eq!(found[4], Ok((204, 0, true)));
    assert_eq!(found[5], Err(ErrorKind::Malformed));
    assert_eq!(found[6], Err(ErrorKind::ClosedEarly));
}

#[test]
fn a_head_request_has_no_body() {
    let completed = feed(&[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"], &asked("HEAD", Verify::Nothing));
    assert_eq!(completed.map(|c| c.body_bytes), Ok(0));
}

#[test]
fn bodies_are_compared() {
    let whole = MESSAGES[0];
    let as_expected = |verify| feed(&[whole], &asked("GET", verify)).unwrap().as_expected;
    assert!(as_expected(Verify::Bytes(b"hello"[..].into())));
    assert!(!as_expected(Verify::Bytes(b"hellO"[..].into())));
    assert!(!as_expected(Verify::Bytes(b"hello, world"[..].into())));
    assert!(!as_expected(Verify::Bytes(b"hell"[..].into())));
    assert!(as_expected(Verify::Length(5)));
    assert!(!as_expected(Verify::Length(6)));
}

#[test]
fn discarded_bytes_count() {
    let asked = asked("GET", Verify::Nothing);
    let mut response = Response::default();
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nten bytes.";
    assert_eq!(response.discardable(&asked), 0);
    assert_eq!(response.feed(head, &asked, &Limits::default()), Ok(None));
    assert_eq!(response.discardable(&asked), 990);
    assert_eq!(response.discarded(900, &asked), None);
    let completed = response.discarded(90, &asked).unwrap();
    assert_eq!((completed.body_bytes, completed.as_expected), (1000, true));
}
