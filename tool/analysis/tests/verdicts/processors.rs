//! Processors: whose, how many, and who else uses them.

use analysis::conclude::{Conclusion, Context};
use analysis::counters::{Role, Thread, ThreadState};
use analysis::run::{ResourceKind, WarningKind};

use super::lab::{Observed, Sure, conclude, server, sure, sweep};

fn kind(found: &Conclusion) -> ResourceKind {
    found.verdict.bottleneck.kind
}

fn holder(found: &Conclusion) -> &str {
    &found.verdict.bottleneck.holder
}

fn warned(found: &Conclusion, kind: WarningKind) -> bool {
    found.warnings.iter().any(|warning| warning.kind == kind)
}

#[test]
fn a_worker_pinned_to_one_core_is_cpu() {
    let found = sweep().tier(server("nginx").cpus(&[0])).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::Cpu, "nginx (pid 812)"), "{found:#?}");
    assert_eq!(sure(&found), Sure::Direct);
    assert!(bottleneck.utilization.unwrap() > 0.97);
    assert!((bottleneck.demand_us.unwrap() - 30.0).abs() < 0.5);
    assert!(bottleneck.evidence[0].starts_with("nginx (pid 812) is busy "), "{:?}", bottleneck.evidence);
    assert!(bottleneck.evidence[0].contains("of the one core it may use"), "{:?}", bottleneck.evidence);
    assert!(bottleneck.evidence[0].contains("each request costs it 30.0 µs"), "{:?}", bottleneck.evidence);
    assert!(found.verdict.is_conclusive());
    assert_eq!(found.verdict.next.as_deref(), Some("the processors of the host, at about 110 000 req/s."));
    assert!(found.laws.little_holds, "{:?}", found.laws);
    assert!(!warned(&found, WarningKind::SharedCores));
}

#[test]
fn a_worker_that_may_use_more_cores_is_a_single_thread() {
    let found = sweep().tier(server("nginx").cpus(&[0, 1])).conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::SingleThread, "nginx (pid 812)"));
    assert_eq!(sure(&found), Sure::Direct);
    assert!(found.verdict.bottleneck.evidence[1].contains("may use 2 cores"));
    assert_eq!(found.verdict.next.as_deref(), Some("the CPU of nginx (pid 812), at about 67 000 req/s."));
}

#[test]
fn two_full_workers_on_three_cores_are_single_threads_of_one_holder() {
    let found = sweep().tier(server("nginx").threads(2).processes(2).cpus(&[0, 1, 2])).conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::SingleThread, "nginx (2 processes)"));
    assert!(found.verdict.bottleneck.evidence[1].contains("2 threads"), "{found:#?}");
}

#[test]
fn a_worker_whose_interrupts_are_counted_apart_is_still_a_single_thread() {
    let worker = server("nginx").interrupts(0.25);
    let asleep_at_times = sweep().tier(worker.clone()).conclude();
    assert_eq!(kind(&asleep_at_times), ResourceKind::Unknown, "{asleep_at_times:#?}");
    let found = sweep().tier(worker.state(ThreadState::Running)).conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::SingleThread, "nginx (pid 812)"));
    assert_eq!(sure(&found), Sure::Fairly);
}

#[test]
fn work_that_nobody_watched_is_not_taken_for_a_pool() {
    // The watched process only passes requests on to one that was not recognised.
    let found = sweep().tier(server("proxy").demand_us(1_000.0).unseen_children(0.95)).conclude();
    assert_eq!(kind(&found), ResourceKind::Unknown, "{found:#?}");
    assert!(found.verdict.bottleneck.evidence[1].contains("not watched"), "{found:#?}");
}

#[test]
fn threads_that_use_all_their_cores_are_cpu() {
    let found = sweep().tier(server("httpd").threads(8).cpus(&[0, 1])).conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::Cpu, "httpd (pid 812)"));
    assert!(found.verdict.bottleneck.evidence[0].contains("of the 2 cores it may use"));
}

