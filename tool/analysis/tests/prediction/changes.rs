//! The table of changes: what was predicted from a sweep before, and what the changed system then did.

use analysis::prediction::{
    Bound, Caution, Change, CurvePoint, Goal, GoalAnswer, GoalFigure, Question, Refusal, predict,
};
use analysis::run::{Identity, ResourceKind, Run};

use crate::measured::{Shown, Stops, app, database, predicted, sweep};
use crate::simulated::{MANY, Seen, Slowing, Station, System, Time, delay};

fn queue(servers: u32, time: Time) -> Station {
    Station { servers, time }
}

fn cpu(demand_us: f64, capacity: f64) -> Shown {
    Shown { identity: Identity::Processes(app()), demand_us, capacity, bits_per_s: None }
}

fn stops(kind: ResourceKind, holder: Identity, at_a_time: Option<u32>) -> Stops {
    Stops { kind, holder, at_a_time }
}

/// A system, how it is measured, and changes of it with what each makes of the system.
struct Case {
    name: &'static str,
    system: System,
    users: Vec<u32>,
    shown: Vec<Shown>,
    stops: Stops,
    changes: Vec<(&'static str, Vec<Change>, System)>,
}

fn system(think: Time, places: u32, inside: &[Station], outside: &[Station]) -> System {
    let (inside, outside) = (inside.to_vec(), outside.to_vec());
    System { think, places, inside, outside, slowing: Slowing::NOT, kinds: Vec::new() }
}

fn workers(workers: u32) -> Change {
    Change::Workers { name: "app".into(), workers }
}

fn think(think_us: f64) -> Change {
    Change::Think { think_us }
}

fn demand(of: &str, factor: f64) -> Change {
    Change::Demand { of: of.into(), factor }
}

fn cpus(cpus: f64) -> Change {
    Change::Cpus { name: "app".into(), cpus }
}

const NONE: Time = Time::Constant(0.0);

/// Four workers that sleep for 20 ms, and compute for 0.5.
fn sleeping_pool() -> Case {
    let of = |think, places| {
        let inside = [queue(2, Time::Constant(500.0)), delay(20_000.0)];
        system(think, places, &inside, &[])
    };
    Case {
        name: "pool of 4 that sleep",
        system: of(NONE, 4),
        users: vec![1, 2, 3, 4, 8, 16],
        shown: vec![cpu(500.0, 2.0)],
        stops: stops(ResourceKind::WorkerPool, Identity::Processes(app()), Some(4)),
        changes: vec![
            ("workers 4 to 16", vec![workers(16)], of(NONE, 16)),
            ("workers 4 to 2", vec![workers(2)], of(NONE, 2)),
            ("think 0 to 200 ms", vec![think(2e5)], of(Time::Exponential(2e5), 4)),
            ("both", vec![workers(8), think(2e5)], of(Time::Exponential(2e5), 8)),
        ],
    }
}

/// Ten workers that wait for a database for 30 ms and compute for 4 on two processors.
fn computing_pool() -> Case {
    let of = |places: u32, cpus: u32, cpu_us: f64, call_us: f64| {
        let call = Station { servers: MANY, time: Time::Exponential(call_us) };
        let inside = [queue(cpus, Time::Exponential(cpu_us)), call];
        system(NONE, places, &inside, &[])
    };
    let database = Shown {
        identity: Identity::Processes(database()),
        demand_us: 100.0,
        capacity: 2.0,
        bits_per_s: None,
    };
    Case {
        name: "pool of 10 that compute and call",
        system: of(10, 2, 4e3, 3e4),
        users: vec![1, 2, 4, 8, 10, 12, 16, 32],
        shown: vec![cpu(4e3, 2.0), database],
        stops: stops(ResourceKind::WorkerPool, Identity::Processes(app()), Some(10)),
        changes: vec![
            ("workers 10 to 40, where processors are next", vec![workers(40)], of(40, 2, 4e3, 3e4)),
            ("CPU time -30 %", vec![demand("app.cpu", 0.7)], of(10, 2, 2.8e3, 3e4)),
            (
                "calls +10 ms",
                vec![Change::UpstreamDelay { name: "db".into(), added_us: 1e4 }],
                of(10, 2, 4e3, 4e4),
            ),
            ("workers 40, 4 processors", vec![workers(40), cpus(4.0)], of(40, 4, 4e3, 3e4)),
        ],
    }
}

/// Two processors, exponential, behind a link.
fn processors() -> Case {
    let of = |think: Time, cpus: u32, cpu_us: f64| {
        system(think, MANY, &[], &[queue(cpus, Time::Exponential(cpu_us)), delay(5e3)])
    };
    Case {
        name: "2 processors, random times",
        system: of(Time::Exponential(5e4), 2, 1e4),
        users: vec![1, 2, 4, 8, 10, 12, 16, 32, 64],
        shown: vec![cpu(1e4, 2.0)],
        stops: stops(ResourceKind::Cpu, Identity::Processes(app()), None),
        changes: vec![
            ("processors 2 to 4", vec![cpus(4.0)], of(Time::Exponential(5e4), 4, 1e4)),
            ("CPU time -30 %", vec![demand("app.cpu", 0.7)], of(Time::Exponential(5e4), 2, 7e3)),
            ("think 50 to 500 ms", vec![think(5e5)], of(Time::Exponential(5e5), 2, 1e4)),
        ],
    }
}

/// One thread, of constant time.
fn one_thread() -> Case {
    let of = |threads: u32, cpu_us: f64| {
        system(NONE, MANY, &[], &[queue(threads, Time::Constant(cpu_us)), delay(3e4)])
    };
    let thread = Shown { identity: Identity::Thread(app()), demand_us: 1e4, capacity: 1.0, bits_per_s: None };
    Case {
        name: "one thread, constant times",
        system: of(1, 1e4),
        users: vec![1, 2, 3, 4, 5, 8, 16],
        shown: vec![thread, cpu(1e4, 2.0)],
        stops: stops(ResourceKind::SingleThread, Identity::Thread(app()), None),
        changes: vec![
            ("threads 1 to 2", vec![workers(2)], of(2, 1e4)),
            ("CPU time -50 %", vec![demand("app.cpu", 0.5)], of(1, 5e3)),
            ("processors 2 to 8, of no use", vec![cpus(8.0)], of(1, 1e4)),
        ],
    }
}

/// Half a processor by quota: every request takes twice as long.
fn quota() -> Case {
    let of = |think: Time, cpus: f64| {
        let servers = cpus.max(1.0) as u32;
        system(think, MANY, &[], &[queue(servers, Time::Constant(1e4 / cpus.min(1.0)))])
    };
    let quota = Shown { identity: Identity::Quota(app()), demand_us: 1e4, capacity: 0.5, bits_per_s: None };
    Case {
        name: "quota of half a processor",
        system: of(NONE, 0.5),
        users: vec![1, 2, 4],
        shown: vec![quota, cpu(1e4, 2.0)],
        stops: stops(ResourceKind::CpuQuota, Identity::Quota(app()), None),
        changes: vec![
            ("quota 0.5 to 1", vec![cpus(1.0)], of(NONE, 1.0)),
            ("quota 0.5 to 2, think 100 ms", vec![cpus(2.0), think(1e5)], of(Time::Exponential(1e5), 2.0)),
        ],
    }
}

/// A link of 20 Mbit/s before two processors.
fn link() -> Case {
    let of = |link_us: f64| {
        let stations = [queue(1, Time::Constant(link_us)), queue(2, Time::Exponential(8e3))];
        system(Time::Exponential(1e5), MANY, &[], &stations)
    };
    let link = Identity::Link { name: "eth0".into(), on: None };
    let shown = Shown { identity: link.clone(), demand_us: 2e4, capacity: 1.0, bits_per_s: Some(2e7) };
    let faster = |bits_per_s| vec![Change::Link { name: None, bits_per_s }];
    Case {
        name: "link of 20 Mbit/s before 2 processors",
        system: of(2e4),
        users: vec![1, 2, 4, 6, 8, 10, 16, 32],
        shown: vec![shown, cpu(8e3, 2.0)],
        stops: stops(ResourceKind::Network, link, None),
        changes: vec![
            ("link 20 to 40 Mbit/s", faster(4e7), of(1e4)),
            ("link 20 to 1000 Mbit/s, where processors are next", faster(1e9), of(400.0)),
        ],
    }
}

/// A lock that is held for 10 of 20 ms.
fn lock() -> Case {
    let of =
        |locks: u32, held_us: f64| system(Time::Exponential(1e5), locks, &[delay(held_us)], &[delay(1e4)]);
    Case {
        name: "lock held for 10 of 20 ms",
        system: of(1, 1e4),
        users: vec![1, 2, 4, 8, 10, 12, 16, 32, 64],
        shown: vec![cpu(100.0, 2.0)],
        stops: stops(ResourceKind::Lock, Identity::Processes(app()), Some(1)),
        changes: vec![
            ("held for half as long", vec![demand("app.lock", 0.5)], of(1, 5e3)),
            ("two servers", vec![Change::AddServer { name: None, servers: 1 }], of(2, 1e4)),
        ],
    }
}

/// N* of a system, by simulating it.
fn users_at_saturation(system: &System, max_per_s: f64, near: u32) -> u32 {
    let is_full = |users: &u32| system.run(*users, 77).throughput_per_s >= 0.95 * max_per_s;
    let (mut low, mut high) = (0, near * 2);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_full(&middle) { high = middle } else { low = middle }
    }
    high
}

