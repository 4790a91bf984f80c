//! Many connections at once.

use std::{
    collections::HashSet,
    io::Write,
    net::{Shutdown, TcpStream},
    thread,
};

use crate::{commands::Commands, common::*};
use engine::Model;

const IDLE: usize = 1_000;
const BUSY: usize = 50;

#[test]
fn a_thousand_idle_and_fifty_busy_connections() {
    for model in models() {
        run_apart("many::idle_and_busy_connections", model);
    }
}

#[test]
#[ignore = "run by the test above"]
fn idle_and_busy_connections() {
    lift_descriptor_limit();
    let model = model_to_try();
    // If a connection holds a worker, there must be as many workers.
    let enough = engine::Options { workers: IDLE + BUSY, ..options() };
    let server = start_with(model, &enough, Commands::new());
    let mut idle: Vec<TcpStream> = (0..idle_of(model)).map(|_| connect(&server)).collect();
    let mut busy: Vec<TcpStream> = (0..BUSY).map(|_| connect(&server)).collect();
    let all = idle.len() + busy.len();
    eventually("all are accepted", || server.counters().active() == all);
    thread::scope(|scope| {
        for clients in busy.chunks_mut(BUSY / 2) {
            scope.spawn(|| (0..20).for_each(|round| ask_all(model, clients, round)));
        }
    });
    // The idle ones were not forgotten.
    ask_all(model, &mut idle, 0);
    drop((idle, busy));
    eventually("all are closed", || server.counters().active() == 0);
    assert_eq!(server.counters().closed(), all as u64);
}

/// Fewer for select(2), which takes only descriptors below 1 024: both ends of each connection are in one process.
fn idle_of(model: Model) -> usize {
    if model == Model::Select { 400 } else { IDLE }
}

fn ask_all(model: Model, clients: &mut [TcpStream], round: usize) {
    for (number, client) in clients.iter_mut().enumerate() {
        client.write_all(format!("request {round} of {number}\n").as_bytes()).expect("sent");
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(read_line(client), format!("request {round} of {number}"), "{model}");
    }
}

#[test]
fn the_c_library_reads_for_any_number_of_connections_with_twenty_threads() {
    run_apart("many::threads_that_read", Model::Aio);
}

#[test]
#[ignore = "run by the test above"]
fn threads_that_read() {
    let model = model_to_try();
    let server = start(model, Commands::new());
    let mut clients: Vec<TcpStream> = (0..300).map(|_| connect(&server)).collect();
    ask_all(model, &mut clients, 0);
    // This test's thread and the one that runs it, two loops, two threads for offloaded work, and the helpers.
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
    assert!(threads <= 6 + 20, "{threads} threads");
}

#[test]
fn one_connection_per_request() {
    for model in models() {
        let server = start(model, Commands::new());
        for number in 0..300 {
            let mut client = connect(&server);
            client.write_all(format!("request {number}\n").as_bytes()).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(rest(&mut client), format!("request {number}\n").as_bytes(), "{model}");
        }
        assert_eq!(server.counters().accepted(), 300, "{model}");
    }
}

#[test]
fn connections_are_spread_over_threads() {
    for model in models() {
        let server = start_with(model, &engine::Options { workers: 64, ..options() }, Commands::new());
        let mut clients: Vec<TcpStream> = (0..64).map(|_| connect(&server)).collect();
        // With two loops, one of them gets none of 64 connections once in 2^63 runs.
        let threads: HashSet<String> = clients.iter_mut().map(|client| ask(client, "thread")).collect();
        assert!(threads.len() >= 2, "{model}: {threads:?}");
    }
}