#[test]
fn processors_that_a_scheduler_leaves_idle_for_moments_are_weighed_with_what_requests_do() {
    // Two processors that are busy for 87 % of the time from two users on.
    let crowded = |demand_us: f64, alone_us: f64| {
        let lab = sweep().tier(server("go").demand_us(demand_us).threads(8).cpus(&[0, 1]));
        let most_per_s = 0.87 * 2e6 / demand_us;
        let observed: Vec<_> = [1, 2, 4, 8, 16, 32, 64]
            .into_iter()
            .zip(0..)
            .map(|(users, index)| {
                lab.step(index, users, most_per_s.min(f64::from(users) * 1e6 / alone_us), 1.0)
            })
            .collect();
        conclude(&observed, &Context { rest: lab.rest(), ..lab.context.clone() })
    };
    let found = crowded(5_000.0, 5_050.0);
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::Cpu, "go (pid 812)"), "{found:#?}");
    assert_eq!(sure(&found), Sure::Fairly);
    assert!(found.verdict.bottleneck.utilization.unwrap() < 0.9);
    let elsewhere = crowded(5_000.0, 6_000.0);
    assert_eq!(
        kind(&elsewhere),
        ResourceKind::Unknown,
        "a request also waits for something else: {elsewhere:#?}"
    );
}

#[test]
fn requests_that_compute_for_longer_beside_others_may_wait_for_something_else() {
    // One user alone computes for 3 of 5 ms. Where threads share cores it is 5 ms, and two processors are busy for 87 %.
    let of = |demand_us| sweep().tier(server("go").demand_us(demand_us).threads(8).cpus(&[0, 1]));
    let (alone, beside) = (of(3_000.0), of(5_000.0));
    let alone = alone.step(0, 1, 1e6 / 5_050.0, 1.0);
    let many = [2, 4, 8, 16, 32, 64].into_iter().zip(1..);
    let many = many.map(|(users, index)| beside.step(index, users, 348.0, 1.0));
    let observed: Vec<_> = [alone].into_iter().chain(many).collect();
    let found = conclude(&observed, &Context { rest: beside.rest(), ..beside.context.clone() });
    assert_eq!(kind(&found), ResourceKind::Unknown, "{found:#?}");
}

#[test]
fn processors_are_not_named_where_a_quota_has_less_room() {
    let lab = sweep().tier(server("go").demand_us(5_000.0).threads(8).cpus(&[0, 1]).quota(1.8, "/box"));
    let steps = [1, 2, 4, 8, 16, 32, 64].into_iter().zip(0..);
    let mut observed: Vec<_> = steps
        .map(|(users, index)| lab.step(index, users, 330_f64.min(f64::from(users) * 1e6 / 5_050.0), 1.0))
        .collect();
    let processes =
        observed.iter_mut().flat_map(|step| &mut step.counters).flat_map(|seen| &mut seen.processes);
    processes.filter_map(|process| process.cpu_quota.as_mut()).for_each(|quota| quota.throttled_periods = 0);
    let found = conclude(&observed, &Context { rest: lab.rest(), ..lab.context.clone() });
    assert_eq!(kind(&found), ResourceKind::Unknown, "{found:#?}");
}

#[test]
fn threads_that_take_turns_are_like_a_single_thread() {
    let found = sweep().tier(server("python3").demand_us(500.0).taking_turns(8)).conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::SingleThread, "python3 (pid 812)"));
    assert_eq!(sure(&found), Sure::Fairly);
    assert!(found.verdict.bottleneck.evidence.iter().any(|said| said.contains("global lock")));
}

#[test]
fn half_a_core_over_many_threads_is_not_a_global_lock() {
    let found = sweep().tier(server("app").demand_us(600.0).taking_turns(8)).pool(4, 5_000.0).conclude();
    assert_ne!(kind(&found), ResourceKind::SingleThread);
    assert_ne!(kind(&found), ResourceKind::Cpu);
}

