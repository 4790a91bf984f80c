//! A drain ends idle connections, lets the others finish, and closes what is left at its deadline.

use std::{
    io::Write,
    net::TcpStream,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use engine::Server;

use crate::{commands::Commands, common::*};

/// So long that a test fails if it has to wait for it.
const LONG: Duration = Duration::from_secs(600);

/// Waits for the server to stop, and fails the test if it does not.
fn join(server: Server) {
    let (sender, stopped) = mpsc::channel();
    let joiner = thread::spawn(move || {
        server.join();
        sender.send(()).expect("someone waits");
    });
    stopped.recv_timeout(PATIENCE).expect("the server stops");
    joiner.join().expect("no panic");
}

/// A connection that has been answered and waits for its next request.
fn kept(server: &Server) -> TcpStream {
    let mut client = connect(server);
    assert_eq!(ask(&mut client, "hello you"), "hello you");
    client
}

#[test]
fn a_server_without_connections_stops_at_once() {
    for model in models() {
        let server = start(model, Commands::new());
        let address = server.local_addr();
        server.drain(LONG);
        join(server);
        is_left(model, address);
    }
}

#[test]
fn idle_connections_end_and_no_new_ones_are_taken() {
    for model in models() {
        let server = start(model, Commands::new());
        let address = server.local_addr();
        let (mut fresh, mut kept) = (connect(&server), kept(&server));
        eventually("both are accepted", || server.counters().active() == 2);
        server.drain(LONG);
        assert_eq!(rest(&mut fresh), b"", "{model}");
        assert_eq!(rest(&mut kept), b"", "{model}");
        join(server);
        is_left(model, address);
    }
}

/// A connection whose server has received `request` and answered the one before.
fn requesting(server: &Server, request: &str) -> TcpStream {
    let mut client = connect(server);
    // One small segment is received as a whole.
    assert_eq!(ask(&mut client, &format!("hello you\n{request}")), "hello you");
    client
}

#[test]
fn a_request_half_received_and_those_at_work_are_finished() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut half = connect(&server);
        half.write_all(b"hello you\nhalf and").unwrap();
        assert_eq!(read_line(&mut half), "hello you");
        let mut working = requesting(&server, "sleep 100");
        let mut sending = requesting(&server, "send 8000000");
        server.drain(LONG);
        half.write_all(b" half\n").unwrap();
        assert_eq!(rest(&mut half), b"half and half\n", "{model}");
        assert_eq!(rest(&mut working), b"slept\n", "{model}");
        assert_eq!(rest(&mut sending).len(), 8_000_000, "{model}");
        join(server);
    }
}

#[test]
fn what_is_not_finished_by_the_deadline_is_closed() {
    for model in models() {
        let server = start(model, Commands::new());
        let requests = ["until 3600000", "sleep 3600000", "forever", "park", "flood"];
        let mut clients: Vec<TcpStream> =
            requests.iter().map(|request| requesting(&server, request)).collect();
        // Half a request makes it not idle.
        clients[0].write_all(b"half a reque").unwrap();
        let begin = Instant::now();
        server.drain(Duration::from_millis(100));
        let counters = server.counters().clone();
        join(server);
        assert!(begin.elapsed() >= Duration::from_millis(100), "{model}: {:?}", begin.elapsed());
        eventually("none is left", || counters.active() == 0);
        for client in &mut clients {
            assert!(rest(client).len() < 64 << 20, "{model}");
        }
    }
}

#[test]
fn a_request_to_another_tier_is_finished_while_draining() {
    for model in models() {
        let back = start(model, Commands::new());
        let front = start(model, Commands::new());
        let mut client = kept(&front);
        client.write_all(format!("ask {} sleep 50\n", back.local_addr()).as_bytes()).unwrap();
        eventually("the other tier is asked", || back.counters().active() == 1);
        front.drain(LONG);
        assert_eq!(rest(&mut client), b"slept and slept\n", "{model}");
        join(front);
    }
}

#[test]
fn an_earlier_deadline_replaces_a_later_one() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut client = kept(&server);
        client.write_all(b"forever\n").unwrap();
        server.drain(LONG);
        server.drain(Duration::ZERO);
        join(server);
        assert_eq!(rest(&mut client), b"", "{model}");
    }
}

#[test]
fn a_dropped_server_stops() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut client = kept(&server);
        client.write_all(b"forever\n").unwrap();
        drop(server);
        assert_eq!(rest(&mut client), b"", "{model}");
    }
}
