//! Models as a whole: what they promise for any run.

use proptest::prelude::*;

use super::change::{Change, demands, scale};
use super::model::{Model, Slow};
use super::network::{Rates, served_per_s};
use super::parts::{DevicePart, Figure, HostPart, Parts, Point, TierPart};
use super::slowdown::{self, Slowdown, Slowed};
use super::solved::irregularity;
use crate::counters::Role;
use crate::run::{Identity, Processes, ResourceKind};

fn figure(value: f64) -> Figure {
    Figure { value, error: 0.01 }
}

fn tier(name: &str, role: Role, cpu_us: f64, cpus: f64) -> TierPart {
    let of = Processes { role, name: name.into(), pid: Some(1), processes: 1, on: None };
    let shown = Identity::Processes(of.clone());
    TierPart { of, shown, cpu_us: figure(cpu_us), cpus, quota: None, threads: None, busy: 0.95 }
}

/// Two tiers, a link and a host, of which `kind` stops the server at this throughput.
pub(super) fn parts(
    kind: ResourceKind,
    cpu_us: f64,
    cpus: u32,
    max_per_s: f64,
    alone_us: f64,
    at: u32,
) -> Parts {
    let server = tier("app", Role::Server, cpu_us, f64::from(cpus));
    let link = Identity::Link { name: "eth0".into(), on: None };
    let holder = match kind {
        ResourceKind::Network => link.clone(),
        ResourceKind::SingleThread => Identity::Thread(server.of.clone()),
        _ => Identity::Processes(server.of.clone()),
    };
    Parts {
        think_us: 5_000.0,
        alone_us: figure(alone_us),
        throughput_max_per_s: figure(max_per_s),
        points: vec![Point { users: 1, throughput_per_s: figure(1e6 / (alone_us + 5_000.0)) }],
        tiers: vec![server, tier("db", Role::Downstream, cpu_us / 3.0, 2.0)],
        devices: vec![DevicePart {
            identity: link,
            kind: ResourceKind::Network,
            busy_us: figure(50.0),
            bits_per_s: Some(1e9),
            busy: 0.1,
        }],
        hosts: vec![HostPart { on: None, cpu_us: figure(2.0 * cpu_us), cores: 4.0 }],
        kinds: Vec::new(),
        kind,
        holder: Some(holder),
        at_a_time: Some(at),
        behind: vec!["db".into()],
    }
}

