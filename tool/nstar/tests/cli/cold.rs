//! Whether data came from the disk, on a server of files that keeps none in memory itself.

use std::fs;

use serde_json::Value;

use crate::common::support::{Nstar, Outcome, Place, is_root_or_skip};

/// Files from a folder, all of them in turn.
const FILES: &str = r#"
title = "Files from a disk"
page_cache = "cold"

[values]
files = 20000
size = "4 KiB"

[[text]]
path = "server.py"
text = """
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def __init__(self, *words):
        super().__init__(*words, directory=sys.argv[2])
    def log_message(self, *words):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

[[data]]
folder = "files"
files = "${files}"
size = "${size}"

[[process]]
name = "files"
command = ["python3", "${folder}/server.py", "${port.web}", "${folder}/files"]
ports = ["web"]
memory = ""
disk_iops = ""

[[work]]
url = "http://127.0.0.1:${port.web}"
scenario = """
[values]
file = { kind = "sequence", wrap = ${files} }
[[request]]
path = "/${file}.bin"
"""
users = [1, 2]
"#;

fn experiment(place: &Place, text: &str, tmp: &str) -> Nstar {
    place.write("mine.toml", text);
    place.wrapped(
        ["env", &format!("TMPDIR={tmp}")],
        ["experiment", "mine.toml", "-o", "mine.json", "-d", "1s"],
    )
}

/// Runs it; `None`, said loudly, where this test's own folder is in memory.
fn run(place: &Place, text: &str, test: &str) -> Option<Outcome> {
    fs::create_dir_all(place.path("tmp")).expect("a folder");
    let outcome = experiment(place, text, &place.path("tmp").display().to_string()).run();
    if outcome.stderr.contains("is in memory") {
        eprintln!("SKIPPED: {test}: temporary files are on no disk");
        return None;
    }
    Some(outcome)
}

fn run_file(place: &Place) -> Value {
    serde_json::from_str(&fs::read_to_string(place.path("mine.json")).expect("mine.json")).expect("JSON")
}

/// One will do: bytes read and bytes sent are sampled apart, so a machine that stalls in between blurs a short step.
fn some_step_was_cold(run: &Value) -> bool {
    let share = |step: &Value| step["from_disk_share"].as_f64().unwrap_or_else(|| panic!("no share: {step}"));
    run["steps"].as_array().expect("steps").iter().any(|step| share(step) >= 0.9)
}

fn not_cold(run: &Value) -> Option<&Value> {
    let warnings = run["warnings"].as_array().expect("warnings");
    warnings.iter().find(|warning| warning["kind"] == "not-cold")
}

/// The page cache is emptied before each step, and no file is sent twice within one.
#[test]
fn files_that_are_sent_once_come_from_the_disk() {
    let place = Place::new();
    let Some(outcome) = run(&place, FILES, "files_that_are_sent_once_come_from_the_disk") else { return };
    let outcome = outcome.says("from disk");
    let run = run_file(&place);
    assert!(some_step_was_cold(&run), "{outcome}");
}

#[test]
fn a_file_that_is_sent_again_comes_from_memory_and_that_is_told() {
    let place = Place::new();
    let text = FILES.replace("files = 20000", "files = 1");
    let test = "a_file_that_is_sent_again_comes_from_memory_and_that_is_told";
    let Some(outcome) = run(&place, &text, test) else { return };
    outcome.says("The data was meant to come from the disk, but");
    let run = run_file(&place);
    let warning = not_cold(&run).expect("a warning");
    assert!(warning["cause"]["share"].as_f64() < Some(0.5), "{warning}");
}

/// All files in turn never find the last one in memory, where that holds fewer of them. Needs root.
#[test]
fn more_files_than_memory_holds_come_from_the_disk_each_time() {
    let test = "more_files_than_memory_holds_come_from_the_disk_each_time";
    if !is_root_or_skip(test) {
        return;
    }
    let place = Place::new();
    let text = FILES
        .replace("files = 20000", "files = 60")
        .replace("4 KiB", "4 MiB")
        .replace("memory = \"\"", "memory = \"48 MB\"");
    let Some(outcome) = run(&place, &text, test) else { return };
    let run = run_file(&place);
    assert!(some_step_was_cold(&run), "{outcome}");
}

#[test]
fn cold_files_are_refused_where_they_would_lie_in_memory() {
    let place = Place::new();
    experiment(&place, FILES, "/dev/shm").run().exits(2).complains("/dev/shm is in memory: set TMPDIR");
}

/// Each file takes a read of the disk at least. Needs root.
#[test]
fn a_program_reads_no_more_from_the_disk_than_it_may() {
    if !is_root_or_skip("a_program_reads_no_more_from_the_disk_than_it_may") {
        return;
    }
    let place = Place::new();
    let text = FILES
        .replace("files = 20000", "files = 2000")
        .replace("disk_iops = \"\"", "disk_iops = 40")
        .replace("[1, 2]", "[8, 16]");
    let Some(outcome) = run(&place, &text, "a_program_reads_no_more_from_the_disk_than_it_may") else {
        return;
    };
    let run = run_file(&place);
    // Without a limit it is more than twice as many, at each step. One step will do: where a machine stalls, what the
    // kernel saved up meanwhile comes at once.
    let from_disk =
        |step: &Value| Some(step["throughput_per_s"].as_f64()? * step["from_disk_share"].as_f64()?);
    let steps = run["steps"].as_array().expect("steps");
    assert!(steps.iter().filter_map(from_disk).any(|files| files < 60.0), "{outcome}\n{steps:?}");
}

/// Limits cannot be set where cgroups are read-only, or by another user than root.
#[test]
fn limits_that_cannot_be_set_are_told_in_the_report() {
    let place = Place::new();
    fs::create_dir_all(place.path("tmp")).expect("a folder");
    let text = FILES.replace("memory = \"\"", "memory = \"48 MB\"").replace("\"cold\"", "\"warm\"");
    let text = text.replace("disk_iops = \"\"", "disk_iops = 40");
    place.write("mine.toml", text.replace("files = 20000", "files = 4"));
    let mut wrapper: Vec<String> = Vec::new();
    if is_root_or_skip("limits_that_cannot_be_set_are_told_in_the_report, as root") {
        let script = "mount -t tmpfs -o ro none /sys/fs/cgroup && exec \"$@\"";
        wrapper.extend(["unshare", "--mount", "sh", "-c", script, "sh"].map(String::from));
    }
    wrapper.extend(["env".to_owned(), format!("TMPDIR={}", place.path("tmp").display())]);
    let all = ["experiment", "mine.toml", "-o", "mine.json", "-d", "1s"];
    let outcome = place.wrapped(wrapper, all).run();
    outcome
        .says("files was to have at most 48.0 MB of memory")
        .says("What files asks of the disk was to be limited");
    let run = run_file(&place);
    let warnings = run["warnings"].as_array().expect("warnings");
    let told = warnings.iter().any(|warning| warning["cause"]["kind"] == "memory-not-limited");
    assert!(told, "{warnings:?}");
}
