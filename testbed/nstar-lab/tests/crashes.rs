//! What the systems acknowledged survives power cuts and kill -9. `make power-cuts` and `make kill-campaign` try many more.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;

use crash_tests::{Campaign, Crash, Kind, disk};

const CUTS: u64 = 10;
const KILLS: u64 = 20;

fn try_all(crash: Crash, crashes: u64) {
    let mut acknowledged = 0;
    for system in Kind::ALL {
        let program = Path::new(env!("CARGO_BIN_EXE_nstar-lab")).to_owned();
        let seed = fastrand::u64(..1_000_000_000);
        let campaign = Campaign { program, system, crash, crashes, seed };
        let outcome = campaign.run(|_| ()).unwrap();
        let name = system.name();
        assert!(outcome.faults.is_empty(), "{name}, from seed {seed} on:\n{}", outcome.faults.join("\n"));
        assert_eq!(outcome.crashes, crashes, "{name}: {outcome:?}");
        acknowledged += outcome.acknowledged;
    }
    assert!(acknowledged > 0);
}

#[test]
fn what_was_acknowledged_survives_power_cuts() {
    if !disk::is_possible() {
        eprintln!("SKIPPED: no disk can be mounted here; run as root, where /dev/fuse is");
        return;
    }
    try_all(Crash::PowerCut, CUTS);
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    try_all(Crash::Kill, KILLS);
}
