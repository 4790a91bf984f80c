//! Counters that no sane kernel gives: nothing panics, nothing is NaN, nothing is invented.

use super::lab::{Observed, conclude};
use analysis::conclude::{Conclusion, Context, RunKind};
use analysis::counters::{
    Counters, Cpu, CpuQuota, DatabaseSample, Disk, Interface, Listener, Process, Role, Thread, ThreadState,
};
use analysis::run::{Generator, LoadShape, Measurement, ResourceKind, ResponseTime, Step};
use analysis::ticks::ErrorKind;
use analysis::verdict::WatchedDatabase;
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..2_000_000u64, any::<u64>(), Just(u64::MAX)]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..1e6f64, Just(1e15), Just(f64::MIN_POSITIVE)]
}

fn process() -> impl Strategy<Value = Process> {
    let names = prop_oneof![Just("nginx"), Just("mysqld"), Just("")];
    let role = prop_oneof![Just(Role::Server), Just(Role::Generator), Just(Role::Downstream)];
    let state = prop_oneof![Just(ThreadState::Disk), Just(ThreadState::Futex), Just(ThreadState::Running)];
    let thread = (0..3u32, number(), number(), state).prop_map(|(tid, cpu_us, run_queue_wait_us, state)| {
        Thread { tid, cpu_us, run_queue_wait_us, state, ..Thread::default() }
    });
    let quota =
        (float(), number(), number(), number()).prop_map(|(cores, periods, throttled_periods, usage_us)| {
            CpuQuota {
                cgroup: "/a".into(),
                cores,
                periods,
                throttled_periods,
                throttled_us: usage_us,
                usage_us,
            }
        });
    let who = (0..3u32, 0..3u64, names, role, 0..9u32, proptest::collection::vec(0..4u32, 0..3));
    let what = (number(), number(), number(), number(), proptest::option::of(number()));
    (who, what, proptest::collection::vec(thread, 0..3), proptest::option::of(quota)).prop_map(
        |(
            (pid, started_ticks, name, role, allowed_cpus, allowed),
            (user_us, system_us, reaped, wait, open),
            threads,
            cpu_quota,
        )| {
            Process {
                pid,
                started_ticks,
                name: name.into(),
                role,
                user_us,
                system_us,
                reaped_children_us: reaped,
                run_queue_wait_us: wait,
                threads,
                thread_count: allowed_cpus,
                allowed_cpus,
                allowed_cpu_numbers: allowed,
                open_files: open,
                open_files_limit: open,
                disk_read_bytes: open,
                cpu_quota,
                ..Process::default()
            }
        },
    )
}

fn sample() -> impl Strategy<Value = Counters> {
    let cpu = (0..3u32, number(), number(), number(), number()).prop_map(
        |(number, user_us, system_us, idle_us, steal_us)| Cpu {
            number,
            user_us,
            system_us,
            idle_us,
            steal_us,
            iowait_us: idle_us,
            softirq_us: steal_us,
            packets_dropped: idle_us,
            squeezes: user_us,
        },
    );
    let disk = (number(), number(), number()).prop_map(|(reads, busy_us, weighted_us)| Disk {
        name: "vda".into(),
        reads,
        read_bytes: reads,
        busy_us,
        flush_us: busy_us,
        flushes: reads,
        weighted_us,
        ..Disk::default()
    });
    let link =
        (number(), number(), proptest::option::of(number())).prop_map(|(sent_bytes, backlog, speed)| {
            Interface {
                name: "eth0".into(),
                sent_bytes,
                received_bytes: backlog,
                qdisc_backlog_bytes: backlog,
                link_bits_per_s: speed,
                shaped_bits_per_s: speed,
                carries_load: true,
                ..Interface::default()
            }
        });
    let listener =
        (number(), number()).prop_map(|(waiting, backlog)| Listener { port: 80, pid: 1, waiting, backlog });
    let devices = (
        proptest::collection::vec(cpu, 0..3),
        proptest::collection::vec(disk, 0..2),
        proptest::collection::vec(link, 0..2),
        proptest::collection::vec(listener, 0..2),
    );
    (number(), proptest::collection::vec(process(), 0..4), devices, number()).prop_map(
        |(at_us, processes, (cpus, disks, interfaces, listeners), any)| {
            let mut counters =
                Counters { at_us, processes, cpus, disks, interfaces, listeners, ..Counters::default() };
            counters.tcp.listen_overflows = any;
            counters.memory.swapped_in_pages = any;
            counters.memory.total_bytes = any;
            counters.pressure.memory_some_us = any;
            counters.pressure.io_some_us = any;
            counters
        },
    )
}