/// The 95th percentile that is predicted for so many users.
fn p95(run: &Run, changes: &[Change], users: u32) -> Option<f64> {
    let found = predicted(run, changes, users);
    found.curve.iter().find(|point| point.asked).and_then(|point| point.p95_us).map(|of| of.value)
}

/// One user alone keeps the thread busy: N* is the first step, where loads before and after differ by rounding.
#[test]
fn percentiles_are_predicted_where_one_user_saturates() {
    let of = |cpu_us: f64| system(NONE, MANY, &[], &[queue(1, Time::Constant(cpu_us)), delay(100.0)]);
    let thread = Shown { identity: Identity::Thread(app()), demand_us: 1e4, capacity: 1.0, bits_per_s: None };
    let stops = stops(ResourceKind::SingleThread, Identity::Thread(app()), None);
    let run = sweep(&of(1e4), &[1, 2, 4], &[thread, cpu(1e4, 2.0)], &stops);
    let changes = [demand("app.cpu", 0.5)];
    let n = predicted(&run, &changes, 1).after.users_at_saturation.expect("N*");
    assert!((n.value - 1.0).abs() < 1e-9, "{n:?}");
    for users in [1, 2] {
        let found = p95(&run, &changes, users).expect("a percentile");
        let then = of(5e3).run(users, 99).quantile_us(0.95);
        assert!((found / then - 1.0).abs() <= 0.25, "{users} users: {found} us, then {then}");
    }
    assert_eq!(p95(&run, &changes, 8), None, "twice the users of the last step");
}

