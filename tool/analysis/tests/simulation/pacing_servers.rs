//! Servers that are no simple queues: they pause, are throttled, swing, slow down, change their speed, or have responses of
//! very different lengths. Each interval holds the truth as often as it says, or the step is not steady.

use analysis::conclude::{Context, RunKind};
use analysis::run::Step;
use analysis::search::consistency::change;

use crate::closed_network::{Start, System, Time};
use crate::coverage::{holds, step};
use crate::pace::Pace;
use crate::sweep::{conclude, options, sweep};

/// What became of many steps.
#[derive(Debug, Default)]
struct Outcome {
    held: u32,
    missed: u32,
    refused: u32,
}

impl Outcome {
    fn over(system: System, users: u32, seeds: u32) -> Self {
        let mut outcome = Self::default();
        for seed in 0..seeds {
            let found = step(system, users, Start::AllSend, u64::from(seed) * 7_919 + 13);
            match (found.steady, holds(found.throughput_ci_per_s, throughput_per_s(system, &found))) {
                (false, _) => outcome.refused += 1,
                (true, true) => outcome.held += 1,
                (true, false) => outcome.missed += 1,
            }
        }
        println!("{:?} {:?}: {outcome:?}", system.pace, system.service);
        outcome
    }

    fn share_held(&self) -> f64 {
        f64::from(self.held) / f64::from(self.held + self.missed)
    }

    fn share_refused(&self) -> f64 {
        f64::from(self.refused) / f64::from(self.held + self.missed + self.refused)
    }
}

/// All servers are always at work: throughput is their mean speed over the mean service time.
fn throughput_per_s(system: System, found: &Step) -> f64 {
    let [from_s, to_s] = [found.warmup_s, found.warmup_s + found.elapsed_s];
    f64::from(system.servers) / system.service.mean_us() * 1e6 * system.pace.mean(from_s, to_s)
}

fn served(service: Time) -> System {
    System { service, ..System::exponential(2, 1_000.0, 0.0) }
}

const EXPONENTIAL: Time = Time::Exponential { mean_us: 2_000.0 };

/// At least 93 of 100 hold the truth in each, and few are refused.
fn covers(systems: &[System]) {
    for &system in systems {
        let outcome = Outcome::over(system, 8, 150);
        assert!(outcome.share_held() >= 0.93 && outcome.share_refused() <= 0.15, "{system:?}: {outcome:?}");
    }
}

#[test]
fn servers_that_pause() {
    covers(&[
        served(EXPONENTIAL).at(Pace::Pauses { every_ms: 90.0, for_ms: 10.0 }),
        served(EXPONENTIAL).at(Pace::Pauses { every_ms: 250.0, for_ms: 50.0 }),
    ]);
}

/// Among them a period near that of five slices, which has to be told from a slow change.
#[test]
fn servers_that_are_throttled() {
    covers(&[
        served(EXPONENTIAL).at(Pace::Throttled { period_ms: 100.0, share: 0.5 }),
        served(EXPONENTIAL).at(Pace::Throttled { period_ms: 98.0, share: 0.6 }),
        served(EXPONENTIAL).at(Pace::Throttled { period_ms: 103.0, share: 0.3 }),
    ]);
}

#[test]
fn servers_that_swing() {
    covers(&[
        served(EXPONENTIAL).at(Pace::Swings { period_ms: 96.0, amplitude: 0.5 }),
        served(EXPONENTIAL).at(Pace::Swings { period_ms: 400.0, amplitude: 0.3 }),
    ]);
}

#[test]
fn servers_of_two_speeds() {
    covers(&[served(EXPONENTIAL).at(Pace::TwoSpeeds { slow: 0.6, mean_ms: 60.0 })]);
}

#[test]
fn responses_of_very_different_lengths() {
    covers(&[
        served(Time::LogNormal { mean_us: 2_000.0, deviation: 1.5 }),
        served(Time::Pareto { mean_us: 2_000.0, shape: 2.5 }),
    ]);
}

/// A server that is a tenth slower for seconds at a time. No step can know; the replicates do, so the interval of the maximum
/// holds the mean, or the server is said to have changed.
#[test]
fn sweeps_of_a_server_that_is_slower_for_seconds() {
    let pace = Pace::TwoSpeeds { slow: 0.9, mean_ms: 2_000.0 };
    let system = System { servers: 4, service: EXPONENTIAL, ..System::exponential(4, 2_000.0, 0.0) }.at(pace);
    let (mut held, mut refused) = (0, 0);
    let sweeps = 100;
    for seed in 0..sweeps {
        let steps = sweep(system, options(), seed * 7_919 + 13);
        let end = conclude(&steps, 0.0);
        let changed =
            steps.iter().filter_map(|measured| change(&measured.step)).any(|change| change.matters());
        let truth = f64::from(system.servers) / 2_000.0 * 1e6 * pace.mean(0.0, 1.0);
        refused += u32::from(changed || !end.bounded);
        held += u32::from(!changed && end.bounded && holds(Some(end.throughput_max_ci_per_s), truth));
    }
    println!("held {held}, refused {refused}");
    assert!(f64::from(held + refused) >= 0.88 * f64::from(sweeps as u32), "{held} {refused}");
}

/// Workers that took three times as long in every other 4 s were a pool of three, 97 %: short steps fell into either half, and
/// the sweep ended without coming back to any.
#[test]
fn sweeps_of_a_server_of_two_capacities_are_in_doubt() {
    let pace = Pace::TwoSpeeds { slow: 1.0 / 3.0, mean_ms: 4_000.0 };
    let system = System::constant(4, 20_000.0, 0.0).at(pace);
    let sweeps = 60;
    let relied_on = |seed: &u64| {
        let steps = sweep(system, options(), seed * 7_919 + 13);
        let steps = steps.into_iter().map(|measured| measured.step).collect();
        let context = Context { kind: RunKind::Sweep { users_max: 1_024 }, ..Context::default() };
        analysis::conclude::conclude(steps, &context).verdict.doubts.is_empty()
    };
    let relied_on = (0..sweeps).filter(relied_on).count();
    assert!(relied_on <= 3, "{relied_on} of {sweeps}");
}

/// There is no one throughput to find: most steps are refused, and the others hold the mean of the time that they measured.
#[test]
fn servers_that_slow_down() {
    let outcome = Outcome::over(served(EXPONENTIAL).at(Pace::Slows { per_s: 0.1 }), 8, 200);
    let missed = f64::from(outcome.missed) / 200.0;
    assert!(outcome.share_refused() >= 0.8 && missed <= 0.05, "{outcome:?}");
}
