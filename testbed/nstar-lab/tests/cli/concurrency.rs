//! `nstar serve --engine ..`: which flags go with which model, and both tiers in separate processes.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use crate::{
    common::support::{Place, Running},
    serve::{ask, listening},
};

const FILES: [&str; 6] = ["serve", "files", "--root", ".", "--accounts", "none"];

/// Starts the file server without accounts, with these flags. Returns its first line and its address too.
fn open_files(place: &Place, flags: &str) -> (Running, String, String) {
    let words = FILES.into_iter().chain(["--listen", "127.0.0.1:0"]).chain(flags.split(' '));
    let mut running = place.nstar(words).start();
    let greeting = running.first_line();
    let address = greeting.split_whitespace().find_map(|word| word.strip_prefix("http://"));
    let address = address.unwrap_or_else(|| panic!("no address in '{greeting}'")).to_owned();
    (running, greeting, address)
}

fn get(address: &str, path: &str, fields: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n"))
}

#[test]
fn flags_that_do_not_go_with_the_model_are_told_and_nothing_starts() {
    let place = Place::beside_others();
    for (flags, word) in [
        ("--engine no-such", "threads, pool, processes, prefork"),
        ("--engine epoll,no-such", "no-such"),
        ("--engine threads --loops 2", "--loops goes with"),
        ("--engine threads --workers 2", "--workers goes with --engine pool, prefork; not with threads"),
        ("--engine prefork --queue 2", "--queue goes with --engine pool; not with prefork"),
        ("--overload 503", "--overload goes with --engine pool; not with epoll"),
        ("--engine processes --queue-deadline 1s", "--queue-deadline goes with"),
        ("--engine pool --workers 0", "--workers"),
        ("--engine pool --queue 0", "--queue"),
        ("--engine pool --overload 504", "backlog, 503, reset"),
    ] {
        place.nstar(FILES.into_iter().chain(flags.split(' '))).run().exits(2).complains(word);
    }
    let raw = ["serve", "sink", "--raw", "--engine", "pool", "--overload", "503"];
    place.nstar(raw).run().exits(2).complains("--overload 503 is an answer of plain HTTP");
    let many = FILES.into_iter().chain(["--engine", "pool", "--workers", "300"]);
    place.wrapped(["prlimit", "--nofile=200:200"], many).run().exits(2).complains("--workers 300");
}

#[test]
fn the_greeting_tells_what_runs() {
    let place = Place::beside_others();
    for (flags, told) in [
        (
            "--engine pool --workers 3 --queue 5 --overload reset",
            "engine pool, 3 workers, 5 may wait, then a reset",
        ),
        ("--engine prefork --workers 2", "engine prefork, 2 processes"),
        ("--engine processes", "engine processes, a process per connection"),
        ("--engine epoll,threads --loops 1", "engine epoll, 1 loop"),
    ] {
        let (running, greeting, _) = open_files(&place, flags);
        assert!(greeting.contains(told), "{greeting}");
        running.signal("TERM");
        running.finish().exits(0);
    }
}

/// Runs its arguments as a program for which the kernel denies io_uring_setup(2), as container runtimes do.
const WITHOUT_IO_URING: &str = r#"
import ctypes, os, struct, sys
statements = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in statements))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Program(len(statements), ctypes.cast(code, ctypes.c_void_p))
prctl = ctypes.CDLL(None, use_errno=True).prctl
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
if prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or prctl(SECCOMP, FILTER, ctypes.byref(program)):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn where_io_uring_is_denied_the_next_model_of_the_list_serves_and_the_first_line_says_so() {
    let place = Place::beside_others();
    place.write("hello.txt", "hello, reader");
    let serve = |engine: &'static str| {
        let words = FILES.into_iter().chain(["--listen", "127.0.0.1:0", "--engine", engine]);
        place.wrapped(["python3", "-c", WITHOUT_IO_URING], words)
    };
    serve("uring").run().exits(1).complains("io_uring_setup");
    let mut running = serve("uring,epoll").start();
    let greeting = running.first_line();
    assert!(greeting.contains("engine epoll"), "{greeting}");
    let address = greeting.split_whitespace().find_map(|word| word.strip_prefix("http://"));
    let answer = get(address.expect("an address"), "/files/hello.txt", "");
    assert!(answer.ends_with("hello, reader"), "{answer}");
    running.signal("TERM");
    running.finish().exits(0).complains("uring");
}

#[test]
fn a_full_pool_answers_503_and_says_so_in_its_metrics() {
    let place = Place::beside_others();
    place.write("hello.txt", "hello, reader");
    let (running, _, address) = open_files(&place, "--engine pool --workers 1 --queue 1 --overload 503");
    let mut held = TcpStream::connect(&address).expect("a connection");
    held.write_all(b"GET /files/hello.txt HTTP/1.1\r\nHost: localhost\r\n\r\nGET /fi").expect("sent");
    held.read_exact(&mut [0]).expect("an answer begins");
    let mut waiting = TcpStream::connect(&address).expect("a connection");
    let refused = get(&address, "/files/hello.txt", "");
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("Retry-After: 1\r\n"), "{refused}");
    waiting
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("sent");
    drop(held);
    let mut metrics = String::new();
    waiting.read_to_string(&mut metrics).expect("an answer");
    assert!(metrics.contains("connections_denied_total{reason=\"full\"} 1"), "{metrics}");
    running.signal("TERM");
    running.finish().exits(0);
}

/// Both tiers, each with one process per connection or a fixed number of processes.
#[test]
fn both_tiers_run_in_processes_and_their_metrics_are_of_all_of_them() {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    for engine in ["processes", "prefork"] {
        let database = format!("{engine}.db");
        let serve = |words: &[&str]| {
            let common = ["--engine", engine, "--listen", "127.0.0.1:0"];
            let mut running = place.nstar(words.iter().chain(&common)).start();
            let address = listening(&mut running);
            (running, address)
        };
        let (accounts, backend) = serve(&["serve", "accounts", "--database", &database]);
        let backend_url = format!("http://{backend}");
        let (files, address) = serve(&["serve", "files", "--root", "shared", "--accounts", &backend_url]);
        make_account_and_get(&address);
        let metrics = get(&address, "/metrics", "");
        assert!(metrics.contains("nstar_files_requests_total{status=\"200\"} 5"), "{engine}: {metrics}");
        assert!(metrics.contains("nstar_files_connections_accepted_total 8"), "{engine}: {metrics}");
        let metrics = get(&backend, "/metrics", "");
        let made = "requests_total{route=\"/accounts\",status=\"201\"} 1";
        assert!(metrics.contains(made), "{engine}: {metrics}");
        for running in [files, accounts] {
            running.signal("TERM");
            let outcome = running.finish().exits(0);
            assert!(!outcome.stderr.contains("several threads"), "not forked from one thread: {outcome}");
            assert!(!outcome.stderr.contains("WARN"), "{outcome}");
        }
    }
}

/// Sends seven requests, each on a new connection. Five get 200.
fn make_account_and_get(address: &str) {
    let body = r#"{"name":"ada","password":"a long enough one"}"#;
    let new = format!(
        "POST /accounts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert!(ask(address, &new).starts_with("HTTP/1.1 201"));
    assert!(ask(address, &new).starts_with("HTTP/1.1 409"));
    // ada:a long enough one
    let basic = "Authorization: Basic YWRhOmEgbG9uZyBlbm91Z2ggb25l\r\n";
    for _ in 0..5 {
        assert!(get(address, "/files/hello.txt", basic).ends_with("hello, reader"));
    }
}
