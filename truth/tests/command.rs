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
fn an_unknown_name_is_a_mistake_on_the_command_line() {
    for (arguments, said) in [
        (&["no-such-case"][..], "there is no case 'no-such-case'; see --list"),
        (&["--changes", "no-such-change"], "there is no change 'no-such-change'; see truth/changes.toml"),
        (&["--start", "lock-"], "--start takes the name of one case"),
        (&["lock", "--nstar", "/nowhere/nstar"], "there is no /nowhere/nstar"),
    ] {
        let output = truth(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(said), "{output:?}");
    }
}

#[test]
fn a_name_means_one_case_and_a_part_of_it_all_that_hold_it() {
    let listed = |name: &str| text(&truth(&["--list", name]).stdout).lines().count();
    assert_eq!(listed("lock"), 1);
    assert!(listed("lock-") > 1);
}

/// A run file with this verdict on the case `lock`, which is stopped at 100 requests a second with one user.
fn kept(kind: &str, confidence: &str) -> TempDir {
    said_of_lock(kind, &format!("\"{confidence}\""), "[]")
}

/// The same with the confidence as JSON has it, and with doubts.
fn said_of_lock(kind: &str, confidence: &str, doubts: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let file = format!(
        r#"{{"elapsed_s": 21.4, "verdict": {{"users_at_saturation": 1, "users_at_saturation_ci": [1, 2], "throughput_max_per_s": 99.0,
            "bottleneck": {{"kind": "{kind}", "holder": "server (pid 12)", "confidence": {confidence}}},
            "inconclusive": {doubts}}}}}"#
    );
    fs::write(folder.path().join("lock.json"), file).expect("a run file");
    folder
}

/// Verdicts without a claim, and those in words, are not counted.
#[test]
fn the_table_tells_how_often_verdicts_were_right_by_how_sure_they_were() {
    let rounds = [
        said_of_lock("lock", "0.98", "[]"),
        said_of_lock("lock", "0.65", "[]"),
        said_of_lock("cpu", "0.75", "[]"),
        said_of_lock("cpu", "0.55", r#"["it may be something else"]"#),
        kept("lock", "high"),
    ];
    let read = rounds.iter().flat_map(|folder| ["--read".to_owned(), folder.path().display().to_string()]);
    let words: Vec<String> = ["lock".to_owned()].into_iter().chain(read).collect();
    let output = truth(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let expected =
        "Right of those said with 60 to 80 %: 1 of 2 (1.4 expected); 95 to 100 %: 1 of 1 (1.0 expected).";
    assert!(text(&output.stdout).contains(expected), "{output:?}");
}

#[test]
fn a_neighbour_that_is_none_is_refused() {
    let output = truth(&["lock", "--beside", "noise"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("'noise' is no neighbour"), "{output:?}");
}

#[test]
fn behind_goes_with_neither_changes_nor_start_nor_kept_files() {
    for other in [&["--changes"][..], &["--start"], &["--read", "runs"]] {
        let output = truth(&[&["lock", "--behind", "ssh"][..], other].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains("cannot be used with"), "{output:?}");
    }
    let output = truth(&["lock", "--behind", "telnet"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_case_that_cannot_be_run_behind_ssh_is_told_and_counted_apart() {
    let nstar = env!("CARGO_BIN_EXE_truth");
    let output = truth(&["go-busy", "--behind", "ssh", "--nstar", nstar]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("SKIPPED go-busy behind ssh: it fills"), "{output:?}");
    let told = "Behind ssh: 0 of 1 cases; left out: go-busy (it fills";
    assert!(text(&output.stdout).contains(told), "{output:?}");
}

#[test]
fn cases_on_hosts_of_their_own_are_a_list_of_their_own() {
    let listed = |arguments: &[&str]| text(&truth(arguments).stdout);
    let on_hosts = listed(&["--hosts", "--list"]);
    assert!(on_hosts.contains("back-lock ") && on_hosts.contains("nginx > python > mariadb"), "{on_hosts}");
    assert!(!listed(&["--list"]).contains("back-lock "));
    for other in [&["--behind", "ssh"][..], &["--beside", "burn=33%"], &["--changes"]] {
        let output = truth(&[&["--hosts"][..], other].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains("cannot be used with"), "{output:?}");
    }
    let output = truth(&["--generators", "nats"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_case_about_one_generator_is_told_not_to_be_run_with_three() {
    let nstar = env!("CARGO_BIN_EXE_truth");
    let words = ["generator-quota", "--hosts", "--generators", "nats", "--nstar", nstar];
    let output = truth(&words);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("SKIPPED generator-quota through NATS: its limit"), "{output:?}");
    let told = "Through NATS: 0 of 1 cases; left out: generator-quota (its limit";
    assert!(text(&output.stdout).contains(told), "{output:?}");
    let output = truth(&[&words[..], &["--start"]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("generator-quota cannot be started so: its limit"), "{output:?}");
}

#[test]
fn the_table_tells_which_servers_stood_behind_ssh() {
    let folder = kept("lock", "medium");
    let file = folder.path().join("lock.json");
    let steps = r#""steps": [{"resources": [{"identity": {"type": "host", "on": "far"}}]}], "verdict""#;
    let run = fs::read_to_string(&file).expect("a run file").replace(r#""verdict""#, steps);
    fs::write(&file, run).expect("a run file");
    let output = truth(&["lock", "--read", &folder.path().display().to_string()]);
    assert!(text(&output.stdout).contains("| lock | rust, behind ssh | lock, server |"), "{output:?}");
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
