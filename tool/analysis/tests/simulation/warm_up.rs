//! Steps that do not begin as they go on.

use analysis::estimate::{Precision, estimate};
use analysis::ticks::{ErrorKind, Tick};

use crate::closed_network::{Simulation, Start, System};
use crate::coverage::Covered;
use crate::exact::repairman;

/// Idle servers at first, or a queue of other people's requests that takes most of a second: either way the
/// intervals hold the truth.
#[test]
fn neither_an_empty_nor_an_overloaded_start_biases() {
    let system = System::exponential(1, 1_000.0, 10_000.0);
    for start in [Start::AllThink, Start::AllSend, Start::Backlog(700)] {
        let covered = Covered::over(system, 14, start, 200);
        assert!(covered.share(covered.throughput) >= 0.93, "{start:?}: {covered:?}");
        assert!(covered.share(covered.response) >= 0.93, "{start:?}: {covered:?}");
    }
}

/// Without truncation the backlog would show.
#[test]
fn an_overloaded_start_is_dropped() {
    let system = System::exponential(1, 1_000.0, 10_000.0);
    let (throughput, _) = repairman(system, 14);
    let ticks = Simulation::new(system, 14, Start::Backlog(1_000), 9).run(5_000_000);
    let raw = ticks.iter().map(|tick| tick.completed).sum::<u64>() as f64 / 5.0;
    let found = estimate(14, &ticks, &Precision::default());
    assert!(raw < 0.85 * throughput, "{raw}");
    assert!((found.throughput_per_s / throughput - 1.0).abs() < 0.05, "{found:?}");
    assert!((800_000..=2_000_000).contains(&found.warmup_us()), "{found:?}");
    assert_eq!(found.warmup_us() + found.measured_us(), 5_000_000);
    assert_eq!(found.measurement.window, (found.warmup_us(), 5_000_000));
}

/// A server that slows down all the time, or never gets past its backlog, is not steady.
#[test]
fn a_trend_is_not_steady() {
    let slowing: Vec<_> = (0..250u64)
        .flat_map(|step| {
            let service_us = 1_000.0 + 4.0 * step as f64;
            Simulation::new(System::exponential(1, service_us, 0.0), 4, Start::AllSend, step).run(20_000)
        })
        .collect();
    assert!(!estimate(4, &slowing, &Precision::default()).steady);
}

#[test]
fn too_short_to_judge() {
    let ticks = Simulation::new(System::exponential(1, 1_000.0, 0.0), 4, Start::AllSend, 1).run(100_000);
    let found = estimate(4, &ticks, &Precision::default());
    assert!(!found.steady && found.throughput_ci_per_s.is_none() && found.completed > 0);
    assert_eq!(estimate(4, &[], &Precision::default()).throughput_per_s, 0.0);
}

/// What a server did before it went over to refusing is no warm-up, however sudden the change.
#[test]
fn a_server_that_goes_over_to_refusing_is_not_denied_what_it_did() {
    let length_us = 20_000;
    let tick = |number: u64| {
        let answers = number < 75;
        let errors = if answers { [].into() } else { [(ErrorKind::Unavailable, 40)].into() };
        let completed = if answers { 10 } else { 0 };
        let response_time_ns_sum = completed * 2_000_000;
        Tick {
            start_us: number * length_us,
            length_us,
            completed,
            response_time_ns_sum,
            errors,
            ..Tick::default()
        }
    };
    let ticks: Vec<Tick> = (0..150).map(tick).collect();
    let found = estimate(4, &ticks, &Precision::default());
    assert_eq!((found.completed, found.warmup_us()), (750, 0));
    assert!(!found.steady);
    assert_eq!(found.errors.get(&ErrorKind::Unavailable), Some(&3_000));
}
