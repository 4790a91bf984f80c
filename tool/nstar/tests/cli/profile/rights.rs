//! What the kernel lets a user sample who is not root: `kernel.perf_event_paranoid` says it, and so does the report.

use std::{fs, process::Command};

use serde_json::Value;

use super::{
    is_sampled_or_skip,
    names::{compiled, started},
};
use crate::common::support::{Outcome, Place, Server, is_root_or_skip};
use crate::namespaces::{AS_NOBODY, tool_for_all};

/// From this level on, the kernels of some distributions let users sample nothing; to others it is the same as the one before.
const NOTHING: i32 = 3;

/// From this level on, users do not see what the kernel does for them.
const WITHOUT_KERNEL: i32 = 2;

/// From this level on, users see threads of their own and no more.
const BY_THREAD: i32 = 1;

/// `None` where the kernel cannot sample at all.
fn level() -> Option<i32> {
    fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// What this program shows of the server in a second of load, and how it ended.
fn loaded(place: &Place, server: &Server, program: &[&str]) -> (Value, Outcome) {
    let url = server.url("/");
    let load = ["load", &url, "-c", "2", "-d", "1s", "--profile", "-o", "run.json"];
    let outcome = place.call(program.iter().copied().chain(load)).run();
    let profile = place.run_file()["profile"].take();
    // Another user may not write over them.
    for file in ["run.json", "report.html"] {
        fs::remove_file(place.path(file)).expect("a run leaves it");
    }
    (profile, outcome)
}

/// Whether this is among what is missing.
fn lacks(profile: &Value, what: &str) -> bool {
    let mut troubles = profile["troubles"].as_array().into_iter().flatten();
    troubles.any(|trouble| trouble["type"] == what)
}

#[test]
fn a_user_sees_a_server_of_his_own_as_far_as_the_kernel_lets_him() {
    let test = "a_user_sees_a_server_of_his_own_as_far_as_the_kernel_lets_him";
    if !is_root_or_skip(test) {
        return;
    }
    let place = Place::beside_others();
    let Some(program) = compiled(test, &place) else { return };
    let tool = tool_for_all(&place).display().to_string();
    let mut command = Command::new(AS_NOBODY[0]);
    command.args(&AS_NOBODY[1..]).arg(program);
    let server = started(command);
    // Where root can, it is a matter of rights.
    if !is_sampled_or_skip(&loaded(&place, &server, &[tool.as_str()]).0) {
        return;
    }
    let (profile, outcome) = loaded(&place, &server, &[&AS_NOBODY[..], &[tool.as_str()]].concat());
    let (level, said) = (level().expect("this kernel samples"), outcome.in_one_line());
    if level >= NOTHING && lacks(&profile, "refused") {
        let setting = format!("(kernel.perf_event_paranoid is {level})");
        assert!(said.contains(&setting) && said.contains("Run nstar as root, or set"), "{outcome}");
        return;
    }
    let tier = &profile["tiers"][0];
    let name = &tier["hottest"]["function"]["name"];
    assert_eq!(name, "hot_function_of_this_server", "at {level}: {profile:#}\n{outcome}");
    let is_without = level >= WITHOUT_KERNEL;
    assert_eq!(lacks(&profile, "without-kernel"), is_without, "at {level}: {profile:#}\n{outcome}");
    assert_eq!(tier["kernel_share"].is_null(), is_without, "at {level}: {profile:#}");
    let setting = format!("is not in the profile (kernel.perf_event_paranoid is {level}): as root");
    assert_eq!(said.contains(&setting), is_without, "{outcome}");
}

#[test]
fn a_user_does_not_see_a_server_of_another_and_is_told_so() {
    let test = "a_user_does_not_see_a_server_of_another_and_is_told_so";
    if !is_root_or_skip(test) {
        return;
    }
    let place = Place::beside_others();
    let Some(program) = compiled(test, &place) else { return };
    if level().is_none_or(|level| level < BY_THREAD) {
        eprintln!("SKIPPED {test}: the kernel samples nothing, or lets every user see everything");
        return;
    }
    let tool = tool_for_all(&place).display().to_string();
    let server = started(Command::new(program));
    let (profile, outcome) = loaded(&place, &server, &[&AS_NOBODY[..], &[tool.as_str()]].concat());
    assert!(lacks(&profile, "refused") || lacks(&profile, "not-here"), "{profile:#}\n{outcome}");
    assert!(profile["tiers"].is_null(), "{profile:#}");
    let said = outcome.in_one_line();
    assert!(said.contains("Why: Where the CPU time goes is not known: "), "{outcome}");
}