#[test]
fn the_busiest_tier_holds_it() {
    let lab = sweep()
        .tier(server("files").demand_us(100.0).threads(2).cpus(&[0, 1]))
        .tier(server("mysqld").downstream().demand_us(300.0).threads(16).cpus(&[2]));
    let found = lab.conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::Cpu, "mysqld (pid 912)"));
    assert!(
        found.verdict.next.unwrap().starts_with("a single thread of files")
            || found.verdict.bottleneck.runner_up.is_some()
    );
}

#[test]
fn tiers_that_fill_their_processors_together_are_cpu() {
    let lab = sweep()
        .cores(3)
        .generator(|tier| tier.cpus(&[2]))
        .tier(server("files").demand_us(150.0).threads(4).cpus(&[0, 1]))
        .tier(server("accounts").downstream().demand_us(170.0).threads(4).cpus(&[0, 1]))
        .link(super::lab::Link::default());
    // Both may use the same two processors, which their sum fills though neither does.
    let mut lab = lab.pool(2, 320.0);
    lab.context.load.threads = 1;
    let found = lab.conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::Cpu, "accounts (pid 912)"), "{found:#?}");
    assert!(found.verdict.is_conclusive());
}

#[test]
fn sharing_cores_with_a_lighter_generator_is_cpu_of_the_server_with_a_prediction() {
    let lab = sweep()
        .cores(2)
        .tier(server("nginx").threads(2).processes(2).cpus(&[0, 1]))
        .generator(|tier| tier.demand_us(10.0).threads(2).cpus(&[0, 1]))
        .crowded_useful_work(0.95);
    let found = lab.conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::Cpu, "nginx (2 processes)"), "{found:#?}");
    assert_eq!(sure(&found), Sure::Fairly);
    assert!(found.verdict.is_conclusive());
    assert!(warned(&found, WarningKind::SharedCores));
    let predicted = found.verdict.bottleneck.evidence.iter().find(|said| said.contains("to itself"));
    assert!(predicted.unwrap().contains("67 000 req/s"), "{predicted:?}");
}

#[test]
fn sharing_cores_with_a_heavier_generator_is_the_generator() {
    let lab = sweep()
        .cores(2)
        .tier(server("nginx").demand_us(10.0).threads(2).processes(2).cpus(&[0, 1]))
        .generator(|tier| tier.demand_us(25.0).threads(2).cpus(&[0, 1]))
        .crowded_useful_work(0.97);
    let found = lab.conclude();
    assert_eq!(kind(&found), ResourceKind::Generator);
    assert!(!found.verdict.is_conclusive());
}

#[test]
fn a_full_generator_beside_an_idle_server_is_the_generator() {
    let found = sweep()
        .tier(server("nginx").demand_us(2.0).cpus(&[0]))
        .generator(|tier| tier.demand_us(20.0))
        .conclude();
    assert_eq!(kind(&found), ResourceKind::Generator);
    assert!(!found.verdict.is_conclusive());
    assert!(warned(&found, WarningKind::GeneratorBusy));
    assert_eq!(found.verdict.next, None);
}

#[test]
fn a_busy_generator_beside_a_fuller_server_is_the_server() {
    let found = sweep().tier(server("nginx").cpus(&[0])).generator(|tier| tier.demand_us(27.8)).conclude();
    assert_eq!(kind(&found), ResourceKind::Cpu);
    assert_eq!(sure(&found), Sure::Fairly);
    assert_eq!(found.verdict.bottleneck.runner_up.as_ref().unwrap().kind, ResourceKind::Generator);
    assert!(warned(&found, WarningKind::GeneratorBusy));
}

#[test]
fn a_generator_as_full_as_the_server_is_not_the_server() {
    let found = sweep().tier(server("nginx").cpus(&[0])).generator(|tier| tier.demand_us(30.0)).conclude();
    assert_eq!(kind(&found), ResourceKind::Generator);
    assert!(!found.verdict.is_conclusive());
}