/// How often a quota stops a request depends on how its periods fall on what the request computes.
#[test]
fn no_percentile_is_predicted_of_another_quota() {
    let case = quota();
    let run = sweep(&case.system, &case.users, &case.shown, &case.stops);
    assert!(p95(&run, &[], 2).is_some());
    for changes in [[cpus(1.0)], [demand("app.cpu", 0.5)], [think(1e5)]] {
        assert_eq!(p95(&run, &changes, 1), None, "{changes:?}");
    }
}

/// Forty workers wait for two processors, of which the percentiles of a pool say nothing.
#[test]
fn percentiles_of_a_pool_do_not_stand_for_full_processors() {
    let case = computing_pool();
    let run = sweep(&case.system, &case.users, &case.shown, &case.stops);
    assert!(p95(&run, &[workers(12)], 10).is_some());
    let found = predicted(&run, &[workers(40)], 10);
    assert_eq!(found.after.limits.first().map(|limit| limit.kind), Some(ResourceKind::Cpu));
    assert_eq!(p95(&run, &[workers(40)], 10), None);
}

/// A goal for a percentile is reached with a few more workers, however little is known of the processors that many would fill.
#[test]
fn a_goal_for_a_percentile_is_reached_before_something_else_stops_the_server() {
    let case = computing_pool();
    let run = sweep(&case.system, &case.users, &case.shown, &case.stops);
    let figure = GoalFigure::Quantile { percentile: "p95".into() };
    let text = "p95<=155ms at 32 users".into();
    let goal = Goal { text, figure, bound: Bound::AtMost, value: 155e3, users: Some(32) };
    let question = Question { goal: Some(goal), seed: 1, ..Question::default() };
    let found = predict(&run, &question, "1").expect("an answer").goal.expect("a goal");
    assert!(!found.reached, "{found:?}");
    let is_a_few = |change: &Change| matches!(change, Change::Workers { workers: 11..=24, .. });
    assert!(found.options.iter().any(|option| is_a_few(&option.change)), "{found:?}");
}

