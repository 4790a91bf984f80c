//! Mistakes made on purpose: each gets a message that says what, where and what next, and the right exit code.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

use crate::common::support::{Place, Server, free_port};

/// Answers every request with what follows on its command line, in escapes, then does as told.
const ANSWERS: &str = r#"
import socket, sys
answer = ANSWER
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=256)
held = []
while True:
    connection, _ = listener.accept()
    connection.settimeout(5)
    try:
        if connection.recv(65536) and answer is not None: connection.sendall(answer)
    except OSError: pass
    if answer is None: held.append(connection)
    else: connection.close()
"#;

fn answering(answer: &str) -> Server {
    Server::python(&ANSWERS.replace("ANSWER", answer))
}

#[test]
fn a_refused_port_is_told_and_fails() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    Place::beside_others().nstar(["sweep", &url]).run().exits(1).complains("refused");
    Place::beside_others().nstar(["load", &url, "-d", "1s"]).run().exits(1).complains("refused");
}

#[test]
fn a_name_that_does_not_resolve_is_told() {
    Place::beside_others()
        .nstar(["sweep", "http://no-such-host.invalid/"])
        .run()
        .exits(1)
        .complains("no-such-host.invalid");
}

#[test]
fn tls_on_a_plain_port_is_told() {
    let server =
        answering(r#"b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n""#);
    let url = format!("https://{}/", server.address);
    Place::beside_others().nstar(["sweep", "-k", &url]).run().exits(1).complains("TLS");
}

#[test]
fn garbage_and_silence_are_told_apart() {
    let garbage = answering(r#"b"\x00\x01\x02 not http\r\n\r\n""#);
    Place::beside_others().nstar(["sweep", &garbage.url("/")]).run().exits(1).complains("HTTP");
    let silent = answering("None");
    Place::beside_others()
        .nstar(["sweep", &silent.url("/"), "--timeout", "300ms"])
        .run()
        .exits(1)
        .complains("0.3 s");
}

/// Such as of a folder whose address lacks its last `/`.
#[test]
fn a_redirect_that_nobody_asked_for_is_told_and_stays_in_the_report() {
    let server = answering(
        r#"b"HTTP/1.1 301 Moved Permanently\r\nLocation: /folder/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n""#,
    );
    let place = Place::beside_others();
    let (url, load) = (server.url("/folder"), ["-c", "1", "-n", "3", "-o", "run.json"]);
    let told = |flags: &[&str]| {
        let outcome = place.nstar([&["load", url.as_str()], &load[..], flags].concat()).run();
        let run = place.run_file();
        let warnings = run["warnings"].as_array().expect("warnings").iter();
        (outcome, warnings.filter(|warning| warning["kind"] == "redirected").count())
    };
    let (outcome, warned) = told(&[]);
    outcome.exits(0).complains("the server answered the first request with a redirect (status 301)");
    assert_eq!(warned, 1);
    assert_eq!(told(&["--expect", "301"]).1, 0, "it is meant");
}

#[test]
fn a_body_that_is_not_the_one_asked_for_is_not_a_success() {
    let server = answering(r#"b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody""#);
    let place = Place::beside_others();
    let load = |flags: &[&str]| {
        let url = server.url("/");
        let words = [&["load", &url, "-c", "1", "-n", "3", "-o", "run.json"], flags].concat();
        place.nstar(words).run()
    };
    load(&["--verify", "bodY"]).exits(1);
    assert!(place.run_file()["steps"][0]["errors"]["wrong_body"].as_u64() >= Some(1));
    load(&["--verify", &format!("@{}", place.write("body", "body").display())]);
    let right = &place.run_file()["steps"][0];
    assert!(right["completed"].as_u64() >= Some(1) && right["errors"]["wrong_body"].is_null());
    load(&["--verify", "@nothing"]).exits(2).complains("cannot read the body nothing");
}

#[test]
fn a_body_cut_short_is_not_a_success() {
    let server = answering(r#"b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf""#);
    Place::beside_others().nstar(["load", &server.url("/"), "-d", "1s"]).run().exits(1).complains("clos");
}

#[test]
fn every_request_refused_by_status_fails() {
    let nginx = Server::nginx("0");
    Place::beside_others()
        .nstar(["load", &nginx.url("/missing"), "-d", "1s"])
        .run()
        .exits(1)
        .complains("404");
}

#[test]
fn a_path_that_cannot_be_written_is_found_before_the_run() {
    let place = Place::beside_others();
    let nothing_listens = format!("http://127.0.0.1:{}/", free_port());
    place
        .nstar(["sweep", &nothing_listens, "-o", "/proc/no/run.json"])
        .run()
        .exits(2)
        .complains("/proc/no/run.json")
        .complains("nothing was run");
}

#[test]
fn an_unknown_flag_value_or_command_is_usage() {
    let place = Place::beside_others();
    place.nstar(["sweep"]).run().exits(2).complains("URL|SCENARIO");
    place.nstar(["swoop"]).run().exits(2).complains("sweep");
    place
        .nstar(["sweep", "http://127.0.0.1:1/", "-c", "9..3"])
        .run()
        .exits(2)
        .complains("smaller number first");
    place.nstar(["load", "http://127.0.0.1:1/", "-d", "5"]).run().exits(2).complains("unit");
    place.nstar(["load", "http://127.0.0.1:1/", "--gate", "speed>=1"]).run().exits(2).complains("throughput");
    place.nstar(["sweep", "ftp://127.0.0.1/"]).run().exits(2).complains("http");
}

#[test]
fn a_file_after_json_is_told_where_it_goes() {
    let place = Place::beside_others();
    let url = "http://127.0.0.1:1/";
    for words in [
        ["sweep", url, "--json", "run.json"],
        ["load", "-j", "run.json", url],
        ["sweep", url, "--json=run.json", "--no-progress"],
        ["experiment", "mine.toml", "--json", "run.json"],
    ] {
        place.nstar(words).run().exits(2).complains("takes no file").complains("-o FILE");
    }
    let typo = place.nstar(["sweep", url, "--json", "--outptu"]).run().exits(2);
    assert!(!typo.stderr.contains("takes no file"), "{typo}");
}

#[test]
fn a_typo_in_a_scenario_is_told_with_file_line_and_the_nearest_name() {
    let place = Place::beside_others();
    place.write("mine.toml", "base = \"http://127.0.0.1:1\"\n\n[[request]]\npath = \"/\"\nwieght = 3\n");
    place
        .nstar(["sweep", "mine.toml"])
        .run()
        .exits(2)
        .complains("mine.toml")
        .complains("5")
        .complains("wieght")
        .complains("weight");
}

#[test]
fn too_few_descriptors_are_told_with_the_command_that_lifts_the_limit() {
    let (place, nginx) = (Place::beside_others(), Server::nginx("0"));
    let url = nginx.url("/");
    let limited = ["prlimit", "--nofile=100:100"];
    place
        .wrapped(limited, ["load", &url, "-c", "500", "-d", "1s"])
        .run()
        .exits(1)
        .complains("100")
        .complains("ulimit -n");
    place.wrapped(limited, ["load", &url, "-c", "500", "-d", "1s", "--fewer-users"]).run().exits(0);
}

#[test]
fn an_interrupted_sweep_ends_cleanly_with_what_was_measured() {
    let (place, nginx) = (Place::beside_others(), Server::nginx("0"));
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        // Whoever runs the tests may ignore the loss of a terminal, which nstar would inherit.
        let heard = ["env", "--default-signal=HUP"];
        let mut running = place.wrapped(heard, ["sweep", &nginx.url("/"), "-d", "2s"]).start();
        running.wait_for_stderr(" users ");
        running.signal(name);
        running.finish().exits(code);
        let run = place.run_file();
        assert!(!run["steps"].as_array().expect("steps").is_empty());
        assert!(run["warnings"].to_string().contains("interrupted"), "{}", run["warnings"]);
        assert!(std::fs::metadata(place.path("report.html")).is_ok());
    }
}

#[test]
fn a_sweep_under_nohup_outlives_its_terminal() {
    let (place, nginx) = (Place::beside_others(), Server::nginx("0"));
    let sweep = ["sweep", &nginx.url("/"), "-c", "1,2", "-d", "1s"];
    let mut running = place.wrapped(["nohup"], sweep).start();
    running.wait_for_stderr(" users ");
    running.signal("HUP");
    let outcome = running.finish();
    assert_ne!(outcome.status.code(), Some(129), "{outcome}");
    let run = place.run_file();
    assert_eq!(run["steps"].as_array().map(Vec::len), Some(2), "{outcome}");
}

#[test]
fn a_server_that_dies_mid_sweep_loses_nothing_measured() {
    let (place, mut nginx) = (Place::beside_others(), Server::nginx("0"));
    let mut running = place.nstar(["sweep", &nginx.url("/"), "-c", "1,2,4,8", "-d", "2s"]).start();
    running.wait_for_stderr(" users ");
    crate::common::support::kill_tree(nginx.pid());
    nginx.kill();
    let outcome = running.finish();
    // Not 0: a server that died did not saturate.
    assert!([1, 4].contains(&outcome.status.code().expect("a code")), "{outcome}");
    let run = place.run_file();
    assert!(run["steps"][0]["completed"].as_u64().expect("a count") > 0, "{outcome}");
    assert!(
        run["warnings"].to_string().contains("refused") || run["warnings"].to_string().contains("failed"),
        "{outcome}"
    );
}

#[test]
fn a_load_on_a_server_that_dies_has_failed_and_says_so() {
    let place = Place::beside_others();
    // Within the time of the load, however slow the machine is.
    let mut until = None;
    let url = answers_while(move |answered| {
        answered < 20
            || Instant::now() < *until.get_or_insert_with(|| Instant::now() + Duration::from_secs(1))
    });
    place.nstar(["load", &url, "-c", "2", "-d", "6s"]).run().exits(1).complains("answered nothing");
}

#[test]
fn a_number_of_requests_is_given_up_when_the_server_is_gone() {
    let place = Place::beside_others();
    let url = answers_while(|answered| answered < 5_000);
    place
        .nstar(["load", &url, "-c", "2", "-n", "1000000", "--timeout", "1s", "-o", "run.json"])
        .run()
        .exits(1)
        .complains("answered nothing for the last");
    // What it did before counts.
    assert!(place.run_file()["steps"][0]["completed"].as_u64().expect("a count") > 0);
}

/// A server that is gone once this no longer holds of the number of requests that it has answered.
fn answers_while(mut goes_on: impl FnMut(usize) -> bool + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        let mut answered = 0;
        // What only looks whether anybody listens closes without a request.
        while goes_on(answered) {
            let (mut peer, _) = listener.accept().expect("a connection");
            if peer.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
                peer.write_all(answer).expect("an answer");
                answered += 1;
            }
        }
    });
    url
}

