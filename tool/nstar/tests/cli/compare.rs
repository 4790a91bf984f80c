//! `nstar compare` and `nstar history`: what they refuse, how they end, what they write.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::common::{
    support::{PATIENCE, Place, Server, free_port, signal},
    verdict::HTTP,
};

/// A conclusive sweep of nginx.
const RUN: &str = include_str!("../../../report/tests/golden/run.json");

/// The run with its throughput scaled, begun on this day.
fn scaled(share: f64, day: u32) -> Value {
    let mut run: Value = serde_json::from_str(RUN).expect("JSON");
    let verdict = &mut run["verdict"];
    let scale = |value: &mut Value| *value = json!(value.as_f64().expect("a number") * share);
    scale(&mut verdict["throughput_max_per_s"]);
    (0..2).for_each(|end| scale(&mut verdict["throughput_max_ci_per_s"][end]));
    // The sample is from before files told whose a demand is.
    run["laws"]["demands"][0]["identity"] =
        json!({"type": "processes", "role": "server", "name": "nginx worker", "pid": 812, "processes": 1});
    run["started"] = json!(format!("2026-11-{day:02}T00:00:00Z"));
    run
}

#[test]
fn a_gate_on_a_change_is_met_breached_or_not_decided() {
    let place = Place::beside_others();
    place.write("before.json", scaled(1.0, 1).to_string());
    place.write("after.json", scaled(0.95, 2).to_string());
    let compare = |more: &[&str]| {
        let words = ["compare", "before.json", "after.json"];
        place.nstar(words.iter().chain(more)).run()
    };
    compare(&[]).exits(0).says("Throughput fell");
    compare(&["--gate", "throughput>-9%"]).exits(0);
    compare(&["--gate", "throughput>-3%", "--gate", "cpu<+9%"]).exits(3).complains("breached");
    compare(&["--gate", "cpu<+9%"]).exits(0).says("CPU time that has an interval");
    let undecided = ["--gate", "throughput>-5%", "--gate", "p99<+9%"];
    compare(&undecided).exits(4).complains("not decided").complains("no interval");
    let files = ["--junit", "gates.xml", "--markdown", "summary.md", "-o", "page.html", "-j"];
    for _ in 0..2 {
        let found = compare(&[["--gate", "throughput>-9%"].as_slice(), &files].concat()).exits(0);
        let found: Value = serde_json::from_str(&found.stdout).expect("JSON on stdout");
        assert_eq!(found["schema"], "nstar.contrast/1");
    }
    let read = |name: &str| std::fs::read_to_string(place.path(name)).expect(name);
    assert!(read("gates.xml").contains("<testcase ") && read("page.html").starts_with("<!doctype html>"));
    assert_eq!(read("summary.md").matches("### nstar").count(), 2, "summaries are appended");
}

#[test]
fn runs_that_took_turns_are_compared_pair_by_pair_and_others_side_by_side() {
    let place = Place::beside_others();
    for turn in 0..6 {
        let host = 1.0 - 0.05 * f64::from(turn);
        let (first, second) = (2 * turn + 1, 2 * turn + 2);
        place.write(&format!("before-{turn}.json"), scaled(host, first).to_string());
        place.write(&format!("after-{turn}.json"), scaled(0.93 * host, second).to_string());
        place.write(&format!("later-{turn}.json"), scaled(0.93 * host, 20 + turn).to_string());
    }
    let files = |side: &str| (0..6).map(|turn| format!("{side}-{turn}.json")).collect::<Vec<_>>();
    let throughput = |after: &str| {
        let words = [vec!["compare".to_owned()], files("before"), vec!["--after".to_owned()], files(after)];
        let outcome = place.nstar(words.concat().into_iter().chain(["-j".to_owned()])).run().exits(0);
        let found: Value = serde_json::from_str(&outcome.stdout).expect("JSON on stdout");
        found["cases"][0]["figures"][0].clone()
    };
    let (paired, apart) = (throughput("after"), throughput("later"));
    assert_eq!((&paired["basis"], &paired["changed"]), (&json!({"from": "turns", "pairs": 6}), &json!(true)));
    let basis = json!({"from": "between-runs", "before": 6, "after": 6});
    assert_eq!((&apart["basis"], &apart["changed"]), (&basis, &json!(false)));
}