fn any_parts() -> impl Strategy<Value = Parts> {
    let kinds = prop::sample::select(vec![
        ResourceKind::Cpu,
        ResourceKind::SingleThread,
        ResourceKind::Network,
        ResourceKind::WorkerPool,
        ResourceKind::Lock,
        ResourceKind::RateLimit,
    ]);
    let sizes = (10.0..5_000.0, 1..9u32, 10.0..20_000.0, 100.0..100_000.0, 1..40u32);
    (kinds, sizes).prop_map(|(kind, (cpu_us, cpus, max, alone_us, at))| {
        let at = if kind == ResourceKind::Lock { 1 } else { at };
        parts(kind, cpu_us, cpus, max, alone_us, at)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// However irregular times are, more work is never done sooner, and what is less in the way never later.
    #[test]
    fn more_demand_never_gives_more_throughput(
        parts in any_parts(), irregularity in 0.0..=1.0f64, factor in 1.0..4.0f64, users in 1..3_000u32,
    ) {
        let model = Model { irregularity, ..Model::of(&parts) };
        let before = model.solved();
        for demand in demands(&model) {
            let mut more = model.clone();
            scale(&mut more, &demand, factor).expect("its own demand");
            let after = more.solved();
            let (one, other) = (before.throughput_per_s(users), after.throughput_per_s(users));
            prop_assert!(other <= one * (1.0 + 1e-6), "{demand} times {factor}: {one} then {other}");
            prop_assert!(after.limit_per_s <= before.limit_per_s * (1.0 + 1e-9));
        }
        let mut more = model.clone();
        Change::AddServer { name: None, servers: 1 }.make(&mut more, &parts).expect("a server");
        prop_assert!(more.solved().throughput_per_s(users) >= before.throughput_per_s(users) * (1.0 - 1e-6));
    }

    /// The model meets what it was calibrated on, grows with users, and keeps to both asymptotes.
    #[test]
    fn the_model_meets_the_run(parts in any_parts(), irregularity in 0.0..=1.0f64) {
        let model = Model { irregularity, ..Model::of(&parts) };
        let solved = model.solved();
        let max = parts.throughput_max_per_s.value;
        prop_assert!((solved.limit_per_s / max - 1.0).abs() < 1e-3, "{} is not {max}", solved.limit_per_s);
        prop_assert!(solved.response_us(1) >= parts.alone_us.value * (1.0 - 1e-6));
        let curve: Vec<f64> = (0..14).map(|power| solved.throughput_per_s(1 << power)).collect();
        prop_assert!(curve.windows(2).all(|pair| pair[1] >= pair[0] * (1.0 - 1e-6)), "{curve:?}");
        prop_assert!(curve.iter().all(|x| *x <= max * (1.0 + 1e-3)));
    }
}

fn any_slowdown() -> impl Strategy<Value = Slowdown> {
    (0.0..50.0f64, 1e-4..1.0f64, prop::sample::select(vec![0.0, 0.5, 1.0, 2.0]))
        .prop_map(|(onset, growth, power)| Slowdown { onset, growth, power })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// A bottleneck that slows down serves no more than it did without, and less the more a request takes there.
    #[test]
    fn what_slows_down_is_never_faster(
        parts in any_parts(), by in any_slowdown(), irregularity in 0.0..=1.0f64, users in 1..3_000u32,
        factor in 1.0..4.0f64,
    ) {
        let plain = Model { irregularity, ..Model::of(&parts) };
        let at = plain.bottleneck(&parts).expect("one of them");
        let model = Model { slow: Some(Slow { at, by }), ..plain.clone() };
        let found = model.solved().throughput_per_s(users);
        prop_assert!(found > 0.0 && found <= plain.solved().throughput_per_s(users) * (1.0 + 1e-4));
        let own = match parts.kind {
            ResourceKind::WorkerPool => "app.pool",
            ResourceKind::Lock => "app.lock",
            ResourceKind::Network => "eth0.network",
            ResourceKind::RateLimit => return Ok(()),
            _ => "app.cpu",
        };
        let mut more = model.clone();
        scale(&mut more, own, factor).expect("its own demand");
        let then = more.solved().throughput_per_s(users);
        prop_assert!(then <= found * (1.0 + 1e-4), "{own} times {factor}: {found} then {then}");
    }
}

/// Throughput of a lock that is held for 2 % longer for each that waits, with users who are elsewhere for another 10 ms: exact
/// for exponential times.
fn falling_lock_per_s(users: u32, think_us: f64, held_us: f64) -> f64 {
    let by = Slowdown { onset: 0.0, growth: 0.02, power: 1.0 };
    let rates = Rates::of_servers(held_us, 1.0, 128).slowed(Slowed { by, servers: 1.0 });
    served_per_s(Some(&rates), think_us + 10_000.0, users)
}

/// A sweep of it: 10 ms, users who think for 100 ms.
fn falling_lock() -> Parts {
    let per_s = |users| falling_lock_per_s(users, 100_000.0, 10_000.0);
    let users = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64];
    let most = users.map(per_s).into_iter().fold(0.0, f64::max);
    let mut parts = parts(ResourceKind::Lock, 10.0, 2, most, 20_000.0, 1);
    parts.think_us = 100_000.0;
    parts.devices.clear();
    parts.hosts.clear();
    parts.points = users.map(|users| Point { users, throughput_per_s: figure(per_s(users)) }).to_vec();
    parts
}

/// The exact N*, and the exact most throughput.
fn saturation(per_s: impl Fn(u32) -> f64) -> (u32, f64) {
    let most = (1..200).map(&per_s).fold(0.0, f64::max);
    (1..200).find(|users| per_s(*users) >= 0.95 * most).map_or((0, most), |users| (users, most))
}

#[test]
fn throughput_falls_as_it_fell_and_as_it_would() {
    let parts = falling_lock();
    let mut model = slowdown::model(&parts, slowdown::shape(&parts));
    model.irregularity = irregularity(&model, &parts).mean();
    let slow = model.slow.expect("a slowdown").by;
    assert!((slow.factor(40.0) / 1.8 - 1.0).abs() < 0.1, "{slow:?}");
    let cases = [
        (None, 1e5, 1e4),
        (Some(Change::Think { think_us: 3e5 }), 3e5, 1e4),
        (Some(Change::Demand { of: "app.lock".into(), factor: 0.5 }), 1e5, 5e3),
    ];
    for (change, think_us, held_us) in cases {
        let mut changed = model.clone();
        change.iter().for_each(|change| change.make(&mut changed, &parts).expect("a change"));
        let (solved, exact) = (changed.solved(), |users| falling_lock_per_s(users, think_us, held_us));
        for users in [1, 4, 8, 12, 16, 24, 32, 64, 96] {
            let (found, exact) = (solved.throughput_per_s(users), exact(users));
            assert!((found / exact - 1.0).abs() < 0.02, "{change:?}, {users} users: {found} is not {exact}");
        }
        let (users, most) = saturation(exact);
        let found = solved.users_at_saturation().expect("N*");
        assert!(found.abs_diff(users) <= 1, "{change:?}: {found} is not {users}");
        assert!((solved.throughput_max_per_s() / most - 1.0).abs() < 0.02, "{change:?}");
    }
}

/// Processors that compute for 10 ms, 2 % longer for each that waits, with users who think for 100 ms and are elsewhere for 5:
/// exact for exponential times.
fn falling_processors_per_s(users: u32, cpus: f64) -> f64 {
    let by = Slowdown { onset: 0.0, growth: 0.02, power: 1.0 };
    let rates = Rates::of_servers(10_000.0, cpus, 128).slowed(Slowed { by, servers: cpus });
    served_per_s(Some(&rates), 105_000.0, users)
}

/// Two processors were measured; four of them are slowed down by those who wait then.
#[test]
fn processors_that_slow_down_are_predicted_with_more_of_them() {
    let users = [1, 4, 8, 16, 20, 24, 32, 48, 64, 96];
    let per_s = |users| falling_processors_per_s(users, 2.0);
    let most = users.map(per_s).into_iter().fold(0.0, f64::max);
    let mut parts = parts(ResourceKind::Cpu, 10_000.0, 2, most, 15_000.0, 1);
    parts.think_us = 100_000.0;
    parts.tiers.truncate(1);
    parts.devices.clear();
    parts.hosts.clear();
    parts.points = users.map(|users| Point { users, throughput_per_s: figure(per_s(users)) }).to_vec();
    let mut model = slowdown::model(&parts, slowdown::shape(&parts));
    model.irregularity = irregularity(&model, &parts).mean();
    for cpus in [2.0, 4.0] {
        let mut changed = model.clone();
        Change::Cpus { name: "app".into(), cpus }.make(&mut changed, &parts).expect("a tier");
        let solved = changed.solved();
        for users in [1, 4, 16, 24, 32, 48, 96, 128] {
            let (found, exact) = (solved.throughput_per_s(users), falling_processors_per_s(users, cpus));
            let error = found / exact - 1.0;
            assert!(error.abs() < 0.02, "{cpus} processors, {users} users: {found} is not {exact}");
        }
    }
}

/// Two processors that compute for 20 ms, longer by a share as soon as a request waits, with users who are elsewhere for another
/// millisecond: exact for exponential times.
fn hindered_processors_per_s(users: u32, think_us: f64, longer: f64) -> f64 {
    let by = Slowdown { onset: 0.0, growth: longer, power: 0.0 };
    let rates = Rates::of_servers(20_000.0, 2.0, 128).slowed(Slowed { by, servers: 2.0 });
    served_per_s(Some(&rates), think_us + 1_000.0, users)
}

/// A sweep of them by users who do not think: the most is where nobody waits.
fn hindered_processors(longer: f64) -> Parts {
    let per_s = |users| hindered_processors_per_s(users, 0.0, longer);
    let mut parts = parts(ResourceKind::Cpu, 20_000.0, 2, per_s(2), 21_000.0, 1);
    parts.think_us = 0.0;
    parts.tiers.truncate(1);
    parts.devices.clear();
    parts.hosts.clear();
    parts.points =
        [1, 2, 3, 4, 8, 16].map(|users| Point { users, throughput_per_s: figure(per_s(users)) }).to_vec();
    parts
}

/// They serve 87 requests a second while users queue for them, and not the 95 of two users who never do.
#[test]
fn a_bottleneck_serves_what_it_did_while_users_queued() {
    let parts = hindered_processors(0.15);
    let mut model = slowdown::model(&parts, slowdown::shape(&parts));
    model.irregularity = irregularity(&model, &parts).mean();
    let solved = model.solved();
    for point in parts.points.iter().filter(|point| point.users > 1) {
        let (found, measured) = (solved.throughput_per_s(point.users), point.throughput_per_s.value);
        assert!((found / measured - 1.0).abs() < 0.01, "{} users: {found} is not {measured}", point.users);
    }
    assert_eq!(solved.users_at_saturation(), Some(2));
    Change::Think { think_us: 1e5 }.make(&mut model, &parts).expect("users who think");
    let solved = model.solved();
    for users in [64, 200, 3_000] {
        let (found, exact) = (solved.throughput_per_s(users), hindered_processors_per_s(users, 1e5, 0.15));
        assert!((found / exact - 1.0).abs() < 0.01, "{users} users: {found} is not {exact}");
    }
    assert!((solved.throughput_max_per_s() / 87.0 - 1.0).abs() < 0.03, "{}", solved.throughput_max_per_s());
}

/// Load and server share two processors, which allow a little less than the server's own work would: users wait for it all the
/// same, and it serves 97 requests a second of 18 ms while they do.
#[test]
fn a_bottleneck_on_a_full_host_serves_what_it_did_while_users_queued() {
    let mut parts = hindered_processors(0.15);
    parts.hosts = vec![HostPart { on: None, cpu_us: figure(20_500.0), cores: 2.0 }];
    let mut model = slowdown::model(&parts, slowdown::shape(&parts));
    model.irregularity = irregularity(&model, &parts).mean();
    scale(&mut model, "app.cpu", 0.9).expect("its own demand");
    let solved = model.solved();
    assert_eq!(solved.users_at_saturation(), Some(2), "with two users nobody waits");
    let limits = model.limits_while_queued();
    let [first, next, ..] = limits.as_slice() else { panic!("{limits:?}") };
    assert!(matches!(first.identity, Some(Identity::Processes(_))), "{first:?}");
    assert!((first.per_s / 96.6 - 1.0).abs() < 0.02, "{first:?}");
    assert!(matches!(next.identity, Some(Identity::Host { .. })) && next.per_s > 105.0, "{next:?}");
    Change::Think { think_us: 1e5 }.make(&mut model, &parts).expect("users who think");
    for solved in [solved, model.solved()] {
        for users in [64, 4_999, 5_002, 100_000] {
            let found = solved.throughput_per_s(users);
            assert!((found / 96.6 - 1.0).abs() < 0.02, "{users} users: {found}");
        }
    }
}

/// With users who think for a month no number that is tried keeps the processors busy.
#[test]
fn users_who_hardly_ever_come_do_not_saturate_a_bottleneck() {
    let parts = hindered_processors(0.15);
    let mut model = slowdown::model(&parts, slowdown::shape(&parts));
    Change::Think { think_us: 2.6e12 }.make(&mut model, &parts).expect("users who think");
    let solved = model.solved();
    assert_eq!(solved.users_at_saturation(), None);
    assert!((solved.throughput_max_per_s() / 87.0 - 1.0).abs() < 0.03, "{}", solved.throughput_max_per_s());
}

/// A fall that may be chance is none: the maximum is the mean of the plateau already.
#[test]
fn a_fall_that_is_not_clear_changes_nothing() {
    let mut parts = hindered_processors(0.15);
    assert!(slowdown::fell(&parts).is_some() && slowdown::shape(&parts).is_some());
    parts.points.iter_mut().for_each(|point| point.throughput_per_s.error = 0.1);
    assert!(slowdown::fell(&parts).is_none() && slowdown::shape(&parts).is_none());
    let parts = hindered_processors(0.04);
    assert!(slowdown::fell(&parts).is_none() && slowdown::shape(&parts).is_none());
    let mut parts = hindered_processors(0.3);
    assert!(slowdown::shape(&parts).is_some());
    parts.points.iter_mut().for_each(|point| point.throughput_per_s.error = 0.2);
    assert!(slowdown::fell(&parts).is_some() && slowdown::shape(&parts).is_none(), "far, and not clear");
}

#[test]
fn throughput_that_does_not_fall_has_no_slowdown() {
    let mut parts = falling_lock();
    parts.points.truncate(6);
    assert!(slowdown::fell(&parts).is_none() && slowdown::shape(&parts).is_none());
    parts.points.clear();
    assert!(slowdown::shape(&parts).is_none());
}

/// Two servers, each with half of those who wait, are twice as fast with twice as many.
#[test]
fn added_servers_share_those_who_wait() {
    let parts = falling_lock();
    let model = slowdown::model(&parts, slowdown::shape(&parts));
    let mut more = model.clone();
    Change::AddServer { name: None, servers: 1 }.make(&mut more, &parts).expect("a server");
    let (before, after) = (model.slow.expect("a slowdown").by, more.slow.expect("a slowdown").by);
    for waiting in [5.0, 20.0, 60.0] {
        assert!((after.factor(2.0 * waiting) / before.factor(waiting) - 1.0).abs() < 1e-9);
    }
}

/// By hand: a lock held for 1 of 4 ms, constant times, users who think for 5 ms. X(N) = min(N / 9 ms, 1 / 1 ms).
#[test]
fn constant_times_follow_the_asymptotes() {
    let mut parts = parts(ResourceKind::Lock, 100.0, 2, 1_000.0, 4_000.0, 1);
    parts.devices.clear();
    let model = Model { irregularity: 0.0, ..Model::of(&parts) };
    let solved = model.solved();
    for (users, expected) in [(1, 111.1), (5, 555.6), (9, 1_000.0), (20, 1_000.0)] {
        let found = solved.throughput_per_s(users);
        assert!((found / expected - 1.0).abs() < 1e-3, "{users}: {found}");
    }
    assert_eq!(solved.users_at_saturation(), Some(9));
    // N / 9 ms is 778 per second with 7 users, and 667 with 6.
    let sooner = Model { saturated: 0.75, ..model };
    assert_eq!(sooner.solved().users_at_saturation(), Some(7));
}

/// Sixteen workers where four were the limit: processors are next, at 2 / 500 us.
#[test]
fn what_comes_next_is_what_was_measured_of_it() {
    let mut parts = parts(ResourceKind::WorkerPool, 500.0, 2, 200.0, 20_000.0, 4);
    parts.hosts.clear();
    let mut model = Model::of(&parts);
    let places = |model: &Model| model.limits()[0].clone();
    assert_eq!(places(&model).kind, ResourceKind::WorkerPool);
    Change::Workers { name: "app".into(), workers: 16 }.make(&mut model, &parts).expect("a pool");
    assert!((places(&model).per_s / 800.0 - 1.0).abs() < 0.02, "{:?}", places(&model));
    Change::Workers { name: "app".into(), workers: 200 }.make(&mut model, &parts).expect("a pool");
    let limit = places(&model);
    assert!((limit.per_s / 4_000.0 - 1.0).abs() < 0.02, "{limit:?}");
}

/// What stops the system and what comes next, in hundreds of requests a second.
fn stops(model: &Model) -> Vec<(ResourceKind, f64)> {
    let hundreds = |per_s: f64| (per_s / 100.0).round();
    model.limits_while_queued().iter().take(2).map(|limit| (limit.kind, hundreds(limit.per_s))).collect()
}

/// Two hundred of these workers wait for the processors, and by themselves would serve 200 / 20 ms.
#[test]
fn workers_who_wait_for_full_processors_are_not_what_stops_them() {
    let mut parts = parts(ResourceKind::WorkerPool, 500.0, 2, 200.0, 20_000.0, 4);
    parts.hosts.clear();
    let mut model = Model::of(&parts);
    for (workers, expected) in [
        (4, [(ResourceKind::WorkerPool, 2.0), (ResourceKind::Cpu, 40.0)]),
        (16, [(ResourceKind::WorkerPool, 8.0), (ResourceKind::Cpu, 40.0)]),
        (200, [(ResourceKind::Cpu, 40.0), (ResourceKind::WorkerPool, 100.0)]),
    ] {
        Change::Workers { name: "app".into(), workers }.make(&mut model, &parts).expect("a pool");
        assert_eq!(stops(&model), expected, "{workers} workers");
    }
}

#[test]
fn what_the_run_does_not_know_is_refused_by_name() {
    use super::Refusal;
    let pool = parts(ResourceKind::WorkerPool, 500.0, 2, 200.0, 20_000.0, 4);
    let mut model = Model::of(&pool);
    let mut make = |change: Change| change.make(&mut model, &pool);
    let known = vec!["app".to_owned(), "db".to_owned()];
    let unknown = |name: &str, known: &[String]| {
        Err(Refusal::UnknownName { name: name.to_owned(), known: known.to_vec() })
    };
    assert_eq!(make(Change::Cpus { name: "web".into(), cpus: 4.0 }), unknown("web", &known));
    assert_eq!(make(Change::Workers { name: "web".into(), workers: 4 }), unknown("web", &known));
    let workers = make(Change::Workers { name: "db".into(), workers: 4 });
    assert_eq!(workers, Err(Refusal::WorkersUnknown { name: "db".into() }));
    let delay = make(Change::UpstreamDelay { name: "web".into(), added_us: 1.0 });
    assert_eq!(delay, unknown("web", &known[1..]));
    let lock = parts(ResourceKind::Lock, 100.0, 2, 1_000.0, 4_000.0, 1);
    let mut model = Model::of(&lock);
    let workers = Change::Workers { name: "app".into(), workers: 4 }.make(&mut model, &lock);
    assert_eq!(workers, Err(Refusal::ALock { name: "app".into() }));
}
