//! Servers that earlier rules misjudged, each by what was wrong.

use analysis::conclude::{Conclusion, Context};
use analysis::counters::{Role, ThreadState};
use analysis::resources::{GroupKey, Happened, Meanwhile};
use analysis::run::{Doubt, Pauses, ResourceKind, Step};
use analysis::tell_apart::{Pair, Trial};
use analysis::ticks::ErrorKind;

use super::lab::{Lab, Observed, Platter, Sure, Tier, conclude, conclude_steps, says, server, sure, sweep};

fn kind(found: &Conclusion) -> ResourceKind {
    found.verdict.bottleneck.kind
}

fn holder(found: &Conclusion) -> &str {
    found.verdict.bottleneck.holder.as_str()
}

/// Eight threads that use about one core together, each for itself.
fn one_core_by_chance(name: &'static str, demand_us: f64) -> Tier {
    server(name).demand_us(demand_us).threads(8).state(ThreadState::Futex).independent_threads()
}

#[test]
fn a_mutex_on_a_host_that_is_also_busy_is_not_a_single_thread() {
    let tier = one_core_by_chance("app", 4_900.0);
    let found = sweep().tier(tier).pool(1, 5_000.0).interference(1.2).conclude();
    assert_ne!(kind(&found), ResourceKind::SingleThread, "{found:#?}");
    assert!(found.verdict.throughput_max_per_s > 185.0, "about one core is used: {found:#?}");
}

#[test]
fn threads_that_use_one_core_by_chance_are_not_a_single_thread() {
    for (workers, demand_us) in [(4, 1_200.0), (4, 1_300.0), (8, 640.0)] {
        let found = sweep().tier(one_core_by_chance("app", demand_us)).pool(workers, 5_000.0).conclude();
        assert_ne!(kind(&found), ResourceKind::SingleThread, "{workers} workers: {found:#?}");
    }
    let in_turn = sweep().tier(server("python3").demand_us(500.0).taking_turns(8)).conclude();
    assert_eq!(kind(&in_turn), ResourceKind::SingleThread, "{in_turn:#?}");
    assert!(says(&in_turn, "running or waiting to run in 100"), "{in_turn:#?}");
}

/// Others keep half of the processors busy at every step.
fn beside_others(lab: Lab) -> Conclusion {
    lab.interference(2.0).conclude()
}

#[test]
fn a_pool_on_a_half_busy_host_is_the_pool() {
    let found = beside_others(sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0));
    assert_eq!(kind(&found), ResourceKind::WorkerPool, "{found:#?}");
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
}

#[test]
fn a_lock_on_a_half_busy_host_is_the_lock() {
    let found = beside_others(sweep().tier(server("app").demand_us(100.0).threads(8)).pool(1, 5_000.0));
    assert_eq!(kind(&found), ResourceKind::Lock, "{found:#?}");
}

#[test]
fn a_pool_whose_server_keeps_a_processor_half_busy_is_the_pool() {
    let found = sweep().tier(server("app").demand_us(950.0).threads(4)).pool(4, 5_000.0).conclude();
    let of = |step: &Step| step.resources.iter().map(|seen| seen.utilization).fold(0.0, f64::max);
    let busiest = found.steps.iter().map(of).fold(0.0, f64::max);
    assert!((0.2..0.8).contains(&busiest), "{busiest}");
    assert_eq!(kind(&found), ResourceKind::WorkerPool, "{found:#?}");
}

#[test]
fn a_lock_held_for_longer_the_more_wait_is_the_lock() {
    let found =
        sweep().tier(server("app").demand_us(100.0).threads(8)).pool(1, 5_000.0).falling(0.01).conclude();
    assert_eq!(kind(&found), ResourceKind::Lock, "{found:#?}");
    assert!(says(&found, "Throughput fell from 200 req/s"), "{found:#?}");
    assert!(says(&found, "with 64 users while nothing is busy"), "{found:#?}");
}

/// A disk that others filled while a server slept left nothing to say of a throughput that fell.
#[test]
fn a_disk_that_others_fill_hides_no_lock_whose_throughput_falls() {
    let found = sweep()
        .tier(server("app").demand_us(100.0).threads(8))
        .pool(1, 5_000.0)
        .falling(0.01)
        .disk(Platter { background: 0.97, ..Platter::default() })
        .conclude();
    assert_eq!(kind(&found), ResourceKind::Lock, "{found:#?}");
}