#[test]
fn a_generator_given_a_tenth_of_a_core_is_the_generator() {
    let lab = sweep().tier(server("nginx").cpus(&[0])).generator(|tier| tier.quota(0.1, "/slow"));
    let found = lab.conclude();
    assert_eq!(kind(&found), ResourceKind::Generator, "{found:#?}");
    assert!(!found.verdict.is_conclusive());
    assert!(found.verdict.bottleneck.evidence[0].contains("0.10 cores"), "{found:#?}");
}

#[test]
fn a_server_under_a_quota_is_the_quota() {
    let found = sweep().tier(server("app").demand_us(200.0).threads(4).quota(0.5, "/box")).conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::CpuQuota, "app (pid 812)"));
    assert!(found.verdict.bottleneck.evidence[0].contains("CPU quota of 0.50 core"), "{found:#?}");
    assert!(found.verdict.next.unwrap().contains("app (pid 812)"));
}

#[test]
fn a_quota_shared_by_two_tiers_is_one_limit() {
    let lab = sweep()
        .tier(server("front").demand_us(50.0).quota(0.5, "/box"))
        .tier(server("app").downstream().demand_us(200.0).threads(4).quota(0.5, "/box"));
    let mut steps = lab.observed();
    // The lab counts use by tier, a cgroup that of all its processes.
    for sample in steps.iter_mut().flat_map(|step| &mut step.counters) {
        let of_both = sample.processes[1].cpu_quota.clone();
        sample.processes[0].cpu_quota = of_both;
    }
    let found = conclude(&steps, &Context { rest: lab.rest(), ..lab.context.clone() });
    assert_eq!((kind(&found), sure(&found)), (ResourceKind::CpuQuota, Sure::Direct), "{found:#?}");
    assert_eq!(holder(&found), "app (pid 912)", "the one that uses most");
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
}

/// A runtime that runs on as many processors as its quota is worth never asks for more.
#[test]
fn a_quota_that_is_spent_without_a_stop_is_the_quota() {
    let lab = sweep().tier(server("app").demand_us(200.0).threads(4).quota(0.5, "/box"));
    let mut steps = lab.observed();
    let samples = steps.iter_mut().flat_map(|step| &mut step.counters);
    let quotas =
        samples.flat_map(|sample| &mut sample.processes).filter_map(|process| process.cpu_quota.as_mut());
    quotas.for_each(|quota| (quota.throttled_periods, quota.throttled_us) = (0, 0));
    let found = conclude(&steps, &Context { rest: lab.rest(), ..lab.context.clone() });
    assert_eq!((kind(&found), sure(&found)), (ResourceKind::CpuQuota, Sure::Fairly), "{found:#?}");
    assert_eq!(holder(&found), "app (pid 812)");
}

#[test]
fn a_quota_with_room_is_not_the_quota() {
    let found = sweep().tier(server("nginx").cpus(&[0]).quota(1.5, "/box")).conclude();
    assert_eq!(kind(&found), ResourceKind::Cpu);
}

#[test]
fn one_quota_over_both_is_held_by_the_larger_user() {
    let both = |server_us: f64, generator_us: f64| {
        sweep()
            .users(&[1, 4, 16, 64, 256, 1024])
            .tier(
                server("app")
                    .demand_us(server_us)
                    .quota(0.5 * server_us / (server_us + generator_us), "/box"),
            )
            .generator(|tier| {
                tier.demand_us(generator_us).quota(0.5 * generator_us / (server_us + generator_us), "/box")
            })
            .conclude()
    };
    assert_eq!(kind(&both(90.0, 10.0)), ResourceKind::CpuQuota);
    assert_eq!(kind(&both(10.0, 90.0)), ResourceKind::Generator);
}

#[test]
fn a_quota_whose_use_is_not_counted_is_told_by_what_the_server_used() {
    // Version 1 cgroups with the accounting mounted apart count the use elsewhere.
    let lab = sweep().tier(server("nginx").quota(0.3, "/web"));
    let mut steps = lab.observed();
    let samples = steps.iter_mut().flat_map(|step| &mut step.counters);
    let quotas =
        samples.flat_map(|sample| &mut sample.processes).filter_map(|process| process.cpu_quota.as_mut());
    quotas.for_each(|quota| quota.usage_us = 0);
    let found = conclude(&steps, &lab.context);
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::CpuQuota, "nginx (pid 812)"), "{found:#?}");
}

