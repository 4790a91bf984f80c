//! The client against well-behaved and misbehaving servers.

mod support;

use std::{cell::RefCell, net::SocketAddr, rc::Rc};

use http_io::{
    Method,
    client::{Client, ClientError, ClientOptions, Request, Response},
};
use support::{Fake, Opening, Peer, Step, block_on, bytes};
use wire::Limits;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Tier: b\r\n\r\nok";

/// A client, the connection it is driven by, and what each server that it connects to received.
struct Setting {
    client: Client<Fake>,
    via: Fake,
    peers: Vec<Rc<RefCell<Peer>>>,
}

impl Setting {
    fn new(openings: impl IntoIterator<Item = Opening>) -> Self {
        let via = Fake::new([]);
        let mut peers = Vec::new();
        for opening in openings {
            if let Opening::Accepted(fake) = &opening {
                peers.push(fake.peer.clone());
            }
            via.openings.borrow_mut().push_back(opening);
        }
        let limits = Limits { body_bytes: 64, head_bytes: 256, ..Limits::default() };
        let options = ClientOptions { limits, ..ClientOptions::default() };
        Self { client: Client::new(SocketAddr::from(([127, 0, 0, 1], 80)), options), via, peers }
    }

    fn send(&self, request: &Request<'_>) -> Result<Response, ClientError> {
        block_on(self.client.send(&self.via, request))
    }

    fn get(&self) -> Result<Response, ClientError> {
        self.send(&Request::new(Method::Get, "/x"))
    }

    fn received(&self, tier: usize) -> String {
        String::from_utf8(self.peers[tier].borrow().received.clone()).expect("text")
    }
}

fn tier(steps: impl IntoIterator<Item = Step>) -> Opening {
    Opening::Accepted(Fake::new(steps))
}

#[test]
fn asks_and_keeps_the_connection() {
    let setting = Setting::new([tier([bytes(OK), bytes(OK)])]);
    for _ in 0..2 {
        let response = setting.get().unwrap();
        assert_eq!((response.status(), response.body()), (200, &b"ok"[..]));
        assert_eq!(response.header("x-tier"), Some(&b"b"[..]));
        assert_eq!(setting.client.idle(), 1);
    }
    assert_eq!(setting.received(0), "GET /x HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n".repeat(2));
}

#[test]
fn sends_headers_and_a_body() {
    let setting = Setting::new([tier([bytes(OK)])]);
    let headers: [(&str, &[u8]); 1] = [("Content-Type", b"application/json")];
    setting.send(&Request::new(Method::Post, "/a").headers(&headers).body(b"{}")).unwrap();
    assert_eq!(
        setting.received(0),
        "POST /a HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    );
}

#[test]
fn reads_every_framing_and_passes_over_notices() {
    for (answer, body, kept) in [
        ("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", "a", 1),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", "abc", 1),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", 0),
        ("HTTP/1.1 204 No Content\r\n\r\n", "", 1),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", "a", 0),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "a", 0),
    ] {
        let setting = Setting::new([tier([bytes(answer), Step::Eof])]);
        assert_eq!(setting.get().unwrap().body(), body.as_bytes(), "{answer}");
        assert_eq!(setting.client.idle(), kept, "{answer}");
        let one_by_one = Setting::new([tier(answer.bytes().map(|byte| Step::Bytes(vec![byte])))]);
        assert_eq!(one_by_one.get().unwrap().body(), body.as_bytes(), "{answer}");
    }
}

#[test]
fn a_stale_connection_is_not_used() {
    let mut stale = Fake::new([bytes(OK)]);
    stale.stale = true;
    let setting = Setting::new([Opening::Accepted(stale), tier([bytes(OK)])]);
    setting.get().unwrap();
    setting.get().unwrap();
    assert_eq!(setting.received(0).matches("GET").count(), 1);
    assert_eq!(setting.received(1).matches("GET").count(), 1);
}

#[test]
fn a_kept_connection_that_dies_unanswered_is_replaced_once() {
    for end in [Step::Eof, Step::Reset] {
        let setting = Setting::new([tier([bytes(OK), end]), tier([bytes(OK)])]);
        setting.get().unwrap();
        assert_eq!(setting.get().unwrap().status(), 200);
    }
    let twice = Setting::new([tier([bytes(OK), Step::Eof]), tier([Step::Eof])]);
    twice.get().unwrap();
    assert!(matches!(twice.get(), Err(ClientError::Lost(_))));
}

#[test]
fn what_may_have_been_acted_on_is_not_repeated_unasked() {
    let post = Request::new(Method::Post, "/accounts").body(b"{}");
    let setting = || Setting::new([tier([bytes(OK), Step::Eof]), tier([bytes(OK)])]);
    let once = setting();
    once.get().unwrap();
    assert!(matches!(once.send(&post), Err(ClientError::Lost(_))));
    assert_eq!(once.received(1), "");
    let repeated = setting();
    repeated.get().unwrap();
    assert_eq!(repeated.send(&post.repeatable()).unwrap().status(), 200);
}

#[test]
fn an_answer_that_had_begun_is_not_asked_for_again() {
    for begun in
        ["HTTP/1.1 2", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"]
    {
        let setting = Setting::new([tier([bytes(OK), bytes(begun), Step::Eof]), tier([bytes(OK)])]);
        setting.get().unwrap();
        assert!(matches!(setting.get(), Err(ClientError::Lost(_))), "{begun}");
        assert_eq!(setting.client.idle(), 0);
    }
}

#[test]
fn waiting_has_an_end_and_is_not_tried_again() {
    for before in [vec![], vec![bytes("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")]] {
        let steps = [vec![bytes(OK)], before, vec![Step::Stall]].concat();
        let setting = Setting::new([tier(steps), tier([bytes(OK)])]);
        setting.get().unwrap();
        assert!(matches!(setting.get(), Err(ClientError::TimedOut)));
        assert_eq!(setting.received(1), "");
    }
}

#[test]
fn a_tier_that_is_away_is_named() {
    for opening in [Opening::Refused, Opening::Unanswered] {
        let error = Setting::new([opening]).get().unwrap_err();
        assert!(matches!(error, ClientError::Connect { .. }));
        assert!(error.to_string().starts_with("cannot connect to 127.0.0.1:80: "), "{error}");
    }
}

#[test]
fn answers_are_bounded_and_checked() {
    let long_head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(300));
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n41\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n",
        &long_head,
    ] {
        let setting = Setting::new([tier([bytes(answer)])]);
        assert!(matches!(setting.get(), Err(ClientError::Response(_))), "{answer}");
        assert_eq!(setting.client.idle(), 0);
    }
}

#[test]
fn nothing_can_be_slipped_into_a_request() {
    let setting = Setting::new([tier([]), tier([])]);
    let headers: [(&str, &[u8]); 1] = [("X", b"a\r\nY: b")];
    for request in
        [Request::new(Method::Get, "/x").headers(&headers), Request::new(Method::Get, "/x HTTP/1.1\r\nY: b")]
    {
        assert!(matches!(setting.send(&request), Err(ClientError::Request(_))));
    }
    assert_eq!(setting.received(0) + &setting.received(1), "");
}

#[test]
fn no_more_connections_are_kept_than_allowed() {
    let mut setting = Setting::new([tier([bytes(OK)])]);
    let options = ClientOptions { idle_max: 0, ..ClientOptions::default() };
    setting.client = Client::new(SocketAddr::from(([127, 0, 0, 1], 80)), options);
    setting.get().unwrap();
    assert_eq!(setting.client.idle(), 0);
    assert!(setting.peers[0].borrow().closed);
}