#[test]
fn a_pool_that_keeps_its_throughput_is_not_a_lock() {
    let found =
        sweep().tier(server("app").demand_us(100.0).threads(8)).pool(4, 5_000.0).falling(0.001).conclude();
    assert_eq!(kind(&found), ResourceKind::WorkerPool, "{found:#?}");
}

/// A lock on one processor that the server keeps two thirds busy, with threads that wait for it now and then.
fn pinned() -> Lab {
    sweep()
        .users(&[1, 8, 16, 32])
        .delay_us(1.0)
        .tier(server("app").demand_us(650.0).threads(8).cpus(&[0]))
        .pool(1, 1_000.0)
}

fn concluded_beside(others_at: &[usize], slower: f64) -> Conclusion {
    let (quiet, crowded) = (pinned().observed(), pinned().interference(4.0 * 0.34).observed());
    let mut steps = quiet;
    for index in others_at {
        steps[*index] = crowded[*index].clone();
        steps[*index].step.throughput_per_s *= slower;
    }
    for sample in steps.iter_mut().flat_map(|step| step.counters.iter_mut().enumerate()) {
        let server = sample.1.processes.iter_mut().filter(|process| process.role == Role::Server);
        server.for_each(|process| process.run_queue_wait_us = 5_000_000 + 75_000 * sample.0 as u64);
    }
    conclude(&steps, &pinned().context)
}

fn blames_others(found: &Conclusion) -> bool {
    found.verdict.inconclusive.iter().any(|why| why.contains("not part of the test"))
}

#[test]
fn others_at_one_step_that_harmed_nothing_leave_the_verdict_alone() {
    let harmless = concluded_beside(&[2], 1.0);
    assert!(!blames_others(&harmless), "{:?}", harmless.verdict.inconclusive);
    let harmful = concluded_beside(&[2], 0.92);
    assert!(blames_others(&harmful), "{:?}", harmful.verdict);
    let everywhere = concluded_beside(&[0, 1, 2, 3], 1.0);
    assert!(blames_others(&everywhere), "without an undisturbed step nobody knows: {:?}", everywhere.verdict);
}

#[test]
fn idle_threads_that_wait_like_those_at_a_lock_are_no_evidence() {
    let idle = server("java").demand_us(100.0).threads(40).state(ThreadState::Futex);
    let found = sweep().tier(idle.clone()).pool(1, 5_000.0).conclude();
    assert_eq!(
        (kind(&found), sure(&found)),
        (ResourceKind::Lock, Sure::Rather),
        "{:?}",
        found.verdict.bottleneck
    );
    assert!(!says(&found, "waited for a lock or a condition"), "{found:#?}");
    let pool = sweep().tier(idle).pool(4, 5_000.0).conclude();
    assert_eq!(kind(&pool), ResourceKind::WorkerPool);
    assert!(!says(&pool, "waited for a lock or a condition"), "{pool:#?}");
}

#[test]
fn threads_that_pile_up_with_the_users_are_evidence_of_a_lock() {
    let piling = server("app").demand_us(100.0).threads(8).state(ThreadState::Futex).thread_per_user();
    let found = sweep().tier(piling).pool(1, 5_000.0).conclude();
    assert_eq!(
        (kind(&found), sure(&found)),
        (ResourceKind::Lock, Sure::Fairly),
        "{:?}",
        found.verdict.bottleneck
    );
    assert!(says(&found, "and 63 with 64 users"), "{found:#?}");
}

/// A server of which one of two threads collects garbage, and which answers nobody for this share of the time.
fn pausing(tier: Tier, share: f64) -> Conclusion {
    pausing_with(tier, share, &[])
}

/// The same where these things went with the stretches in which nobody was answered.
fn pausing_with(tier: Tier, share: f64, meanwhile: &[Meanwhile]) -> Conclusion {
    let lab = sweep().tier(tier).pool(1, 1_000.0);
    let mut steps: Vec<Step> = lab.observed().iter().map(Observed::step_with_usage).collect();
    for step in &mut steps {
        step.measurement.pauses = Pauses { share, count: 12, longest_us: 180_000 };
        step.usage.meanwhile = meanwhile.to_vec();
    }
    conclude_steps(steps, &lab.context)
}

