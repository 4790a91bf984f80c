//! `nstar doctor --observe`: faults that are planted on another host are found, and named with it.

use super::far::{DAEMON, Far, HIDDEN, Observed, nstar_is_hidden_or_skip, succeeds};
use crate::common::{
    support::{Outcome, Place, is_root_or_skip},
    verdict::SHORT_QUEUE,
};
use crate::namespaces::{AS_NOBODY, tool_for_all};

/// Runs a server that may open few files.
const FEW_FILES: [&str; 2] = ["prlimit", "--nofile=512"];

fn can_run(test: &str) -> bool {
    is_root_or_skip(test) && nstar_is_hidden_or_skip(test)
}

/// What the doctor says of a server that it sees through an agent alone, in one line.
fn examined(place: &Place, far: &Far, observe: &str) -> (Outcome, String) {
    let url = far.url();
    let outcome = place.wrapped(HIDDEN, ["doctor", &url, "--observe", observe]).run();
    assert!([Some(0), Some(4)].contains(&outcome.status.code()), "{outcome}");
    let said = outcome.in_one_line();
    (outcome, said)
}

#[test]
fn faults_of_another_host_are_named_with_it_and_the_command_to_run_there() {
    let test = "faults_of_another_host_are_named_with_it_and_the_command_to_run_there";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_others();
    let Some(far) = Far::serving(&place, SHORT_QUEUE, &FEW_FILES) else { return };
    let limit = "echo 64 > /proc/sys/net/core/somaxconn";
    let is_limited = succeeds(&["ip", "netns", "exec", &far.network.name, "sh", "-c", limit]);
    let observe = far.through_a_daemon(&place);
    let (outcome, said) = examined(&place, &far, &observe);
    let queue = format!("listens on port {} with room for 1 waiting connection.", far.address().port());
    assert!(said.contains("Depends. far: python3") && said.contains(&queue), "{outcome}");
    assert!(said.contains("may open 512 files."), "{outcome}");
    if is_limited {
        assert!(said.contains("Depends. far: Listen queues hold 64 connections at most"), "{outcome}");
        assert!(said.contains("on far: sysctl -w net.core.somaxconn=4096"), "{outcome}");
    } else {
        eprintln!("SKIPPED a part of {test}: settings of namespaces cannot be changed here");
    }
    let of_generator = ["far: the generator", "far: Generator", "far: This nstar"];
    assert!(of_generator.iter().all(|words| !said.contains(*words)), "nobody makes load there: {outcome}");
    assert!(!outcome.stderr.contains("were not looked at"), "they were, there: {outcome}");
}

/// The agent runs beside the container that the server is in, as a user who may not enter it.
#[test]
fn what_an_agent_may_not_look_at_is_told_and_the_rest_goes_on() {
    let test = "what_an_agent_may_not_look_at_is_told_and_the_rest_goes_on";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_others();
    // Not what root alone may run.
    let nobody = [&["env", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"], &AS_NOBODY[..]].concat();
    let Some(far) = Far::serving(&place, SHORT_QUEUE, &[&FEW_FILES[..], &nobody[..]].concat()) else {
        return;
    };
    let tool = tool_for_all(&place).display().to_string();
    let observed = Observed::by(&place, &far.network, |at| {
        let program = [&nobody[..], &["python3", "-c", DAEMON, at, &tool]].concat();
        far.network.beside("far", &place, &program)
    });
    let (outcome, said) = examined(&place, &far, &observed);
    assert!(said.contains("Not looked at on far: the server's own listen queue, local ports,"), "{outcome}");
    let queues = "the limit on listen queues, the queue of handshakes (Operation not permitted";
    assert!(said.contains(queues) && said.contains("Run the agent on far as root"), "{outcome}");
    assert!(said.contains("may open 512 files."), "the rest goes on: {outcome}");
}

#[test]
fn what_matters_most_on_another_host_is_told_before_a_sweep() {
    let test = "what_matters_most_on_another_host_is_told_before_a_sweep";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_others();
    let Some(far) = Far::serving(&place, "serve(keep, lambda: None)", &FEW_FILES) else { return };
    let (observe, url) = (far.through_a_daemon(&place), far.url());
    let words = ["sweep", &url, "-c", "1,2", "-d", "1s", "--observe", &observe];
    let swept = || {
        let outcome = place.wrapped(HIDDEN, words).run();
        assert!([Some(0), Some(4)].contains(&outcome.status.code()), "{outcome}");
        outcome
    };
    // Who does not answer in time is not told of, and on a busy machine that may happen.
    let is_told = |outcome: &Outcome| outcome.stderr.contains("may open 512 files");
    let outcome = (0..3).map(|_| swept()).find(is_told).unwrap_or_else(swept);
    let mut lines = outcome.stderr.lines();
    let told = lines.find(|line| line.contains("may open 512 files")).unwrap_or_default();
    let mend = format!("Mend on far: prlimit --pid {}", far.pid());
    assert!(told.starts_with("far: python3") && told.contains(&mend), "{outcome}");
    assert!(outcome.stderr.matches(" Mend").count() <= 2, "more than matters most: {outcome}");
}
