//! Generated bodies: complete, of the right sizes, and abandoned when the server answers early.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use analysis::ticks::ErrorKind;
use load::{Connections, Plan, RequestTemplate, Scenario, Stop, Url};

use crate::common::{OK, Server, run};

fn upload(url: &Url, sizes: &str) -> Plan {
    let body_sizes = Some(sizes.parse().unwrap());
    let template = RequestTemplate { method: "POST".into(), body_sizes, ..RequestTemplate::default() };
    Plan::new(Scenario::single(url, template).unwrap())
}

/// A server that stores every body that it receives.
fn keeping() -> (Server, Arc<Mutex<Vec<Vec<u8>>>>) {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let kept = bodies.clone();
    let server = Server::start(move |mut peer, _| {
        while let Some(request) = peer.request() {
            kept.lock().unwrap().push(request.body);
            if peer.send(OK).is_err() {
                return;
            }
        }
    });
    (server, bodies)
}

#[test]
fn bodies_arrive_whole_and_every_byte_sent_is_counted() {
    for connections in [Connections::Kept, Connections::PerRequest] {
        for size in [0, 1, 4_096, 4_097, 262_144, 3_000_001] {
            let (server, bodies) = keeping();
            let plan = Plan { connections, ..upload(&server.url("/"), &size.to_string()) };
            let counted = run(&plan, 2, Stop::PerUser(3));
            assert_eq!((counted.completed, counted.errors_total()), (6, 0), "{size}: {counted:?}");
            assert_eq!(counted.sent, 6 * size, "{size}");
            let bodies = bodies.lock().unwrap();
            assert!(bodies.iter().all(|body| body.len() as u64 == size && *body == bodies[0]), "{size}");
        }
    }
}

#[test]
fn a_longer_body_starts_like_a_shorter_one_and_all_sizes_occur() {
    let (server, bodies) = keeping();
    let text = "[values]\nn = { kind = \"counter\" }\n[[request]]\nmethod = \"POST\"\npath = \"/${n}\"\n\
                body = { sizes = [7, \"10 KB\", \"600 KB\"] }\n";
    let scenario = Scenario::from_toml(Path::new("s.toml"), text).unwrap().with_base(server.url("/"));
    let counted = run(&Plan::new(scenario), 3, Stop::PerUser(20));
    assert_eq!((counted.completed, counted.errors_total()), (60, 0), "{counted:?}");
    let bodies = bodies.lock().unwrap();
    let longest = bodies.iter().max_by_key(|body| body.len()).unwrap();
    assert!(bodies.iter().all(|body| longest.starts_with(body)));
    for size in [7, 10_000, 600_000] {
        let drawn = bodies.iter().filter(|body| body.len() == size).count();
        // 20 are expected; the probability of none in 60 is 3e-11.
        assert!(drawn > 0, "no body of {size} bytes");
    }
    assert_eq!(counted.sent, bodies.iter().map(|body| body.len() as u64).sum::<u64>());
}

#[test]
fn a_server_that_reads_slowly_gets_everything_and_delays_no_other_user() {
    // Reads the first connection byte by byte until the other user has finished.
    let done = Arc::new(AtomicU64::new(0));
    let others = done.clone();
    let server = Server::start(move |mut peer, number| {
        if number == 0 {
            let mut byte = [0];
            while others.load(Ordering::SeqCst) < 5 && peer.reader().read_exact(&mut byte).is_ok() {}
            return peer.wait_for_end();
        }
        while peer.request().is_some() {
            let _ = peer.send(OK);
            others.fetch_add(1, Ordering::SeqCst);
        }
    });
    let mut plan = upload(&server.url("/"), "5MB");
    plan.timeout = Duration::from_secs(3);
    let counted = run(&plan, 2, Stop::Total(6));
    assert_eq!((counted.completed, counted.errors), (5, vec![(ErrorKind::TimedOut, 1)]));
}

#[test]
fn an_early_response_ends_the_upload() {
    for connections in [Connections::Kept, Connections::PerRequest] {
        let server = Server::start(|mut peer, _| {
            let _ = peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
            peer.wait_for_hang_up();
        });
        let plan = Plan { connections, ..upload(&server.url("/"), "50MB") };
        let counted = run(&plan, 4, Stop::PerUser(3));
        assert_eq!((counted.completed, counted.errors), (0, vec![(ErrorKind::Status, 12)]));
        assert_eq!(counted.statuses, vec![(413, 12)]);
        assert!(counted.sent < 12 * 50_000_000, "sending went on: {} bytes", counted.sent);
    }
}

#[test]
fn a_response_before_a_reset_counts() {
    let server = Server::start(|mut peer, _| {
        // Closes with bytes unread, so that the next bytes are answered with a reset.
        let mut some = [0; 1_000];
        let _ = peer.reader().read_exact(&mut some);
        let _ = peer.send(b"HTTP/1.1 507 Full\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    let counted = run(&upload(&server.url("/"), "20MB"), 2, Stop::PerUser(5));
    assert_eq!((counted.completed, counted.statuses), (0, vec![(507, 10)]), "{:?}", counted.errors);
}

#[test]
fn closing_in_the_middle_of_an_upload_is_an_error() {
    let server = Server::start(|mut peer, _| {
        let mut some = [0; 100_000];
        let _ = peer.reader().read_exact(&mut some);
    });
    let counted = run(&upload(&server.url("/"), "20MB"), 2, Stop::PerUser(5));
    assert_eq!((counted.completed, counted.errors_total()), (0, 10));
    let gone = |kind: &ErrorKind| matches!(kind, ErrorKind::Reset | ErrorKind::ClosedEarly);
    assert!(counted.errors.iter().all(|(kind, _)| gone(kind)), "{:?}", counted.errors);
}

#[test]
fn overload_with_retry_after_is_a_separate_kind_of_error() {
    let busy: [(&[u8], ErrorKind); 4] = [
        (b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy", ErrorKind::Unavailable),
        (b"HTTP/1.1 429 Slow\r\nretry-after: 120\r\nContent-Length: 0\r\n\r\n", ErrorKind::Unavailable),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", ErrorKind::Status),
        (b"HTTP/1.1 500 Oops\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n", ErrorKind::Status),
    ];
    for (answer, kind) in busy {
        let counted = run(&Server::answering(answer).plan(), 1, Stop::PerUser(3));
        assert_eq!((counted.completed, counted.errors), (0, vec![(kind, 3)]));
        assert_eq!(counted.statuses.len(), 1, "counted by status as well");
    }
}

#[test]
fn an_expected_503_is_not_an_error() {
    let busy = b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
    let server = Server::answering(busy);
    let text = "[[request]]\npath = \"/\"\nexpect = 503\n";
    let scenario = Scenario::from_toml(Path::new("s.toml"), text).unwrap().with_base(server.url("/"));
    let counted = run(&Plan::new(scenario), 1, Stop::PerUser(3));
    assert_eq!((counted.completed, counted.errors_total()), (3, 0), "{counted:?}");
}
