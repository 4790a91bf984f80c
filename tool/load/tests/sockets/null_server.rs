//! The null server, loaded by the generator and with requests in pieces.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Ceiling, Connections, NullServer, Stop};

use crate::common::{plan, run};

#[test]
fn it_answers_every_request_with_the_body_asked_for() {
    for body_bytes in [0, 1_024, 3_000_000] {
        let server = NullServer::start(body_bytes, None).unwrap();
        let plan = plan(&format!("http://{}/", server.address()).parse().unwrap());
        let counted = run(&plan, 4, Stop::PerUser(5));
        assert_eq!((counted.completed, counted.errors_total()), (20, 0), "{counted:?}");
        assert_eq!(counted.bytes, 20 * body_bytes as u64);
    }
}

#[test]
fn requests_are_counted_however_they_are_split() {
    let server = NullServer::start(0, None).unwrap();
    let mut peer = TcpStream::connect(server.address()).unwrap();
    peer.set_nodelay(true).unwrap();
    for piece in ["GET / HTTP/1.1\r", "\nHost: h\r\n", "\r\nGET / HTTP/1.1\r\n\r\nGET"] {
        peer.write_all(piece.as_bytes()).unwrap();
    }
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let mut received = vec![0; 2 * response.len()];
    peer.read_exact(&mut received).unwrap();
    assert_eq!(received, response.repeat(2));
}

#[test]
fn the_ceiling_is_what_the_threads_could_do_without_the_null_server() {
    let nowhere = plan(&"http://127.0.0.1:1/".parse().unwrap());
    for connections in [Connections::Kept, Connections::PerRequest] {
        let plan = load::Plan { connections, ..nowhere.clone() };
        let ceiling = Ceiling::measure(&plan, Duration::from_millis(200), &AtomicBool::new(false)).unwrap();
        assert_eq!(ceiling.threads, plan.threads);
        assert!(ceiling.reached_per_s > 0.0 && ceiling.cpu_s > 0.0, "{ceiling:?}");
        let processors = std::thread::available_parallelism().unwrap().get().min(plan.threads);
        let product = ceiling.requests_per_s * ceiling.cpu_s / processors as f64;
        assert!((product - 1.0).abs() < 1e-9, "{ceiling:?}");
    }
}

#[test]
fn an_interrupted_ceiling_test_is_an_error() {
    let plan = plan(&"http://127.0.0.1:1/".parse().unwrap());
    assert!(Ceiling::measure(&plan, Duration::from_secs(5), &AtomicBool::new(true)).is_err());
}
