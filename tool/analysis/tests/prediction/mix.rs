//! Another mix of two kinds of request: what was predicted from a sweep of one mix, and what the other then does.

use analysis::prediction::{
    Caution, Change, Goal, GoalFigure, MixShare, NoMix, Prediction, Question, Refusal, predict,
};
use analysis::run::{
    Identity, RequestDemand, RequestShare, ResourceKind, ResponseTime, Run, StepRequest, Words,
};

use crate::measured::{Shown, Stops, app, sweep};
use crate::simulated::{Kind, MANY, Seen, Slowing, Station, System, Time, delay};

const KINDS: [&str; 2] = ["read", "write"];

/// A server whose requests read, or write and take longer, and what a request of each costs of its processors.
struct Case {
    name: &'static str,
    system: System,
    users: Vec<u32>,
    stops: Stops,
    cpu_us: [f64; 2],
    cpus: f64,
}

impl Case {
    /// The same with this share of requests that write.
    fn writing(&self, share: f64) -> System {
        let mut system = self.system.clone();
        system.kinds[0].share = 1.0 - share;
        system.kinds[1].share = share;
        system
    }

    fn share(&self) -> f64 {
        self.system.kinds[1].share
    }

    /// The run file of a sweep, with what it would have found out of each kind.
    fn measured(&self) -> Run {
        let demand_us = self.cpu_us[0] * (1.0 - self.share()) + self.cpu_us[1] * self.share();
        let identity = Identity::Processes(app());
        let shown = Shown { identity: identity.clone(), demand_us, capacity: self.cpus, bits_per_s: None };
        let mut run = sweep(&self.system, &self.users, &[shown], &self.stops);
        let demand = |us: f64| RequestDemand {
            kind: ResourceKind::Cpu,
            holder: Words::default(),
            identity: Some(identity.clone()),
            demand_us: us,
            demand_ci_us: [us * 0.97, us * 1.03],
        };
        let request = |kind: usize| RequestShare {
            name: KINDS[kind].into(),
            share: self.system.kinds[kind].share,
            demands: vec![demand(self.cpu_us[kind])],
            ..RequestShare::default()
        };
        run.requests = vec![request(0), request(1)];
        let alone = self.system.run(self.users[0], u64::from(self.users[0]));
        run.steps[0].requests = (0..2).map(|kind| of_kind(&alone, kind)).collect();
        run
    }
}

/// What was seen of one kind.
fn of_kind(seen: &Seen, kind: usize) -> StepRequest {
    let own = seen.response_us.iter().zip(&seen.kinds).filter(|(_, of)| **of == kind);
    let times: Vec<f64> = own.map(|(us, _)| *us).collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let mean_ci = Some([mean * 0.98, mean * 1.02]);
    StepRequest {
        name: KINDS[kind].into(),
        completed: times.len() as u64,
        response_time_us: ResponseTime { mean, mean_ci, ..ResponseTime::default() },
        ..StepRequest::default()
    }
}

fn station(servers: u32, us: f64) -> Station {
    Station { servers, time: Time::Constant(us) }
}

/// Three of four requests read.
fn kinds(times: [Vec<f64>; 2]) -> Vec<Kind> {
    times.into_iter().zip([0.75, 0.25]).map(|(times, share)| Kind { share, times }).collect()
}

/// Four workers that sleep for 20 ms, and compute for 0.5, or four times as long.
fn sleeping_pool() -> Case {
    let stations = [station(2, 500.0), delay(2e4)];
    Case {
        name: "pool of 4 that sleep",
        system: System {
            think: Time::Constant(0.0),
            places: 4,
            inside: stations.to_vec(),
            outside: Vec::new(),
            slowing: Slowing::NOT,
            kinds: kinds([vec![1.0, 1.0], vec![4.0, 4.0]]),
        },
        users: vec![1, 2, 3, 4, 8, 16],
        stops: Stops {
            kind: ResourceKind::WorkerPool,
            holder: Identity::Processes(app()),
            at_a_time: Some(4),
        },
        cpu_us: [500.0, 2_000.0],
        cpus: 2.0,
    }
}

/// Two processors, on which a write takes 24 ms and a read six; both wait for 5 ms besides.
fn processors() -> Case {
    let stations = [station(2, 6e3), delay(5e3)];
    Case {
        name: "2 processors",
        system: System {
            think: Time::Exponential(5e4),
            places: MANY,
            inside: Vec::new(),
            outside: stations.to_vec(),
            slowing: Slowing::NOT,
            kinds: kinds([vec![1.0, 1.0], vec![4.0, 1.0]]),
        },
        users: vec![1, 2, 4, 6, 8, 10, 12, 16, 32],
        stops: Stops { kind: ResourceKind::Cpu, holder: Identity::Processes(app()), at_a_time: None },
        cpu_us: [6e3, 24e3],
        cpus: 2.0,
    }
}

