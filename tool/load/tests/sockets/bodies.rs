//! Bodies of every framing and size, in both directions.

use std::path::Path;

use analysis::ticks::ErrorKind;
use load::{Connections, Plan, RequestTemplate, Scenario, Stop};

use crate::common::{OK, Server, run};

#[test]
fn chunked_bodies_keep_the_connection_and_bodies_until_close_end_it() {
    let chunked = Server::answering(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
    );
    let counted = run(&chunked.plan(), 2, Stop::PerUser(10));
    assert_eq!((counted.completed, counted.bytes, counted.errors_total()), (20, 220, 0));
    assert_eq!(chunked.accepted(), 2);
    let closing = Server::start(|mut peer, _| {
        peer.request();
        peer.send(b"HTTP/1.0 200 OK\r\n\r\nall there is").unwrap();
    });
    let counted = run(&closing.plan(), 2, Stop::PerUser(10));
    assert_eq!((counted.completed, counted.bytes, counted.errors_total()), (20, 240, 0), "{counted:?}");
}

#[test]
fn a_response_may_arrive_byte_by_byte() {
    let server = Server::start(|mut peer, _| {
        while peer.request().is_some() {
            for byte in OK.chunks(1) {
                if peer.send(byte).is_err() {
                    return;
                }
            }
        }
    });
    let counted = run(&server.plan(), 2, Stop::PerUser(20));
    assert_eq!((counted.completed, counted.errors_total()), (40, 0), "{counted:?}");
}

#[test]
fn every_byte_of_a_long_body_is_counted() {
    const LENGTH: usize = 20_000_003;
    let server = Server::start(|mut peer, _| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
        let body = vec![b'x'; LENGTH];
        while peer.request().is_some() {
            if peer.send(head.as_bytes()).and_then(|()| peer.send(&body)).is_err() {
                return;
            }
        }
    });
    let counted = run(&server.plan(), 2, Stop::PerUser(3));
    assert_eq!((counted.completed, counted.errors_total()), (6, 0), "{counted:?}");
    assert_eq!(counted.bytes, 6 * LENGTH as u64);
    assert_eq!(server.accepted(), 2);
}

#[test]
fn a_long_body_that_is_cut_short_is_an_error() {
    let server = Server::start(|mut peer, _| {
        peer.request();
        let _ = peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        let _ = peer.send(&vec![b'x'; 999_999]);
    });
    let counted = run(&server.plan(), 1, Stop::PerUser(2));
    assert_eq!((counted.completed, counted.errors), (0, vec![(ErrorKind::ClosedEarly, 2)]));
}

#[test]
fn long_requests_arrive_whole_fixed_and_patched() {
    const LENGTH: usize = 3_000_000;
    let server = Server::start(|mut peer, _| {
        while let Some(request) = peer.request() {
            let whole =
                request.body.len() >= LENGTH && request.body.iter().rev().take(LENGTH).all(|b| *b == b'x');
            let refused = b"HTTP/1.1 422 No\r\nContent-Length: 0\r\n\r\n";
            peer.send(if whole { OK } else { refused }).unwrap();
        }
    });
    let template =
        RequestTemplate { method: "POST".into(), body: vec![b'x'; LENGTH], ..RequestTemplate::default() };
    let fixed = Scenario::single(&server.url("/"), template).unwrap();
    let text = format!(
        "[values]\nn = {{ kind = \"counter\" }}\n[[request]]\nmethod = \"PUT\"\npath = \"/\"\nbody = \"${{n}}{}\"\n",
        "x".repeat(LENGTH)
    );
    let patched = Scenario::from_toml(Path::new("s.toml"), &text).unwrap().with_base(server.url("/"));
    for scenario in [fixed, patched] {
        for connections in [Connections::Kept, Connections::PerRequest] {
            let plan = Plan { connections, ..Plan::new(scenario.clone()) };
            let counted = run(&plan, 2, Stop::PerUser(3));
            assert_eq!((counted.completed, counted.errors_total()), (6, 0), "{counted:?}");
        }
    }
}

#[test]
fn a_response_before_the_whole_request_was_sent_counts() {
    let server = Server::start(|mut peer, _| {
        let _ = peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
        peer.wait_for_end();
    });
    let template =
        RequestTemplate { method: "POST".into(), body: vec![b'x'; 50_000_000], ..RequestTemplate::default() };
    let plan = Plan::new(Scenario::single(&server.url("/"), template).unwrap());
    let counted = run(&plan, 1, Stop::PerUser(1));
    assert_eq!((counted.errors, counted.statuses), (vec![(ErrorKind::Status, 1)], vec![(413, 1)]));
}

#[test]
fn an_unexpected_body_is_counted_as_wrong() {
    let server = Server::answering(OK);
    for (verify, completed) in [("2", 5), ("3", 0), ("\"ok\"", 5), ("\"OK\"", 0)] {
        let text = format!("[[request]]\npath = \"/\"\nverify = {verify}\n");
        let scenario = Scenario::from_toml(Path::new("s.toml"), &text).unwrap().with_base(server.url("/"));
        let counted = run(&Plan::new(scenario), 1, Stop::PerUser(5));
        assert_eq!(counted.completed, completed);
        assert!(counted.errors.iter().all(|(kind, n)| (*kind, *n) == (ErrorKind::WrongBody, 5)));
    }
}
