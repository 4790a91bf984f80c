//! Processors that serve less while users queue for them than two users who never wait get of them: a scheduler leaves them idle
//! for moments. What is predicted is what they achieved while users queued.

use analysis::prediction::{Caution, Change};
use analysis::run::{Identity, ResourceKind, Run};

use crate::measured::{Shown, Stops, app, predicted, sweep};
use crate::simulated::{Slowing, System, Time, delay};

/// Two processors compute for 22 ms, and for 15 % longer if the request had to wait; a millisecond is spent elsewhere.
fn hindered(think: Time) -> System {
    System {
        think,
        places: 2,
        inside: vec![delay(22e3)],
        outside: vec![delay(1e3)],
        slowing: Slowing::OfThose(0.15),
        kinds: Vec::new(),
    }
}

fn measured(system: &System, users: &[u32]) -> Run {
    let identity = Identity::Processes(app());
    let shown = Shown { identity: identity.clone(), demand_us: 22e3, capacity: 2.0, bits_per_s: None };
    let stops = Stops { kind: ResourceKind::Cpu, holder: identity, at_a_time: None };
    sweep(system, users, &[shown], &stops)
}

/// Without a change the model meets every step beyond N*, within its interval.
fn meets_the_plateau(run: &Run, within: f64) {
    let found = predicted(run, &[], 2);
    assert_eq!(found.model.slowdown.map(|by| by.power), Some(0.0), "{:?}", found.model);
    assert!(found.cautions.iter().any(|one| matches!(one, Caution::Fell { followed: true, .. })));
    let users = found.before.users_at_saturation.expect("N*").value;
    assert!((users - 2.0).abs() < 1e-9, "{users}");
    let beyond = found.curve.iter().filter(|point| point.users > 2);
    let mut steps = 0;
    for (point, measured) in beyond.filter_map(|point| Some((point, point.measured_per_s?))) {
        let (error, [low, high]) = (point.before_per_s / measured - 1.0, point.throughput_per_s.ci);
        assert!(error.abs() <= within, "{} users: {error}", point.users);
        assert!((low..=high).contains(&measured), "{} users: {measured} in {low} to {high}", point.users);
        steps += 1;
    }
    assert!(steps >= 3, "{steps}");
}

#[test]
fn the_model_meets_the_plateau_and_not_a_higher_step_before_it() {
    meets_the_plateau(&measured(&hindered(Time::Constant(0.0)), &[1, 2, 3, 4, 8, 16]), 0.02);
}

#[test]
fn users_who_think_get_what_was_served_while_others_queued() {
    let run = measured(&hindered(Time::Constant(0.0)), &[1, 2, 3, 4, 8, 16]);
    let then = hindered(Time::Exponential(1e5));
    let think = [Change::Think { think_us: 1e5 }];
    for users in [4, 8, 16, 32, 64] {
        let found = predicted(&run, &think, users);
        let point = found.curve.iter().find(|point| point.asked).expect("asked");
        let error = point.throughput_per_s.value / then.run(users, 99).throughput_per_s - 1.0;
        println!("{users} users: error {:.1} %", error * 100.0);
        assert!(error.abs() <= 0.10, "{users} users: {error}");
    }
    let (after, most) = (predicted(&run, &think, 1).after, then.run(128, 5).throughput_per_s);
    let max = after.throughput_max_per_s;
    assert!((max.value / most - 1.0).abs() <= 0.03, "{max:?}, then {most}");
    let stops = after.limits.first().expect("a limit");
    assert!((stops.throughput_per_s / most - 1.0).abs() <= 0.03, "{stops:?}, then {most}");
}

/// A Go server that computes for 20 ms, on two processors that the load shared: users, throughput and half of its interval,
/// response time, and processors in use.
const GO: [(u32, f64, f64, f64, f64); 5] = [
    (1, 43.13, 0.75, 23_207.0, 0.9926),
    (2, 88.91, 1.51, 22_451.0, 1.9701),
    (3, 80.34, 2.25, 37_366.0, 1.7512),
    (4, 80.61, 1.74, 49_693.0, 1.7714),
    (8, 81.86, 2.99, 97_593.0, 1.7652),
];

/// As a sweep left it.
fn of_go() -> Run {
    let users = GO.map(|(users, ..)| users);
    let mut run = measured(&hindered(Time::Constant(0.0)), &users);
    for (step, (_, rate, half, mean, used)) in run.steps.iter_mut().zip(GO) {
        step.throughput_per_s = rate;
        step.throughput_ci_per_s = Some([rate - half, rate + half]);
        step.response_time_us.mean = mean;
        step.response_time_us.mean_ci = Some([mean * 0.99, mean * 1.01]);
        for resource in &mut step.resources {
            (resource.used, resource.utilization) = (used, used / resource.capacity);
        }
    }
    run.verdict.throughput_max_per_s = GO[1].1;
    run.verdict.throughput_max_ci_per_s = [GO[1].1 - GO[1].2, GO[1].1 + GO[1].2];
    run
}

/// With users who thought for 100 ms, exponentially, it served 80.3 requests a second, and 78.0 with sixteen users.
#[test]
fn a_go_server_does_what_was_predicted_with_users_who_think() {
    let run = of_go();
    meets_the_plateau(&run, 0.03);
    let found = predicted(&run, &[Change::Think { think_us: 1e5 }], 16);
    let max = found.after.throughput_max_per_s;
    assert!((max.value / 80.33 - 1.0).abs() < 0.03, "{max:?}");
    assert!((max.ci[0]..=max.ci[1]).contains(&80.33), "{max:?}");
    let point = found.curve.iter().find(|point| point.asked).expect("asked");
    assert!((point.throughput_per_s.value / 77.96 - 1.0).abs() < 0.05, "{point:?}");
}

/// Pools reach what they reach, however long users queue.
#[test]
fn a_level_plateau_is_the_maximum() {
    let alike = hindered(Time::Constant(0.0));
    let pool = System { places: 4, inside: vec![delay(2e4)], slowing: Slowing::NOT, ..alike };
    let mut run = measured(&pool, &[1, 2, 4, 5, 8, 16]);
    run.verdict.bottleneck.kind = ResourceKind::WorkerPool;
    run.verdict.bottleneck.at_a_time = Some(4);
    run.steps.iter_mut().for_each(|step| step.resources.clear());
    let found = predicted(&run, &[], 8);
    assert_eq!(found.model.slowdown, None);
    let max = found.before.throughput_max_per_s.value;
    assert!((max / 200.0 - 1.0).abs() < 0.005, "{max}");
}
