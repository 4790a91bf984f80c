use super::*;
use crate::counters::{Cpu, Hop, Process, ServerAddress, Thread};

fn worker(pid: u32, started_ticks: u64, cpu_us: u64) -> Process {
    Process {
        pid,
        started_ticks,
        name: "nginx".to_owned(),
        user_us: cpu_us / 4,
        system_us: cpu_us - cpu_us / 4,
        threads: vec![Thread { tid: pid, cpu_us, ..Thread::default() }],
        thread_count: 1,
        allowed_cpus: 2,
        allowed_cpu_numbers: vec![0, 1],
        ..Process::default()
    }
}

fn sample(at_us: u64, processes: Vec<Process>) -> Counters {
    Counters { at_us, processes, ..Counters::default() }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

#[test]
fn shares_come_from_the_samples_inside_the_window() {
    let samples = [
        sample(0, vec![worker(1, 5, 0)]),
        sample(1_000_000, vec![worker(1, 5, 900_000)]),
        sample(2_000_000, vec![worker(1, 5, 1_400_000)]),
        sample(3_000_000, vec![worker(1, 5, 2_400_000)]),
    ];
    let found = of_counters(&samples, (900_000, 2_100_000));
    assert_eq!((found.samples, found.elapsed_us), (2, 1_000_000.0));
    close(found.groups[0].cores, 0.5);
    close(found.groups[0].kernel, 0.75);
    close(found.groups[0].busy(), 0.25);
}

#[test]
fn a_window_shorter_than_the_samples_takes_those_around_it() {
    let samples = [sample(0, vec![worker(1, 5, 0)]), sample(1_000_000, vec![worker(1, 5, 600_000)])];
    close(of_counters(&samples, (400_000, 500_000)).groups[0].cores, 0.6);
}

#[test]
fn hops_are_of_all_windows_where_rates_are_of_one() {
    let address = ServerAddress::Tcp { address: ([127, 0, 0, 1], 80).into() };
    let at = |at_us, cpu_us, held| {
        let empty = Hop::without_connections(address.clone());
        let hop = Hop { server: Some(1), connections: 4, held, ..empty };
        Counters { hops: Some(vec![hop]), ..sample(at_us, vec![worker(1, 5, cpu_us)]) }
    };
    let samples = [
        at(0, 0, 1),
        at(1_000_000, 500_000, 1),
        at(5_000_000, 600_000, 4),
        at(10_000_000, 9_000_000, 3),
        at(11_000_000, 9_900_000, 3),
    ];
    let windows = [(0, 1_000_000), (10_000_000, 11_000_000)];
    let of_one = of_counters(&samples, windows[0]);
    assert_eq!((of_one.hops.looks, of_one.hops.tiers[0].held), (2, 1.0));
    let found = of_one.clone().with_hops(&windows, |_| samples.to_vec());
    close(found.groups[0].cores, 0.5);
    assert_eq!((found.hops.looks, found.hops.tiers[0].held), (4, 2.0));
    assert_eq!(of_one.clone().with_hops(&windows[..1], |_| samples.to_vec()), of_one);
}

#[test]
fn fewer_than_two_samples_show_nothing() {
    assert_eq!(of_counters(&[], (0, 1)), Usage::default());
    assert_eq!(of_counters(&[sample(7, vec![worker(1, 5, 0)])], (0, 10)), Usage::default());
}

#[test]
fn a_master_that_does_nothing_is_not_among_those_that_work() {
    let samples = [
        sample(0, vec![worker(10, 5, 1_000), worker(11, 6, 0), worker(12, 6, 0)]),
        sample(1_000_000, vec![worker(10, 5, 1_100), worker(11, 6, 800_000), worker(12, 6, 700_000)]),
    ];
    let group = &of_counters(&samples, (0, 1_000_000)).groups[0];
    assert_eq!((group.pids.as_slice(), group.processes), ([11, 12].as_slice(), 3));
    close(group.busiest_thread.as_ref().unwrap().busy, 0.8);
    assert_eq!(group.full_threads, 0);
}

#[test]
fn a_child_forked_since_counts_and_a_process_found_late_does_not() {
    let samples = [
        sample(0, vec![worker(10, 50, 0)]),
        sample(1_000_000, vec![worker(10, 50, 100_000), worker(11, 60, 300_000), worker(9, 40, 7_000_000)]),
    ];
    close(of_counters(&samples, (0, 1_000_000)).groups[0].cores, 0.4);
}

#[test]
fn a_reused_process_number_is_another_process() {
    let samples =
        [sample(0, vec![worker(10, 50, 900_000)]), sample(1_000_000, vec![worker(10, 60, 200_000)])];
    close(of_counters(&samples, (0, 1_000_000)).groups[0].cores, 0.2);
}

#[test]
fn reaped_children_are_charged_to_their_parents_group() {
    let parent = |reaped| Process { reaped_children_us: reaped, ..worker(10, 50, 0) };
    let samples = [sample(0, vec![parent(1_000)]), sample(1_000_000, vec![parent(401_000)])];
    let group = &of_counters(&samples, (0, 1_000_000)).groups[0];
    close(group.cores, 0.4);
    close(group.reaped_cores, 0.4);
}

#[test]
fn stolen_time_leaves_less_to_use() {
    let cpu =
        |number, user_us, steal_us, idle_us| Cpu { number, user_us, steal_us, idle_us, ..Cpu::default() };
    let at = |at_us, cpus, process| Counters { cpus, ..sample(at_us, vec![process]) };
    let before = at(0, vec![cpu(0, 0, 0, 0), cpu(1, 0, 0, 0)], worker(1, 5, 0));
    let after = at(
        1_000_000,
        vec![cpu(0, 750_000, 250_000, 0), cpu(1, 750_000, 250_000, 0)],
        worker(1, 5, 1_500_000),
    );
    let found = of_counters(&[before, after], (0, 1_000_000));
    close(found.hosts[0].steal(), 0.25);
    close(found.groups[0].allowed_cores, 1.5);
    close(found.groups[0].busy(), 1.0);
}

#[test]
fn a_counter_that_was_restarted_loses_only_its_interval() {
    let disk = |busy_us| crate::counters::Disk { name: "vda".to_owned(), busy_us, ..Default::default() };
    let at = |at_us, busy_us| Counters { at_us, disks: vec![disk(busy_us)], ..Counters::default() };
    let found = of_counters(&[at(0, 900_000), at(500_000, 0), at(1_000_000, 400_000)], (0, 1_000_000));
    close(found.disks[0].busy, 0.4);
}

#[test]
fn a_link_is_used_as_far_as_its_fuller_direction() {
    let link = LinkUse {
        sent_bits_per_s: 40.0,
        received_bits_per_s: 90.0,
        link_bits_per_s: Some(100.0),
        shaped_bits_per_s: Some(50.0),
        ..LinkUse::default()
    };
    assert_eq!(link.use_of_limit(), Some((90.0, 100.0)));
    assert!(!link.is_fuller_on_the_way_out());
    let link = LinkUse { received_bits_per_s: 0.0, ..link };
    assert_eq!(link.use_of_limit(), Some((40.0, 50.0)));
    assert!(link.is_fuller_on_the_way_out());
    let unlimited = LinkUse { sent_bits_per_s: 1e12, ..LinkUse::default() };
    assert_eq!((unlimited.use_of_limit(), unlimited.is_fuller_on_the_way_out()), (None, false));
}

/// The use of a processor in a second of which it accounts for some: milliseconds of user mode, of soft interrupts, idle.
fn accounted(user: u64, softirq: u64, idle: u64) -> CpuUse {
    let cpu = Cpu {
        number: 0,
        user_us: user * 1000,
        system_us: softirq * 1000,
        softirq_us: softirq * 1000,
        idle_us: idle * 1000,
        ..Cpu::default()
    };
    let counted = |at_us, cpu| Counters { cpus: vec![cpu], ..sample(at_us, Vec::new()) };
    of_counters(&[counted(0, Cpu::default()), counted(1_000_000, cpu)], (0, 1_000_000)).hosts[0].cpus[0]
}

/// A kernel that counts by ticks leaves out interrupts that end idleness; of idleness it knows exactly.
#[test]
fn time_that_the_kernel_does_not_account_for_was_soft_interrupts_where_little_else_was_seen() {
    for (softirq, idle) in [(100, 100), (30, 100), (0, 100)] {
        let cpu = accounted(10, softirq, idle);
        close(cpu.busy, 0.9);
        close(cpu.softirq, 0.89);
    }
}

#[test]
fn time_that_a_hypervisor_takes_untold_is_no_soft_interrupts() {
    let cpu = accounted(300, 0, 100);
    close(cpu.busy, 0.75);
    close(cpu.softirq, 0.0);
}

#[test]
fn an_account_that_is_out_by_a_few_ticks_is_complete() {
    close(accounted(0, 0, 960).busy, 0.0);
}