#[test]
fn a_gate_that_is_breached_has_its_own_exit_code() {
    let (place, nginx) = (Place::beside_others(), Server::nginx("0"));
    let load = |gate: &str| place.nstar(["load", &nginx.url("/"), "-d", "1s", "--gate", gate]).run();
    load("throughput>=1").exits(0);
    load("throughput>=1000000000").exits(3).complains("breached");
}

#[test]
fn a_gate_on_a_percentile_that_the_sample_is_too_small_for_says_so() {
    let (place, nginx) = (Place::beside_others(), Server::nginx("0"));
    let words = ["load", &nginx.url("/"), "-c", "1", "-n", "60", "--gate", "p99<=10s"];
    place.nstar(words).run().exits(3).complains("p99<=10s breached: p99 needs 299 responses; there were ");
}

/// The command line's own message would repeat what was typed.
#[test]
fn a_mistyped_database_is_told_without_its_password() {
    let place = Place::beside_others();
    for (wrong, said) in [
        ("mysql://ann:hush@db", "lacks user, host or database"),
        ("mysqll://ann:hush@db/x", "did you mean mysql://USER"),
    ] {
        let outcome =
            place.nstar(["sweep", "http://x/", "--watch-database", wrong]).run().exits(2).complains(said);
        assert!(!outcome.stderr.contains("hush") && !outcome.stderr.contains("sqlite"), "{outcome}");
    }
}

