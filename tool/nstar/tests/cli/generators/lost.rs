//! Generators that die, stall or lie in the middle of a load.

use std::fs;

use super::*;
use crate::common::support::{Running, signal};

/// A server behind a gate, a load of two generators that waits there, and the number of the process of one of them.
struct AtTheGate {
    place: Place,
    server: Server,
    load: Running,
    victim: u32,
}

impl AtTheGate {
    /// Runs `nstar load ..` with one generator, and with what these words say, until its users wait for answers.
    fn waiting(more: &[&str]) -> Self {
        let place = Place::beside_sleepers();
        let (gate, pid_file) = (place.path("gate"), place.path("pid"));
        let port = free_port();
        let mut command = std::process::Command::new("python3");
        command.args(["-c", COUNTING, &port.to_string()]).arg(&gate);
        let server = Server::at(([127, 0, 0, 1], port).into(), command);
        let scenario = place.write("unique.toml", UNIQUE).display().to_string();
        let base = server.url("");
        let victim = format!("sh -c 'echo $$ > {}; exec {}'", pid_file.display(), agent());
        let load = ["load", &scenario, "--base", &base, "-c", "4", "-n", "100", "-o", "run.json"];
        let load = place.nstar(load.iter().chain(&["--generator", &victim]).chain(more)).start();
        let deadline = Instant::now() + PATIENCE;
        while seen(&server).values().sum::<u64>() <= 50 {
            assert!(Instant::now() < deadline, "no load came");
            thread::sleep(Duration::from_millis(20));
        }
        let victim = fs::read_to_string(pid_file).expect("a number").trim().parse().expect("a number");
        Self { place, server, load, victim }
    }

    /// Does something to one of the generators, and lets the server answer again.
    fn after(self, signal_name: &str) -> (Place, Server, crate::common::support::Outcome) {
        let Self { place, server, load, victim } = self;
        signal(victim, signal_name);
        fs::write(place.path("gate"), "").expect("a file");
        let outcome = load.finish().has_not_panicked();
        println!("{outcome}");
        (place, server, outcome)
    }
}

/// Checks that the other generator made the whole load once, and that this is told.
fn is_repeated(place: &Place, server: &Server, why: &str) {
    let (run, saw) = (place.run_file(), seen(server));
    let step = &run["steps"][0];
    assert!((1..=400).contains(&measured(&run)), "{step}");
    let (of_one, counted) = (sum(step, "users"), sum(step, "completed"));
    assert_eq!((generators(step).len(), of_one, counted), (1, 4, measured(&run)), "{step}");
    let lost = run["warnings"].as_array().expect("warnings").iter().find(|one| one["kind"] == "generators");
    let trouble = &lost.expect("a warning")["cause"]["trouble"];
    assert_eq!((&trouble["kind"], &trouble["loss"]["kind"]), (&"lost".into(), &why.into()), "{trouble}");
    // What the other made before is in its totals, and what the lost one made is not.
    let (all, total) = (completed(&run), saw.values().sum::<u64>());
    assert!((400..=total - 2).contains(&all), "{all} of {total}");
    // But for first requests, which draw what the first of their user does, no value came twice, after the loss neither.
    assert!(saw.len() as u64 >= total - 2, "{saw:?}");
}

#[test]
fn a_load_is_repeated_without_a_generator_that_is_killed() {
    let (place, server, outcome) = AtTheGate::waiting(&["--generator", "here"]).after("KILL");
    outcome.exits(0);
    is_repeated(&place, &server, "ended");
}

#[test]
fn a_load_is_repeated_without_a_generator_that_stalls() {
    let (place, server, outcome) = AtTheGate::waiting(&["--generator", "here"]).after("STOP");
    outcome.exits(0);
    is_repeated(&place, &server, "silent");
}

#[test]
fn a_load_ends_with_a_generator_that_is_killed_where_that_is_asked_for() {
    let (place, _, outcome) =
        AtTheGate::waiting(&["--generator", "here", "--lost-generator", "end"]).after("KILL");
    outcome.exits(1).complains("the generator on").complains("ended by a signal");
    assert!(!place.path("run.json").exists(), "nothing was measured");
}

#[test]
fn a_load_ends_with_its_last_generator() {
    let (_, _, outcome) = AtTheGate::waiting(&[]).after("KILL");
    outcome.exits(1).complains("the generator on").complains("ended by a signal");
}