#[test]
fn what_may_not_be_compared_is_refused_with_the_reason() {
    let place = Place::beside_others();
    place.write("run.json", RUN);
    let mut other = scaled(1.0, 2);
    other["load"]["connections"] = json!("per-request");
    place.write("other.json", other.to_string());
    place.write("cut.json", &RUN[..RUN.len() / 2]);
    place.write("newer.json", RUN.replacen("nstar.run/1", "nstar.run/9", 1));
    place.write(
        "edited.json",
        RUN.replacen("\"throughput_max_per_s\": ", "\"throughput_max_per_s\": \"x\", \"y\": ", 1),
    );
    let compare = |args: &[&str]| place.nstar(["compare"].iter().chain(args)).run();
    compare(&["run.json", "other.json"]).exits(2).complains("Connections: kept before").complains("--anyway");
    compare(&["run.json", "other.json", "--anyway"]).exits(0);
    compare(&["run.json", "cut.json"]).exits(2).complains("cut.json: not a run file");
    compare(&["run.json", "newer.json"]).exits(2).complains("nstar.run/9");
    compare(&["run.json", "edited.json"]).exits(2).complains("damaged at `verdict.throughput_max_per_s`");
    compare(&["run.json", "none.json"]).exits(2).complains("cannot read none.json");
    compare(&["run.json"]).exits(2).complains("BEFORE.. --after AFTER..");
    compare(&["run.json", "run.json#epoll"]).exits(2).complains("no variants");
    compare(&["run.json", "run.json", "--gate", "throughput>3"]).exits(2).complains("per cent");
    compare(&["run.json", "run.json", "--junit", "x.xml"]).exits(2).complains("--gate");
    compare(&["run.json", "run.json"]).exits(0).says("No change of throughput is shown");
}

/// A server that sleeps for 2 ms before each answer.
fn sleeper() -> Server {
    Server::python(&format!("{HTTP}serve(keep, lambda: time.sleep(0.002))\n"))
}

/// The run with this digest of what was sent, on a host with so many processors that lets the server have so much memory.
fn elsewhere(day: u32, digest: &str, cores: u32, bytes: u64) -> String {
    let mut run = scaled(1.0, day);
    run["sent_digest"] = json!(digest);
    run["server_hosts"] = json!([{
        "name": "web", "cores": cores, "memory_bytes": 0, "kernel": "6.12", "processor": "fast",
    }]);
    let tier = json!({
        "kind": "tier",
        "processes": {"role": "server", "name": "nginx", "processes": 1, "on": "web"},
        "cores": 0.9,
        "utilization": 0.9,
        "memory": {"kind": "limited", "bytes": bytes},
    });
    run["topology"] = json!({"users": 4, "nodes": [tier], "edges": []});
    run.to_string()
}