/// What reaches a goal.
fn answered(run: &Run, goal: Goal) -> GoalAnswer {
    let question = Question { goal: Some(goal), seed: 1, ..Question::default() };
    predict(run, &question, "1").expect("an answer").goal.expect("a goal")
}

/// A disk that takes 5 ms of each request, for the server and perhaps a database on its host.
fn stopped_by_a_disk(with_database: bool) -> Run {
    let disk = Identity::Disk { name: "sda".into(), on: None };
    let shown = |identity, demand_us, capacity| Shown { identity, demand_us, capacity, bits_per_s: None };
    let mut all = vec![shown(disk.clone(), 5e3, 1.0), cpu(500.0, 2.0)];
    if with_database {
        all.push(shown(Identity::Processes(database()), 100.0, 2.0));
    }
    let stations = [queue(1, Time::Constant(5e3)), queue(2, Time::Constant(500.0))];
    let stops = stops(ResourceKind::Disk, disk, None);
    sweep(&system(NONE, MANY, &[], &stations), &[1, 2, 4, 8], &all, &stops)
}

#[test]
fn added_servers_bring_no_disk_that_other_tiers_use_too() {
    let more = [Change::AddServer { name: None, servers: 1 }];
    let is_told = |of: &Caution| matches!(of, Caution::SharedDevices { .. });
    for (with_database, expected) in [(true, 200.0), (false, 400.0)] {
        let run = stopped_by_a_disk(with_database);
        let found = predicted(&run, &more, 8);
        let max = found.after.throughput_max_per_s.value;
        assert!((max / expected - 1.0).abs() < 0.02, "{expected}: {max}");
        assert_eq!(found.cautions.iter().any(is_told), with_database, "{:?}", found.cautions);
        let goal = Goal { text: "throughput>=300".into(), value: 300.0, ..Goal::default() };
        let options = answered(&run, goal).options;
        let adds = options.iter().any(|option| matches!(option.change, Change::AddServer { .. }));
        assert_eq!(adds, !with_database, "{options:?}");
    }
    let named = Caution::SharedDevices { demands: vec!["sda.disk".into()] };
    assert!(predicted(&stopped_by_a_disk(true), &more, 8).cautions.contains(&named));
}

#[test]
fn servers_that_a_goal_proposes_share_devices_as_those_that_were_asked_for_do() {
    let shown = |identity, demand_us, capacity| Shown { identity, demand_us, capacity, bits_per_s: None };
    let disk = Identity::Disk { name: "sda".into(), on: None };
    let all = [shown(disk, 1e3, 1.0), cpu(5e3, 2.0), shown(Identity::Processes(database()), 100.0, 2.0)];
    let stations = [queue(2, Time::Constant(5e3)), queue(1, Time::Constant(1e3))];
    let stops = stops(ResourceKind::Cpu, Identity::Processes(app()), None);
    let run = sweep(&system(NONE, MANY, &[], &stations), &[1, 2, 4, 8], &all, &stops);
    let goal = Goal { text: "throughput>=600".into(), value: 600.0, ..Goal::default() };
    let question = Question { goal: Some(goal), seed: 1, ..Question::default() };
    let found = predict(&run, &question, "1").expect("an answer");
    let options = &found.goal.as_ref().expect("a goal").options;
    assert!(options.iter().any(|option| matches!(option.change, Change::AddServer { .. })), "{options:?}");
    let named = Caution::SharedDevices { demands: vec!["sda.disk".into()] };
    assert!(found.cautions.contains(&named), "{:?}", found.cautions);
}

