//! Every way in which a server can fail, and every fault that a response can have.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use analysis::ticks::ErrorKind;
use load::{Generator, Pacing, Stop, Think};

use crate::common::{Counted, NEVER, OK, PATIENCE, Server, nobody, one_error, plan, run};

/// A server that answers the first request with `response` and waits until the client closes the connection.
fn sends(response: &'static [u8]) -> Server {
    Server::start(move |mut peer, _| {
        if peer.request().is_some() && peer.send(response).is_ok() {
            peer.wait_for_end();
        }
    })
}

/// A server that answers the first request with `response` and closes the connection.
fn sends_and_closes(response: &'static [u8]) -> Server {
    Server::start(move |mut peer, _| {
        if peer.request().is_some() {
            let _ = peer.send(response);
        }
    })
}

#[test]
fn nobody_listens() {
    let (url, _kept) = nobody();
    assert_eq!(one_error(&plan(&url)), ErrorKind::Refused);
}

#[test]
fn reset() {
    let server = Server::start(|mut peer, _| {
        peer.request();
        let linger = Some(Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(peer.stream(), linger).unwrap();
    });
    assert_eq!(one_error(&server.plan()), ErrorKind::Reset);
}

#[test]
fn never_answers() {
    let server = sends(b"");
    let mut plan = server.plan();
    plan.timeout = Duration::from_millis(50);
    assert_eq!(one_error(&plan), ErrorKind::TimedOut);
}

/// The response time of a request that timed out is not known, but it was as long as the time-out at least.
#[test]
fn the_time_that_a_request_waited_before_it_timed_out_is_counted() {
    let server = sends(b"");
    let mut plan = server.plan();
    plan.timeout = Duration::from_millis(50);
    let waited = run(&plan, 1, Stop::PerUser(1)).timed_out_us;
    assert!(matches!(waited[..], [(50_000.., 1)]), "{waited:?}");
}

#[test]
fn stops_in_the_middle_of_a_body() {
    let server = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    let mut plan = server.plan();
    plan.timeout = Duration::from_millis(50);
    assert_eq!(one_error(&plan), ErrorKind::TimedOut);
}

#[test]
fn an_unexpected_status() {
    let server = sends(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
    let counted = run(&server.plan(), 1, Stop::PerUser(1));
    assert_eq!((counted.errors, counted.statuses), (vec![(ErrorKind::Status, 1)], vec![(503, 1)]));
}

#[test]
fn closes_before_the_response_is_whole() {
    let early: [&[u8]; 5] = [
        b"",
        b"HTTP/1.1 200 O",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive.",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ];
    for response in early {
        assert_eq!(one_error(&sends_and_closes(response).plan()), ErrorKind::ClosedEarly);
    }
}

#[test]
fn bytes_that_are_not_a_response() {
    let garbage: [&[u8]; 5] = [
        b"SSH-2.0-OpenSSH_9.2p1\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x15\x03\x03\x00\x02\x02\x46 a TLS alert\r\n\r\n",
    ];
    for response in garbage {
        assert_eq!(one_error(&sends(response).plan()), ErrorKind::Malformed);
    }
}

#[test]
fn a_response_without_a_request_is_an_error() {
    let twice =
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(one_error(&sends(twice).plan()), ErrorKind::Malformed);
}

#[test]
fn a_response_during_a_pause_is_an_error() {
    let server = Server::start(|mut peer, _| {
        peer.request();
        peer.send(OK).unwrap();
        // No request asked for this one, whether the client has read the first one by now or not.
        peer.send(OK).unwrap();
        peer.wait_for_end();
    });
    let mut plan = server.plan();
    plan.pacing = Pacing::Closed { think: Think::Constant(Duration::from_millis(50)) };
    let mut generator = Generator::start(&plan).unwrap();
    generator.set_users(1).unwrap();
    let mut seen = 0;
    while seen == 0 {
        let counted = Counted::of(&generator.collect(40_000, &NEVER).unwrap());
        seen += counted.errors.iter().filter(|(kind, _)| *kind == ErrorKind::Malformed).count();
    }
}

#[test]
fn a_body_longer_than_its_length_is_an_error() {
    let server = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay");
    assert_eq!(one_error(&server.plan()), ErrorKind::Malformed);
}

#[test]
fn one_wrong_response_in_the_middle_of_a_run_is_counted() {
    let wrong: [(&[u8], ErrorKind); 4] = [
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno", ErrorKind::Status),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", ErrorKind::ClosedEarly),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nok", ErrorKind::Malformed),
        (b"nonsense\r\n\r\n", ErrorKind::Malformed),
    ];
    for (response, kind) in wrong {
        let server = Server::start(move |mut peer, number| {
            for request in 0.. {
                if peer.request().is_none() {
                    return;
                }
                let wrong = number == 0 && request == 17;
                peer.send(if wrong { response } else { OK }).unwrap();
                if wrong && kind == ErrorKind::ClosedEarly {
                    return;
                }
            }
        });
        let counted = run(&server.plan(), 1, Stop::PerUser(40));
        assert_eq!((counted.completed, counted.errors), (39, vec![(kind, 1)]));
    }
}

#[test]
fn closing_an_idle_connection_is_not_an_error() {
    let server = Server::start(|mut peer, _| {
        peer.request();
        let _ = peer.send(OK);
    });
    let mut plan = server.plan();
    // Far longer than the server takes to close, so that no request meets it.
    plan.pacing = Pacing::Closed { think: Think::Constant(Duration::from_secs(2)) };
    let counted = run(&plan, 2, Stop::PerUser(2));
    assert_eq!((counted.completed, counted.errors_total()), (4, 0), "{counted:?}");
}

#[test]
fn users_recover_when_a_server_restarts() {
    let server = Server::start(|mut peer, _| {
        for _ in 0..3 {
            if peer.request().is_some() && peer.send(OK).is_err() {
                return;
            }
        }
    });
    let address = server.address;
    let mut generator = Generator::start(&server.plan()).unwrap();
    generator.set_users(4).unwrap();
    until(&mut generator, |counted| counted.completed > 0);
    drop(server);
    // No server listens now: connections are refused, with pauses in between and not in a busy loop.
    let dead = until(&mut generator, |counted| counted.errors.iter().any(|(k, _)| *k == ErrorKind::Refused));
    assert!(dead.errors_total() < 1_000, "{dead:?}");
    let again = Server::on(bound_again(address), |mut peer, _| {
        while peer.request().is_some() {
            peer.send(OK).unwrap();
        }
    });
    until(&mut generator, |counted| counted.completed > 0 && counted.errors.is_empty());
    drop(again);
}

/// Listens at a port that was free a moment ago. The system may have given it to another test meanwhile.
fn bound_again(address: SocketAddr) -> TcpListener {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match TcpListener::bind(address) {
            Err(_) if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(20)),
            bound => return bound.unwrap(),
        }
    }
}

/// Collects until `enough`. Returns the sums of the last collection.
fn until(generator: &mut Generator, enough: impl Fn(&Counted) -> bool) -> Counted {
    loop {
        let counted = Counted::of(&generator.collect(60_000, &NEVER).unwrap());
        if enough(&counted) {
            return counted;
        }
    }
}