#[test]
fn a_collector_that_stops_the_world_for_a_large_part_of_the_time_is_named() {
    let java = |names| server("java").demand_us(800.0).threads(2).thread_names(names);
    let found = pausing(java(&["GC Thread#0", "http-1"]), 0.4);
    assert_eq!(kind(&found), ResourceKind::GarbageCollection, "{found:#?}");
    assert!(says(&found, "40 % of the time nobody was answered, for up to 180 ms"), "{found:#?}");
    assert!(says(&found, "named `GC Thread#*` used 0.4"), "{found:#?}");
    let short = pausing(java(&["GC Thread#0", "http-1"]), 0.05);
    assert_ne!(kind(&short), ResourceKind::GarbageCollection, "{short:#?}");
    let asleep = pausing(java(&["http-0", "http-1"]), 0.4);
    assert_ne!(kind(&asleep), ResourceKind::GarbageCollection, "{asleep:#?}");
}

/// Its threads may well be busy all the time.
#[test]
fn a_collector_is_not_blamed_for_what_only_a_disk_goes_with() {
    let java = || server("java").demand_us(800.0).threads(2).thread_names(&["GC Thread#0", "http-1"]);
    let disk = Meanwhile { what: Happened::DiskAwaited { on: None, device: Some("vda".into()) }, share: 0.9 };
    let stalled = pausing_with(java(), 0.4, std::slice::from_ref(&disk));
    assert_ne!(kind(&stalled), ResourceKind::GarbageCollection, "{stalled:#?}");
    let of = GroupKey { role: Role::Server, name: "java".into(), on: None };
    let collected = Happened::Collected { of, threads: "GC Thread#*".into() };
    let both = pausing_with(java(), 0.4, &[Meanwhile { what: collected, share: 0.8 }, disk]);
    assert_eq!(kind(&both), ResourceKind::GarbageCollection, "{both:#?}");
}

/// A collector of a single thread that ran nearly all the time was "a thread that is full", 97 %, and no collector.
#[test]
fn a_collector_whose_only_thread_is_full_is_named() {
    let named = |names| pausing(server("java").demand_us(950.0).thread_names(names), 0.95);
    let found = named(&["VM Thread"]);
    assert_eq!(kind(&found), ResourceKind::GarbageCollection, "{found:#?}");
    let other = named(&["http-1"]);
    assert_eq!(kind(&other), ResourceKind::SingleThread, "{other:#?}");
}

#[test]
fn a_runtime_that_works_while_nobody_is_answered_collects() {
    let python = |demand_us| server("python3").demand_us(demand_us).threads(2).independent_threads();
    let found = pausing(python(880.0), 0.4);
    assert_eq!(kind(&found), ResourceKind::GarbageCollection, "{found:#?}");
    let could_have_worked_between = pausing(python(500.0), 0.4);
    assert_ne!(kind(&could_have_worked_between), ResourceKind::GarbageCollection);
}

/// A server that answers in batches leaves gaps between them, and works meanwhile.
#[test]
fn gaps_no_longer_than_a_response_are_no_collector() {
    let lab =
        sweep().tier(server("python3").demand_us(880.0).threads(2).independent_threads()).pool(1, 1_000.0);
    let mut steps = lab.observed();
    for step in steps.iter_mut().map(|observed| &mut observed.step) {
        step.measurement.pauses = Pauses { share: 0.4, count: 12, longest_us: 180_000 };
        step.response_time_us.p50 = 200_000.0;
    }
    let found = conclude(&steps, &lab.context);
    assert_ne!(kind(&found), ResourceKind::GarbageCollection, "{found:#?}");
}

/// Fails requests at the steps from so many users on, by this status.
fn failing(lab: &Lab, from_users: u32, status: u16, change: impl Fn(&mut Step)) -> Conclusion {
    let mut steps = lab.observed();
    let beyond = steps.iter_mut().map(|observed| &mut observed.step).filter(|step| step.users >= from_users);
    for step in beyond {
        step.errors = [(ErrorKind::Status, 4_000)].into();
        step.measurement.unexpected_statuses = [(status, 4_000)].into();
        change(step);
    }
    conclude(&steps, &lab.context)
}