#[test]
fn a_quota_that_one_user_spends_already_is_told_by_its_stops() {
    let lab = sweep().tier(server("nginx").quota(0.3, "/web"));
    let mut steps = lab.observed();
    // The first step's counters show the plateau's work, its throughput does not: later requests cost less.
    let plateau = steps.last().unwrap().clone();
    steps[0].counters = plateau.counters;
    steps[0].step.measurement.window = plateau.step.measurement.window;
    steps[0].step.throughput_per_s = 0.4 * plateau.step.throughput_per_s;
    let found = conclude(&steps, &lab.context);
    assert_eq!(kind(&found), ResourceKind::CpuQuota, "{found:#?}");
}

#[test]
fn a_host_full_of_interference_is_said_to_be() {
    let lab = sweep()
        .cores(2)
        .tier(server("app").demand_us(100.0).threads(2).cpus(&[0, 1]))
        .generator(|tier| tier.demand_us(20.0).threads(2).cpus(&[0, 1]))
        .interference(1.4)
        .crowded_useful_work(0.5);
    let found = lab.conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::Cpu, "other processes"), "{found:#?}");
    assert!(!found.verdict.is_conclusive());
}

#[test]
fn interference_on_part_of_the_processors_leaves_no_conclusion() {
    let lab = sweep()
        .cores(2)
        .tier(server("app").demand_us(100.0).threads(2).cpus(&[0, 1]))
        .generator(|tier| tier.demand_us(20.0).threads(2).cpus(&[0, 1]))
        .crowded_useful_work(0.5);
    assert!(lab.conclude().verdict.is_conclusive(), "{:#?}", lab.conclude().verdict);
    let (quiet, crowded) = (lab.observed(), lab.clone().interference(0.5).observed());
    let all_along = conclude(&crowded, &lab.context).verdict;
    assert!(all_along.inconclusive.iter().any(|why| why.contains("not part of the test")), "{all_along:#?}");
    let half = quiet.len() / 2;
    let steps: Vec<_> = quiet[..half].iter().chain(&crowded[half..]).cloned().collect();
    let from_half_way = conclude(&steps, &lab.context).verdict;
    assert!(!from_half_way.is_conclusive(), "{from_half_way:#?}");
}

#[test]
fn sleepers_on_a_host_full_of_interference_are_not_short_of_a_processor() {
    let lab = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0).interference(3.6);
    let found = lab.conclude();
    assert_eq!(kind(&found), ResourceKind::WorkerPool, "{found:#?}");
}

#[test]
fn sleepers_beside_interference_that_comes_during_the_run_are_not_blamed_on_the_cpu() {
    let lab = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0);
    let (quiet, crowded) = (lab.observed(), lab.clone().interference(3.6).observed());
    for first_crowded in 0..quiet.len() {
        let steps: Vec<_> = quiet[..first_crowded].iter().chain(&crowded[first_crowded..]).cloned().collect();
        let found = conclude(&steps, &lab.context);
        assert!(!matches!(kind(&found), ResourceKind::Cpu | ResourceKind::SingleThread), "{found:#?}");
    }
}

#[test]
fn children_that_nobody_saw_are_charged_to_who_waits_for_them() {
    let lab = sweep()
        .tier(server("forker").demand_us(900.0).threads(8).cpus(&[0, 1]).unseen_children(0.8).reaping());
    let found = lab.conclude();
    assert_eq!((kind(&found), holder(&found)), (ResourceKind::Cpu, "forker (pid 812)"), "{found:#?}");
    assert!(found.verdict.is_conclusive());
}

#[test]
fn a_loop_that_is_busy_at_any_load_proves_nothing() {
    let found = sweep().tier(server("poller").cpus(&[0]).polling()).pool(3, 2_000.0).conclude();
    assert_eq!(kind(&found), ResourceKind::Unknown, "{found:#?}");
    assert!(
        found.verdict.bottleneck.evidence.iter().any(|said| said.contains("whatever the load")),
        "{found:#?}"
    );
}

