use super::*;
use crate::counters::{CpuQuota, Disk, Pressure, Thread};

const SAMPLE_US: u64 = 250_000;

/// Of every half second the last 60 ms are silent, for six seconds.
fn silences() -> Vec<(u64, u64)> {
    (0..12).map(|number| (number * 500_000 + 440_000, number * 500_000 + 500_000)).collect()
}

const WINDOW: (u64, u64) = (0, 6_000_000);

/// How much of the time before an instant was silent.
fn silent_us(at_us: u64) -> u64 {
    silences().into_iter().map(|silence| overlap_us(silence, (0, at_us))).sum()
}

fn server(name: &str) -> Process {
    Process { pid: 7, name: name.to_owned(), ..Process::default() }
}

/// Samples four times a second, with what this puts in, given when they are taken and how much was silent before.
fn samples(put: impl Fn(&mut Counters, u64, u64)) -> Vec<Counters> {
    let sample = |number: u64| {
        let at_us = number * SAMPLE_US;
        let mut sample = Counters { at_us, processes: vec![server("app")], ..Counters::default() };
        put(&mut sample, at_us, silent_us(at_us));
        sample
    };
    (0..=24).map(sample).collect()
}

fn found(counters: &[Counters]) -> Vec<Meanwhile> {
    meanwhile(counters, &[WINDOW], &silences())
}

/// The only thing that was found, with its share.
fn only(counters: &[Counters]) -> (Happened, f64) {
    let mut found = found(counters);
    assert_eq!(found.len(), 1, "{found:?}");
    let Meanwhile { what, share } = found.remove(0);
    (what, (share * 1e6).round() / 1e6)
}

fn of(name: &str) -> GroupKey {
    GroupKey { name: name.to_owned(), ..GroupKey::default() }
}

#[test]
fn a_quota_that_stops_the_server_is_seen() {
    let with = |throttled: fn(u64, u64) -> u64| {
        samples(move |sample, at_us, silent| {
            let quota = CpuQuota {
                cgroup: "/web".into(),
                throttled_us: throttled(at_us, silent),
                ..CpuQuota::default()
            };
            sample.processes[0].cpu_quota = Some(quota);
        })
    };
    let expected = Happened::Throttled { of: of("app"), cgroup: "/web".into() };
    assert_eq!(only(&with(|_, silent| silent)), (expected.clone(), 1.0));
    assert_eq!(only(&with(|at_us, _| at_us / 8)), (expected, 1.0), "as long, wherever it falls");
    assert_eq!(found(&with(|_, silent| silent / 10)), []);
    assert_eq!(found(&with(|_, _| 0)), []);
}

#[test]
fn threads_of_a_collector_that_work_then_are_named() {
    let with = |name: &'static str, cpu: fn(u64, u64) -> u64| {
        samples(move |sample, at_us, silent| {
            let threads = [("main", at_us), (name, cpu(at_us, silent))];
            let thread = |(tid, (name, cpu_us)): (usize, (&str, u64))| Thread {
                tid: tid as u32,
                name: name.to_owned(),
                cpu_us,
                ..Thread::default()
            };
            sample.processes[0].threads = threads.into_iter().enumerate().map(thread).collect();
        })
    };
    let (what, cores) = only(&with("GC Thread#1", |_, silent| 2 * silent));
    assert_eq!(what, Happened::Collected { of: of("app"), threads: "GC Thread#*".into() });
    assert!((cores - 2.0).abs() < 1e-9, "{cores}");
    assert_eq!(found(&with("GC Thread#1", |at_us, _| at_us / 2)), [], "it works all the time");
    assert_eq!(found(&with("worker-1", |_, silent| silent)), [], "no collector");
}

#[test]
fn waiting_for_memory_or_a_disk_is_seen_where_it_goes_with_silence() {
    let pressed = |of: fn(u64) -> Pressure| samples(move |sample, _, silent| sample.pressure = of(silent));
    let memory = |silent| Pressure { memory_some_us: silent, ..Pressure::default() };
    assert_eq!(only(&pressed(memory)), (Happened::MemoryAwaited { on: None }, 1.0));
    let io = |silent| Pressure { io_some_us: silent, ..Pressure::default() };
    assert_eq!(only(&pressed(io)), (Happened::DiskAwaited { on: None, device: None }, 1.0));
    let always = samples(|sample, at_us, _| sample.pressure.io_some_us = at_us / 8 * 7);
    assert_eq!(found(&always), [], "other programs use the disk all the time");
}

#[test]
fn a_disk_that_flushes_then_is_named() {
    let disk = |name: &str, flush_us| Disk { name: name.into(), flush_us, ..Disk::default() };
    let flushing = samples(|sample, at_us, silent| {
        sample.disks = vec![disk("vda", at_us / 3), disk("vdb", silent)];
        sample.pressure.io_some_us = silent;
    });
    let device = Some("vdb".to_owned());
    assert_eq!(only(&flushing), (Happened::DiskAwaited { on: None, device }, 1.0));
}

#[test]
fn a_runtime_that_works_on_is_seen_where_it_has_no_other_time() {
    let with = |name: &'static str, cpu: fn(u64, u64) -> u64| {
        samples(move |sample, at_us, silent| {
            sample.processes = vec![Process { user_us: cpu(at_us, silent), ..server(name) }];
        })
    };
    assert_eq!(only(&with("python3", |at_us, _| at_us)), (Happened::WorkedOn { of: of("python3") }, 1.0));
    assert_eq!(found(&with("python3", |at_us, silent| at_us - silent)), [], "it slept then");
    assert_eq!(found(&with("python3", |at_us, _| at_us / 2)), [], "it had time between");
    assert_eq!(found(&with("app", |at_us, _| at_us)), [], "it collects no garbage so");
}

#[test]
fn nothing_is_found_without_silence_or_samples_of_it() {
    let throttled = samples(|sample, _, silent| {
        sample.processes[0].cpu_quota = Some(CpuQuota { throttled_us: silent, ..CpuQuota::default() });
    });
    assert_eq!(meanwhile(&throttled, &[WINDOW], &[]), []);
    assert_eq!(meanwhile(&[], &[WINDOW], &silences()), []);
    assert_eq!(meanwhile(&throttled[..2], &[WINDOW], &silences()), []);
    assert_eq!(meanwhile(&throttled, &[(20_000_000, 30_000_000)], &silences()), [], "it was measured later");
    assert_eq!(found(&samples(|_, _, _| {})), []);
}

#[test]
fn what_an_observer_elsewhere_saw_is_named_by_its_place() {
    let (place, machine) = (Some("web".to_owned()), Some("rack".to_owned()));
    let seen = |what| Meanwhile { what, share: 1.0 };
    let memory = || seen(Happened::MemoryAwaited { on: None });
    assert_eq!(
        memory().seen_at(&place, Some(&machine)),
        Some(seen(Happened::MemoryAwaited { on: machine.clone() }))
    );
    assert_eq!(memory().seen_at(&place, None), None, "another tells of the machine");
    let collected =
        |on| seen(Happened::Collected { of: GroupKey { on, ..of("java") }, threads: "GC Thread".into() });
    assert_eq!(collected(None).seen_at(&place, None), Some(collected(place.clone())));
}
