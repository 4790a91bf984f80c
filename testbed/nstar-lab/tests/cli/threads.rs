//! A server with one kind of work: does the verdict name it by the names of its threads?

use serde_json::Value;

use crate::{
    common::support::{Outcome, Place, Running, has_two_cores_or_skip},
    common::verdict::{kind, verdict},
    serve::listening,
};

/// The accounts server on one processor, with a new database.
fn accounts(place: &Place, engine: &str, database: &str) -> (Running, String) {
    let words = ["serve", "accounts", "--database", database, "--engine", engine, "--listen", "127.0.0.1:0"];
    let mut running = place.wrapped(["taskset", "-c", "0"], words).start();
    let url = format!("http://{}", listening(&mut running));
    (running, url)
}

/// Sweeps with the creation of accounts, each of which hashes a password.
fn sweep(place: &Place, engine: &str, attempt: u32) -> (Outcome, Value) {
    let (running, url) = accounts(place, engine, &format!("{attempt}.db"));
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/new-accounts.toml");
    let words = ["sweep", scenario, "--base", &url, "-c", "1..8", "-d", "1s", "--cpus", "1"];
    let outcome = place.nstar(words).run();
    running.signal("TERM");
    running.finish().exits(0);
    (outcome, place.run_file())
}

/// On a busy machine the verdict may name another cause as uncertain. If it names the server's processor, it says what the
/// server used it for.
fn hashing_is_named(engine: &str) {
    let test = "accounts that are made are told to wait for the hash of a password";
    let place = Place::new();
    for attempt in (0..4).take_while(|_| has_two_cores_or_skip(test)) {
        let (outcome, run) = sweep(&place, engine, attempt);
        let bottleneck = &verdict(&run)["bottleneck"];
        let accounts =
            bottleneck["holder"].as_str().is_some_and(|holder| holder.starts_with("nstar-accounts"));
        if !accounts || !["cpu", "single-thread"].contains(&kind(&run)) {
            assert!(kind(&run) == "unknown" || outcome.status.code() == Some(4), "{outcome}");
            continue;
        }
        let said = bottleneck["evidence"].to_string();
        assert!(said.contains("named `password-hash`: "), "{outcome}");
        let most = &bottleneck["threads"]["names"][0];
        assert_eq!(most["name"], "password-hash", "{bottleneck}");
        assert!(most["share"].as_f64() > Some(0.5) && most["demand_us"].as_f64() > Some(0.0), "{bottleneck}");
        assert!(outcome.stdout.contains("`password-hash`"), "{outcome}");
        let page = std::fs::read_to_string(place.path("report.html")).expect("a report");
        assert!(page.contains("by the names of its threads") && page.contains("password-hash"));
        return;
    }
    eprintln!(
        "UNDECIDED: this machine was too busy for the processor to be the cause, and every answer said so"
    );
}

#[test]
fn the_hash_of_passwords_is_named_on_event_loops() {
    hashing_is_named("epoll");
}

#[test]
fn the_hash_of_passwords_is_named_in_processes_of_one_name() {
    hashing_is_named("prefork");
}