/// Sixteen users got no more throughput than four and nobody was rejected: a full queue may reject the others.
#[test]
fn rejections_that_come_later_than_the_limit_may_be_those_of_a_full_queue() {
    let lab = sweep().tier(server("app").demand_us(50.0).threads(4)).pool(4, 5_000.0);
    let found = failing(&lab, 32, 429, |_| {});
    let others: Vec<ResourceKind> =
        found.verdict.bottleneck.alternatives.iter().map(|other| other.kind).collect();
    assert!(
        kind(&found) != ResourceKind::RateLimit || others.contains(&ResourceKind::WorkerPool),
        "{found:#?}"
    );
    assert_ne!(sure(&found), Sure::Direct, "{found:#?}");
}

/// A limit that rejects at once by another status than 429: no request ever waits, and throughput stops as before a pool.
#[test]
fn throughput_that_stops_where_requests_begin_to_fail_is_not_decided() {
    let lab = sweep().tier(server("api").demand_us(50.0).threads(8)).pool(8, 10_000.0);
    let found = failing(&lab, 12, 503, |step| step.response_time_us.mean = 10_100.0);
    assert!(!found.verdict.is_conclusive(), "{found:#?}");
}

/// A server that serves eight at a time and rejects all others as too many was a limit on the rate, 97 %.
#[test]
fn a_whole_number_in_service_while_others_are_rejected_may_be_that_of_a_pool() {
    let lab = sweep().tier(server("api").demand_us(50.0).threads(8)).pool(8, 10_000.0);
    let taking = |response_us| failing(&lab, 12, 429, |step| step.response_time_us.mean = response_us);
    let eight = taking(10_100.0);
    let others = &eight.verdict.bottleneck.alternatives;
    assert_eq!((kind(&eight), sure(&eight)), (ResourceKind::RateLimit, Sure::Rather), "{eight:#?}");
    assert!(others.iter().any(|other| other.kind == ResourceKind::WorkerPool), "{others:?}");
    assert!(eight.to_tell.is_none(), "users who are rejected do not wait for each other: {eight:#?}");
    let between = taking(10_650.0);
    assert_eq!((kind(&between), sure(&between)), (ResourceKind::RateLimit, Sure::Fairly), "{between:#?}");
}

/// Twelve users and more got a twenty-fifth of the throughput of ten, and errors.
#[test]
fn a_collapse_in_errors_is_no_lock() {
    let lab = sweep().users(&[1, 2, 4, 8, 10, 12, 16, 32]);
    let lab = lab.tier(server("app").demand_us(50.0).threads(8)).delay_us(10_000.0);
    let found = failing(&lab, 12, 500, |step| {
        step.throughput_per_s *= 0.04;
        step.throughput_ci_per_s = step.throughput_ci_per_s.map(|ends| ends.map(|end| 0.04 * end));
        step.completed /= 25;
    });
    assert!(!found.verdict.is_conclusive(), "{found:#?}");
}

/// Users who think are a delay beside the pool, and the delay of a lock fitted better what throughput was with few of them.
#[test]
fn think_time_is_not_taken_for_waits() {
    let mut lab = sweep().tier(server("app").demand_us(50.0).threads(8)).delay_us(300.0).pool(4, 5_000.0);
    lab.context.load.think_time_us = 1_000.0;
    let conclude_thinking = |share: f64| {
        let mut steps = lab.observed();
        for step in steps.iter_mut().map(|observed| &mut observed.step) {
            step.measurement.mean_thinking_users = share * step.throughput_per_s * 1_000.0 / 1e6;
        }
        conclude(&steps, &lab.context)
    };
    let found = conclude_thinking(1.0);
    assert_eq!(kind(&found), ResourceKind::WorkerPool, "{found:#?}");
}

/// A server that lets 100 requests a second through, each of which takes it this long.
fn limited_to_100_per_s(status: u16, response_us: f64) -> Conclusion {
    let lab = sweep().tier(server("api").demand_us(200.0).threads(4)).delay_us(9_000.0).admitted(1);
    let mut steps = lab.observed();
    for step in steps.iter_mut().map(|observed| &mut observed.step).filter(|step| step.users > 1) {
        let rejected = 400;
        let kind = if status == 429 { ErrorKind::Status } else { ErrorKind::Unavailable };
        step.errors = [(kind, rejected)].into();
        step.measurement.unexpected_statuses = [(status, rejected)].into();
        step.response_time_us.mean = response_us;
    }
    conclude(&steps, &lab.context)
}

