use super::*;
use crate::counters::{Cpu, Process, Thread};

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
    close(found.host.steal(), 0.25);
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
    assert_eq!(LinkUse { received_bits_per_s: 0.0, ..link }.use_of_limit(), Some((40.0, 50.0)));
    assert_eq!(LinkUse { sent_bits_per_s: 1e12, ..LinkUse::default() }.use_of_limit(), None);
}

/// A kernel that counts by ticks leaves out interrupts that end idleness: of a second 0.1 s was idle and 0.1 s counted.
#[test]
fn time_that_the_kernel_does_not_account_for_was_not_idle() {
    let counted = |at_us: u64, us: u64| {
        let cpu = Cpu { number: 0, system_us: us, softirq_us: us, idle_us: us, ..Cpu::default() };
        Counters { cpus: vec![cpu], ..sample(at_us, Vec::new()) }
    };
    let found = of_counters(&[counted(0, 0), counted(1_000_000, 100_000)], (0, 1_000_000));
    let cpu = &found.host.cpus[0];
    close(cpu.busy, 0.5);
    close(cpu.unaccounted, 0.8);
    close(cpu.with_unaccounted(cpu.busy), 0.9);
}
