//! Servers on which users wait while nothing is busy: does the verdict name what they wait for?

use serde_json::Value;

use crate::{
    serve::listening,
    support::{Place, Server},
};

/// What servers share that do one thing before each answer: a connection that is closed after its answer, or kept.
pub(crate) const HTTP: &str = r#"
import queue, socket, sys, threading, time
def read(connection):
    request = b""
    while not request.endswith(b"\r\n\r\n"):
        more = connection.recv(4096)
        if not more: return False
        request += more
    return True
def answer(connection, before=lambda: None):
    try:
        if read(connection):
            before()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    except OSError: pass
    connection.close()
def keep(connection, before):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while read(connection):
            before()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except OSError: pass
    connection.close()
def listen(backlog): return socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=backlog)
def serve(connect, before):
    listener = listen(1024)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=connect, args=(connection, before), daemon=True).start()
"#;

/// A thread per connection; each takes one mutex for 5 ms: at most 200 requests a second.
const ONE_MUTEX: &str = r#"
mutex = threading.Lock()
def hold():
    with mutex: time.sleep(0.005)
serve(answer, hold)
"#;

/// Accepts every 50 ms what waits by then, at most backlog + 1 = 4 connections: a longer queue would let more in.
const ACCEPTS_IN_BURSTS: &str = r#"
listener = listen(3)
listener.setblocking(False)
while True:
    time.sleep(0.05)
    waiting = []
    while True:
        try: waiting.append(listener.accept()[0])
        except BlockingIOError: break
    for connection in waiting:
        connection.setblocking(True)
        threading.Thread(target=answer, args=(connection,), daemon=True).start()
"#;

pub(crate) fn verdict(run: &Value) -> &Value {
    &run["verdict"]
}

pub(crate) fn kind(run: &Value) -> &str {
    verdict(run)["bottleneck"]["kind"].as_str().expect("a kind")
}

/// Sweeps until a cause is named that can be relied on, a few times at most; in between every answer must say itself that
/// it is none. On a machine that others keep busy none may come, and the test says so.
pub(crate) fn named(place: &Place, url: &str, args: &[&str]) -> Option<Value> {
    for _ in 0..4 {
        let outcome = place.nstar(["sweep", url].into_iter().chain(args.iter().copied())).run();
        let run = place.run_file();
        let conclusive = verdict(&run)["inconclusive"].as_array().expect("reasons").is_empty();
        assert_eq!(outcome.status.code(), Some(if conclusive { 0 } else { 4 }), "{outcome}");
        if conclusive && kind(&run) != "unknown" {
            println!("{outcome}");
            return Some(run);
        }
        eprintln!("not yet: {} {}", kind(&run), verdict(&run)["inconclusive"]);
    }
    eprintln!("UNDECIDED: this machine was too busy for a cause to be named, and every answer said so");
    None
}

/// Four workers that each wait 10 ms: at most 400 requests a second, on an idle machine.
#[test]
fn four_workers_that_wait_are_a_worker_pool() {
    let place = Place::new();
    let words = ["serve", "sink", "--engine", "pool", "--workers", "4", "--delay", "10ms"];
    let mut running = place.nstar(words.into_iter().chain(["--listen", "127.0.0.1:0"])).start();
    let url = format!("http://{}/upload", listening(&mut running));
    // A worker serves one connection until it ends, so each request has its own.
    let args = ["-b", "hello", "-c", "1..64", "-d", "2s", "--connections", "per-request"];
    let run = named(&place, &url, &args);
    running.signal("TERM");
    running.finish().exits(0);
    let Some(run) = run else { return };
    assert_eq!(kind(&run), "worker-pool", "{}", verdict(&run));
    let holder = verdict(&run)["bottleneck"]["holder"].as_str().expect("a holder");
    assert!(holder.starts_with("nstar-sink"), "{}", verdict(&run));
    let max = verdict(&run)["throughput_max_per_s"].as_f64().expect("a rate");
    let alone_us = run["steps"][0]["response_time_us"]["mean"].as_f64().expect("a time");
    assert!(max < 404.0, "four at a time, 10 ms each: {max}");
    assert!((max * alone_us / 1e6 - 4.0).abs() < 0.8, "X R(1) is 4: {max} times {alone_us} us");
}

#[test]
fn threads_piled_up_on_one_mutex_are_a_lock() {
    let place = Place::new();
    let server = Server::python(&format!("{HTTP}{ONE_MUTEX}"));
    let args = ["-c", "1..64", "-d", "2s", "--connections", "per-request"];
    let Some(run) = named(&place, &server.url("/"), &args) else { return };
    assert_eq!(kind(&run), "lock", "{}", verdict(&run));
    let holder = verdict(&run)["bottleneck"]["holder"].as_str().expect("a holder");
    assert!(holder.starts_with("python3"), "{}", verdict(&run));
    let max = verdict(&run)["throughput_max_per_s"].as_f64().expect("a rate");
    assert!(max < 202.0, "5 ms each, one at a time: {max}");
}

#[test]
fn a_listen_queue_that_is_too_short_is_the_accept_queue() {
    let place = Place::new();
    let server = Server::python(&format!("{HTTP}{ACCEPTS_IN_BURSTS}"));
    let args = ["-c", "1..32", "-d", "3s", "--connections", "per-request"];
    let Some(run) = named(&place, &server.url("/"), &args) else { return };
    assert_eq!(kind(&run), "accept-queue", "{}", verdict(&run));
    let port = format!("port {}", server.address.port());
    assert_eq!(verdict(&run)["bottleneck"]["holder"], port.as_str(), "{}", verdict(&run));
}
