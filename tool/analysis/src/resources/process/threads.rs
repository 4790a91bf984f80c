//! Sums over the samples of one step, thread by thread, and by the threads' names.

use std::collections::{BTreeMap, BTreeSet};

use super::FULL_THREAD;
use super::waiters::{Counts, Waiters};
use crate::counters::{Process, Thread, ThreadState};
use crate::resources::samples::growth;

/// The use of processors by one thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadUse {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// The kernel's short name of it.
    pub name: String,
    /// Busy share of one core.
    pub busy: f64,
    /// Share of the time it was runnable but waited for a processor.
    pub waited: f64,
    /// Share of the samples that found it running or waiting to run.
    pub found_runnable: f64,
}

/// The use of processors by all threads of one name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadFamilyUse {
    /// The kernel's short name of them; `worker-*` stands for `worker-1`, `worker-2` and so on.
    pub name: String,
    /// Most of them in any one sample.
    pub threads: usize,
    /// Those of them that kept a core to themselves ([`FULL_THREAD`]).
    pub full: usize,
    /// Processor time used, in cores.
    pub cores: f64,
}

/// Shares of the (thread, sample) pairs found in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct States {
    /// On a processor or waiting for one.
    pub running: f64,
    /// Waiting for a lock or a condition.
    pub futex: f64,
    /// Waiting, almost always for a disk.
    pub disk: f64,
}

/// Sums for the threads of one group of processes so far, by process and thread number.
#[derive(Debug, Default)]
pub(super) struct Threads {
    all: BTreeMap<(u32, u32), ThreadTally>,
    /// Most threads of one name that any sample found.
    most_at_once: BTreeMap<String, usize>,
    /// Threads there were, and those of them that were sampled, summed over samples.
    there: u64,
    sampled: u64,
    /// Threads that waited at futexes, sample by sample.
    waiting: Counts,
}

#[derive(Debug, Default)]
struct ThreadTally {
    name: String,
    cpu_us: u64,
    waited_us: u64,
    /// Its counters when it was last sampled.
    last: Option<(u64, u64)>,
    samples: u32,
    running: u32,
    futex: u32,
    disk: u32,
}

impl Threads {
    /// Takes what the threads of one process were found doing.
    pub(super) fn add_sample(&mut self, process: &Process) {
        self.there += u64::from(process.thread_count).max(process.threads.len() as u64);
        self.sampled += process.threads.len() as u64;
        for thread in &process.threads {
            self.all.entry((process.pid, thread.tid)).or_default().add_sample(thread);
        }
    }

    /// Counts the threads of all processes of the group in one sample: how many of each name there are at once.
    pub(super) fn count(&mut self, processes: &[&Process]) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for thread in processes.iter().flat_map(|process| &process.threads) {
            *counts.entry(family(&thread.name)).or_default() += 1;
        }
        for (name, count) in counts {
            let most = self.most_at_once.entry(name).or_default();
            *most = count.max(*most);
        }
        self.waiting.add_sample(processes);
    }

    /// Threads that waited at futexes.
    pub(super) fn waiters(&self) -> Waiters {
        self.waiting.waiters()
    }

    /// Adds what they counted between two samples of one process. A thread missing in the earlier one began since; if
    /// the list was cut short then, it has counted since it was last sampled.
    pub(super) fn add(&mut self, before: &Process, after: &Process) {
        let complete = before.threads.len() >= before.thread_count as usize;
        let earlier: BTreeSet<u32> = before.threads.iter().map(|thread| thread.tid).collect();
        for thread in &before.threads {
            let tally = self.all.entry((after.pid, thread.tid)).or_default();
            tally.last.get_or_insert((thread.cpu_us, thread.run_queue_wait_us));
        }
        for thread in &after.threads {
            let tally = self.all.entry((after.pid, thread.tid)).or_default();
            if complete && !earlier.contains(&thread.tid) {
                tally.last = Some((0, 0));
            }
            tally.add(thread);
        }
    }

    pub(super) fn busiest(&self, elapsed_us: f64) -> Option<ThreadUse> {
        let ((pid, tid), thread) = self.all.iter().max_by_key(|(_, thread)| thread.cpu_us)?;
        Some(ThreadUse {
            pid: *pid,
            tid: *tid,
            name: thread.name.clone(),
            busy: (thread.cpu_us as f64 / elapsed_us).min(1.0),
            waited: (thread.waited_us as f64 / elapsed_us).min(1.0),
            found_runnable: f64::from(thread.running) / f64::from(thread.samples.max(1)),
        })
    }

    /// How many were busy at least this share of a core.
    pub(super) fn working(&self, elapsed_us: f64, share: f64) -> usize {
        let works = |thread: &&ThreadTally| thread.cpu_us as f64 / elapsed_us >= share;
        self.all.values().filter(works).count()
    }

    /// Use by the threads of each name, most first.
    pub(super) fn by_name(&self, elapsed_us: f64) -> Vec<ThreadFamilyUse> {
        let mut sums: BTreeMap<String, (u64, usize)> = BTreeMap::new();
        for thread in self.all.values() {
            let (sum, full) = sums.entry(family(&thread.name)).or_default();
            *sum = sum.saturating_add(thread.cpu_us);
            *full += usize::from(thread.cpu_us as f64 / elapsed_us >= FULL_THREAD);
        }
        let mut all: Vec<ThreadFamilyUse> = sums
            .into_iter()
            .map(|(name, (cpu_us, full))| ThreadFamilyUse {
                threads: self.most_at_once.get(&name).copied().unwrap_or(0),
                full,
                cores: cpu_us as f64 / elapsed_us,
                name,
            })
            .collect();
        all.sort_by(|a, b| b.cores.total_cmp(&a.cores));
        all
    }

    /// Share of the threads that a sample left out, because there were too many.
    pub(super) fn left_out(&self) -> f64 {
        1.0 - self.sampled as f64 / self.there.max(1) as f64
    }

    pub(super) fn states(&self) -> States {
        let sum = |read: fn(&ThreadTally) -> u32| self.all.values().map(read).map(f64::from).sum::<f64>();
        let samples = sum(|t| t.samples).max(1.0);
        States {
            running: sum(|t| t.running) / samples,
            futex: sum(|t| t.futex) / samples,
            disk: sum(|t| t.disk) / samples,
        }
    }

    pub(super) fn disk_waiting(&self) -> f64 {
        let share = |thread: &ThreadTally| f64::from(thread.disk) / f64::from(thread.samples.max(1));
        self.all.values().map(share).fold(0.0, f64::max)
    }
}

