//! What the run file says stops a server.
#![allow(dead_code, reason = "each suite uses a part of it")]

use serde_json::Value;

use super::support::{Outcome, Place};

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

/// Has a listen queue with room for one.
pub(crate) const SHORT_QUEUE: &str = r#"
listener = listen(1)
while True:
    connection, _ = listener.accept()
    threading.Thread(target=keep, args=(connection, lambda: None), daemon=True).start()
"#;

/// A thread per connection; each takes one mutex for 5 ms: at most 200 requests a second.
pub(crate) const ONE_MUTEX: &str = r#"
mutex = threading.Lock()
def hold():
    with mutex: time.sleep(0.005)
serve(answer, hold)
"#;

/// Accepts every 50 ms what waits by then, at most backlog + 1 = 4 connections: a longer queue would let more in.
pub(crate) const ACCEPTS_IN_BURSTS: &str = r#"
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

/// Sweeps until a cause is named that can be relied on, a few times at most.
pub(crate) fn named(place: &Place, url: &str, args: &[&str]) -> Option<Value> {
    named_by(place, 4, || place.nstar(["sweep", url].into_iter().chain(args.iter().copied())).run())
}

/// The same with this sweep, so many times at most; in between every answer must say itself that it is none. On a machine that
/// others keep busy none may come, and the test says so.
pub(crate) fn named_by(place: &Place, tries: usize, sweep: impl Fn() -> Outcome) -> Option<Value> {
    for _ in 0..tries {
        let outcome = sweep();
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

/// Whether one of these is said to stop the server. On a busy host the verdict may be unsure, and name it among what else it may
/// be: that is told. It is never sure of anything else.
#[track_caller]
pub(crate) fn is_said(run: &Value, expected: &[&str]) -> bool {
    if expected.contains(&kind(run)) {
        return true;
    }
    assert!(is_open(run, expected), "not {expected:?}: {}", verdict(run));
    eprintln!("UNDECIDED: this machine was too busy to be sure, and the answer said so: {}", verdict(run));
    false
}

/// Whether the verdict is unsure of what it says, and says that it may be one of these.
pub(crate) fn is_open(run: &Value, expected: &[&str]) -> bool {
    let bottleneck = &verdict(run)["bottleneck"];
    let mut others = bottleneck["alternatives"].as_array().into_iter().flatten();
    let is_named = others.any(|other| other["kind"].as_str().is_some_and(|kind| expected.contains(&kind)));
    is_named && bottleneck["confidence"].as_f64().is_some_and(|sure| sure < 0.8)
}
