//! Experiments whose load a fleet makes.

use super::{Bus, member};
use crate::common::support::{Place, free_port};
use crate::experiment::{
    SLEEPER,
    elsewhere::{generators, runs},
    experiment,
};

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
    let lost = experiment(&place, SLEEPER, &["--fleet", &nowhere, "--members", "1"]).run().exits(1);
    lost.complains("--fleet: the bus").complains("cannot be reached");
}