#[test]
fn other_requests_machines_and_limits_are_told_where_both_files_know_them() {
    let place = Place::beside_others();
    place.write("before.json", elsewhere(1, "0badcafe", 4, 500_000_000));
    place.write("after.json", elsewhere(2, "5eed5eed", 8, 250_000_000));
    place.write("older.json", scaled(1.0, 3).to_string());
    let compare = |after: &str| place.nstar(["compare", "before.json", after, "-j"]).run().exits(0);
    let aspects = |after: &str| {
        let found: Value = serde_json::from_str(&compare(after).stdout).expect("JSON on stdout");
        let all = found["differences"].as_array().expect("differences").iter();
        all.map(|one| one["aspect"].as_str().expect("an aspect").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(aspects("after.json"), ["sent", "server-cores", "memory-limits"]);
    assert_eq!(aspects("older.json"), [""; 0], "it does not tell");
    let said = place.nstar(["compare", "before.json", "after.json"]).run().exits(0);
    said.says("0badcafe before").says("nginx@web: 500 MB");
}

#[test]
fn a_header_that_changed_is_told_and_a_token_that_changed_is_not() {
    let place = Place::beside_sleepers();
    let server = sleeper();
    let digest = |name: &str, header: &str| {
        let args = ["load", &server.url("/"), "-n", "20", "-H", header, "-o", name].map(str::to_owned);
        let outcome = place.nstar(args).run();
        let text = std::fs::read_to_string(place.path(name)).unwrap_or_else(|_| panic!("{outcome}"));
        let run: Value = serde_json::from_str(&text).expect("JSON");
        assert!(!text.contains("hunter"), "a secret is in the file");
        run["sent_digest"].as_str().expect("a digest").to_owned()
    };
    let one = digest("one.json", "Authorization: Bearer hunter2");
    assert_eq!(digest("other.json", "Authorization: Bearer hunter3"), one);
    assert_ne!(digest("plain.json", "Accept: text/plain"), one);
    place.nstar(["compare", "one.json", "plain.json"]).run().exits(0).says("What is sent and expected");
}

#[test]
fn gates_of_loads_and_of_repeats_are_written_for_ci() {
    let place = Place::beside_sleepers();
    let server = sleeper();
    let url = server.url("/");
    let load = |more: &[&str]| place.nstar(["load", &url, "-n", "20"].iter().chain(more)).run();
    let gates = ["--gate", "errors<=1%", "--gate", "throughput>=1000000"];
    load(&[&gates[..], &["--junit", "gates.xml", "--markdown", "summary.md"]].concat()).exits(3);
    let read = |name: &str| std::fs::read_to_string(place.path(name)).expect(name);
    let found = read("gates.xml");
    assert!(found.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{found}");
    assert!(read("summary.md").contains("- **breached**: throughput&gt;=1000000"), "{}", read("summary.md"));
    let repeats = ["-c", "1", "-d", "300ms", "--repeats", "2", "-o", "a.json", "--gate", "errors<=1%"];
    let files = ["--junit", "all.xml", "--markdown", "summary.md"];
    let outcome = place.sweep(&server, repeats.into_iter().chain(files));
    let found = read("all.xml");
    assert!(found.contains("a-1.json, errors") && found.contains("a-2.json, errors"), "{outcome}{found}");
    assert_eq!(read("summary.md").matches("### nstar").count(), 3, "summaries are appended");
    load(&["--junit", "x.xml"]).exits(2).complains("--gate");
    load(&["--gate", "errors<=1%", "--junit", "none/x.xml"]).exits(2).complains("nothing was run");
}

#[test]
fn gates_of_what_was_interrupted_or_never_began_are_not_decided() {
    let place = Place::beside_sleepers();
    let server = sleeper();
    let url = server.url("/");
    let read = |name: &str| std::fs::read_to_string(place.path(name)).expect(name);
    let gate = ["--gate", "errors<=1%", "--junit", "gates.xml", "--markdown", "summary.md"];
    let mut running = place.nstar(["sweep", &url, "-d", "2s"].into_iter().chain(gate)).start();
    running.wait_for_stderr(" users ");
    running.signal("INT");
    running.finish().exits(130);
    let found = read("gates.xml");
    assert!(found.contains("failures=\"0\" errors=\"1\"") && found.contains("interrupted"), "{found}");
    assert!(read("summary.md").contains("- **not decided**: "), "{}", read("summary.md"));
    std::fs::remove_file(place.path("gates.xml")).expect("it was written");
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    place.nstar(["load", &nobody, "-n", "1"].into_iter().chain(gate)).run().exits(1);
    let found = read("gates.xml");
    assert!(found.contains("failures=\"0\" errors=\"1\"") && found.contains("the run failed"), "{found}");
}

#[test]
fn gates_of_a_run_whose_generator_could_not_be_readied_are_not_decided() {
    let place = Place::beside_sleepers();
    let server = sleeper();
    let url = server.url("/");
    for command in ["load", "sweep"] {
        let nowhere = ["--cpus", "4095", "--gate", "errors<=1%", "--junit", "gates.xml"];
        let args = [command, &url, "-d", "1s"].into_iter().chain(nowhere);
        place.nstar(args).run().exits(2).complains("--cpus");
        let found = std::fs::read_to_string(place.path("gates.xml")).expect("gates are written");
        assert!(found.contains("failures=\"0\" errors=\"1\"") && found.contains("the run failed"), "{found}");
        std::fs::remove_file(place.path("gates.xml")).expect("it was written");
    }
}

#[test]
fn a_folder_of_runs_is_a_history() {
    let place = Place::beside_others();
    for day in 1..=12 {
        let share = if day <= 8 { 1.0 } else { 0.9 } + f64::from(day * 7 % 5) * 0.002;
        place.write(&format!("runs/{day:02}.json"), scaled(share, day).to_string());
    }
    place.write("runs/notes.json", "{}");
    place.write("runs/report.html", "");
    let found = place.nstar(["history", "runs", "-o", "history.html"]).run().exits(0);
    found.says("Throughput fell with 09.json").complains("notes.json is left out");
    place.write("empty/x.txt", "");
    place.nstar(["history", "empty"]).run().exits(2).complains("no run file");
    place.nstar(["history", "none"]).run().exits(2).complains("cannot read the folder");
}

#[test]
fn a_change_for_the_worse_that_came_lately_can_fail_a_pipeline() {
    let place = Place::beside_others();
    for day in 1..=16 {
        let share = if day <= 8 { 1.0 } else { 0.9 } + f64::from(day * 7 % 5) * 0.002;
        place.write(&format!("runs/{day:02}.json"), scaled(share, day).to_string());
    }
    let history = |more: &[&str]| place.nstar(["history", "runs"].iter().chain(more)).run();
    history(&["--markdown", "summary.md"]).exits(0);
    let lately = history(&["--fail-on-change", "--markdown", "summary.md"]).exits(3);
    lately.complains("Throughput fell with 09.json").says("Throughput fell with 09.json");
    history(&["--fail-on-change=5"]).exits(0);
    history(&["--fail-on-change=0"]).exits(2);
    let summary = std::fs::read_to_string(place.path("summary.md")).expect("a summary");
    assert_eq!(summary.matches("### nstar history").count(), 2, "summaries are appended: {summary}");
    assert!(summary.contains("| 09.json | ") && summary.contains("| **Throughput "), "{summary}");
}

#[test]
fn a_history_that_cannot_be_judged_yet_says_so_where_a_pipeline_relies_on_it() {
    let place = Place::beside_others();
    for day in 1..=12 {
        let mut run = scaled(1.0, day);
        run["verdict"]["bounded"] = json!(false);
        place.write(&format!("runs/{day:02}.json"), run.to_string());
    }
    let history = |more: &[&str]| place.nstar(["history", "runs"].iter().chain(more)).run().exits(0);
    let said = history(&["--fail-on-change"]);
    let said = said.complains("--fail-on-change finds no fall of throughput yet: Only 0 of 12");
    said.says("Only 0 of 12 runs drove the server to its limit");
    assert!(!history(&[]).stderr.contains("fail-on-change"), "nobody asked");
}

#[test]
fn a_change_that_came_with_another_kernel_fails_a_pipeline_and_names_it() {
    let place = Place::beside_others();
    for day in 1..=16 {
        let mut run = scaled(if day <= 8 { 1.0 } else { 0.9 } + f64::from(day * 7 % 5) * 0.002, day);
        run["host"]["kernel"] = json!(if day <= 8 { "6.1" } else { "6.12" });
        place.write(&format!("runs/{day:02}.json"), run.to_string());
    }
    let failed = place.nstar(["history", "runs", "--fail-on-change"]).run().exits(3);
    failed
        .complains("Throughput fell with 09.json")
        .complains("something else changed too. Kernel: 6.1 before");
}

/// Of runs of one URL.
#[test]
fn a_history_keeps_loads_of_other_settings_apart() {
    let place = Place::beside_others();
    for day in 1..=12 {
        let mut run = scaled(if day <= 6 { 1.0 } else { 0.8 } + f64::from(day * 7 % 5) * 0.002, day);
        run["load"]["think_time_us"] = json!(if day <= 6 { 0.0 } else { 1e5 });
        place.write(&format!("runs/{day:02}.json"), run.to_string());
    }
    let found = place.nstar(["history", "runs", "-j", "--fail-on-change"]).run().exits(0);
    let found: Value = serde_json::from_str(&found.stdout).expect("JSON on stdout");
    let courses = found["courses"].as_array().expect("courses");
    let sizes: Vec<_> = courses.iter().map(|course| course["runs"].as_array().map(Vec::len)).collect();
    assert_eq!(sizes, [Some(6), Some(6)]);
    assert!(courses.iter().all(|course| course["changes"] == json!([])), "{found}");
    assert_eq!(courses[1]["told_apart_by"], json!([{"aspect": "think-time", "setting": 1e5}]));
}

/// Whether a process is there and has not ended.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Waits until it is so. Returns whether it was.
fn comes_to_be(is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    is_so()
}

/// A server in the background of a command that is done is what the command is for.
#[test]
fn what_a_restart_leaves_behind_runs_on() {
    let place = Place::beside_sleepers();
    let server = sleeper();
    let leaves = "sleep 600 >/dev/null 2>&1 & echo $! >> left";
    let repeats = ["-c", "1", "-d", "300ms", "--repeats", "2", "--restart", leaves, "-o", "a.json"];
    let outcome = place.sweep(&server, repeats);
    let left = std::fs::read_to_string(place.path("left")).unwrap_or_default();
    let run_on: Vec<&str> = left.lines().filter(|pid| is_running(pid)).collect();
    run_on.iter().for_each(|pid| signal(pid.parse().expect("a number"), "KILL"));
    assert_eq!((left.lines().count(), run_on.len()), (2, 2), "{outcome}");
}

/// A server below a command that hangs would keep the port.
#[test]
fn what_an_interrupted_restart_started_is_told_to_end_and_then_made_to() {
    let place = Place::beside_sleepers();
    let server = sleeper();
    let url = server.url("/");
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap_or_default();
    let wait = "sleep 600 & echo $! > below; wait";
    let interrupted = |on_term: &str| {
        let hangs = format!("sh -c 'trap \"{on_term}\" TERM; {wait}' >/dev/null 2>&1");
        let args = ["sweep", &url, "--repeats", "2", "--restart", &hangs, "-o", "b.json"];
        let running = place.nstar(args).start();
        assert!(comes_to_be(|| read("below").ends_with('\n')), "the command never began");
        running.signal("INT");
        running.finish().exits(130);
        let below = read("below");
        let has_ended = comes_to_be(|| !is_running(below.trim()));
        if !has_ended {
            signal(below.trim().parse().expect("a number"), "KILL");
        }
        std::fs::remove_file(place.path("below")).expect("it was written");
        has_ended
    };
    assert!(interrupted("echo done > order; exit"), "what the command started goes on");
    assert_eq!(read("order"), "done\n", "it could not put things in order");
    assert!(interrupted(""), "what heeds no request to end goes on");
}

#[test]
fn repeats_restart_the_server_and_can_be_compared() {
    let place = Place::beside_sleepers();
    let server = sleeper();
    let repeats =
        ["-c", "1", "-d", "300ms", "--repeats", "2", "--restart", "echo again >> restarts", "-o", "a.json"];
    let outcome = place.sweep(&server, repeats);
    let restarts = std::fs::read_to_string(place.path("restarts")).expect("restarts");
    assert_eq!(restarts, "again\nagain\n", "{outcome}");
    assert!(outcome.stdout.contains("a-1.json") && outcome.stdout.contains("a-2.json"), "{outcome}");
    let compared = place
        .nstar(["compare", "a-1.json", "a-2.json", "--after", "a-1.json", "a-2.json", "-o", "a.html"])
        .run();
    compared.exits(0).says("2 before and 2 after");
    let failing = ["-c", "1", "--repeats", "2", "--restart", "exit 7", "-o", "b.json"];
    place.sweep(&server, failing).exits(1).complains("--restart");
}