#[test]
fn requests_beyond_a_rate_that_are_rejected_are_a_rate_limit() {
    let said = limited_to_100_per_s(429, 1_500.0);
    let bottleneck = &said.verdict.bottleneck;
    assert_eq!((bottleneck.kind, sure(&said)), (ResourceKind::RateLimit, Sure::Direct), "{said:#?}");
    assert!(said.verdict.is_conclusive(), "{:?}", said.verdict.inconclusive);
    assert!(says(&said, "as too many requests (429)"), "{said:#?}");
    let inferred = limited_to_100_per_s(503, 1_500.0);
    assert_eq!(kind(&inferred), ResourceKind::RateLimit, "{inferred:#?}");
    assert_ne!(
        kind(&limited_to_100_per_s(503, 9_200.0)),
        ResourceKind::RateLimit,
        "a pool of one is as likely"
    );
}

/// A server that serves one request at a time and rejects all others as too many was a limit on the rate, 97 %.
#[test]
fn one_request_in_service_while_others_are_rejected_may_be_that_of_a_lock() {
    let found = limited_to_100_per_s(429, 9_200.0);
    assert_eq!((kind(&found), sure(&found)), (ResourceKind::RateLimit, Sure::Rather), "{found:#?}");
    let others = &found.verdict.bottleneck.alternatives;
    assert!(others.iter().any(|other| other.kind == ResourceKind::Lock), "{others:?}");
}

/// A loop that keeps its processor busy whatever the load, and saturates with one user.
fn saturated_alone(before_the_load: Option<&Lab>) -> Conclusion {
    let lab = sweep()
        .users(&[1, 2, 4, 8])
        .tier(server("poller").cpus(&[0]).polling())
        .pool(1, 2_000.0)
        .delay_us(1.0);
    let rest = before_the_load.map(Lab::rest).unwrap_or_default();
    conclude(&lab.observed(), &Context { rest, ..lab.context.clone() })
}

#[test]
fn a_server_as_busy_before_the_load_is_not_full_because_of_it() {
    let unknown_rest = saturated_alone(None);
    assert_ne!(sure(&unknown_rest), Sure::Direct, "{unknown_rest:#?}");
    let polls = saturated_alone(Some(&sweep().tier(server("poller").cpus(&[0]).polling())));
    assert!(!matches!(kind(&polls), ResourceKind::Cpu | ResourceKind::SingleThread), "{polls:#?}");
    let rests = saturated_alone(Some(&sweep().tier(server("poller").cpus(&[0]))));
    assert_eq!((kind(&rests), sure(&rests)), (ResourceKind::Cpu, Sure::Direct));
    assert!(says(&rests, "Before the load began it used 0"), "{rests:#?}");
}

/// The verdict where the experiment that tells it from another finds response times longer by this.
fn told_apart(lab: Lab, longer_us: f64) -> Conclusion {
    told_apart_roughly(lab, longer_us, 1.0)
}

/// The same with times that scatter by so many times as much.
fn told_apart_roughly(mut lab: Lab, longer_us: f64, rough: f64) -> Conclusion {
    let plan = conclude(&lab.observed(), &lab.context).to_tell.expect("it could be either");
    let second_us = |noise_us: f64| plan.alone_us + longer_us + rough * noise_us;
    let pair = |noise_us| Pair { first_us: plan.alone_us, second_us: second_us(noise_us) };
    let pairs = [-40.0, 10.0, 50.0, -30.0, 20.0, -10.0].map(pair).to_vec();
    lab.context.told_apart = Some(Trial { plan, pairs });
    conclude(&lab.observed(), &lab.context)
}

/// A lock that an experiment of a few pairs left at 54 % was said to be undecided, though there was time for more.
#[test]
fn an_experiment_is_gone_on_with_where_it_leaves_the_verdict_open() {
    let is_open = |rough: u32| {
        let found = told_apart_roughly(waiting(4, 0.0), 700.0, f64::from(rough));
        let undecided = |doubt: &Doubt| matches!(doubt, Doubt::Undecided { .. });
        let is_open = found.verdict.doubts.iter().any(undecided);
        assert_eq!(found.to_tell.is_some(), is_open, "{rough} times: {:#?}", found.verdict);
        is_open
    };
    let open = (1..=40).filter(|rough| is_open(*rough)).count();
    assert!((1..40).contains(&open), "{open} of 40");
}