/// By hand, of constant times: 100 ms on four processors, 10 ms on one thread and 200 elsewhere have an N* of 12. With 60 % less
/// work on the processors both stop the server at 100 requests a second, and N* is 24; with 90 % less it is 21.
#[test]
fn a_goal_for_users_is_reached_by_less_work_where_still_less_would_miss_it() {
    let stations = [queue(4, Time::Constant(1e5)), queue(1, Time::Constant(1e4)), delay(2e5)];
    let of = |identity, capacity| Shown { identity, demand_us: 1e4, capacity, bits_per_s: None };
    let thread = [of(Identity::Thread(database()), 1.0), of(Identity::Processes(database()), 4.0)];
    let shown = [vec![cpu(1e5, 4.0)], thread.to_vec()].concat();
    let stops = stops(ResourceKind::Cpu, Identity::Processes(app()), None);
    let run = sweep(&system(NONE, MANY, &[], &stations), &[1, 2, 4, 8, 12, 13, 16, 32], &shown, &stops);
    let least = predicted(&run, &[demand("app.cpu", 0.1)], 1).after.users_at_saturation.expect("N*");
    assert!(least.value < 24.0, "{least:?}");
    let figure = GoalFigure::Users;
    let found = answered(&run, Goal { text: "users>=24".into(), figure, value: 24.0, ..Goal::default() });
    assert!(!found.reached, "{found:?}");
    let less = found.options.iter().find_map(|option| match &option.change {
        Change::Demand { of, factor } if of == "app.cpu" => Some((*factor, option.figure.value)),
        _ => None,
    });
    let (factor, users) = less.expect("less work");
    assert!((0.3..0.5).contains(&factor) && users >= 24.0, "{found:?}");
}

#[test]
fn calls_cannot_be_shorter_by_more_than_they_take() {
    let case = computing_pool();
    let run = sweep(&case.system, &case.users, &case.shown, &case.stops);
    let shorter = |by_us: f64| {
        let changes = vec![Change::UpstreamDelay { name: "db".into(), added_us: -by_us }];
        predict(&run, &Question { changes, seed: 1, ..Question::default() }, "1")
    };
    assert!(shorter(1e4).is_ok() && shorter(-5e6).is_ok());
    let refusal = shorter(5e6).expect_err("5 s less of 30 ms");
    assert!(refusal.is_of_question());
    let Refusal::ShorterThanCalls { name, shorter_us, at_most_us } = &refusal else { panic!("{refusal:?}") };
    assert!(name == "db" && (shorter_us / 5e6 - 1.0).abs() < 1e-9, "{refusal:?}");
    assert!((2.5e4..3.5e4).contains(at_most_us), "{refusal:?}");
    assert!(shorter(at_most_us * 0.99).is_ok(), "what is drawn may have a little less");
}

#[test]
fn several_changes_that_promise_more_than_was_ever_tried_say_so() {
    let case = sleeping_pool();
    let run = sweep(&case.system, &case.users, &case.shown, &case.stops);
    let is_far = |of: &Caution| matches!(of, Caution::FarBeyond { changes: 2, times } if *times > 4.0);
    let say_so = |changes: &[Change]| predicted(&run, changes, 8).cautions.iter().any(is_far);
    assert!(say_so(&[workers(16), demand("app.pool", 0.5)]), "eight times");
    assert!(!say_so(&[workers(6), demand("app.pool", 0.5)]), "three times");
    assert!(!say_so(&[workers(64)]), "one change");
}

