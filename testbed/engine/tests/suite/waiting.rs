//! Deadlines, sleeps, and wakes from other threads.

use std::{
    io::{self, Write},
    sync::{Arc, atomic::Ordering::SeqCst},
    time::{Duration, Instant},
};

use engine::{service::Connection, shared::Atomics};

use crate::{commands::Commands, common::*};

#[test]
fn a_deadline_fails_one_wait_and_the_connection_goes_on() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut client = connect(&server);
        assert_eq!(ask(&mut client, "until 30"), "waiting", "{model}");
        assert_eq!(read_line(&mut client), "TimedOut", "{model}");
        // The next wait has a deadline of its own, here one that does not come.
        assert_eq!(ask(&mut client, "until 3600000"), "waiting", "{model}");
        assert_eq!(ask(&mut client, "in time"), "8 bytes", "{model}");
        // And then none.
        assert_eq!(ask(&mut client, "hello you"), "hello you", "{model}");
    }
}

/// Waits for input under a deadline, and answers how long that took and how it ended.
struct Impatient;

impl Program for Impatient {
    async fn serve<C: Connection>(&self, mut connection: C) {
        let begin = Instant::now();
        // A long deadline first: the short one that replaces it must hold.
        connection.set_deadline(Some(Duration::from_secs(60)));
        connection.set_deadline(Some(Duration::from_millis(30)));
        let outcome = connection.fill().await.map_err(|error| error.kind());
        let waited = begin.elapsed().as_millis();
        connection.set_deadline(None);
        let _ = reply(&mut connection, &format!("{waited} {outcome:?}")).await;
    }
}

#[test]
fn a_silent_peer_is_given_up_at_the_deadline() {
    for model in models() {
        let server = start(model, Impatient);
        let told = read_line(&mut connect(&server));
        let (waited, outcome) = told.split_once(' ').expect("two words");
        assert_eq!(outcome, "Err(TimedOut)", "{model}");
        assert!(waited.parse::<u64>().unwrap() >= 30, "{model} gave up after {waited} ms");
    }
}

/// Sends a lot to a peer that does not read, and records in shared memory how that ended: 1 if as expected.
struct Stuck(Arc<Atomics>);

impl Program for Stuck {
    async fn serve<C: Connection>(&self, mut connection: C) {
        connection.set_deadline(Some(Duration::from_millis(50)));
        connection.output().resize(64 << 20, b'x');
        let outcome = connection.flush().await.map_err(|error| error.kind());
        self.0[0].store(if outcome == Err(io::ErrorKind::TimedOut) { 1 } else { 2 }, SeqCst);
    }
}

#[test]
fn a_peer_that_does_not_read_is_given_up_at_the_deadline() {
    for model in models() {
        let outcome = Arc::new(Atomics::new(1));
        let server = start(model, Stuck(Arc::clone(&outcome)));
        let client = connect(&server);
        eventually("the sending ends", || outcome[0].load(SeqCst) != 0);
        assert_eq!(outcome[0].load(SeqCst), 1, "{model}");
        drop(client);
    }
}

#[test]
fn a_sleep_lasts_and_holds_up_nobody_else() {
    for model in models() {
        let server = start_with(model, &engine::Options { loops: 1, ..options() }, Commands::new());
        let (mut sleeper, mut other) = (connect(&server), connect(&server));
        let begin = Instant::now();
        sleeper.write_all(b"sleep 100\n").unwrap();
        assert_eq!(ask(&mut other, "hello there"), "hello there", "{model}");
        assert_eq!(read_line(&mut sleeper), "slept", "{model}");
        assert!(begin.elapsed() >= Duration::from_millis(100), "{model}: {:?}", begin.elapsed());
    }
}

#[test]
fn an_endless_sleep_does_not_hold_up_its_loop() {
    for model in models() {
        let server = start_with(model, &engine::Options { loops: 1, ..options() }, Commands::new());
        let (mut sleeper, mut other) = (connect(&server), connect(&server));
        sleeper.write_all(b"sleep 3600000\n").unwrap();
        assert_eq!(ask(&mut other, "hello there"), "hello there", "{model}");
    }
}

#[test]
fn offloaded_work_comes_back_to_its_connection() {
    for model in models() {
        let server = start(model, Commands::new());
        let mut clients: Vec<_> = (0..4).map(|_| connect(&server)).collect();
        for round in 0..50_u64 {
            for (number, client) in (round..).zip(&mut clients) {
                client.write_all(format!("offload {number}\n").as_bytes()).unwrap();
            }
            for (number, client) in (round..).zip(&mut clients) {
                assert_eq!(read_line(client), (number * number).to_string(), "{model}");
            }
        }
    }
}

#[test]
fn one_connection_wakes_another_on_its_own_loop_and_on_others() {
    // Services in processes of their own do not know each other.
    for model in models().filter(|model| !model.forks()) {
        let server = start(model, Commands::new());
        for round in 0..20 {
            // Fresh connections, so that both share a loop in some rounds and do not in others.
            let (mut waiting, mut waking) = (connect(&server), connect(&server));
            waiting.write_all(b"park\n").unwrap();
            let message = format!("unpark round {round}");
            while ask(&mut waking, &message) == "nobody" {}
            assert_eq!(read_line(&mut waiting), format!("round {round}"), "{model}");
        }
    }
}
