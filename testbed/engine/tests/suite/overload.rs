//! `pool` when there are more connections than workers, under each policy.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
    time::{Duration, Instant},
};

use engine::{Counters, Denied, Model, Options, Overload, Server};

use crate::{commands::Commands, common::*};

const ANSWER: &[u8] = b"busy, come back later\n";

/// One worker, and room for two to wait.
fn small(overload: Overload) -> Options {
    let counters = Arc::new(Counters::default());
    Options { workers: 1, queue: 2, overload, unavailable: ANSWER.to_vec(), counters, ..options() }
}

/// A server whose only worker is held by the first connection returned, and whose queue is full with the others.
fn full(options: &Options) -> (Server, TcpStream, [TcpStream; 2]) {
    let server = start_with(Model::Pool, options, Commands::new());
    let mut held = connect(&server);
    // Half a request keeps the connection from being closed for those that wait.
    held.write_all(b"hello you\nhalf a").expect("sent");
    assert_eq!(read_line(&mut held), "hello you");
    let waiting = [connect(&server), connect(&server)];
    eventually("two wait", || options.counters.queued() == 2);
    (server, held, waiting)
}

/// Ends the request that holds the worker, and expects the others to be served.
fn release(mut held: TcpStream, waiting: [TcpStream; 2]) {
    held.write_all(b" request\n").expect("sent");
    assert_eq!(read_line(&mut held), "half a request");
    for (number, mut client) in waiting.into_iter().enumerate() {
        let said = format!("number {number}");
        assert_eq!(ask(&mut client, &said), said);
    }
}

#[test]
fn a_full_queue_leaves_the_others_in_the_listen_queue() {
    let options = small(Overload::Backlog);
    let (server, held, waiting) = full(&options);
    let mut outside = connect(&server);
    outside.write_all(b"from outside\n").unwrap();
    assert_eq!(options.counters.accepted(), 3, "the fourth is the kernel's to keep");
    release(held, waiting);
    assert_eq!(read_line(&mut outside), "from outside");
    assert_eq!(Denied::ALL.map(|why| options.counters.denied(why)), [0; 3]);
    let (taken, waited) = options.counters.queue_waits();
    assert!(taken == 4 && waited > Duration::ZERO, "{taken} waited {waited:?}");
    drop(server);
    assert_eq!(options.counters.queued(), 0);
}

#[test]
fn a_full_queue_answers_the_others_at_once_and_they_can_read_it() {
    let options = small(Overload::Unavailable);
    let (server, held, waiting) = full(&options);
    // More than the server waits for, and each has sent bytes that nobody reads: no reset may destroy the answer.
    for _ in 0..300 {
        let begun = Instant::now();
        let mut refused = connect(&server);
        // The answer may be here already, and the other side closed.
        let _ = refused.write_all(&[b'x'; 10_000]);
        let mut answer = Vec::new();
        let ended = refused.read_to_end(&mut answer);
        // Nobody is waited for for longer than a second, also where the machine stood still.
        assert!(ended.is_ok() || begun.elapsed() > Duration::from_secs(1), "a clean end: {ended:?}");
        assert_eq!(answer, ANSWER);
    }
    assert_eq!(options.counters.denied(Denied::Full), 300);
    release(held, waiting);
    assert_eq!(ask(&mut connect(&server), "hello new"), "hello new");
}

#[test]
fn refused_clients_that_never_read_or_close_hold_up_nobody() {
    // Both ends of so many connections leave no descriptors to select(2), which other tests use.
    run_apart("overload::refused_and_silent_clients", Model::Pool);
}

#[test]
#[ignore = "run by the test above"]
fn refused_and_silent_clients() {
    lift_descriptor_limit();
    let options = small(Overload::Unavailable);
    let (server, held, waiting) = full(&options);
    let silent: Vec<TcpStream> = (0..600).map(|_| connect(&server)).collect();
    eventually("all are refused", || options.counters.denied(Denied::Full) == 600);
    // The last one is counted as refused a moment before it is let go.
    eventually("refused ones are not served", || options.counters.active() == 3);
    release(held, waiting);
    drop(silent);
}

