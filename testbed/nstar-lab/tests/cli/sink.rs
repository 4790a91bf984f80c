//! `nstar serve sink`: uploads through the real program.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use serde_json::Value;

use crate::{
    common::{
        support::Place,
        verdict::{is_said, named, verdict},
    },
    serve::{ask, listening},
};

#[test]
fn an_upload_is_counted_and_hashed_and_the_totals_are_told_at_the_end() {
    let place = Place::beside_others();
    let words = ["serve", "sink", "--verify", "blake3", "--chunk", "1024", "--listen", "127.0.0.1:0"];
    let mut running = place.nstar(words).start();
    let address = listening(&mut running);
    let answer = ask(
        &address,
        "POST /upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
    );
    // The published hash of "abc".
    let hash = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
    assert!(answer.ends_with(&format!(r#"{{"bytes":3,"blake3":"{hash}"}}"#)), "{answer}");
    running.signal("TERM");
    running.finish().exits(0).says("received 3 bytes; 1 uploads completed, 0 failed");
}

#[test]
fn a_long_body_is_not_held_in_memory() {
    let place = Place::beside_others();
    let mut running = place.nstar(["serve", "sink", "--listen", "127.0.0.1:0"]).start();
    let address = listening(&mut running);
    let head =
        "POST /upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 314572800\r\n\r\n";
    let mut stream = TcpStream::connect(&address).expect("a connection");
    stream.write_all(head.as_bytes()).expect("sent");
    for _ in 0..300 {
        stream.write_all(&[7; 1 << 20]).expect("sent");
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.ends_with(r#"{"bytes":314572800}"#), "{answer}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).expect("alive");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak").trim();
    let peak_kib: u64 = peak.trim_end_matches(" kB").parse().expect("a number");
    assert!(peak_kib < 100 << 10, "300 MiB were sent, and {peak} were used at most");
    running.signal("TERM");
    running.finish().exits(0);
}

#[test]
fn a_sink_that_makes_no_sense_is_not_started() {
    let place = Place::beside_others();
    for (words, complaint) in [
        (&["--chunk", "0"][..], "least is 1"),
        (&["--chunk", "1GB"], "at most"),
        (&["--chunk", "many"], "64KiB"),
        (&["--max-body", "much"], "not a size"),
        (&["--delay", "5"], "unit"),
        (&["--verify", "md5"], "blake3"),
        (&["--raw", "--verify", "blake3"], "cannot be used with"),
        (&["--raw", "--delay", "1s"], "cannot be used with"),
        (&["--engine", "sand"], "epoll"),
    ] {
        let call = ["serve", "sink", "--listen", "127.0.0.1:0"].iter().chain(words);
        place.nstar(call).run().exits(2).complains(complaint);
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    place.nstar(["serve", "sink", "--listen", &address]).run().exits(1).complains(&address);
}

#[test]
fn those_that_a_server_denies_are_counted_by_kind_and_shown() {
    let place = Place::beside_others();
    let mut server = place.nstar(["serve", "sink", "--max-body", "50KB", "--listen", "127.0.0.1:0"]).start();
    let url = format!("http://{}/upload", listening(&mut server));
    let words = ["load", "-c", "20", "-n", "5", "--body-size", "10KB,5MB", "-o", "denied.json", &url];
    let outcome = place.nstar(words).run();
    let text = std::fs::read_to_string(place.path("denied.json")).expect("a run file");
    let run: Value = serde_json::from_str(&text).expect("JSON");
    let warning = run["warnings"].as_array().expect("warnings").iter().find(|w| w["kind"] == "errors");
    let said = warning.and_then(|warning| warning["text"].as_str()).unwrap_or_default();
    assert!(said.contains("unexpected status") && said.contains("413"), "{outcome}");
    let address = url.trim_start_matches("http://").trim_end_matches("/upload");
    assert!(ask(address, "GET /healthz HTTP/1.0\r\n\r\n").contains("\r\n\r\nok\n"));
    server.signal("TERM");
    server.finish().exits(0);
}

/// Four workers that each wait 10 ms: at most 400 requests a second, on an idle machine.
#[test]
fn four_workers_that_wait_are_a_worker_pool() {
    let place = Place::beside_sleepers();
    let words = ["serve", "sink", "--engine", "pool", "--workers", "4", "--delay", "10ms"];
    let mut running = place.nstar(words.into_iter().chain(["--listen", "127.0.0.1:0"])).start();
    let url = format!("http://{}/upload", listening(&mut running));
    // A worker serves one connection until it ends, so each request has its own.
    let args = ["-b", "hello", "-c", "1..64", "-d", "2s", "--connections", "per-request"];
    let run = named(&place, &url, &args);
    running.signal("TERM");
    running.finish().exits(0);
    let Some(run) = run else { return };
    let max = verdict(&run)["throughput_max_per_s"].as_f64().expect("a rate");
    let alone_us = run["steps"][0]["response_time_us"]["mean"].as_f64().expect("a time");
    assert!(max < 404.0, "four at a time, 10 ms each: {max}");
    if !is_said(&run, &["worker-pool"]) {
        return;
    }
    let holder = verdict(&run)["bottleneck"]["holder"].as_str().expect("a holder");
    assert!(holder.starts_with("nstar-sink"), "{}", verdict(&run));
    // A slow machine makes a request take longer than its 10 ms.
    let is_slow = alone_us > 11_800.0;
    let at_once = max * alone_us / 1e6;
    assert!(at_once > 3.2 && (at_once < 4.8 || is_slow), "X R(1) is 4: {max} times {alone_us} us");
}