/// Fifty agents on one machine make one load, and forty-five of them go on when five are killed.
#[test]
fn a_fleet_of_fifty_goes_on_without_five_that_are_killed() {
    let place = Place::beside_sleepers();
    let (gate, pids) = (place.path("gate"), place.path("pids"));
    let port = free_port();
    let mut command = std::process::Command::new("python3");
    command.args(["-c", COUNTING, &port.to_string()]).arg(&gate);
    let server = Server::at(([127, 0, 0, 1], port).into(), command);
    let (url, one) = (server.url("/x"), format!("sh -c 'echo $$ >> {}; exec {}'", pids.display(), agent()));
    let load = ["load", &url, "-c", "100", "-n", "10", "-t", "1", "-o", "run.json"];
    let fifty = std::iter::repeat_n(["--generator", &one], 50).flatten();
    let running = place.nstar(load.into_iter().chain(fifty)).start();
    let deadline = Instant::now() + PATIENCE;
    // Each has sent a first request, and some users of all wait behind the gate.
    while seen(&server).values().sum::<u64>() < 120 {
        assert!(Instant::now() < deadline, "no load came");
        thread::sleep(Duration::from_millis(20));
    }
    let pids = fs::read_to_string(pids).expect("numbers");
    let victims = pids.lines().step_by(10).map(|pid| pid.parse().expect("a number"));
    victims.for_each(|pid: u32| signal(pid, "KILL"));
    fs::write(&gate, "").expect("a file");
    let outcome = running.finish().has_not_panicked().exits(0);
    println!("{outcome}");
    let run = place.run_file();
    let step = &run["steps"][0];
    assert_eq!((generators(&run["load"]).len(), generators(step).len()), (50, 45), "{step}");
    assert_eq!((sum(step, "users"), sum(step, "completed")), (100, measured(&run)), "{step}");
    let lost = run["warnings"].as_array().expect("warnings").iter();
    let lost = lost.filter(|one| one["cause"]["trouble"]["kind"] == "lost").count();
    assert_eq!(lost, 5, "{}", run["warnings"]);
    let late = generators(&run["load"]).iter().filter_map(|one| one["started_late_us"].as_u64()).max();
    println!("the last of fifty began a step {late:?} us late");
}

#[test]
fn a_sweep_measures_a_step_again_without_a_generator_that_is_killed() {
    let place = Place::beside_sleepers();
    let server = Server::python(COUNTING);
    let (url, pid_file) = (server.url("/"), place.path("pid"));
    let victim = format!("sh -c 'echo $$ > {}; exec {}'", pid_file.display(), agent());
    let sweep =
        ["sweep", &url, "-c", "1,2,3,4,5,6", "-d", "2s", "--generator", &victim, "--generator", "here"];
    let mut running = place.nstar(sweep).start();
    // When the first step has been measured, the second is under way.
    running.wait_for_stderr("req/s");
    let victim: u32 = fs::read_to_string(pid_file).expect("a number").trim().parse().expect("a number");
    signal(victim, "KILL");
    let outcome = running.finish();
    println!("{outcome}");
    assert!([Some(0), Some(4)].contains(&outcome.status.code()), "{outcome}");
    let run = place.run_file();
    let steps = run["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 6, "all were measured");
    let counts: Vec<usize> = steps.iter().map(|step| generators(step).len()).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "never two again after one: {counts:?}");
    assert_eq!(counts.last(), Some(&1), "{counts:?}");
    assert!(steps.iter().all(|step| step["users"] == sum(step, "users")), "{counts:?}");
    assert!(run["warnings"].to_string().contains("\"lost\""), "{}", run["warnings"]);
}

#[test]
fn a_sweep_that_loses_its_last_generator_reports_the_steps_before() {
    let place = Place::beside_sleepers();
    let server = Server::python(COUNTING);
    let (url, pid_file) = (server.url("/"), place.path("pid"));
    let victim = format!("sh -c 'echo $$ > {}; exec {}'", pid_file.display(), agent());
    let mut running = place.nstar(["sweep", &url, "-c", "1,2", "-d", "2s", "--generator", &victim]).start();
    // When the first step has been measured, the second is under way, and then the first once more.
    running.wait_for_stderr("req/s");
    let victim: u32 = fs::read_to_string(pid_file).expect("a number").trim().parse().expect("a number");
    signal(victim, "KILL");
    let outcome = running.finish().has_not_panicked();
    println!("{outcome}");
    outcome.exits(4);
    assert!(place.path("report.html").exists());
    let run = place.run_file();
    let lost = run["warnings"].as_array().expect("warnings").iter().find(|one| one["kind"] == "generators");
    let trouble = &lost.expect("a warning")["cause"]["trouble"];
    assert_eq!(trouble["ended_run"], true, "{trouble}");
    assert_eq!(trouble["loss"]["kind"], "ended", "{trouble}");
    let doubts = verdict(&run)["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().any(|doubt| doubt["kind"] == "ended-early"), "{doubts:?}");
    assert_eq!(run["steps"][0]["users"], 1, "the step that was complete");
}
