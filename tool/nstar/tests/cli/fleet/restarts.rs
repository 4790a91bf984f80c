//! A bus that restarts: what is under way ends with what was measured, and members come back by themselves.

use super::*;
use crate::common::{support::Nstar, verdict::verdict};

/// Sweeps a server with both of two members.
fn sweep(place: &Place, server: &Server, url: &str, users: &str) -> Nstar {
    let target = server.url("/");
    place.nstar(["sweep", &target, "-c", users, "-d", "1s", "--fleet", url, "--members", "2"])
}

fn steps(run: &Value) -> &Vec<Value> {
    run["steps"].as_array().expect("steps")
}

/// Checks that each step is what both members counted in it.
fn both_made(run: &Value) {
    for step in steps(run) {
        assert_eq!(generators(step).len(), 2, "{step}");
        let (users, completed) = (step["users"].as_u64(), step["completed"].as_u64());
        assert_eq!((users, completed), (Some(sum(step, "users")), Some(sum(step, "completed"))), "{step}");
    }
}

/// Makes a sweep of two steps, and checks that it is whole.
fn sweep_whole(place: &Place, server: &Server, url: &str) {
    let outcome = sweep(place, server, url, "1,2").run().has_not_panicked();
    println!("{outcome}");
    assert!([Some(0), Some(4)].contains(&outcome.status.code()), "{outcome}");
    let run = place.run_file();
    both_made(&run);
    assert_eq!(steps(&run).len(), 2, "{}", run["steps"]);
    assert!(!run["warnings"].to_string().contains("\"lost\""), "{}", run["warnings"]);
}

#[test]
fn members_come_back_by_themselves_between_two_sweeps() {
    let place = Place::beside_sleepers();
    let Some(mut bus) = Bus::start(&[]) else { return };
    let (server, url) = (Server::python(COUNTING), bus.url());
    let mut members = [(); 2].map(|()| member(&place, &url, &[]));
    sweep_whole(&place, &server, &url);
    bus.stop();
    for member in &mut members {
        member.wait_for_stderr("it is tried again");
    }
    let target = server.url("/");
    let at_once = place.nstar(["sweep", &target, "-c", "1,2", "-d", "1s", "--fleet", &url]).run();
    at_once.exits(1).complains("--fleet: ").complains("cannot be reached");
    bus.start_again();
    for member in &mut members {
        member.wait_for_stderr("connected to the bus again");
    }
    sweep_whole(&place, &server, &url);
}

#[test]
fn a_sweep_that_loses_the_bus_reports_the_steps_before() {
    let place = Place::beside_sleepers();
    let Some(mut bus) = Bus::start(&[]) else { return };
    let (server, url) = (Server::python(COUNTING), bus.url());
    let mut members = [(); 2].map(|()| member(&place, &url, &[]));
    // However busy the machine, most of them are still to come after the first.
    let users: Vec<_> = (1..=30).map(|users: u32| users.to_string()).collect();
    let mut running = sweep(&place, &server, &url, &users.join(",")).start();
    running.wait_for_stderr("req/s");
    bus.restart();
    let outcome = running.finish().has_not_panicked().exits(4);
    println!("{outcome}");
    let said = outcome.in_one_line();
    assert!(said.contains("the connection to the bus broke. The run ended with that"), "{said}");
    let run = place.run_file();
    both_made(&run);
    assert!((1..30).contains(&steps(&run).len()), "those that were complete: {}", run["steps"]);
    let counted: u64 = steps(&run).iter().map(|step| sum(step, "completed")).sum();
    let saw: u64 = seen(&server).values().sum();
    assert!((1..=saw).contains(&counted), "none is counted twice: {counted} of {saw}");
    let troubles = run["warnings"].as_array().expect("warnings").iter().map(|one| &one["cause"]["trouble"]);
    let lost: Vec<_> = troubles.filter(|trouble| trouble["kind"] == "lost").collect();
    assert_eq!(lost.len(), 2, "{}", run["warnings"]);
    for trouble in lost {
        let (kind, ended_run) = (&trouble["loss"]["kind"], &trouble["ended_run"]);
        assert_eq!((kind, ended_run), (&"disconnected".into(), &true.into()), "{trouble}");
    }
    let doubts = verdict(&run)["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().any(|doubt| doubt["kind"] == "ended-early"), "{doubts:?}");
    for member in &mut members {
        member.wait_for_stderr("free again: the connection to the bus broke");
    }
    sweep_whole(&place, &server, &url);
}

#[test]
fn a_bus_that_restarts_ends_the_run_and_its_members_serve_the_next() {
    let place = Place::beside_sleepers();
    let Some(mut bus) = Bus::start(&[]) else { return };
    let server = Server::python(COUNTING);
    let url = bus.url();
    let mut member = member(&place, &url, &[]);
    let running = load(&place, &server, (&url, "1"), &["-c", "2", "-d", "60s"]).start();
    member.wait_for_stderr(" runs");
    let deadline = Instant::now() + PATIENCE;
    while seen(&server).values().sum::<u64>() <= 50 {
        assert!(Instant::now() < deadline, "no load came");
        thread::sleep(Duration::from_millis(20));
    }
    bus.restart();
    running.finish().exits(1).complains("the generator on").complains("the connection to the bus broke");
    member.wait_for_stderr("free again: the connection to the bus broke");
    println!("{}", load(&place, &server, (&url, "1"), &["-c", "2", "-n", "10"]).run().exits(0));
}