/// A server that waits 5 ms for one of so many, after a delay.
fn waiting(workers: u32, delay_us: f64) -> Lab {
    sweep().tier(server("app").demand_us(100.0).threads(8)).delay_us(delay_us).pool(workers, 5_000.0)
}

#[test]
fn a_lock_behind_a_delay_is_not_a_pool() {
    let lock = told_apart(waiting(4, 0.0), 700.0);
    assert_eq!(kind(&lock), ResourceKind::Lock, "{lock:#?}");
    assert!(says(&lock, "they wait for each other"), "{lock:#?}");
    let pool = told_apart(waiting(4, 0.0), 0.0);
    assert_eq!(kind(&pool), ResourceKind::WorkerPool, "{pool:#?}");
    assert!(says(&pool, "they do not wait for each other"), "{pool:#?}");
}

/// Users at random moments wait for each other at a small pool too, and were said to wait for something passed one at a time.
#[test]
fn the_experiment_is_told_as_the_verdict_has_it() {
    let pool = told_apart(waiting(2, 5_000.0), 400.0);
    let bottleneck = &pool.verdict.bottleneck;
    assert_eq!((bottleneck.kind, bottleneck.at_a_time), (ResourceKind::WorkerPool, Some(2)), "{pool:#?}");
    assert!(says(&pool, "fits a pool of 2."), "{pool:#?}");
}

#[test]
fn fewer_than_two_at_a_time_are_one() {
    let lock = waiting(1, 3_000.0).conclude();
    assert_eq!(kind(&lock), ResourceKind::Lock, "{lock:#?}");
}

#[test]
fn a_limit_on_the_rate_that_delays_is_not_a_lock() {
    let limit = told_apart(waiting(1, 0.0), -2_200.0);
    assert_eq!(kind(&limit), ResourceKind::RateLimit, "{limit:#?}");
    assert!(says(&limit, "a limit on the rate delays requests"), "{limit:#?}");
    let lock = told_apart(waiting(1, 0.0), 0.0);
    assert_eq!(kind(&lock), ResourceKind::Lock, "{lock:#?}");
    assert!(says(&lock, "a pause saves nothing"), "{lock:#?}");
}

/// Of twelve noisy steps the highest was compared with the lowest beyond it, and a pool of exponential workers was a lock.
#[test]
fn steps_that_differ_by_chance_are_no_fall() {
    let noisy = |half_width: f64, from_users: u32| {
        let lab = waiting(4, 0.0);
        let mut steps = lab.observed();
        for step in steps.iter_mut().map(|observed| &mut observed.step) {
            let factor = if step.users >= from_users { 0.94 } else { 1.05 };
            step.throughput_per_s *= factor;
            let x = step.throughput_per_s;
            step.throughput_ci_per_s = Some([x * (1.0 - half_width), x * (1.0 + half_width)]);
        }
        conclude(&steps, &lab.context)
    };
    assert!(!says(&noisy(0.1, 32), "Throughput fell"), "{:#?}", noisy(0.1, 32).verdict);
    assert!(says(&noisy(0.001, 32), "Throughput fell"), "{:#?}", noisy(0.001, 32).verdict);
    // A pool of exponential workers had one short step whose interval was narrow by chance, and was a lock again.
    assert!(!says(&noisy(0.001, 64), "Throughput fell"), "{:#?}", noisy(0.001, 64).verdict);
}

