//! Observing where the server is: through commands, by ssh, and through agents that fail.

mod doctor;
mod failures;
pub(crate) mod far;
mod ssh;
mod third;
mod translated;
mod unseen;

use std::process::Command;

use serde_json::Value;

use self::far::{Far, nstar_is_hidden_or_skip};
use crate::common::{
    support::{Place, Server, has_two_cores_or_skip, is_root_or_skip},
    verdict::{ACCEPTS_IN_BURSTS, HTTP, ONE_MUTEX, is_said, named_by, verdict},
};

/// Everything that the run warns of, as one text.
fn warnings(run: &Value) -> String {
    run["warnings"].to_string()
}

/// The holders of all resources of the last step.
fn holders(run: &Value) -> Vec<&str> {
    let steps = run["steps"].as_array().expect("steps");
    let resources = steps.last().expect("a step")["resources"].as_array().expect("resources");
    resources.iter().filter_map(|resource| resource["holder"].as_str()).collect()
}

/// Sweeps until a cause is named that can be relied on, a few times at most. nstar itself sees nothing of the server.
fn named(place: &Place, far: &Far, observe: &str, args: &[&str]) -> Option<Value> {
    let url = far.url();
    let sweep = || ["sweep", &url, "--observe", observe].into_iter().chain(args.iter().copied());
    named_by(place, 3, || place.wrapped(far::HIDDEN, sweep()).run())
}

/// Checks that the bottleneck is on the other host.
fn is_held_by_python_on_far(run: &Value) {
    let bottleneck = &verdict(run)["bottleneck"];
    let holder = bottleneck["holder"].as_str().expect("a holder");
    assert!(holder.starts_with("python3") && holder.contains(" on far (pid "), "{bottleneck}");
    assert_eq!(bottleneck["identity"]["on"], "far", "{bottleneck}");
}

