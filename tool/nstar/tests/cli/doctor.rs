//! `nstar doctor`: a fault that is planted in a server is found; what is applied is put back.

mod asked;
mod planted;

use std::ffi::OsStr;

use serde_json::Value;

use crate::common::{
    support::{Outcome, Place, Server, is_root_or_skip, tool_program},
    verdict::HTTP,
};

/// Everything that one call of doctor found, as it tells programs.
fn findings(outcome: &Outcome) -> Vec<Value> {
    assert!([Some(0), Some(4)].contains(&outcome.status.code()), "{outcome}");
    let told: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    told["findings"].as_array().expect("findings").clone()
}

/// A server that may open 512 files.
fn with_few_files(place: &Place) -> Server {
    let server = Server::python(&format!("{HTTP}serve(keep, lambda: None)\n"));
    place.call(["prlimit", "--pid", &server.pid().to_string(), "--nofile=512"]).run().exits(0);
    server
}

#[test]
fn a_server_that_may_open_few_files_is_found() {
    let place = Place::beside_others();
    let server = with_few_files(&place);
    let found = place.nstar(["doctor", &server.url("/")]).run();
    assert!([Some(0), Some(4)].contains(&found.status.code()), "{found}");
    found.says("may open 512 files").says(&format!("prlimit --pid {}", server.pid())).has_not_panicked();
}

#[test]
fn programs_are_told_the_kind_of_each_fault_and_its_numbers() {
    let place = Place::beside_others();
    let server = with_few_files(&place);
    let found = place.nstar(["doctor", &server.url("/"), "-j"]).run().has_not_panicked();
    let findings = findings(&found);
    let is_about = |finding: &&Value| finding["fault"]["of"]["pid"] == server.pid();
    let files = findings.iter().filter(is_about).find(|finding| finding["fault"]["kind"] == "open-files");
    let files = files.unwrap_or_else(|| panic!("{found}"));
    assert_eq!((&files["fault"]["limit"], &files["certainty"]), (&512.into(), &"depends".into()), "{files}");
    assert!(files["mend"].as_str().is_some_and(|mend| mend.starts_with("prlimit --pid ")), "{files}");
    place.nstar(["doctor", "-j", "--apply", "--yes"]).run().exits(2);
    place.nstar(["doctor", "-j", "--undo"]).run().exits(2);
}

/// The agent is one of this host, in the place of nstar itself.
#[test]
fn what_two_see_is_found_once() {
    let place = Place::beside_others();
    let server = with_few_files(&place);
    let observe = format!("{} agent", tool_program().display());
    let found = place.nstar(["doctor", &server.url("/"), "--observe", &observe]).run();
    assert!([Some(0), Some(4)].contains(&found.status.code()), "{found}");
    assert_eq!(found.stdout.matches("may open 512 files").count(), 1, "{found}");
    assert_eq!(found.stdout.matches("Generator and server may run").count(), 1, "{found}");
}

#[test]
fn what_two_see_is_told_once_before_a_sweep() {
    let place = Place::beside_others();
    let server = with_few_files(&place);
    let (url, observe) = (server.url("/"), format!("{} agent", tool_program().display()));
    let swept = place.nstar(["sweep", &url, "-c", "1,2", "-d", "1s", "--observe", &observe]).run();
    assert!([Some(0), Some(4)].contains(&swept.status.code()), "{swept}");
    assert_eq!(swept.stderr.matches("may open 512 files").count(), 1, "{swept}");
    assert!(swept.stderr.contains(" Mend: ") && !swept.stderr.contains(" Mend on "), "{swept}");
}

#[test]
fn what_is_no_agent_is_refused_before_anything_is_looked_at() {
    let place = Place::beside_others();
    let doctor = |words: &[&str]| place.nstar([&["doctor"], words].concat()).run();
    let other = doctor(&["--observe", "echo Welcome to web"]).exits(1);
    other.complains("--observe").complains("came: Welcome to web");
    doctor(&["--observe", ""]).exits(2).complains("empty");
    doctor(&["--sudo"]).exits(2).complains("--sudo goes with");
    doctor(&["--undo", "--observe", "true"]).exits(2).complains("--observe");
}

#[test]
fn a_server_that_is_not_here_is_told_and_the_host_is_looked_at() {
    let found = Place::beside_others().nstar(["doctor", "http://192.0.2.7/"]).run();
    assert!([Some(0), Some(4)].contains(&found.status.code()), "{found}");
    found.complains("the processes of the server were not looked at").says("spoil a measurement");
    Place::beside_others().nstar(["doctor", "not a url"]).run().exits(2);
}

#[test]
fn nothing_is_set_without_being_asked_for() {
    let place = Place::beside_others();
    let script = ["--undo-script", "undo.sh"];
    let apply =
        |words: &[&'static str]| place.nstar([&["doctor"][..], words, &script[..]].concat()).run().exits(2);
    apply(&["--apply"]).complains("--yes");
    apply(&["--undo"]).complains("nothing to put back");
    apply(&[]).complains("--apply and --undo");
    std::fs::write(place.path("undo.sh"), "#!/bin/sh\nreboot\n").expect("a file");
    apply(&["--apply", "--yes"]).complains("--undo first");
    apply(&["--undo"]).complains("not as nstar wrote it");
}

/// The settings of a network namespace of the test's own; what is in `/sys` is hidden, and stays as it is.
const APPLY_AND_UNDO: &str = r#"
mount -t tmpfs none /sys || exit 77
echo 64 > /proc/sys/net/core/somaxconn || exit 77
echo 40000 41000 > /proc/sys/net/ipv4/ip_local_port_range
show() { echo "$1: $(cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/ip_local_port_range | xargs)"; }
"$1" doctor --apply --yes --undo-script undo.sh
show applied
stat -c 'mode: %a' undo.sh
"$1" doctor --apply --yes --undo-script undo.sh; echo "again: $?"
cp undo.sh by-hand.sh
unshare -n "$1" doctor --undo --undo-script undo.sh; echo "elsewhere: $?"
"$1" doctor --undo --undo-script undo.sh; echo "undone: $?"
show undone
test ! -e undo.sh && echo 'the script is gone'
echo 65 > /proc/sys/net/core/somaxconn
sh by-hand.sh; echo "by hand: $?"
show by-hand
"#;

#[test]
fn settings_are_applied_and_put_back_in_a_network_namespace() {
    if !is_root_or_skip("settings of a network namespace") {
        return;
    }
    let place = Place::beside_others();
    let nstar = tool_program();
    let words = ["unshare", "-n", "-m", "sh", "-c", APPLY_AND_UNDO, "sh"].map(OsStr::new);
    let outcome = place.call(words.into_iter().chain([nstar.as_os_str()])).run();
    if outcome.status.code() == Some(77) {
        eprintln!("SKIPPED: no namespaces of its own are to be had here\n{outcome}");
        return;
    }
    outcome
        .says("net.core.somaxconn: 64 -> 4096")
        .says("applied: 4096 1024 65000")
        .says("mode: 700")
        .says("again: 2")
        .says("elsewhere: 2")
        .says("undone: 0")
        .says("undone: 64 40000 41000")
        .says("the script is gone")
        .says("by hand: 0")
        .says("by-hand: 64 40000 41000");
}