fn observed() -> impl Strategy<Value = Observed> {
    let samples =
        (proptest::collection::vec(sample(), 0..5), proptest::collection::vec(database_sample(), 0..12));
    let measured = (float(), float(), number(), any::<bool>(), number());
    (0..70u32, (0..3_000_000u64, 0..3_000_000u64), measured, samples).prop_map(
        |(users, window, (throughput, response, completed, steady, failed), (counters, database))| {
            let step = Step {
                users,
                elapsed_s: window.1 as f64 / 1e6,
                completed,
                throughput_per_s: throughput,
                throughput_ci_per_s: steady.then_some([throughput * 0.9, throughput]),
                response_time_us: ResponseTime { mean: response, ..ResponseTime::default() },
                errors: [(ErrorKind::Reset, failed), (ErrorKind::LocalLimit, failed)].into(),
                steady,
                generator: Generator { useful_work: response, ..Generator::default() },
                measurement: Measurement { window, ..Measurement::default() },
                ..Step::default()
            };
            Observed { step, counters, database, ..Observed::default() }
        },
    )
}

fn database_sample() -> impl Strategy<Value = DatabaseSample> {
    (0..3_000_000u64, number(), number(), proptest::option::of(number())).prop_map(
        |(at_us, waiting, at_work, waited_us)| DatabaseSample { at_us, waiting, at_work, waited_us },
    )
}

fn sane(found: &Conclusion) {
    let share = |value: f64| assert!((0.0..=1.05).contains(&value), "{value} in {found:#?}");
    for resource in found.steps.iter().flat_map(|step| &step.resources) {
        share(resource.utilization);
        assert!(resource.used.is_finite() && resource.capacity.is_finite(), "{resource:?}");
    }
    for step in &found.steps {
        share(step.generator.useful_work);
        share(step.generator.run_queue_wait);
        share(step.generator.throttled);
    }
    let bottleneck = &found.verdict.bottleneck;
    bottleneck.utilization.into_iter().for_each(share);
    assert!(bottleneck.demand_us.is_none_or(f64::is_finite));
    assert!(bottleneck.kind == ResourceKind::None || !bottleneck.evidence.is_empty());
    for demand in &found.laws.demands {
        assert!(demand.demand_us.is_finite() && demand.throughput_limit_per_s.is_finite(), "{demand:?}");
    }
    let said = bottleneck.evidence.iter().chain(&found.verdict.inconclusive).chain(&found.verdict.next);
    for sentence in said.chain(found.warnings.iter().map(|warning| &warning.text)) {
        assert!(!sentence.contains("NaN") && !sentence.contains("inf "), "{sentence}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_counters_give_a_sane_conclusion(
        observed in proptest::collection::vec(observed(), 0..6),
        threads in 0..4u32,
        swept in any::<bool>(),
    ) {
        let kind = if swept { RunKind::Sweep { users_max: 70 } } else { RunKind::Load };
        let load = LoadShape { threads, ..LoadShape::default() };
        let database = swept.then(WatchedDatabase::default);
        sane(&conclude(&observed, &Context { load, kind, database, ..Context::default() }));
    }

    /// Take the processes' own CPU time away, and no processor is ever blamed.
    #[test]
    fn no_busy_processor_no_cpu_verdict(observed in proptest::collection::vec(observed(), 2..6)) {
        let mut observed = observed;
        for sample in observed.iter_mut().flat_map(|observed| &mut observed.counters) {
            sample.cpus.clear();
            for process in &mut sample.processes {
                (process.user_us, process.system_us, process.reaped_children_us) = (0, 0, 0);
                process.threads.clear();
            }
        }
        let kind = conclude(&observed, &Context::default()).verdict.bottleneck.kind;
        prop_assert!(!matches!(kind, ResourceKind::Cpu | ResourceKind::SingleThread));
    }
}
