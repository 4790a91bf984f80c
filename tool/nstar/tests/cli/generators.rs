//! One load from several generators: what they count is what the server saw, and one that is lost spoils nothing.

mod lost;

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::observe::far::{Far, Network};
use crate::common::{
    support::{PATIENCE, Place, Server, free_port, has_two_cores_or_skip, is_root_or_skip, tool_program},
    verdict::{HTTP, ONE_MUTEX, kind, verdict},
};

/// Counts requests by path, and tells the counts at `/seen`. Below `/slow/` it takes longer. The second argument, if there is one,
/// is a file: after 50 requests nothing is answered until that is there.
pub(super) const COUNTING: &str = r#"
import json, os, socket, sys, threading, time
from collections import Counter
seen, lock, gate = Counter(), threading.Lock(), sys.argv[2] if len(sys.argv) > 2 else None
def talk(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    lines = connection.makefile("rb")
    while line := lines.readline():
        while lines.readline() not in (b"\r\n", b""): pass
        path, body = line.split()[1].decode(), b"ok"
        if path == "/seen":
            with lock: body = json.dumps(seen).encode()
        else:
            with lock: seen[path] += 1
            while gate and sum(seen.values()) > 50 and not os.path.exists(gate): time.sleep(0.01)
            time.sleep(0.012 if path.startswith("/slow/") else 0.002)
        try: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        except OSError: return
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=1024)
while True:
    threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()
"#;

/// Every request has a path that no other has, of whichever user and generator.
pub(super) const UNIQUE: &str = r#"
[values]
me = { kind = "user" }
mine = { kind = "counter" }
turn = { kind = "sequence" }
[[request]]
name = "one"
path = "/${me}/${mine}/${turn}"
[[request]]
name = "other"
path = "/${me}/${mine}/${turn}"
"#;

/// How often each path was asked for.
pub(super) fn seen(server: &Server) -> BTreeMap<String, u64> {
    let mut connection = TcpStream::connect(server.address).expect("the server");
    connection.write_all(b"GET /seen HTTP/1.1\r\n\r\n").expect("a request");
    connection.shutdown(std::net::Shutdown::Write).expect("the end");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON")
}

fn agent() -> String {
    format!("{} agent", tool_program().display())
}

pub(super) fn generators(of: &Value) -> &Vec<Value> {
    of["generators"].as_array().expect("generators")
}

pub(super) fn sum(of: &Value, key: &str) -> u64 {
    generators(of).iter().map(|one| one[key].as_u64().expect("a count")).sum()
}

/// Requests that completed in the measured part.
pub(super) fn measured(run: &Value) -> u64 {
    run["steps"][0]["completed"].as_u64().expect("a count")
}

/// Requests that completed in all, but for the first of each generator.
pub(super) fn completed(run: &Value) -> u64 {
    let kinds = run["requests"].as_array().expect("kinds of request");
    kinds.iter().map(|kind| kind["completed"].as_u64().expect("a count")).sum()
}

/// Each kind of request has the response times of its own requests, of all generators together.
fn assert_slow_is_slower(run: &Value) {
    let step = &run["steps"][0];
    let [one, other] = &step["requests"].as_array().expect("kinds of request")[..] else { panic!("{step}") };
    assert_eq!((&one["name"], &other["name"]), (&"one".into(), &"other".into()));
    let completed = [one, other].map(|kind| kind["completed"].as_u64().expect("a count"));
    assert_eq!(completed.iter().sum::<u64>(), measured(run), "{step}");
    let [fast_us, slow_us] =
        [one, other].map(|kind| kind["response_time_us"]["mean"].as_f64().expect("a time"));
    assert!(0.0 < fast_us && fast_us < slow_us && slow_us > 12_000.0, "{step}");
}

#[test]
fn what_two_generators_count_is_what_the_server_saw_and_no_value_comes_twice() {
    let place = Place::beside_sleepers();
    let server = Server::python(COUNTING);
    let slow = UNIQUE.replace("\"other\"\npath = \"/", "\"other\"\npath = \"/slow/");
    let scenario = place.write("unique.toml", slow).display().to_string();
    let load = |stop: [&str; 2]| {
        let base = server.url("");
        let words = ["load", &scenario, "--base", &base, "-c", "7", stop[0], stop[1], "-o", "run.json"];
        let more = ["--generator", "here", "--generator", &agent()];
        println!("{}", place.nstar(words.iter().chain(&more)).run().exits(0));
        place.run_file()
    };
    let run = load(["-n", "30"]);
    assert_eq!(completed(&run), 210, "{}", run["requests"]);
    let (saw, step) = (seen(&server), &run["steps"][0]);
    assert_eq!(saw.values().sum::<u64>(), 210 + 2, "and one first request of each generator: {saw:?}");
    assert!(
        saw.len() >= 210,
        "but for first requests, which may draw what a user does, none came twice: {saw:?}"
    );
    assert_eq!((sum(step, "users"), sum(step, "completed")), (7, measured(&run)), "{step}");
    assert!((1..=210).contains(&measured(&run)), "{step}");
    assert_slow_is_slower(&run);
    let names: Vec<_> = generators(&run["load"]).iter().map(|one| one["name"].as_str()).collect();
    assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
    assert!(
        sum(&run["load"], "threads") == run["load"]["threads"].as_u64().expect("threads"),
        "{}",
        run["load"]
    );

    let run = load(["--total", "151"]);
    assert_eq!(completed(&run), 151, "{}", run["requests"]);
    assert_eq!(seen(&server).values().sum::<u64>(), 212 + 151 + 2);

    let run = load(["-d", "1s"]);
    let (all, saw) = (completed(&run), seen(&server).values().sum::<u64>() - 212 - 153 - 2);
    assert!(saw - 7 <= all && all <= saw, "but for those under way at the end, of 7 users: {all} of {saw}");
    assert!((1..=all).contains(&measured(&run)), "{} of {all}", measured(&run));
}