/// Of an edited file: nobody, or more than can be counted up to.
#[test]
fn numbers_of_users_and_places_that_no_run_has_are_not_known() {
    let case = sleeping_pool();
    let run = sweep(&case.system, &case.users, &case.shown, &case.stops);
    for number in [0, u32::MAX] {
        let mut edited = run.clone();
        edited.verdict.bottleneck.at_a_time = Some(number);
        edited.steps.last_mut().expect("a step").users = number;
        let found = predicted(&edited, &[], 8);
        assert_eq!((found.model.places, found.model.steps), (None, 5), "{number}");
        assert!(found.curve.iter().all(|point| point.throughput_per_s.value > 0.0), "{:?}", found.curve);
        let goal = Goal { text: "throughput>=1000".into(), value: 1_000.0, ..Goal::default() };
        assert!(!answered(&edited, goal).reached, "{number}");
    }
}

/// How far p95 and p99 are from what was predicted, where they were.
fn tail_errors(point: &CurvePoint, measured: &Seen) -> [Option<f64>; 2] {
    [(point.p95_us, 0.95), (point.p99_us, 0.99)]
        .map(|(predicted, share)| Some(predicted?.value / measured.quantile_us(share) - 1.0))
}

/// The rows that `docs/predict.md` shows. X is compared with half the users of N*, with N*, and with twice as many.
#[test]
fn changed_systems_do_what_was_predicted() {
    let cases = [sleeping_pool(), computing_pool(), processors(), one_thread(), quota(), link(), lock()];
    let (mut held, mut rows, mut wrong) = (0, 0, Vec::new());
    let (mut tails, mut thinking) = ([Vec::<f64>::new(), Vec::new()], [Vec::<f64>::new(), Vec::new()]);
    for case in &cases {
        let run = sweep(&case.system, &case.users, &case.shown, &case.stops);
        for (change, changes, system) in &case.changes {
            let first = predicted(&run, changes, 1);
            let near = first.after.users_at_saturation.expect("N*").value as u32;
            let thinks = changes.iter().any(|change| matches!(change, Change::Think { .. }));
            let tails = if thinks { &mut thinking } else { &mut tails };
            let mut worst = 0.0f64;
            for users in [near.div_ceil(2), near, near * 2] {
                let found = predicted(&run, changes, users);
                let point = found.curve.iter().find(|point| point.users == users).expect("asked");
                let measured = system.run(users, 99);
                worst = worst.max((point.throughput_per_s.value / measured.throughput_per_s - 1.0).abs());
                tails.iter_mut().zip(tail_errors(point, &measured)).for_each(|(all, one)| all.extend(one));
            }
            let measured_max = system.run(near * 4, 5).throughput_per_s;
            let users = users_at_saturation(system, measured_max, near);
            let n = first.after.users_at_saturation.expect("N*");
            let holds = n.ci[0] <= f64::from(users) && f64::from(users) <= n.ci[1];
            let max = first.after.throughput_max_per_s;
            println!(
                "| {} | {change} | {:.0} ({:.0}–{:.0}) | {:.0} | {:.0} ({:.0}–{:.0}) | {users} | {:.1} % |",
                case.name,
                max.value,
                max.ci[0],
                max.ci[1],
                measured_max,
                n.value,
                n.ci[0],
                n.ci[1],
                worst * 100.0
            );
            (rows, held) = (rows + 1, held + u32::from(holds));
            if worst > 0.10 {
                wrong.push((case.name, change, worst));
            }
        }
    }
    for (name, errors) in ["p95", "p99"].into_iter().zip(&tails) {
        println!("{name}, where it is predicted: {errors:.2?}");
        let near = errors.iter().all(|error: &f64| error.abs() <= 0.25);
        assert!(errors.len() > 20 && near, "{name}: {errors:?}");
    }
    for ((name, most), errors) in [("p95", 0.25), ("p99", 0.35)].into_iter().zip(&thinking) {
        println!("{name} with another think time: {errors:.2?}");
        let near = errors.iter().all(|error: &f64| error.abs() <= most);
        assert!(errors.len() >= 9 && near, "{name} with another think time: {errors:?}");
    }
    assert!(rows >= 12 && wrong.is_empty(), "{wrong:?}");
    assert!(f64::from(held) >= 0.9 * f64::from(rows), "N* within its interval {held} times of {rows}");
}