/// The verdict on four workers of a pool beside a thread of this name, which keeps this share of a processor busy with so many users.
fn beside_a_thread(program: &'static str, name: &str, share: impl Fn(u32) -> f64) -> Conclusion {
    let lab = sweep().tier(server(program).demand_us(1_500.0).threads(4)).pool(4, 5_000.0);
    let mut observed = lab.observed();
    add_thread(&mut observed, name, 2, share);
    conclude(&observed, &lab.context)
}

/// Adds a thread to the server that keeps this share of a processor busy with so many users.
fn add_thread(observed: &mut [Observed], name: &str, cpu: u32, share: impl Fn(u32) -> f64) {
    for step in observed {
        let per_sample_us = share(step.step.users) * 250_000.0;
        for (number, sample) in step.counters.iter_mut().enumerate() {
            let busy_us = (per_sample_us * number as f64) as u64;
            let thread = Thread {
                tid: 9_990 + cpu,
                name: name.into(),
                cpu_us: 5_000_000 + busy_us,
                state: ThreadState::Running,
                ..Thread::default()
            };
            let process = sample.processes.iter_mut().find(|process| process.pid == 812).expect("the server");
            (process.thread_count, process.user_us) = (process.thread_count + 1, process.user_us + busy_us);
            process.threads.push(thread);
            sample.cpus[cpu as usize].user_us += busy_us;
            sample.cpus[cpu as usize].idle_us -= busy_us;
        }
    }
}

/// The workers of its process follow the load, and it was taken for the one thread that is full.
#[test]
fn a_thread_that_polls_beside_workers_is_not_what_they_wait_for() {
    let found = beside_a_thread("app", "poller", |_| 1.0);
    assert_ne!(kind(&found), ResourceKind::SingleThread, "{found:#?}");
}

/// Two processes of an interpreter, each full behind a global lock of its own, were a pool of two workers.
#[test]
fn several_processes_of_an_interpreter_are_each_full_behind_a_lock_of_their_own() {
    let workers = server("gunicorn").demand_us(10_000.0).threads(2).processes(2).cpus(&[0, 1, 2, 4, 5, 6]);
    let found = sweep().cores(8).tier(workers.taking_turns(8)).conclude();
    assert_eq!(kind(&found), ResourceKind::SingleThread, "{found:#?}");
}

/// A runtime that uses two of six processors, by whichever threads, was a pool of two workers.
#[test]
fn a_runtime_that_computes_on_few_processors_is_no_pool_of_workers() {
    let tier = server("go-tier").demand_us(10_000.0).threads(2).cpus(&[0, 1, 2, 4, 5, 6]).taking_turns(8);
    let found = sweep().cores(8).tier(tier).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert!(bottleneck.kind != ResourceKind::WorkerPool || bottleneck.confidence.share() < 0.8, "{found:#?}");
}

/// The compiler of a young virtual machine keeps a thread full, and follows the load: it was what stopped the server, 97 %.
#[test]
fn a_thread_that_compiles_is_not_what_requests_wait_for() {
    let follows_load = |users: u32| (f64::from(users) / 4.0).min(1.0);
    let found = beside_a_thread("java", "C2 CompilerThre", follows_load);
    assert_ne!(kind(&found), ResourceKind::SingleThread, "{found:#?}");
}