#[test]
fn an_open_loop_sends_at_the_rate_of_all_together() {
    let place = Place::beside_sleepers();
    let server = Server::python(COUNTING);
    let (scenario, base) = (place.write("unique.toml", UNIQUE).display().to_string(), server.url(""));
    let load = ["load", &scenario, "--base", &base, "-R", "100", "--total", "400", "-o", "run.json"];
    let more = ["--generator", "here", "--generator", "here", "--generator", "here"];
    println!("{}", place.nstar(load.iter().chain(&more)).run().exits(0));
    let run = place.run_file();
    assert_eq!(completed(&run), 400, "{}", run["requests"]);
    assert_eq!(seen(&server).values().sum::<u64>(), 400 + 3);
    // The last of 400 arrivals of a Poisson process comes after 4 s, with a standard deviation of 0.2 s; a slow machine can
    // make it later.
    let time = |key: &str| run["steps"][0][key].as_f64().expect("a time");
    let took_s = time("elapsed_s") + time("warmup_s");
    assert!(took_s > 2.8, "faster than asked for: {took_s} s");
}

#[test]
fn a_sweep_from_another_host_finds_what_a_sweep_from_here_does() {
    let test = "a_sweep_from_another_host_finds_what_a_sweep_from_here_does";
    if !is_root_or_skip(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(far) = Far::serving(&place, ONE_MUTEX, &[]) else { return };
    let Some(other) = Network::make() else { return };
    // Beside the server, and from this side of the link; a third has no way to the server.
    let (there, here) = (far.in_its_network(), "here");
    let url = far.url();
    let sweep = ["sweep", &url, "-c", "1..8", "-d", "1s", "--generator", &there, "--generator", here];
    let outcome = place.nstar(sweep).run();
    println!("{outcome}");
    assert!([Some(0), Some(4)].contains(&outcome.status.code()), "{outcome}");
    let run = place.run_file();
    for step in run["steps"].as_array().expect("steps") {
        assert_eq!(step["users"], sum(step, "users"), "{step}");
        assert_eq!(generators(step).len(), 2, "{step}");
    }
    let max = verdict(&run)["throughput_max_per_s"].as_f64().expect("a rate");
    assert!(max < 202.0 && max > 10.0, "5 ms each, one at a time: {max}");
    let nowhere = format!("ip netns exec {} {}", other.name, agent());
    let outcome = place.nstar(["load", &url, "-d", "1s", "--generator", here, "--generator", &nowhere]).run();
    outcome.exits(1).complains("the generator on").complains("cannot be reached");
}

/// One worker that takes 5 ms for each request, in the order in which they come.
const ONE_WORKER: &str = r#"
turns = queue.Queue()
def work():
    while True:
        done = turns.get()
        time.sleep(0.005)
        done.set()
threading.Thread(target=work, daemon=True).start()
def hold():
    done = threading.Event()
    turns.put(done)
    done.wait()
serve(keep, hold)
"#;

#[test]
fn four_generators_reach_what_one_does_where_the_server_is_the_limit_and_their_users_wait_as_long() {
    let place = Place::new();
    let server = Server::python(&format!("{HTTP}{ONE_WORKER}"));
    // Throughput, and the response time of the median user and of one in twenty.
    let measured = |count: usize| {
        let url = server.url("/");
        let load = ["load", &url, "-c", "8", "-d", "3s", "-o", "run.json"];
        let more = std::iter::repeat_n(["--generator", "here"], count).flatten();
        let outcome = place.nstar(load.into_iter().chain(more)).run();
        println!("{outcome}");
        let run = place.run_file();
        let step = &run["steps"][0];
        let time = &step["response_time_us"];
        [&step["throughput_per_s"], &time["p50"], &time["p95"]].map(|of| of.as_f64().expect("a figure"))
    };
    let mut found = Vec::new();
    // On a busy machine the two of a pair may differ by chance.
    for _ in 0..10 {
        let (one, four) = (measured(1), measured(4));
        if one.iter().zip(&four).all(|(one, four)| (four / one - 1.0).abs() < 0.05) {
            return;
        }
        found.push((one, four));
    }
    panic!("the server does one request at a time, whoever asks: {found:?}");
}

#[test]
fn a_generator_that_is_full_is_named_and_nothing_concluded() {
    let test = "a_generator_that_is_full_is_named_and_nothing_concluded";
    if !has_two_cores_or_skip(test) {
        return;
    }
    let place = Place::new();
    let server = Server::nginx("0");
    let url = server.url("/");
    // One thread for each, on one processor that they share.
    let load = ["load", &url, "-c", "64", "-d", "2s", "-t", "1", "--cpus", "1", "-o", "run.json"];
    let outcome = place.nstar(load.into_iter().chain(["--generator", "here", "--generator", "here"])).run();
    println!("{outcome}");
    let run = place.run_file();
    if outcome.status.code() == Some(0) {
        eprintln!("UNDECIDED: the server was slower than the generators: {}", verdict(&run));
        return;
    }
    outcome.exits(4);
    assert_eq!(kind(&run), "generator", "{}", verdict(&run));
    let findings = verdict(&run)["bottleneck"]["findings"].as_array().expect("findings");
    let full = findings.iter().find(|seen| seen["kind"] == "one-generator-busy").expect("which one");
    let names: Vec<_> = generators(&run["load"]).iter().map(|one| &one["name"]).collect();
    assert!(names.contains(&&full["generator"]), "{full} {names:?}");
}

#[test]
fn what_cannot_be_a_generator_fails_before_the_load_with_what_it_said() {
    let place = Place::beside_others();
    let url = format!("http://ann:opensesame@127.0.0.1:{}/", free_port());
    let load = |words: &[&str]| {
        let more = ["-d", "1s", "-H", "X-Token: opensesame"];
        let outcome = place.nstar(["load", &url].iter().chain(&more).chain(words)).run();
        assert!(
            !outcome.stderr.contains("opensesame") && !outcome.stdout.contains("opensesame"),
            "{outcome}"
        );
        outcome
    };
    load(&["--generator", "no-such-program x"])
        .exits(1)
        .complains("--generator: cannot run `no-such-program`");
    let other = load(&["--generator", "echo nstar-agent 0.0.9 protocol 0"]).exits(1);
    other.complains("--generator: ").complains("0.0.9 (protocol 0)").complains(env!("CARGO_PKG_VERSION"));
    load(&["--generator", "here"]).exits(1).complains("the generator on").complains("connection refused");
    load(&["--generator", "ssh://"]).exits(2).complains("ssh://[USER@]HOST[:PORT]");
    load(&["--generator", ""]).exits(2).complains("empty");
    load(&["--lost-generator", "end"]).exits(2).complains("--generator");
    let body = place.write("large", vec![b'x'; 5 << 20]).display().to_string();
    load(&["--generator", "here", "-b", &format!("@{body}")]).exits(1).complains("--body-size");
    let server = Server::python(COUNTING);
    let url = server.url("/");
    let few = format!("prlimit --nofile=70 {}", agent());
    let outcome = place.nstar(["load", &url, "-c", "50", "-d", "1s", "--generator", &few]).run();
    outcome.exits(1).complains("open files").complains("the generator on").complains("--fewer-users");
}

#[test]
fn where_a_generator_may_open_too_few_files_fewer_users_make_the_load() {
    let place = Place::beside_sleepers();
    let server = Server::python(COUNTING);
    let (url, few) = (server.url("/"), format!("prlimit --nofile=80 {}", agent()));
    let more =
        ["--threads", "1", "--generator", &few, "--generator", "here", "--fewer-users", "-o", "run.json"];
    let run = |command: &[&str]| {
        place.nstar([command[0], &url].iter().chain(&command[1..]).chain(&more)).run();
        let run = place.run_file();
        let mut causes =
            run["warnings"].as_array().expect("warnings").iter().map(|one| &one["cause"]["trouble"]);
        let told = causes.find(|trouble| trouble["kind"] == "fewer-users").expect("a warning").clone();
        (run, told)
    };
    let (load, told) = run(&["load", "-c", "5000", "-d", "1s"]);
    // 14 of 80 files are left for users: 64 and two for the thread are not.
    assert_eq!((&told["asked"], &told["of_this"]), (&5_000.into(), &14.into()), "{told}");
    let step = &load["steps"][0];
    assert_eq!((&step["users"], &told["allowed"]), (&sum(step, "users").into(), &step["users"]), "{step}");
    assert!((15..5_000).contains(&sum(step, "users")), "{step}");
    let shares: Vec<_> = generators(step).iter().filter_map(|one| one["users"].as_u64()).collect();
    assert!(shares.contains(&14), "the limit is used up: {shares:?}");
    let (swept, told) = run(&["sweep", "-c", "4,5000", "-d", "1s"]);
    let users: Vec<_> = swept["steps"].as_array().expect("steps").iter().map(|step| &step["users"]).collect();
    assert_eq!(users, [&4.into(), &told["allowed"]], "{told}");
}