/// Four workers whose times vary, behind a delay, were called a lock: the experiment met the wait of a lock by chance, as
/// such times scatter widely. How widely one user's do tells of how many workers the time between two responses comes.
#[test]
fn times_that_vary_tell_a_pool_from_a_lock() {
    let varying = |deviation_us: f64| {
        let lab = waiting(4, 8_000.0);
        let mut steps = lab.observed();
        for step in steps.iter_mut().map(|observed| &mut observed.step) {
            let requests = (step.completed as f64).sqrt();
            let [x, mean_us] = [step.throughput_per_s, step.response_time_us.mean];
            step.throughput_ci_per_s = Some([x * (1.0 - 1.96 / requests), x * (1.0 + 1.96 / requests)]);
            let half_us = 1.96 * deviation_us / requests;
            step.response_time_us.mean_ci = Some([mean_us - half_us, mean_us + half_us]);
        }
        conclude(&steps, &lab.context)
    };
    let (pool, lock) = (varying(5_000.0), varying(1_250.0));
    assert_eq!(kind(&pool), ResourceKind::WorkerPool, "{pool:#?}");
    assert_eq!(kind(&lock), ResourceKind::Lock, "{lock:#?}");
    let [least, most] = pool.to_tell.expect("it could be either").variation;
    assert!(least >= 0.3 && most == 1.0, "{least} to {most}");
}

/// Where responses come evenly, times are constant, and a lock that is held for constant times is expected to keep users for
/// half as long as one held for exponential times.
#[test]
fn responses_that_come_evenly_narrow_what_an_experiment_may_find() {
    let lab = waiting(4, 7_500.0);
    let mut steps = lab.observed();
    for step in steps.iter_mut().map(|observed| &mut observed.step) {
        let x = step.throughput_per_s;
        step.throughput_ci_per_s = Some([x * 0.9995, x * 1.0005]);
    }
    let plan = conclude(&steps, &lab.context).to_tell.expect("it could be either");
    assert!(plan.variation[0] == 0.0 && plan.variation[1] < 0.1, "{plan:?}");
}

/// One core was 91 % busy while 63 users waited for a lock, and it was said to be full.
#[test]
fn a_processor_with_time_to_spare_that_nobody_wants_is_not_full() {
    let at = |demand_us: f64| {
        let threads = server("app").demand_us(demand_us).threads(8).state(ThreadState::Futex);
        let tier = threads.thread_per_user().cpus(&[0]);
        sweep().tier(tier).pool(1, 5_000.0).conclude()
    };
    assert_eq!(kind(&at(4_550.0)), ResourceKind::Lock, "{:#?}", at(4_550.0));
    assert_eq!(kind(&at(4_950.0)), ResourceKind::Cpu, "{:#?}", at(4_950.0));
}

/// Threads that slept behind a lock computed one after the other, and it was a global lock with 87 %.
#[test]
fn threads_that_may_be_in_step_are_not_surely_one_at_a_time() {
    let threads = |name| server(name).demand_us(500.0).taking_turns(8);
    let named = |name| sweep().tier(threads(name)).conclude();
    let (compiled, interpreter) = (named("app"), named("python3"));
    assert_eq!((kind(&compiled), sure(&compiled)), (ResourceKind::SingleThread, Sure::Rather));
    let alternatives = &compiled.verdict.bottleneck.alternatives;
    assert!(alternatives.iter().any(|other| other.kind == ResourceKind::Lock), "{alternatives:?}");
    assert_eq!((kind(&interpreter), sure(&interpreter)), (ResourceKind::SingleThread, Sure::Fairly));
    let piling_up = |name| sweep().tier(threads(name).state(ThreadState::Futex).thread_per_user()).conclude();
    assert_eq!(kind(&piling_up("app")), ResourceKind::Lock, "{:#?}", piling_up("app"));
    assert_eq!(kind(&piling_up("python3")), ResourceKind::SingleThread, "{:#?}", piling_up("python3"));
}

/// Scripts that ended between two looks filled both processors from few users on, and were called strangers.
#[test]
fn work_that_came_and_grew_with_the_load_is_not_that_of_strangers() {
    let scripts = |demand_us: f64| {
        let tier = server("fcgiwrap").demand_us(demand_us).threads(4).cpus(&[0, 1]);
        let tier = tier.unseen_children(0.75).state(ThreadState::Running);
        sweep().users(&[1, 4, 8, 16]).tier(tier).delay_us(300.0)
    };
    // The scripts' parent is found only once it is called.
    let (lab, before) = (scripts(3_600.0), sweep().tier(server("nginx").demand_us(0.0)));
    let found = conclude(&lab.observed(), &Context { rest: before.rest(), ..lab.context.clone() });
    assert_eq!(kind(&found), ResourceKind::Cpu, "{:#?}", found.verdict);
    assert!(found.verdict.is_conclusive(), "{:#?}", found.verdict);
    assert!(!says(&found, "to itself the server would reach"), "most of its work was not seen: {found:#?}");
}