fn asked(run: &Run, write: f64, users: Option<u32>, goal: Option<Goal>) -> Result<Prediction, Refusal> {
    let shares = vec![MixShare { name: "write".into(), share: write }];
    let question = Question { changes: vec![Change::Mix { shares }], users, goal, seed: 1 };
    predict(run, &question, "1")
}

fn predicted(run: &Run, write: f64, users: u32) -> Prediction {
    asked(run, write, Some(users), None).expect("an answer")
}

/// N* of a system, by simulating it.
fn users_at_saturation(system: &System, near: u32) -> u32 {
    let max_per_s = system.run(near * 4, 5).throughput_per_s;
    let mut users = 1..near * 4;
    users.find(|users| system.run(*users, 77).throughput_per_s >= 0.95 * max_per_s).unwrap_or(near * 4)
}

#[test]
fn another_mix_does_what_was_predicted() {
    for case in [sleeping_pool(), processors()] {
        let run = case.measured();
        for write in [0.05, 0.6] {
            let system = case.writing(write);
            let n = predicted(&run, write, 1).after.users_at_saturation.expect("N*");
            let near = n.value as u32;
            for users in [near.div_ceil(2), near, near * 2] {
                let found = predicted(&run, write, users);
                let point = found.curve.iter().find(|point| point.users == users).expect("asked");
                let then = system.run(users, 99).throughput_per_s;
                let error = point.throughput_per_s.value / then - 1.0;
                println!("{}, {write}: {users} users, {then:.1} req/s, {:.1} %", case.name, error * 100.0);
                assert!(error.abs() <= 0.10, "{}, {write}, {users} users: {error}", case.name);
                assert_eq!((point.p95_us, point.p99_us), (None, None), "no percentile of another mix");
            }
            let then = f64::from(users_at_saturation(&system, near));
            assert!((n.ci[0]..=n.ci[1]).contains(&then), "{}, {write}: N* {n:?}, then {then}", case.name);
        }
    }
}

/// A write costs four times as much of everything: with three times as many of them a request costs 3.25 and not 1.75.
#[test]
fn the_mix_and_what_it_takes_for_granted_are_told() {
    let run = sleeping_pool().measured();
    let found = predicted(&run, 0.75, 4);
    let [before, after] = [&found.before, &found.after].map(|of| of.throughput_max_per_s.value);
    assert!((after / before / (1.75 / 3.25) - 1.0).abs() < 0.01, "{before} {after}");
    assert!(found.cautions.contains(&Caution::OtherMix) && !found.cautions.contains(&Caution::Mix));
    let question = Question { seed: 1, ..Question::default() };
    let same = predict(&run, &question, "1").expect("an answer");
    assert!(same.cautions.contains(&Caution::Mix) && !same.cautions.contains(&Caution::OtherMix));
    let width = |of: &Prediction| {
        let [low, high] = of.after.throughput_max_per_s.ci;
        high - low
    };
    let known = width(&found) / after;
    let mut vague = run.clone();
    vague.steps[0].requests[1].response_time_us.mean_ci = Some([4e4, 1.25e5]);
    let vague = width(&predicted(&vague, 0.75, 4)) / after;
    assert!(vague > 2.0 * known, "what is less known makes the answer vaguer: {known} {vague}");
}

#[test]
fn costs_that_are_not_known_are_refused_and_so_are_percentiles() {
    let run = processors().measured();
    let mut older = run.clone();
    older.requests.iter_mut().for_each(|request| request.demands.clear());
    let refused = Refusal::Mix(NoMix::Cost { request: "write".into(), of: "app.cpu".into() });
    assert!(refused.is_of_question());
    assert_eq!(asked(&older, 0.5, None, None).expect_err("no costs"), refused);
    let mut one = run.clone();
    one.requests.clear();
    assert_eq!(asked(&one, 0.5, None, None).expect_err("one kind"), Refusal::Mix(NoMix::OneKind));
    let figure = GoalFigure::Quantile { percentile: "p99".into() };
    let goal = Goal { text: "p99<=1s".into(), figure, value: 1e6, users: Some(8), ..Goal::default() };
    assert_eq!(asked(&run, 0.5, None, Some(goal)).expect_err("no ratio"), Refusal::NoQuantile);
}

/// What is wanted of more writes, and the processors that it takes.
#[test]
fn a_goal_is_reached_by_one_change_besides() {
    let run = processors().measured();
    let goal = Goal { text: "throughput>=200".into(), value: 200.0, ..Goal::default() };
    let found = asked(&run, 0.5, None, Some(goal)).expect("an answer").goal.expect("a goal");
    assert!(!found.reached && (found.now.value / 133.3 - 1.0).abs() < 0.05, "{found:?}");
    let cpus = found.options.iter().find_map(|option| match option.change {
        Change::Cpus { cpus, .. } => Some(cpus),
        _ => None,
    });
    assert!(cpus.is_some_and(|cpus| (3.0..=4.0).contains(&cpus)), "{found:?}");
}