/// A collector that ran beside the workers, one thread or several, was what they waited for, 97 %.
#[test]
fn threads_that_collect_beside_workers_are_not_what_requests_wait_for() {
    let follows_load = |users: u32| (f64::from(users) / 4.0).min(1.0);
    let one = beside_a_thread("java", "G1 Conc#0", follows_load);
    assert_ne!(kind(&one), ResourceKind::SingleThread, "{one:#?}");
    let java = server("java").demand_us(1_500.0).threads(4).cpus(&[0, 1, 2, 4, 5, 6]);
    let lab = sweep().cores(8).tier(java).pool(4, 5_000.0);
    let beside_two = |names: [&str; 2]| {
        let mut observed = lab.observed();
        add_thread(&mut observed, names[0], 4, follows_load);
        add_thread(&mut observed, names[1], 5, follows_load);
        conclude(&observed, &lab.context)
    };
    let two = beside_two(["G1 Conc#0", "G1 Conc#1"]);
    assert_ne!(kind(&two), ResourceKind::SingleThread, "{two:#?}");
    let one_works = beside_two(["G1 Conc#0", "worker"]);
    assert_eq!(kind(&one_works), ResourceKind::SingleThread, "{one_works:#?}");
}

/// The little that several collectors did was counted as a second full thread of theirs, and the one that worked was left out.
#[test]
fn a_full_thread_that_works_beside_many_that_collect_is_what_requests_wait_for() {
    let java = server("java").demand_us(1_500.0).threads(4).cpus(&[0, 1, 2, 4, 5, 6]);
    let lab = sweep().cores(8).tier(java).pool(4, 5_000.0);
    let mut observed = lab.observed();
    let mut add = |name, cpu, share: f64| {
        add_thread(&mut observed, name, cpu, |users| share * (f64::from(users) / 4.0).min(1.0));
    };
    add("G1 Conc#0", 4, 1.0);
    add("worker", 5, 0.95);
    for (name, cpu) in [("GC Thread#0", 0), ("GC Thread#1", 1), ("GC Thread#2", 2), ("GC Thread#3", 6)] {
        add(name, cpu, 0.3);
    }
    let found = conclude(&observed, &lab.context);
    assert_eq!(kind(&found), ResourceKind::SingleThread, "{found:#?}");
}

#[test]
fn stolen_time_is_not_counted_as_room() {
    let lab = sweep().tier(server("nginx").cpus(&[0])).steal(0.3);
    // A third less processor: the same work takes what is left of it.
    let found = lab.tier(server("idle").downstream().demand_us(0.0)).pool(1, 43.0).conclude();
    assert!(warned(&found, WarningKind::Steal));
    assert_eq!(kind(&found), ResourceKind::Cpu, "{found:#?}");
}

#[test]
fn falling_throughput_is_still_cpu() {
    let found = sweep().tier(server("nginx").demand_us(30.0).cpus(&[0])).falling(0.0005).conclude();
    assert_eq!(kind(&found), ResourceKind::Cpu);
}

#[test]
fn noise_changes_no_verdict() {
    for seed in 0..40 {
        let cpu = sweep().tier(server("nginx").cpus(&[0])).noise(seed).conclude();
        assert_eq!(kind(&cpu), ResourceKind::Cpu, "seed {seed}");
        let thread = sweep().tier(server("node").cpus(&[0, 1])).noise(seed).conclude();
        assert_eq!(kind(&thread), ResourceKind::SingleThread, "seed {seed}");
        let pool = sweep().tier(server("app").demand_us(100.0)).pool(4, 5_000.0).noise(seed).conclude();
        assert!(matches!(kind(&pool), ResourceKind::WorkerPool | ResourceKind::Unknown), "seed {seed}");
    }
}

/// More processors for the generator do not help where others are on all of them.
#[test]
fn a_generator_held_up_by_interference_is_not_told_to_take_more_processors() {
    let lab = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0).interference(3.8);
    let mut steps = lab.observed();
    for step in &mut steps {
        for (index, sample) in step.counters.iter_mut().enumerate() {
            let generator = sample.processes.iter_mut().filter(|process| process.role == Role::Generator);
            generator.for_each(|process| process.run_queue_wait_us = 5_000_000 + 125_000 * index as u64);
        }
    }
    let found = conclude(&steps, &lab.context);
    assert_eq!(kind(&found), ResourceKind::Generator, "{found:#?}");
    let doubts = &found.verdict.inconclusive;
    assert!(doubts[0].contains("not part of the test"), "{doubts:?}");
    assert!(!doubts.iter().any(|doubt| doubt.contains("more processors")), "{doubts:?}");
}