#[test]
fn a_full_queue_resets_the_others() {
    let options = small(Overload::Reset);
    let (server, held, waiting) = full(&options);
    // The reset is so early that connecting may already fail.
    let refused = TcpStream::connect(server.local_addr()).and_then(|mut client| client.read(&mut [0]));
    let error = refused.expect_err("a reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(options.counters.denied(Denied::Full), 1);
    release(held, waiting);
}

#[test]
fn a_connection_that_waited_too_long_is_dropped_when_its_turn_comes() {
    // Long enough for the first, which finds an idle worker, on any machine.
    let deadline = Duration::from_secs(2);
    let options = Options { queue_deadline: Some(deadline), ..small(Overload::Backlog) };
    let (server, mut held, mut waiting) = full(&options);
    std::thread::sleep(deadline + Duration::from_millis(100));
    held.write_all(b" request\n").unwrap();
    assert_eq!(read_line(&mut held), "half a request");
    for client in &mut waiting {
        assert_eq!(rest(client), b"");
    }
    assert_eq!(options.counters.denied(Denied::Late), 2);
    drop(held);
    eventually("the worker is free", || options.counters.active() == 0);
    // A client that finds an idle worker hardly waits, but on a very busy machine it may; then it tries again.
    eventually("one is in time", || {
        let mut client = connect(&server);
        client.write_all(b"hello new\n").is_ok() && rest_of_line(&mut client) == b"hello new\n"
    });
}

/// Reads to the end of the line or of the connection.
fn rest_of_line(stream: &mut TcpStream) -> Vec<u8> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while matches!(stream.read(&mut byte), Ok(1)) {
        line.push(byte[0]);
        if byte == *b"\n" {
            break;
        }
    }
    line
}

#[test]
fn a_client_that_has_gone_is_not_served() {
    let options = Options { queue_deadline: Some(Duration::from_secs(600)), ..small(Overload::Backlog) };
    let (_server, held, [gone, mut other]) = full(&options);
    drop(gone);
    let mut held = held;
    held.write_all(b" request\n").unwrap();
    assert_eq!(read_line(&mut held), "half a request");
    assert_eq!(ask(&mut other, "still here"), "still here");
    assert_eq!(options.counters.denied(Denied::Gone), 1);
}

/// The server was said to run before its workers were idle, so the first connections looked like more than they could serve,
/// and one was closed after its first answer.
#[test]
fn the_first_connections_find_idle_workers() {
    for _ in 0..100 {
        let server = start(Model::Pool, Commands::new());
        let mut clients: Vec<_> = (0..4).map(|_| connect(&server)).collect();
        for number in [2, 3] {
            clients.iter_mut().for_each(|client| writeln!(client, "offload {number}").unwrap());
            let answers: Vec<String> = clients.iter_mut().map(read_line).collect();
            assert_eq!(answers, vec![(number * number).to_string(); 4]);
        }
    }
}

#[test]
fn an_idle_kept_connection_gives_its_worker_to_one_that_waits() {
    let server = start_with(Model::Pool, &small(Overload::Backlog), Commands::new());
    let mut kept = connect(&server);
    assert_eq!(ask(&mut kept, "hello you"), "hello you");
    // The worker waits for the next request of the first, but the second need not wait for it.
    assert_eq!(ask(&mut connect(&server), "hello too"), "hello too");
    assert_eq!(rest(&mut kept), b"");
}

#[test]
fn a_kept_connection_ends_after_its_answer_while_others_wait() {
    let (_server, mut held, waiting) = full(&small(Overload::Backlog));
    held.write_all(b" request\n").unwrap();
    assert_eq!(rest(&mut held), b"half a request\n");
    drop(waiting);
}

#[test]
fn what_waits_in_the_queue_is_served_by_a_drain_and_closed_at_its_deadline() {
    let options = small(Overload::Backlog);
    let (server, mut held, mut waiting) = full(&options);
    waiting[0].write_all(b"number 0\n").unwrap();
    waiting[1].write_all(b"forever\n").unwrap();
    server.drain(Duration::from_secs(600));
    held.write_all(b" request\n").unwrap();
    assert_eq!(read_line(&mut held), "half a request");
    assert_eq!(rest(&mut waiting[0]), b"number 0\n");
    server.drain(Duration::ZERO);
    server.join();
    assert_eq!(rest(&mut waiting[1]), b"");
    assert_eq!((options.counters.active(), options.counters.queued()), (0, 0));
}
