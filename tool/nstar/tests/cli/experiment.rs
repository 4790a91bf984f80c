//! Experiments on programs of others.

pub(super) mod elsewhere;
mod lacking;
mod mistakes;
mod users;

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::common::program::tree::children;
use crate::common::support::{Nstar, PATIENCE, Place, Server, is_root_or_skip};

/// A small server in Python: it sleeps for as long as its second argument says, in milliseconds, one request at a time. One
/// load of a second for each variant.
pub(super) const SLEEPER: &str = r#"
title = "A server that sleeps"
time = "1s"
rounds = 1
[values]
log = ""

[axis]
sleep = [1, 20]

[[text]]
path = "server.py"
text = """
import os, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(int(sys.argv[2]) / 1000)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *words):
        pass

print("ready ${log}", flush=True)
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

[[process]]
name = "sleeper"
command = ["python3", "${folder}/server.py", "${port.web}", "${sleep}"]
ports = ["web"]

[[work]]
url = "http://127.0.0.1:${port.web}/"
users = 2
connections = "per-request"
"#;

/// `nstar experiment` of this text, with a place of its own for temporary files.
pub(super) fn experiment(place: &Place, text: &str, words: &[&str]) -> Nstar {
    fs::create_dir_all(place.path("tmp")).expect("a folder");
    place.write("mine.toml", text);
    let folder = format!("TMPDIR={}", place.path("tmp").display());
    let all = ["experiment", "mine.toml", "-o", "mine.json"];
    place.wrapped(["env", &folder], all.iter().chain(words))
}

fn replaced(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(SLEEPER.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "no '{from}'");
        text.replace(from, to)
    })
}

fn comparison(place: &Place) -> Value {
    serde_json::from_str(&fs::read_to_string(place.path("mine.json")).expect("mine.json")).expect("JSON")
}

/// Commands of processes that name this place's temporary folder.
pub(super) fn left_running(place: &Place) -> Vec<String> {
    let folder = place.path("tmp").to_string_lossy().into_owned();
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let commands = all.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    commands.filter(|words| words.contains(&folder)).collect()
}

/// Waits until something holds; fails with what is said where it never does.
pub(super) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn variants_of_any_program_are_compared_and_nothing_is_left() {
    let place = Place::new();
    let text = replaced(&[("rounds = 1", "rounds = 3")]);
    let outcome = experiment(&place, &text, &[]).run().exits(0).says("sleep");
    let comparison = comparison(&place);
    assert_eq!(comparison["axis"], "sleep");
    let entries = comparison["works"][0]["entries"].as_array().expect("entries");
    let names: Vec<_> = entries.iter().filter_map(|entry| entry["variant"].as_str()).collect();
    assert_eq!(names, ["1", "20"], "{outcome}");
    // Beside other work on the machine no order is claimed, and that is told.
    let places = entries.iter().map(|entry| &entry["place"]).collect::<Vec<_>>();
    let doubted =
        entries.iter().any(|entry| entry["doubts"].as_array().is_some_and(|doubts| !doubts.is_empty()));
    assert!(doubted || *places[0] == serde_json::json!([1, 1]), "{outcome}");
    // One at a time, 20 ms each: at most 50 a second.
    assert!(entries[1]["throughput_per_s"].as_f64() < Some(51.0), "{entries:?}");
    assert!(place.path("mine.html").exists() && left_running(&place).is_empty());
    assert_eq!(fs::read_dir(place.path("tmp")).expect("a folder").count(), 0);
}

#[test]
fn programs_that_do_not_start_are_told_with_what_they_said() {
    let place = Place::beside_others();
    let python = "[\"python3\", \"${folder}/server.py\", \"${port.web}\", \"${sleep}\"]";
    let cases = [
        ("[\"sh\", \"-c\", \"echo no licence; exit 3\"]", "exit status 3. Its last lines: no licence"),
        ("[\"sh\", \"-c\", \"kill -9 $$\"]", "ended by signal 9"),
        // It takes no connections.
        (
            "[\"sh\", \"-c\", \"echo waiting for godot; sleep 600\"]",
            "not ready within 3s: waited for connections at 127.0.0.1",
        ),
        ("[\"sh\", \"-c\", \"echo waiting for godot; sleep 600\"]", "Its last lines: waiting for godot"),
    ];
    let ports = "ports = [\"web\"]\nready_within = \"3s\"\nenvironment = { SLEEP = \"${sleep}\" }";
    for (command, word) in cases {
        let text = replaced(&[(python, command), ("ports = [\"web\"]", ports)]);
        experiment(&place, &text, &[]).run().exits(1).complains(word);
        assert!(left_running(&place).is_empty(), "{word}");
    }
    // A program that only one variant lacks is told once, before anything starts.
    let one = [
        (python, "[\"${program}\", \"${folder}/server.py\", \"${port.web}\", \"1\"]"),
        ("sleep = [1, 20]", "program = [\"no-such-a\", \"python3\"]"),
    ];
    let outcome = experiment(&place, &replaced(&one), &["-d", "500ms"]).run();
    let outcome = outcome.complains("LEFT OUT: no-such-a: sleeper: `no-such-a` not found");
    assert_eq!(outcome.stderr.matches("not found").count(), 1, "{outcome}");
    assert_eq!(comparison(&place)["left_out"][0]["what"], "no-such-a");
    // Where one variant works, the other is left out.
    let one = "[\"sh\", \"-c\", \"[ ${sleep} = 1 ] && exec python3 ${folder}/server.py ${port.web} 1; echo only one\"]";
    experiment(&place, &replaced(&[(python, one)]), &[])
        .run()
        .complains("LEFT OUT: 20")
        .complains("only one");
    assert_eq!(comparison(&place)["left_out"][0]["what"], "20");
}

#[test]
fn a_server_that_is_there_already_is_not_taken_for_the_program() {
    let place = Place::beside_others();
    let other = Server::python_http();
    let port = other.address.port().to_string();
    let ready = format!("ports = [\"web\"]\nready = {{ http = \"http://127.0.0.1:{port}/\" }}");
    let taken = format!("\"{port}\", \"${{sleep}}\"");
    let text = replaced(&[("\"${port.web}\", \"${sleep}\"", &taken), ("ports = [\"web\"]", &ready)]);
    experiment(&place, &text, &[]).run().exits(1).complains("another program is there already (answers at");
}

#[test]
fn everything_a_program_started_ends_with_it_and_with_nstar() {
    let place = Place::beside_others();
    // A child in a session of its own, whose parent has ended: only a subreaper finds it.
    let python = "[\"python3\", \"${folder}/server.py\", \"${port.web}\", \"${sleep}\"]";
    let lost = "[\"sh\", \"-c\", \"(setsid sh -c 'sleep 600; : ${folder}' &) ; exec python3 ${folder}/server.py ${port.web} ${sleep}\"]";
    let text = replaced(&[(python, lost)]);
    experiment(&place, &text, &["-d", "500ms"]).run();
    assert_eq!(left_running(&place), Vec::<String>::new());
    for signal in ["INT", "KILL"] {
        let mut running = experiment(&place, &text, &[]).start();
        running.wait_for_stderr("starting sleeper");
        wait_until("its programs run", || {
            left_running(&place).iter().any(|words| words.contains("setsid") || words.contains("sleep 600"))
        });
        // Whoever kills nstar by its name (pkill, killall) would kill the guards first, which end its programs.
        let guards = children(running.pid());
        let names = guards.iter().map(|pid| fs::read_to_string(format!("/proc/{pid}/comm")));
        let names: Vec<String> = names.map(|name| name.expect("a name").trim_end().to_owned()).collect();
        assert!(!names.is_empty() && names.iter().all(|name| name == "guard"), "{names:?}");
        running.signal(signal);
        running.finish();
        wait_until("they end", || left_running(&place).is_empty());
        wait_until("their folder is gone", || {
            fs::read_dir(place.path("tmp")).expect("a folder").count() == 0
        });
    }
}

/// Before each step the reset runs; afterwards the proof reads what clients were told.
#[test]
fn steps_are_reset_and_promises_are_proved() {
    let place = Place::beside_others();
    let resets = place.path("resets");
    let kept = "import json, sys; told = json.load(open(sys.argv[1])); print(json.dumps({'text': 'all kept', 'answered': told[0]['acknowledged']}))";
    let steps = format!(
        "[[prepare]]\ncommand = [\"echo\", '{{\"text\": \"filled\", \"rows\": 7}}']\n\n[[reset]]\ncommand = [\"sh\", \"-c\", \"echo reset >> {}; echo '{{\\\"freed\\\": 3}}'\"]\n\n[prove]\ncommand = [\"python3\", \"-c\", \"{kept}\", \"${{totals}}\"]\nafter = [\"sleeper\"]\n\n[[work]]",
        resets.display()
    );
    let text = replaced(&[("[[work]]", &steps), ("users = 2", "users = [1, 2, 3]")]);
    experiment(&place, &text, &["-d", "500ms"]).run();
    let comparison = comparison(&place);
    for entry in comparison["works"][0]["entries"].as_array().expect("entries") {
        let proof = &entry["proofs"][0];
        assert_eq!((&proof["holds"], &proof["text"]), (&true.into(), &"all kept".into()), "{entry}");
        assert_eq!(proof["counts"][0]["name"], "answered");
        assert!(proof["counts"][0]["value"].as_u64() > Some(0));
        let said = serde_json::json!([
            { "program": "echo", "text": "filled", "counts": [{ "name": "rows", "value": 7 }] },
            { "reset": true, "program": "sh", "counts": [{ "name": "freed", "value": 3 }] },
        ]);
        assert_eq!(entry["prepared"], said);
    }
    let page = fs::read_to_string(place.path("mine.html")).expect("a report");
    for said in ["prepared by echo: filled (rows 7)", "reset by sh: freed 3", "proof: answered "] {
        assert!(page.contains(said), "no '{said}'");
    }
    // Two variants, three numbers of users each.
    assert!(fs::read_to_string(&resets).expect("resets").lines().count() >= 6);

    let broken =
        replaced(&[("[[work]]", &steps.replace("print(json", "sys.exit('3 WERE LOST'); print(json"))]);
    experiment(&place, &broken, &["-d", "500ms"])
        .run()
        .exits(1)
        .complains("3 WERE LOST")
        .complains("THE PROOF FAILED");
}

/// One that printed no proper JSON was left out, and one that printed nothing was told with no word.
#[test]
fn a_proof_that_fails_is_one_whatever_it_printed() {
    for (prints, said) in
        [("{text: lost", "{text: lost"), ("", "its command exited with 1, and printed nothing")]
    {
        let place = Place::beside_others();
        let prove = format!("[prove]\ncommand = [\"sh\", \"-c\", \"echo '{prints}'; exit 1\"]\n\n[[work]]");
        let outcome = experiment(&place, &replaced(&[("[[work]]", &prove)]), &["-d", "300ms"]).run().exits(1);
        outcome.complains(&format!("THE PROOF FAILED: {said}"));
    }
}

/// What a command prints becomes what the users ask for.
#[test]
fn preparation_gives_values_to_the_scenario() {
    let place = Place::beside_others();
    let served = "import sys\nfrom http.server import *\nclass H(BaseHTTPRequestHandler):\n    def do_GET(self):\n        self.send_response(200 if self.path == '/b' else 404); self.end_headers()\n    def log_message(self, *words): pass\nHTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()\n";
    place.write("served.py", served);
    let text = r#"
title = "One that answers only /b"
[[process]]
name = "picky"
command = ["python3", "${here}/served.py", "${port.web}"]
ports = ["web"]
[[prepare]]
command = ["echo", '{"values": {"what": ["b"]}}']
[[work]]
url = "http://127.0.0.1:${port.web}"
scenario = """
[values]
what = { kind = "cycle", items = ["a"] }
[[request]]
path = "/${what}"
expect = 200
"""
users = 1
connections = "per-request"
"#;
    experiment(&place, text, &["-d", "500ms"]).run();
    let run = comparison(&place);
    let step = &run["steps"][0];
    assert!(
        step["completed"].as_u64() > Some(0)
            && step["errors"].as_object().is_some_and(serde_json::Map::is_empty),
        "{step}"
    );
}

/// A limit on memory holds for everything that the program starts. Needs root.
#[test]
fn memory_is_limited_as_told() {
    if !is_root_or_skip("memory_is_limited_as_told") {
        return;
    }
    let place = Place::beside_others();
    let python = "[\"python3\", \"${folder}/server.py\", \"${port.web}\", \"${sleep}\"]";
    let hungry = "[\"sh\", \"-c\", \"python3 -c 'x = bytearray(200_000_000)' || touch ${folder}/refused; exec python3 ${folder}/server.py ${port.web} ${sleep}\"]";
    let text = replaced(&[
        (python, hungry),
        ("ports = [\"web\"]", "ports = [\"web\"]\nmemory = \"64 MB\""),
        ("[[work]]", "[prove]\ncommand = [\"test\", \"-e\", \"${folder}/refused\"]\n\n[[work]]"),
    ]);
    experiment(&place, &text, &["-d", "500ms"]).run();
    let comparison = comparison(&place);
    let entries = comparison["works"][0]["entries"].as_array().expect("entries");
    assert!(
        entries.len() == 2 && entries.iter().all(|entry| entry["proofs"][0]["holds"] == true),
        "{comparison}"
    );
    assert_eq!(comparison["left_out"].as_array().map(Vec::len), Some(0));
}

/// The cgroups of limits go with their program, also where nstar is killed. Needs root.
#[test]
fn limits_leave_nothing_where_nstar_is_killed() {
    if !is_root_or_skip("limits_leave_nothing_where_nstar_is_killed") {
        return;
    }
    let place = Place::beside_others();
    let limited = "ports = [\"web\"]\nmemory = \"64 MB\"\ndisk_iops = 1000\ndisk_mb_per_s = 100";
    let text = replaced(&[("ports = [\"web\"]", limited)]);
    let running = experiment(&place, &text, &["-d", "60s"]).start();
    wait_until("the limit is there", || !limits(running.pid()).is_empty());
    let limits = limits(running.pid());
    running.signal("KILL");
    running.finish();
    wait_until("the limit is gone", || !limits.iter().any(|limit| limit.exists()));
}

/// The cgroups that nstar of this number made for its programs: each is named after the guard that stands over one.
fn limits(nstar: u32) -> Vec<PathBuf> {
    let folders = children(nstar).into_iter().flat_map(|guard| {
        ["/sys/fs/cgroup/memory", "/sys/fs/cgroup/blkio", "/sys/fs/cgroup"]
            .map(|root| PathBuf::from(root).join(format!("nstar-{guard}")))
    });
    folders.filter(|folder| folder.exists()).collect()
}

/// Data is removed when it changes: a value must not lead to somebody else's folder.
#[test]
fn data_never_lands_outside_the_folder_of_the_experiment() {
    let place = Place::beside_others();
    let kept = place.write("precious/0.bin", "kept");
    let data = "[[data]]\nfolder = \"${log}\"\nfiles = 1\nsize = \"1 KB\"\n\n[[work]]";
    let text = replaced(&[("[[work]]", data), ("log = \"\"", "log = \"inside\"")]);
    for outside in [place.path("precious").display().to_string(), "../precious".into(), String::new()] {
        let set = format!("log={outside}");
        experiment(&place, &text, &["--set", &set])
            .run()
            .exits(2)
            .complains("within the experiment's folder");
    }
    assert_eq!(fs::read_to_string(kept).expect("a file"), "kept");
}

#[test]
fn names_with_a_meaning_of_their_own_are_refused_as_values() {
    let place = Place::beside_others();
    for name in ["number", "folder", "trial"] {
        let text = replaced(&[("log = \"\"", &format!("{name} = 1"))]);
        experiment(&place, &text, &[]).run().exits(2).complains("gives this one a meaning");
    }
}

/// How many requests a server has noted in the experiment's folder.
fn served(place: &Place) -> u64 {
    let folders = fs::read_dir(place.path("tmp")).expect("a folder").flatten();
    let noted = folders.filter_map(|folder| fs::metadata(folder.path().join("served")).ok());
    noted.map(|file| file.len()).sum()
}

/// What was measured until then is proved, written and shown.
#[test]
fn an_interrupted_measurement_is_kept_and_proved() {
    let place = Place::beside_others();
    let prove = "[prove]\ncommand = [\"sh\", \"-c\", \"sleep 1; echo all kept\"]\n\n[[work]]";
    let counted = "open('served', 'a').write('x'); time.sleep(int(sys.argv[2]) / 1000)";
    let text = replaced(&[
        ("time.sleep(int(sys.argv[2]) / 1000)", counted),
        ("time = \"1s\"\nrounds = 1\n", ""),
        ("[axis]\nsleep = [1, 20]\n", ""),
        ("log = \"\"", "log = \"\"\nsleep = 1"),
        ("[[work]]", prove),
    ]);
    let mut running = experiment(&place, &text, &["-d", "60s"]).start();
    running.wait_for_stderr("starting sleeper");
    wait_until("it is measured", || served(&place) > 500);
    running.signal("INT");
    running.finish().exits(130).complains("proving what was measured until then");
    let run = comparison(&place);
    assert_eq!((&run["proof"]["holds"], &run["proof"]["text"]), (&true.into(), &"all kept".into()));
    assert!(left_running(&place).is_empty());
}

/// A proof that takes long is ended too. What was measured before it is kept, and said to be partial.
#[test]
fn a_proof_is_interrupted() {
    let place = Place::beside_others();
    let prove = "[prove]\ncommand = [\"sleep\", \"600\"]\n\n[[work]]";
    let text = replaced(&[
        ("time = \"1s\"\nrounds = 1\n", ""),
        ("[axis]\nsleep = [1, 20]\n", ""),
        ("log = \"\"", "log = \"\"\nsleep = 1"),
        ("[[work]]", prove),
    ]);
    let mut running = experiment(&place, &text, &["-d", "500ms"]).start();
    running.wait_for_stderr("proving");
    running.signal("INT");
    running.finish().exits(130);
    let run = comparison(&place);
    assert!(run["proof"].is_null() && run["steps"][0]["completed"].as_u64() > Some(0), "{run}");
    let warnings = run["warnings"].as_array().expect("warnings");
    assert!(warnings.iter().any(|warning| warning["kind"] == "interrupted"), "{warnings:?}");
    assert!(left_running(&place).is_empty());
}

#[test]
fn an_interruption_before_anything_was_measured_is_told() {
    let place = Place::beside_others();
    let mut running = experiment(&place, SLEEPER, &["-d", "60s"]).start();
    running.wait_for_stderr("starting sleeper");
    running.signal("INT");
    let outcome = running.finish().exits(130);
    outcome.says("Interrupted before the first trial ended: nothing was measured.");
    let page = fs::read_to_string(place.path("mine.html")).expect("a report");
    assert!(page.contains("nothing was measured") && comparison(&place)["interrupted"] == true);
}

/// However it ends, what was measured is there, and the experiment goes on with it; another one does not.
#[test]
fn an_experiment_goes_on_after_an_interruption() {
    let place = Place::beside_others();
    let text = replaced(&[("rounds = 1", "rounds = 3")]);
    experiment(&place, &text, &["-d", "1s", "--resume"])
        .run()
        .exits(2)
        .complains("there is nothing to go on with");
    let mut running = experiment(&place, &text, &["-d", "1s"]).start();
    running.wait_for_stderr("trial 3 of about");
    running.signal("KILL");
    running.finish();
    let mut running = experiment(&place, &text, &["-d", "1s", "--resume"]).start();
    running.wait_for_stderr("going on: 2 trials are there already");
    running.wait_for_stderr("trial 5 of about");
    running.signal("INT");
    running.finish().exits(130).complains("interrupted after 4 trials").complains("with --resume goes on");
    // What was cut short does not count beside what was not.
    for entry in comparison(&place)["works"][0]["entries"].as_array().expect("entries") {
        assert_eq!(entry["runs"].as_array().map(Vec::len), Some(2), "{entry}");
    }
    let other = text.replace("users = 2", "users = 3");
    experiment(&place, &other, &["-d", "1s", "--resume"])
        .run()
        .exits(2)
        .complains("its file or a value given with --set changed");
    experiment(&place, &text, &["-d", "1s", "--resume", "--seed", "7"]).run().exits(2).complains("a flag");
    let outcome = experiment(&place, &text, &["-d", "1s", "--resume"]).run();
    outcome.complains("going on: 4 trials are there already");
    let comparison = comparison(&place);
    for entry in comparison["works"][0]["entries"].as_array().expect("entries") {
        let runs = entry["runs"].as_array().expect("runs");
        assert!(runs.len() >= 3, "{entry}");
        for run in runs.iter().filter_map(Value::as_str) {
            assert!(place.path(run).exists(), "{run}");
        }
        assert_eq!(entry["throughput_by_round_per_s"].as_array().map(Vec::len), Some(runs.len()));
    }
    assert!(left_running(&place).is_empty());
}

/// How many trials and how long is told before the first; and where the time is too short, how long it takes.
#[test]
fn an_experiment_tells_how_long_it_takes() {
    let place = Place::beside_others();
    let text = replaced(&[("time = \"1s\"", "time = \"2s\""), ("rounds = 1", "rounds = 2")]);
    experiment(&place, &text, &[])
        .run()
        .complains("the experiment's time is too short: its trials take about 10 s")
        .complains("about 4 trials, about 10 s")
        .complains("trial 1 of about 4, about 10 s left: ")
        .complains("trial 4 of about 4");
}

/// Three times the same program. At an error rate of 5 % each, two of three experiments claim an order in fewer than 1 of 100
/// cases; one may.
#[test]
fn a_program_is_not_put_in_order_with_itself() {
    let place = Place::beside_sleepers();
    let text = replaced(&[
        ("rounds = 1", "rounds = 3"),
        ("sleep = [1, 20]", "name = [\"a\", \"b\", \"c\"]"),
        ("\"${sleep}\"]", "\"5\"]"),
        ("ports = [\"web\"]", "ports = [\"web\"]\nenvironment = { NAME = \"${name}\" }"),
    ]);
    let claimed = ["1", "2", "3"].iter().filter(|seed| {
        let outcome = experiment(&place, &text, &["-d", "500ms", "--seed", seed]).run();
        let comparison = comparison(&place);
        let entries = comparison["works"][0]["entries"].as_array().expect("entries");
        assert_eq!(entries.len(), 3, "{outcome}");
        assert!(entries.iter().all(|entry| entry["runs"].as_array().map(Vec::len) >= Some(3)), "{outcome}");
        entries.iter().any(|entry| entry["place"] != serde_json::json!([1, 3]))
    });
    assert!(claimed.count() <= 1);
}

/// Every variant asks for another page of one program.
#[test]
fn a_program_that_no_variant_changes_starts_once() {
    let place = Place::beside_others();
    let starts = place.path("starts");
    let before = format!("\"1\"]\nbefore = [[\"sh\", \"-c\", \"echo x >> {}\"]]", starts.display());
    let text = replaced(&[
        ("rounds = 1", "rounds = 2"),
        ("sleep = [1, 20]", "page = [1, 2]"),
        ("\"${sleep}\"]", &before),
        ("${port.web}/\"", "${port.web}/${page}\""),
    ]);
    let outcome = experiment(&place, &text, &["-d", "500ms"]).run();
    assert_eq!(comparison(&place)["works"][0]["entries"].as_array().map(Vec::len), Some(2), "{outcome}");
    assert_eq!(fs::read_to_string(starts).expect("a file"), "x\n");
}

/// Each variant is measured on what was prepared for it, also where the program need not start anew.
#[test]
fn what_is_prepared_for_one_variant_is_not_measured_on_another() {
    let place = Place::beside_others();
    let seen = place.path("seen");
    let prepare = format!(
        "[[prepare]]\ncommand = [\"sh\", \"-c\", \"echo ${{sleep}} >> {}; setsid sleep 600 ${{folder}} &\"]\n\n[[work]]",
        seen.display()
    );
    let same = replaced(&[
        ("\"${port.web}\", \"${sleep}\"", "\"${port.web}\", \"1\""),
        ("[[work]]", &prepare),
        ("rounds = 1", "rounds = 2"),
    ]);
    experiment(&place, &same, &["-d", "500ms"]).run();
    let mut prepared: Vec<String> =
        fs::read_to_string(&seen).expect("lines").lines().map(Into::into).collect();
    prepared.sort();
    // Again in each round, as the other variant came between.
    prepared.dedup();
    assert_eq!(prepared, ["1", "20"]);
    // Nor does a command leave anything running.
    assert_eq!(left_running(&place), Vec::<String>::new());
}

/// A small server that takes a few milliseconds for a request, one at a time, swept and tested.
fn tested(time: &str) -> String {
    replaced(&[
        ("time = \"1s\"", time),
        ("sleep = [1, 20]", "sleep = [3, 4]"),
        ("users = 2", "users = [1, 2, 4]"),
        ("connections = \"per-request\"", ""),
        ("HTTPServer", "ThreadingHTTPServer"),
        // Each response in one packet.
        ("    protocol_version", "    wbufsize = -1\n    protocol_version"),
        ("class Handler", "turn = threading.Lock()\nclass Handler"),
        ("import os, sys, time", "import os, sys, threading, time"),
        ("        time.sleep(int(sys.argv[2]) / 1000)", WORK),
    ])
}

/// It computes for so many milliseconds, so that lost time is lost for good.
const WORK: &str = "        with turn:
            until = time.thread_time() + int(sys.argv[2]) / 1000
            while time.thread_time() < until: pass";

/// One variant is tested in its first round, and what that showed is said of it; for the other there is no time.
#[test]
fn verdicts_of_variants_are_tested_while_there_is_time() {
    let place = Place::beside_sleepers();
    let text = tested("time = \"15s\"\nconfirm = true");
    let outcome = experiment(&place, &text, &["-d", "300ms"]).run();
    let comparison = comparison(&place);
    let entries = comparison["works"][0]["entries"].as_array().expect("entries");
    let tests: Vec<&Value> = entries.iter().filter(|entry| entry["confirmation"].is_object()).collect();
    let slowed = |entry: &&&Value| entry["confirmation"]["tiers"][0].is_object();
    assert!(tests.iter().filter(slowed).count() <= 1 && left_running(&place).is_empty(), "{outcome}");
    for entry in &tests {
        let file = place.path(entry["runs"][0].as_str().expect("a file"));
        let run: Value = serde_json::from_str(&fs::read_to_string(file).expect("a run")).expect("JSON");
        assert_eq!(run["confirmation"], entry["confirmation"], "{outcome}");
    }
    let page = fs::read_to_string(place.path("mine.html")).expect("a report");
    assert_eq!(page.contains("Bottlenecks tested by experiment"), !tests.is_empty(), "{outcome}");
    // What was tested is not tested again.
    let resumed = experiment(&place, &text, &["-d", "300ms", "--resume"]).run().complains("going on");
    assert!(!resumed.stderr.contains("slowing"), "{resumed}");
    if tests.iter().filter(slowed).count() == 0 {
        eprintln!("UNDECIDED: this machine was too busy to see throughput stop growing");
        return;
    }
    let outcome = outcome.complains("slowing python3").says("Tested by experiment");
    if tests.len() == 2 {
        outcome.says("Not tested by experiment: there was no time left for it.");
    }
}

/// Ctrl-C while a tier is slowed: it goes on, and is stopped with all others.
#[test]
fn an_interrupted_test_of_a_verdict_leaves_nothing() {
    let place = Place::new();
    // It sleeps, as nobody can take that from it: its throughput is steady on a busy machine too.
    let computes = WORK.split_once('\n').expect("two lines").1;
    let text = tested("time = \"60s\"\nconfirm = true")
        .replace("rounds = 1", "rounds = 4")
        .replace(computes, "            time.sleep(int(sys.argv[2]) / 1000)");
    let mut running = experiment(&place, &text, &["-d", "300ms"]).start();
    if let Err(said) = running.stderr_until("slowing python3") {
        assert!(running.finish().status.success(), "{said}");
        eprintln!("UNDECIDED: this machine was too busy for a verdict that could be tested: {said}");
        return;
    }
    running.signal("INT");
    let outcome = running.finish().exits(130);
    assert!(left_running(&place).is_empty(), "{outcome}");
    assert_eq!(fs::read_dir(place.path("tmp")).expect("a folder").count(), 0);
    assert_eq!(comparison(&place)["interrupted"], true);
}

/// An experiment of the cookbook, shortened. `None` without its program, which CI must have.
fn cookbook(place: &Place, name: &str, program: &str) -> Option<Value> {
    let found =
        std::process::Command::new("sh").args(["-c", &format!("ls {program}")]).output().expect("sh").status;
    assert!(found.success() || std::env::var_os("CI").is_none(), "{program}: run scripts/setup-tests");
    if !found.success() {
        eprintln!("SKIPPED the experiment {name}: there is no {program}");
        return None;
    }
    let file = format!("{}/../../experiments/cookbook/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&file).expect("an experiment");
    let short = [
        ("\"2m\"", "\"1s\""),
        ("rounds = 3", "rounds = 1"),
        ("users = [1, 64]", "users = 8"),
        ("users = [1, 32]", "users = 8"),
    ];
    let text = short.iter().fold(text, |text, (from, to)| text.replace(from, to));
    let outcome = experiment(place, &text, &["-d", "500ms"]).run();
    assert!(matches!(outcome.status.code(), Some(0 | 4)), "{outcome}");
    assert_eq!(left_running(place), Vec::<String>::new());
    let comparison = comparison(place);
    assert_eq!(comparison["left_out"].as_array().map(Vec::len), Some(0), "{outcome}");
    Some(comparison)
}

/// Throughput of each variant of the only workload.
fn throughputs(comparison: &Value) -> Vec<f64> {
    let entries = comparison["works"][0]["entries"].as_array().expect("entries");
    assert!(
        entries.iter().all(|entry| entry["errors"].as_object().is_some_and(serde_json::Map::is_empty)),
        "{entries:?}"
    );
    entries.iter().filter_map(|entry| entry["throughput_per_s"].as_f64()).collect()
}

#[test]
fn the_cookbook_compares_worker_processes_of_nginx() {
    let place = Place::beside_others();
    let Some(found) = cookbook(&place, "nginx-workers", "/usr/sbin/nginx") else { return };
    assert_eq!(throughputs(&found).len(), 3);
}

/// Each worker serves one request at a time, most of which is waiting: eight serve more than one.
#[test]
fn the_cookbook_compares_workers_of_gunicorn() {
    let place = Place::beside_others();
    let Some(found) = cookbook(&place, "gunicorn-workers", "/usr/bin/gunicorn") else { return };
    let of = throughputs(&found);
    assert!(of.len() == 4 && of[3] > of[0], "{of:?}");
}

#[test]
fn the_cookbook_compares_pools_of_php() {
    let place = Place::beside_others();
    let Some(found) = cookbook(&place, "php-fpm-pool", "/usr/sbin/php-fpm*") else { return };
    let of = throughputs(&found);
    assert!(of.len() == 4 && of[3] > of[0], "{of:?}");
}

#[test]
fn the_cookbook_compares_a_program_with_itself() {
    let place = Place::beside_others();
    let Some(found) = cookbook(&place, "nothing-differs", "/usr/bin/python3") else { return };
    assert_eq!(throughputs(&found).len(), 6);
}

#[test]
fn the_cookbook_compares_two_databases() {
    let place = Place::beside_others();
    let programs = "/usr/bin/gunicorn /usr/sbin/mariadbd /usr/lib/postgresql/*/bin/postgres \
                    /usr/lib/python3/dist-packages/psycopg2/__init__.py /usr/lib/python3/dist-packages/pymysql/__init__.py";
    let Some(found) = cookbook(&place, "two-databases", programs) else { return };
    assert_eq!(throughputs(&found).len(), 2);
}
