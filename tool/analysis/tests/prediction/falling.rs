//! A lock that is held for longer the more wait for it: throughput falls beyond N*, and so does what is predicted.

use analysis::prediction::{Caution, Change};
use analysis::run::{Identity, ResourceKind, Run};

use crate::measured::{Shown, Stops, app, predicted, sweep};
use crate::simulated::{Slowing, System, Time, delay};

/// Held for so long, and for 2 % more for each that waits for one lock; 10 ms are spent elsewhere.
fn lock(think_us: f64, locks: u32, held_us: f64) -> System {
    System {
        think: Time::Exponential(think_us),
        places: locks,
        inside: vec![delay(held_us)],
        outside: vec![delay(1e4)],
        slowing: Slowing::ByEach(0.02 / f64::from(locks)),
        kinds: Vec::new(),
    }
}

fn measured() -> Run {
    let identity = Identity::Processes(app());
    let shown = Shown { identity: identity.clone(), demand_us: 100.0, capacity: 2.0, bits_per_s: None };
    let stops = Stops { kind: ResourceKind::Lock, holder: identity, at_a_time: Some(1) };
    sweep(&lock(1e5, 1, 1e4), &[1, 2, 4, 8, 12, 16, 24, 32, 48, 64], &[shown], &stops)
}

/// N*, by simulating every number of users up to where throughput has fallen.
fn users_at_saturation(system: &System) -> u32 {
    let rates: Vec<f64> = (1..48).map(|users| system.run(users, 77).throughput_per_s).collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    rates.iter().zip(1..).find(|(rate, _)| **rate >= 0.95 * most).map_or(0, |(_, users)| users)
}

#[test]
fn throughput_falls_beyond_saturation_as_predicted() {
    let run = measured();
    let cases = [
        (vec![], lock(1e5, 1, 1e4)),
        (vec![Change::Think { think_us: 2e5 }], lock(2e5, 1, 1e4)),
        (vec![Change::Demand { of: "app.lock".into(), factor: 0.5 }], lock(1e5, 1, 5e3)),
        (vec![Change::AddServer { name: None, servers: 1 }], lock(1e5, 2, 1e4)),
    ];
    for (changes, system) in cases {
        let found = predicted(&run, &changes, 96);
        assert!(found.model.slowdown.is_some(), "{changes:?}");
        assert!(found.cautions.iter().any(|one| matches!(one, Caution::Fell { followed: true, .. })));
        let points: Vec<_> = found.curve.iter().filter(|point| point.users >= 4).collect();
        assert!(points.iter().any(|point| point.users == 96));
        for point in points {
            let then = system.run(point.users, 99).throughput_per_s;
            let error = point.throughput_per_s.value / then - 1.0;
            println!("{changes:?}, {} users: {then:.1} req/s, error {:.1} %", point.users, error * 100.0);
            assert!(error.abs() <= 0.10, "{changes:?}, {} users: {error}", point.users);
        }
        let (users, then) =
            (found.after.users_at_saturation.expect("N*").value, f64::from(users_at_saturation(&system)));
        assert!((users - then).abs() <= 1.0 + 0.15 * then, "{changes:?}: N* {users}, then {then}");
    }
}