#[test]
fn a_lock_on_another_host_is_named_with_its_host() {
    let test = "a_lock_on_another_host_is_named_with_its_host";
    if !is_root_or_skip(test) || !nstar_is_hidden_or_skip(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(far) = Far::serving(&place, ONE_MUTEX, &[]) else { return };
    let observe = far.through_a_daemon(&place);
    let Some(run) = named(&place, &far, &observe, &["-c", "1..16", "-d", "2s"]) else { return };
    if is_said(&run, &["lock", "single-thread"]) {
        is_held_by_python_on_far(&run);
    }
    assert!(!warnings(&run).contains("not-watched"), "{}", warnings(&run));
    let hosts = &run["server_hosts"];
    let (name, processor) = (&hosts[0]["name"], &hosts[0]["processor"]);
    assert_eq!((name, processor), (&Value::from("far"), &run["host"]["processor"]), "{hosts}");
}

/// Nothing of the server is seen but that handshakes with it have to be tried again.
#[test]
fn a_listen_queue_out_of_sight_is_named_by_handshakes_that_are_tried_again() {
    let test = "a_listen_queue_out_of_sight_is_named_by_handshakes_that_are_tried_again";
    if !is_root_or_skip(test) || !nstar_is_hidden_or_skip(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(far) = Far::serving(&place, ACCEPTS_IN_BURSTS, &[]) else { return };
    let url = far.url();
    let args = ["sweep", &url, "-c", "1..16", "-d", "2s", "--connections", "per-request"];
    let Some(run) = named_by(&place, 3, || place.wrapped(far::HIDDEN, args).run()) else { return };
    if !is_said(&run, &["accept-queue"]) {
        return;
    }
    let evidence = verdict(&run)["bottleneck"]["findings"].to_string();
    assert!(evidence.contains("handshakes-retried"), "{}", verdict(&run));
}

/// 0.3 ms of computing for each request, on processor 0 alone.
const COMPUTES: &str = "serve(keep, lambda: sum(range(12_000)))";

#[test]
fn a_full_processor_on_another_host_is_named_and_no_processor_counted_for_both() {
    let test = "a_full_processor_on_another_host_is_named_and_no_processor_counted_for_both";
    if !is_root_or_skip(test) || !has_two_cores_or_skip(test) || !nstar_is_hidden_or_skip(test) {
        return;
    }
    let place = Place::new();
    let Some(far) = Far::serving(&place, COMPUTES, &["taskset", "-c", "0"]) else { return };
    let observe = far.through_a_daemon(&place);
    let args = ["-c", "1,2,4", "-d", "2s", "--cpus", "1"];
    let Some(run) = named(&place, &far, &observe, &args) else { return };
    if is_said(&run, &["cpu"]) {
        is_held_by_python_on_far(&run);
    }
    assert!(holders(&run).contains(&"host") && holders(&run).contains(&"host far"), "{:?}", holders(&run));
    assert!(!warnings(&run).contains("shared-cores"), "another host's processor 0: {}", warnings(&run));
}

#[test]
fn one_machine_in_two_namespaces_is_counted_once() {
    let test = "one_machine_in_two_namespaces_is_counted_once";
    if !is_root_or_skip(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(far) = Far::serving(&place, ONE_MUTEX, &[]) else { return };
    let observe = far.in_its_network();
    let load = ["load", &far.url(), "-c", "4", "-d", "2s", "-o", "run.json", "--observe", &observe];
    println!("{}", place.nstar(load).run());
    let run = place.run_file();
    let hosts = holders(&run).iter().filter(|holder| holder.starts_with("host")).count();
    let servers = holders(&run).iter().filter(|holder| holder.starts_with("python3")).count();
    assert_eq!(hosts, 1, "{:?}", holders(&run));
    // Its processors and its busiest thread, once each.
    assert_eq!(servers, 2, "{:?}", holders(&run));
    assert!(warnings(&run).contains("redundant"), "{}", warnings(&run));
    assert!(run["server_hosts"].is_null(), "this machine is the generator's: {}", run["server_hosts"]);
}

/// Any host may have another program at the same port.
#[test]
fn a_process_of_another_host_that_has_nothing_but_the_port_of_the_server_is_told_as_such() {
    let test = "a_process_of_another_host_that_has_nothing_but_the_port_of_the_server_is_told_as_such";
    if !is_root_or_skip(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(far) = Far::serving(&place, ONE_MUTEX, &[]) else { return };
    let port = far.address().port();
    let mut command = Command::new("python3");
    command.args(["-c", &format!("{HTTP}{ONE_MUTEX}"), &port.to_string()]);
    let server = Server::at(([127, 0, 0, 1], port).into(), command);
    let observe = far.through_a_daemon(&place);
    let load = ["load", &server.url("/"), "-c", "2", "-d", "1s", "-o", "run.json", "--observe", &observe];
    println!("{}", place.nstar(load).run().exits(0));
    let run = place.run_file();
    let mut causes = run["warnings"].as_array().expect("warnings").iter().map(|warning| &warning["cause"]);
    let told = causes.find(|cause| cause["trouble"]["kind"] == "by-port");
    let told = told.unwrap_or_else(|| panic!("{}", warnings(&run)));
    assert_eq!(told["trouble"]["address"], server.address.to_string(), "{told}");
    assert!(warnings(&run).contains("by its port alone"), "{}", warnings(&run));
}

#[test]
fn a_port_that_nobody_serves_in_a_container_is_told_and_its_machine_counted_once() {
    let test = "a_port_that_nobody_serves_in_a_container_is_told_and_its_machine_counted_once";
    if !is_root_or_skip(test) || !nstar_is_hidden_or_skip(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(far) = Far::serving(&place, ONE_MUTEX, &[]) else { return };
    let Some(other) = Far::serving(&place, ONE_MUTEX, &[]) else { return };
    // The agent has process numbers of its own and sees no other process, as in a container.
    let observe = other.through_a_daemon_that_sees_nothing(&place);
    let load = ["load", &far.url(), "-c", "2", "-d", "1s", "-o", "run.json", "--observe", &observe];
    println!("{}", place.wrapped(far::HIDDEN, load).run().exits(0));
    let run = place.run_file();
    assert!(warnings(&run).contains("server-not-found"), "{}", warnings(&run));
    let hosts = holders(&run).iter().filter(|holder| holder.starts_with("host")).count();
    assert_eq!(hosts, 1, "{:?}", holders(&run));
}