impl ThreadTally {
    fn add_sample(&mut self, thread: &Thread) {
        self.name.clone_from(&thread.name);
        self.samples += 1;
        match thread.state {
            ThreadState::Running => self.running += 1,
            ThreadState::Futex => self.futex += 1,
            ThreadState::Disk => self.disk += 1,
            ThreadState::Sleeping | ThreadState::Other => {}
        }
    }

    /// Takes its counters now. They are unknown for a thread that was never sampled before.
    fn add(&mut self, thread: &Thread) {
        if let Some((cpu_us, waited_us)) = self.last {
            self.cpu_us = self.cpu_us.saturating_add(growth(cpu_us, thread.cpu_us));
            self.waited_us = self.waited_us.saturating_add(growth(waited_us, thread.run_queue_wait_us));
        }
        self.last = Some((thread.cpu_us, thread.run_queue_wait_us));
    }
}

/// The name that threads numbered one after the other share: `worker-*` of `worker-1` and `worker-12`.
pub(in crate::resources) fn family(name: &str) -> String {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.is_empty() || stem.len() == name.len() { name.to_owned() } else { stem.to_owned() + "*" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, name: &str, cpu_us: u64) -> Thread {
        Thread { tid, name: name.to_owned(), cpu_us, ..Thread::default() }
    }

    fn process(thread_count: u32, threads: Vec<Thread>) -> Process {
        Process { pid: 9, thread_count, threads, ..Process::default() }
    }

    /// Use by the threads of each name in one second, in thousandths of a core, and how many there were.
    fn named(samples: &[Process]) -> Vec<(String, u64, usize)> {
        let mut threads = Threads::default();
        for sample in samples {
            threads.add_sample(sample);
            threads.count(&[sample]);
        }
        samples.windows(2).for_each(|pair| threads.add(&pair[0], &pair[1]));
        let milli = |cores: f64| (cores * 1e3).round() as u64;
        threads
            .by_name(1e6)
            .into_iter()
            .map(|named| (named.name, milli(named.cores), named.threads))
            .collect()
    }

    #[test]
    fn threads_that_differ_in_their_number_only_are_one_family() {
        for (name, expected) in [
            ("worker-1", "worker-*"),
            ("worker-12", "worker-*"),
            ("GC Thread#0", "GC Thread#*"),
            ("C2 CompilerThre", "C2 CompilerThre"),
            ("4711", "4711"),
            ("", ""),
        ] {
            assert_eq!(family(name), expected);
        }
    }

    #[test]
    fn names_are_summed_the_busiest_first() {
        let at = |one, two, main| {
            process(3, vec![thread(9, "server", main), thread(10, "hash-1", one), thread(11, "hash-2", two)])
        };
        let found = named(&[at(500, 700, 0), at(300_500, 400_700, 20_000)]);
        assert_eq!(found, [("hash-*".to_owned(), 700, 2), ("server".to_owned(), 20, 1)]);
    }

    #[test]
    fn a_thread_that_began_since_counts_whole_and_one_that_ended_until_its_last_sample() {
        let samples = [
            process(2, vec![thread(9, "server", 0), thread(10, "old", 900_000)]),
            process(2, vec![thread(9, "server", 0), thread(10, "old", 950_000)]),
            process(2, vec![thread(9, "server", 0), thread(11, "new", 30_000)]),
        ];
        let found = named(&samples);
        assert_eq!(found[..2], [("old".to_owned(), 50, 1), ("new".to_owned(), 30, 1)]);
    }

    /// Of more threads than a sample takes in, each is sampled now and then.
    #[test]
    fn a_thread_left_out_at_some_samples_loses_no_time() {
        let samples = [
            process(9, vec![thread(10, "worker", 100_000)]),
            process(9, vec![thread(11, "worker", 700_000)]),
            process(9, vec![thread(10, "worker", 250_000)]),
            process(9, vec![thread(11, "worker", 750_000)]),
        ];
        assert_eq!(named(&samples), [("worker".to_owned(), 200, 1)]);
        let mut threads = Threads::default();
        samples.iter().for_each(|sample| threads.add_sample(sample));
        assert!((threads.left_out() - 8.0 / 9.0).abs() < 1e-9);
    }

    #[test]
    fn a_number_used_again_is_another_thread() {
        let samples = [
            process(2, vec![thread(9, "server", 0), thread(10, "first", 50_000)]),
            process(1, vec![thread(9, "server", 0)]),
            process(2, vec![thread(9, "server", 0), thread(10, "second", 20_000)]),
        ];
        assert_eq!(named(&samples)[0], ("second".to_owned(), 20, 1));
    }
}