/// A Python application used a whole core with one user, and got less done with more: its threads fought for the global lock,
/// and it was said that nothing was busy.
#[test]
fn an_interpreter_that_computes_all_the_time_is_a_single_thread() {
    let named = |name| {
        let tier = server(name).demand_us(4_800.0).threads(2).taking_turns(2);
        sweep().delay_us(100.0).tier(tier).pool(1, 4_900.0).falling(0.01).conclude()
    };
    let (python, other) = (named("python3"), named("app"));
    assert_eq!((kind(&python), holder(&python)), (ResourceKind::SingleThread, "python3 (pid 812)"));
    assert_eq!(sure(&python), Sure::Fairly, "{python:#?}");
    assert!(says(&python, "python3 lets one thread of a process compute at a time"), "{python:#?}");
    assert_ne!(kind(&other), ResourceKind::SingleThread, "{other:#?}");
}

/// Python threads that compute without the global lock used about one core behind a pool of connections: it was the lock, 87 %.
#[test]
fn an_interpreter_that_uses_one_core_by_chance_is_not_surely_a_single_thread() {
    for (workers, demand_us) in [(4, 1_200.0), (4, 1_300.0), (8, 640.0)] {
        let python = one_core_by_chance("python3", demand_us);
        let found = sweep().tier(python).pool(workers, 5_000.0).conclude();
        let others = &found.verdict.bottleneck.alternatives;
        let may_be_pool = others.iter().any(|other| other.kind == ResourceKind::WorkerPool);
        let not_sure = matches!(sure(&found), Sure::Rather | Sure::Undecided) && may_be_pool;
        assert!(not_sure || kind(&found) == ResourceKind::WorkerPool, "{workers} workers: {found:#?}");
    }
}

/// Of hundreds of threads the samples left most out, also the one that had the lock, and the verdict was no surer than by chance.
#[test]
fn an_interpreter_whose_threads_are_not_all_sampled_is_judged_by_its_use_of_one_core() {
    let python = || server("python3").demand_us(4_800.0).threads(2).taking_turns(2);
    let tier = || python().state(ThreadState::Sleeping);
    let with = |tier| sweep().delay_us(100.0).tier(tier).pool(1, 4_900.0).falling(0.01).conclude();
    let (few, many) = (with(tier()), with(tier().too_many_threads(400)));
    assert_eq!((kind(&many), sure(&many)), (ResourceKind::SingleThread, Sure::Fairly), "{many:#?}");
    assert!(!matches!(sure(&few), Sure::Fairly | Sure::Direct), "{few:#?}");
}

/// Builds without the global lock are called `python3.13t`.
#[test]
fn an_interpreter_without_a_global_lock_is_a_program_like_others() {
    let named = |name| {
        let tier = server(name).demand_us(4_800.0).threads(2).taking_turns(2);
        sweep().delay_us(100.0).tier(tier).pool(1, 4_900.0).conclude()
    };
    let (locked, free) = (named("python3.13"), named("python3.13t"));
    assert_eq!(kind(&locked), ResourceKind::SingleThread, "{locked:#?}");
    assert_ne!(kind(&free), ResourceKind::SingleThread, "{free:#?}");
}

/// Files that came from a disk, busy all the time: "the generator waited for a processor, while no resource of the server was
/// full", as nothing was seen to wait for the disk.
#[test]
fn a_generator_that_waits_beside_a_full_disk_is_not_the_limit() {
    let disk = Platter { demand_us: 1_000.0, ..Platter::default() };
    let lab = sweep().tier(server("app").demand_us(20.0).threads(4)).disk(disk);
    let mut steps = lab.observed();
    for step in &mut steps {
        for (index, sample) in step.counters.iter_mut().enumerate() {
            sample.pressure.io_some_us = 0;
            for process in &mut sample.processes {
                if process.role == Role::Generator {
                    process.run_queue_wait_us = 5_000_000 + 125_000 * index as u64;
                } else {
                    process.threads.iter_mut().for_each(|thread| thread.state = ThreadState::Sleeping);
                }
            }
        }
    }
    let found = conclude(&steps, &lab.context);
    assert_ne!(kind(&found), ResourceKind::Generator, "{found:#?}");
}
