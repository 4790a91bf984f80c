//! Servers that answer nothing for a part of the time: told beside the verdict, which stays as it is.

use analysis::conclude::Conclusion;
use analysis::counters::{Counters, CpuQuota};
use analysis::run::{Cause, Meanwhile, ResourceKind, Stalls, WarningKind};

use super::lab::{Lab, Observed, conclude, server, sweep};

const PERIOD_US: u64 = 500_000;

/// A server of which samples hold what this puts in for so many microseconds of silence before them. The last of these shares
/// of every half second are silent.
fn stalling(lab: &Lab, share: f64, put: impl Fn(&mut Counters, u64)) -> Conclusion {
    let mut steps = lab.observed();
    steps.iter_mut().for_each(|observed| stall(observed, share, &put));
    conclude(&steps, &lab.context)
}

fn stall(observed: &mut Observed, share: f64, put: impl Fn(&mut Counters, u64)) {
    let (start_us, end_us) = observed.step.measurement.window;
    let silent_us = (PERIOD_US as f64 * share) as u64;
    let ends = (start_us + PERIOD_US..=end_us).step_by(PERIOD_US as usize);
    let silences: Vec<(u64, u64)> = ends.map(|end_us| (end_us - silent_us, end_us)).collect();
    for sample in &mut observed.counters {
        let before = |silence: &(u64, u64)| silence.1.min(sample.at_us).saturating_sub(silence.0);
        let silent_us = silences.iter().map(before).sum();
        put(sample, silent_us);
    }
    observed.step.measurement.silences = silences;
}

fn pool() -> Lab {
    sweep().tier(server("app").demand_us(100.0).threads(8)).pool(4, 5_000.0)
}

fn told(found: &Conclusion) -> Option<&Stalls> {
    found.warnings.iter().find_map(|warning| match &warning.cause {
        Cause::Stalls(stalls) => Some(stalls),
        _ => None,
    })
}

fn meanwhile(found: &Conclusion) -> &Meanwhile {
    &told(found).expect("a warning").meanwhile
}

#[test]
fn stalls_are_told_from_a_twentieth_of_the_time_on_and_change_no_verdict() {
    let found = stalling(&pool(), 0.12, |_, _| {});
    let stalls = told(&found).expect("a warning");
    assert_eq!((stalls.users, stalls.times, stalls.longest_s), (4, 8, 0.06), "{stalls:?}");
    assert!((stalls.share - 0.12).abs() < 1e-9, "{stalls:?}");
    assert_eq!(stalls.meanwhile, Meanwhile::NothingSeen);
    let warning =
        found.warnings.iter().find(|warning| warning.kind == WarningKind::Stalls).expect("a warning");
    assert!(warning.text.as_str().contains("nothing was answered in 12 % of the time"), "{warning:?}");
    let without = stalling(&pool(), 0.04, |_, _| {});
    assert_eq!(told(&without), None);
    assert_eq!(found.verdict, without.verdict);
}

#[test]
fn one_long_stall_is_an_accident() {
    let lab = pool();
    let mut steps = lab.observed();
    for observed in &mut steps {
        let (start_us, _) = observed.step.measurement.window;
        observed.step.measurement.silences = vec![(start_us, start_us + 400_000)];
    }
    assert_eq!(told(&conclude(&steps, &lab.context)), None);
}

#[test]
fn a_quota_is_told_with_its_cgroup() {
    let throttled = |sample: &mut Counters, silent_us| {
        for process in sample.processes.iter_mut().filter(|process| process.name == "app") {
            let quota = CpuQuota {
                cgroup: "/web".into(),
                cores: 1.0,
                throttled_us: silent_us,
                ..CpuQuota::default()
            };
            process.cpu_quota = Some(quota);
        }
    };
    let found = stalling(&pool(), 0.12, throttled);
    let Meanwhile::Throttled { of, cgroup, share } = meanwhile(&found) else { panic!("{:?}", told(&found)) };
    assert_eq!((of.name.as_str(), cgroup.as_str()), ("app", "/web"));
    assert!((share - 1.0).abs() < 1e-6, "{share}");
}

#[test]
fn a_collector_of_too_little_of_the_time_for_a_verdict_is_told() {
    let lab =
        sweep().tier(server("java").demand_us(300.0).threads(2).thread_names(&["GC Thread#0", "http-1"]));
    let lab = lab.pool(2, 1_000.0);
    let collecting = |sample: &mut Counters, silent_us| {
        let threads = sample.processes.iter_mut().flat_map(|process| &mut process.threads);
        threads.filter(|thread| thread.name == "GC Thread#0").for_each(|thread| thread.cpu_us = silent_us);
    };
    let found = stalling(&lab, 0.12, collecting);
    assert_ne!(found.verdict.bottleneck.kind, ResourceKind::GarbageCollection);
    let Meanwhile::Collected { of, threads, cores } = meanwhile(&found) else { panic!("{:?}", told(&found)) };
    assert_eq!((of.name.as_str(), threads.as_str()), ("java", "GC Thread#*"));
    assert!((cores - 1.0).abs() < 1e-6, "{cores}");
}

#[test]
fn waiting_for_memory_and_for_a_disk_are_told() {
    let memory = stalling(&pool(), 0.12, |sample, silent_us| sample.pressure.memory_some_us = silent_us);
    assert!(matches!(meanwhile(&memory), Meanwhile::MemoryAwaited { on: None, .. }), "{:?}", told(&memory));
    let disk = stalling(&pool(), 0.12, |sample, silent_us| sample.pressure.io_some_us = silent_us);
    let on_a_disk = |seen: &Meanwhile| matches!(seen, Meanwhile::DiskAwaited { on: None, device: None, .. });
    assert!(on_a_disk(meanwhile(&disk)), "{:?}", told(&disk));
}

#[test]
fn a_server_that_nobody_watched_is_told_as_such() {
    let found = stalling(&pool().hidden(), 0.12, |_, _| {});
    assert_eq!(*meanwhile(&found), Meanwhile::NotWatched);
}

#[test]
fn a_verdict_that_says_so_itself_is_not_repeated() {
    let lab =
        sweep().tier(server("java").demand_us(800.0).threads(2).thread_names(&["GC Thread#0", "http-1"]));
    let lab = lab.pool(1, 1_000.0);
    let mut steps = lab.observed();
    for observed in &mut steps {
        stall(observed, 0.4, |_, _| {});
        let measurement = &mut observed.step.measurement;
        measurement.pauses = analysis::run::Pauses { share: 0.4, count: 12, longest_us: 200_000 };
    }
    let found = conclude(&steps, &lab.context);
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::GarbageCollection);
    assert_eq!(told(&found), None);
}