/// Files are named by others, too.
#[test]
fn a_name_that_would_steer_the_terminal_is_shown_harmless() {
    let outcome = Place::beside_others().nstar(["report", "x\u{1b}[2J\u{9b}8m.json"]).run().exits(2);
    assert!(!outcome.stderr.contains(|c: char| c.is_control() && c != '\n'), "{:?}", outcome.stderr);
    assert!(outcome.stderr.contains("x\\u{1b}[2J"), "{:?}", outcome.stderr);
}

/// A link that somebody else laid where the run file goes must not lead to the loss of what it leads to.
#[test]
fn a_run_file_replaces_what_was_there_and_follows_no_link() {
    let (place, nginx) = (Place::beside_others(), Server::nginx("0"));
    let load = || place.nstar(["load", &nginx.url("/"), "-n", "1", "-o", "run.json"]).run();
    place.write("precious", "kept");
    std::os::unix::fs::symlink("precious", place.path("run.json")).expect("a link");
    load().exits(2).complains("symbolic link").complains("nothing was run");
    std::fs::remove_file(place.path("run.json")).expect("removed");
    std::fs::hard_link(place.path("precious"), place.path("run.json")).expect("another name");
    load().exits(0);
    assert_eq!(std::fs::read_to_string(place.path("precious")).expect("a file"), "kept");
    assert!(place.run_file()["steps"].is_array());
    let left = std::fs::read_dir(place.path(".")).expect("a folder").flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with(".nstar-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Values in a query may be tokens, whatever they are called.
#[test]
fn the_values_of_a_query_are_in_no_file_and_in_no_message() {
    let (place, nginx) = (Place::beside_others(), Server::nginx("0"));
    let target = nginx.url("/?token=hush&hush");
    let outcome = place.nstar(["load", &target, "-n", "1", "-o", "run.json"]).run().exits(0);
    assert!(place.run_file()["target"].as_str().expect("a URL").ends_with("/?token=***&***"));
    let written =
        ["run.json", "report.html"].map(|name| std::fs::read_to_string(place.path(name)).expect("a file"));
    for text in written.iter().chain([&outcome.stdout, &outcome.stderr]) {
        assert!(!text.contains("hush"), "{text}");
    }
}
