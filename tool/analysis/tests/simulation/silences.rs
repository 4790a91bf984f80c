//! Silence is told of servers that stop, and of no others: not of chance, of slow requests, or of users in step.

use analysis::run::Step;

use crate::closed_network::{Start, System, Time};
use crate::coverage::step;
use crate::pace::Pace;

/// The share of a step that was silent.
fn share(step: &Step) -> f64 {
    let silent_us: u64 = step.measurement.silences.iter().map(|(start_us, end_us)| end_us - start_us).sum();
    silent_us as f64 / step.measured_us() as f64
}

fn shares(system: System, users: u32) -> Vec<f64> {
    let seeds = (0..15).map(|seed| seed * 7_919 + 13);
    let shares: Vec<f64> = seeds.map(|seed| share(&step(system, users, Start::AllSend, seed))).collect();
    println!("{system:?} {users} users: {shares:.3?}");
    shares
}

fn served(service: Time, servers: u32) -> System {
    System { service, ..System::exponential(servers, 1_000.0, 0.0) }
}

#[test]
fn servers_that_never_stop_are_not_silent() {
    let lengths = [
        Time::Exponential { mean_us: 2_000.0 },
        Time::Exponential { mean_us: 15_000.0 },
        Time::Constant { us: 45_000.0 },
        Time::Constant { us: 250_000.0 },
        Time::LogNormal { mean_us: 2_000.0, deviation: 1.5 },
        Time::Pareto { mean_us: 2_000.0, shape: 2.5 },
    ];
    for length in lengths {
        for (servers, users) in [(1, 2), (2, 8), (16, 16), (16, 40)] {
            let most = shares(served(length, servers), users).into_iter().fold(0.0, f64::max);
            let one_holds_up_all = servers == 1 && matches!(length, Time::LogNormal { .. });
            assert!(most < 0.05 || one_holds_up_all, "{length:?}, {servers} servers, {users} users: {most}");
        }
    }
}

#[test]
fn users_who_think_in_step_meet_no_silence() {
    for (users, think_us) in [(40, 200_000.0), (100, 1_000_000.0)] {
        let most = shares(System::constant(4, 500.0, think_us), users).into_iter().fold(0.0, f64::max);
        assert!(most < 0.05, "{users} users, {think_us}: {most}");
    }
}

#[test]
fn servers_that_stop_are_silent_as_long() {
    let stops = [
        (Pace::Pauses { every_ms: 440.0, for_ms: 60.0 }, 0.12),
        (Pace::Pauses { every_ms: 250.0, for_ms: 80.0 }, 0.24),
        (Pace::Throttled { period_ms: 100.0, share: 0.4 }, 0.6),
    ];
    for (pace, stopped) in stops {
        for length in
            [Time::Exponential { mean_us: 500.0 }, Time::LogNormal { mean_us: 500.0, deviation: 1.0 }]
        {
            let shares = shares(served(length, 2).at(pace), 8);
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            // Slices that a stop only touches are not empty.
            assert!((0.5 * stopped..=1.1 * stopped).contains(&mean), "{pace:?}, {length:?}: {mean}");
        }
    }
}
