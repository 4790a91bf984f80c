//! The command line.

use std::{
    fs,
    process::{Command, Output},
};

use tempfile::TempDir;

fn truth(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_truth")).args(arguments).output().expect("truth runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_unknown_case_is_named() {
    let output = truth(&["no-such-case"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there is no case 'no-such-case'; see --list"), "{output:?}");
}

#[test]
fn a_name_means_one_case_and_a_part_of_it_all_that_hold_it() {
    let listed = |name: &str| text(&truth(&["--list", name]).stdout).lines().count();
    assert_eq!(listed("lock"), 1);
    assert!(listed("lock-") > 1);
}

/// A run file with this verdict on the case `lock`, which is stopped at 100 requests a second with one user.
fn kept(kind: &str, confidence: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let file = format!(
        r#"{{"elapsed_s": 21.4, "verdict": {{"users_at_saturation": 1, "users_at_saturation_ci": [1, 2], "throughput_max_per_s": 99.0,
            "bottleneck": {{"kind": "{kind}", "holder": "server (pid 12)", "confidence": "{confidence}"}},
            "inconclusive": []}}}}"#
    );
    fs::write(folder.path().join("lock.json"), file).expect("a run file");
    folder
}

#[test]
fn kept_run_files_are_graded_again() {
    let (right, sure) = (kept("lock", "medium"), kept("cpu", "high"));
    let folder = |folder: &TempDir| folder.path().display().to_string();
    let output = truth(&["lock", "--read", &folder(&right)]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains("right 1 of 1"), "{output:?}");
    assert!(text(&output.stdout).contains("Time to a verdict: median 21 s, most 21 s."), "{output:?}");

    let output = truth(&["lock", "--read", &folder(&right), "--read", &folder(&sure)]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(
        said.contains("| cpu, server | 99.00/s, 1 (1-2) | high | right 1/2, wrong, sure 1/2 |"),
        "{said}"
    );
}
