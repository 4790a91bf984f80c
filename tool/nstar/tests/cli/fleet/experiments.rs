//! Experiments whose load a fleet makes.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{Bus, member};
use crate::common::support::{PATIENCE, Place, Running, free_port};
use crate::experiment::{
    SLEEPER,
    elsewhere::{generators, runs},
    experiment, left_running,
};

/// The experiment, in which all trials but the first wait for a file before their fleet is claimed.
fn gated(place: &Place) -> String {
    let (first, gate) = (place.path("first"), place.path("gate"));
    let (first, gate) = (first.display(), gate.display());
    let wait = format!("rm '{first}' 2> /dev/null || until [ -e '{gate}' ]; do sleep 0.05; done");
    let prepare = format!("[[prepare]]\ncommand = [\"sh\", \"-c\", \"{wait}\"]\n\n[[work]]");
    SLEEPER.replace("[[work]]", &prepare)
}

/// Has the experiment make its first trial, and takes the bus away before the fleet of the second is claimed.
fn lose_the_bus_between_two_trials(place: &Place, bus: &mut Bus, flags: &[&str]) -> Running {
    place.write("first", "");
    let mut running = experiment(place, &gated(place), flags).start();
    running.wait_for_stderr("trial 2 of about");
    bus.stop();
    running
}

/// The experiment, whose server kills the bus at its second request, the first of the load, if a file has the number of its
/// process. It does so once.
fn striking(place: &Place, bus: &Bus) -> String {
    let file = place.write("bus", bus.child.id().to_string());
    let file = file.display();
    let strike = format!(
        "served.append(1)
        if len(served) == 2 and os.path.exists('{file}'):
            number = int(open('{file}').read())
            os.remove('{file}')
            os.kill(number, 9)
        time.sleep("
    );
    SLEEPER.replace("class Handler", "served = []\n\nclass Handler").replace("time.sleep(", &strike)
}

#[test]
fn an_experiment_claims_its_fleet_for_each_trial() {
    let place = Place::beside_sleepers();
    let Some(bus) = Bus::start(&[]) else { return };
    let url = bus.url();
    let _members = [(); 2].map(|()| member(&place, &url, &[]));
    let flags = ["--fleet", &url, "--members", "2"];
    let outcome = experiment(&place, SLEEPER, &flags).run().has_not_panicked();
    println!("{outcome}");
    let all = runs(&place);
    assert_eq!(all.len(), 2, "one of each variant: {outcome}");
    for run in &all {
        assert_eq!(generators(run), (2, 2), "{}", run["load"]);
    }
    experiment(&place, SLEEPER, &flags[..2]).run().exits(2).complains("--fleet goes with --members");
    let nowhere = format!("nats://127.0.0.1:{}", free_port());
    let mut waiting = experiment(&place, SLEEPER, &["--fleet", &nowhere, "--members", "1"]).start();
    waiting.wait_for_stderr("starting sleeper");
    thread::sleep(Duration::from_secs(1));
    let asked = Instant::now();
    waiting.signal("INT");
    waiting.finish().exits(130);
    assert!(asked.elapsed() < Duration::from_secs(20), "it waited for the bus to the end");
    assert!(left_running(&place).is_empty());
}

#[test]
fn a_bus_that_is_away_between_two_trials_is_waited_for() {
    let place = Place::beside_sleepers();
    let Some(mut bus) = Bus::start(&[]) else { return };
    let url = bus.url();
    let _member = member(&place, &url, &[]);
    let flags = ["--fleet", &url, "--members", "1"];
    let running = lose_the_bus_between_two_trials(&place, &mut bus, &flags);
    place.write("gate", "");
    thread::sleep(Duration::from_secs(1));
    bus.start_again();
    let outcome = running.finish().has_not_panicked();
    println!("{outcome}");
    let all = runs(&place);
    assert_eq!(all.len(), 2, "one of each variant: {outcome}");
    assert!(all.iter().all(|run| generators(run) == (1, 1)), "{outcome}");
}

/// A bus that was lost within a trial left out its variant.
#[test]
fn a_bus_that_restarts_within_a_trial_has_it_measured_again() {
    let place = Place::beside_sleepers();
    let Some(mut bus) = Bus::start(&[]) else { return };
    let url = bus.url();
    let _member = member(&place, &url, &[]);
    let flags = ["--fleet", &url, "--members", "1"];
    let running = experiment(&place, &striking(&place, &bus), &flags).start();
    let deadline = Instant::now() + PATIENCE;
    while place.path("bus").exists() {
        assert!(Instant::now() < deadline, "no load came");
        thread::sleep(Duration::from_millis(5));
    }
    bus.restart();
    let outcome = running.finish().complains("Measuring this again from its beginning");
    println!("{outcome}");
    let all = runs(&place);
    assert_eq!(all.len(), 2, "one of each variant: {outcome}");
    assert!(all.iter().all(|run| generators(run) == (1, 1)), "{outcome}");
    let again = |run: &&Value| run["warnings"].to_string().contains("measured-again");
    assert_eq!(all.iter().filter(again).count(), 1, "{outcome}");
    let journal = fs::read_to_string(place.path("mine.runs/journal.jsonl")).expect("a journal");
    assert_eq!(journal.matches("\"again\":1").count(), 1, "{journal}");
    assert!(left_running(&place).is_empty());
}

#[test]
fn a_fleet_that_cannot_be_had_ends_the_experiment_which_goes_on_later() {
    let place = Place::beside_sleepers();
    let Some(mut bus) = Bus::start(&[]) else { return };
    let url = bus.url();
    let first = member(&place, &url, &[]);
    let flags = ["--fleet", &url, "--members", "1"];
    let running = lose_the_bus_between_two_trials(&place, &mut bus, &flags);
    // It is back, and lets nobody in: waiting is of no use.
    bus.flags = ["--user", "ann", "--pass", "opensesame"].map(str::to_owned).to_vec();
    bus.start_again();
    place.write("gate", "");
    let outcome = running.finish().exits(1).complains("does not let this user in");
    outcome.complains("after 1 trial, which is kept: the same command with --resume goes on");
    assert!(left_running(&place).is_empty());
    drop(first);
    bus.flags.clear();
    bus.restart();
    let _second = member(&place, &url, &[]);
    let resumed = experiment(&place, &gated(&place), &[&flags[..], &["--resume"]].concat()).run();
    let outcome = resumed.has_not_panicked().complains("going on: 1 trial");
    println!("{outcome}");
    assert_eq!(runs(&place).len(), 2, "one of each variant: {outcome}");
}
