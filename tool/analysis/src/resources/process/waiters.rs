//! Threads that wait at futexes: how many, and how many of them at one. And threads that sleep until a time.

use std::collections::BTreeMap;

use crate::counters::{Process, ProcessLook, Role, ThreadLook, ThreadState};
use crate::statistics::batch_means::{Observation, batch_means};

/// Fewer counts than this give no interval.
const MIN_COUNTS: usize = 4;

/// Threads of a group of processes that waited at futexes, or slept until a time, during one step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waiters {
    /// Threads of one process at one futex, where most waited; `None` where addresses may not be read.
    pub at_one: Option<Average>,
    /// Threads that waited for any futex, of all processes.
    pub in_all: Average,
    /// Threads that slept until a time, of all processes; `None` where they were not looked at closely.
    pub asleep: Option<Average>,
    /// Whether they were looked at many times a second, and not only when everything was sampled.
    pub closely: bool,
}

/// The mean of counts at moments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Average {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % interval; `None` where there were too few counts.
    pub half_width: Option<f64>,
}

impl Average {
    /// By batch means, since what is seen at one moment resembles what was seen just before.
    fn of(counts: &[f64]) -> Self {
        let of = |count: &f64| Observation { numerator: *count, denominator: 1.0 };
        let observations: Vec<Observation> = counts.iter().map(of).collect();
        let found = batch_means(&observations, MIN_COUNTS);
        Self { mean: crate::statistics::mean::mean(counts), half_width: found.map(|found| found.half_width) }
    }

    /// The 95 % interval, [lo, hi].
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.half_width.map(|half| [(self.mean - half).max(0.0), self.mean + half])
    }
}

/// Counts at each moment of one step.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    at_one: Vec<f64>,
    in_all: Vec<f64>,
    asleep: Vec<f64>,
    addresses: bool,
}

/// What one process's threads that were seen waited for at one moment.
struct Seen {
    futexes: Vec<u64>,
    at_futexes: usize,
    asleep: u32,
    /// How many threads there are for each that was seen.
    scale: f64,
}

impl Counts {
    /// Adds what one sample found of the processes of a group.
    pub(super) fn add_sample(&mut self, processes: &[&Process]) {
        let seen = |process: &&Process| {
            let waiting = process.threads.iter().filter(|thread| thread.state == ThreadState::Futex);
            let futexes = waiting.clone().filter_map(|thread| thread.futex).collect();
            let sampled = process.threads.len() as f64;
            let scale = f64::from(process.thread_count).max(sampled) / sampled.max(1.0);
            Seen { futexes, at_futexes: waiting.count(), asleep: 0, scale }
        };
        self.add(processes.iter().map(seen));
    }

    /// The same of one look.
    fn add_look<'a>(&mut self, processes: impl Iterator<Item = &'a ProcessLook>) {
        let seen = |process: &ProcessLook| Seen {
            futexes: process.futexes.clone(),
            at_futexes: process.futexes.len(),
            asleep: process.asleep,
            scale: f64::from(process.threads) / f64::from(process.looked_at.max(1)),
        };
        self.addresses = true;
        self.add(processes.map(seen));
    }

    /// Adds one moment.
    fn add(&mut self, processes: impl Iterator<Item = Seen>) {
        let (mut most, mut in_all, mut asleep) = (0.0, 0.0, 0.0);
        for seen in processes {
            self.addresses |= !seen.futexes.is_empty();
            most = scaled(longest_queue(&seen.futexes), seen.scale).max(most);
            in_all += seen.at_futexes as f64 * seen.scale;
            asleep += f64::from(seen.asleep) * seen.scale;
        }
        self.at_one.push(most);
        self.in_all.push(in_all);
        self.asleep.push(asleep);
    }

    pub(super) fn waiters(&self) -> Waiters {
        Waiters {
            at_one: self.addresses.then(|| Average::of(&self.at_one)),
            in_all: Average::of(&self.in_all),
            asleep: None,
            closely: false,
        }
    }

    /// The same of looks, which tell who sleeps until a time.
    fn looked_at(&self) -> Waiters {
        Waiters { asleep: Some(Average::of(&self.asleep)), closely: true, ..self.waiters() }
    }
}

/// The most threads that wait at one of the futexes.
fn longest_queue(futexes: &[u64]) -> usize {
    let mut queues: BTreeMap<u64, usize> = BTreeMap::new();
    for address in futexes {
        *queues.entry(*address).or_default() += 1;
    }
    queues.into_values().max().unwrap_or(0)
}

/// A queue of so many seen, of all threads. One alone at its futex is no queue, however few were seen.
fn scaled(seen: usize, scale: f64) -> f64 {
    if seen > 1 { seen as f64 * scale } else { seen as f64 }
}

/// What looks at the threads of one group of processes saw; `None` if they saw none of them.
pub(crate) fn looked_at(looks: &[ThreadLook], role: Role, name: &str) -> Option<Waiters> {
    let of = |process: &&ProcessLook| process.role == role && process.name == name;
    let mut counts = Counts::default();
    for look in looks.iter().filter(|look| look.processes.iter().any(|process| of(&process))) {
        counts.add_look(look.processes.iter().filter(of));
    }
    (!counts.in_all.is_empty()).then(|| counts.looked_at())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counters::Thread;

    fn app(threads: u32, looked_at: u32, futexes: &[u64]) -> ProcessLook {
        ProcessLook {
            name: "app".into(),
            threads,
            looked_at,
            futexes: futexes.to_vec(),
            ..ProcessLook::default()
        }
    }

    fn seen(looks: &[Vec<ProcessLook>]) -> Waiters {
        let look = |processes: &Vec<ProcessLook>| ThreadLook { at_us: 0, processes: processes.clone() };
        looked_at(&looks.iter().map(look).collect::<Vec<_>>(), Role::Server, "app").unwrap()
    }

    #[test]
    fn the_queue_is_the_longest_at_one_futex_of_one_process() {
        let at_once = vec![app(4, 4, &[16, 16, 32]), app(4, 4, &[16, 16, 16]), app(4, 4, &[])];
        let waiters = seen(&[at_once, vec![app(4, 4, &[16])]]);
        assert_eq!((waiters.at_one.unwrap().mean, waiters.in_all.mean), (2.0, 3.5));
        assert!(waiters.closely && waiters.in_all.half_width.is_none());
        let other = ThreadLook { at_us: 0, processes: vec![app(2, 2, &[])] };
        assert_eq!(looked_at(&[other], Role::Downstream, "app"), None);
    }

    #[test]
    fn threads_that_were_left_out_wait_like_the_others_but_one_alone_is_no_queue() {
        assert_eq!(seen(&[vec![app(1_000, 100, &[16; 50])]]).at_one.unwrap().mean, 500.0);
        let apart: Vec<u64> = (0..100).collect();
        let waiters = seen(&[vec![app(1_000, 100, &apart)]]);
        assert_eq!((waiters.at_one.unwrap().mean, waiters.in_all.mean), (1.0, 1_000.0));
    }

    #[test]
    fn a_sample_without_addresses_tells_only_how_many_wait() {
        let waits = Thread { state: ThreadState::Futex, ..Thread::default() };
        let process =
            Process { threads: vec![waits.clone(), waits, Thread::default()], ..Process::default() };
        let mut counts = Counts::default();
        (0..6).for_each(|_| counts.add_sample(&[&process, &process]));
        let waiters = counts.waiters();
        assert_eq!((waiters.at_one, waiters.in_all), (None, Average { mean: 4.0, half_width: Some(0.0) }));
        assert_eq!(waiters.asleep, None, "samples do not tell");
    }

    #[test]
    fn who_sleeps_until_a_time_is_counted_over_all_processes_and_all_threads() {
        let sleeps = |asleep| ProcessLook { asleep, ..app(200, 100, &[]) };
        let waiters = seen(&[vec![sleeps(30), sleeps(20)], vec![sleeps(40)]]);
        assert_eq!((waiters.asleep.unwrap().mean, waiters.in_all.mean), (90.0, 0.0));
    }

    proptest! {
        #[test]
        fn no_more_wait_at_one_futex_than_in_all(
            looks in prop::collection::vec(prop::collection::vec(0u64..6, 2..40), 1..60),
        ) {
            let looks: Vec<_> = looks.iter().map(|futexes| vec![app(40, 40, futexes)]).collect();
            let waiters = seen(&looks);
            let at_one = waiters.at_one.unwrap();
            prop_assert!(at_one.mean <= waiters.in_all.mean && at_one.mean >= 1.0);
            prop_assert!(at_one.interval().is_none_or(|[low, high]| low <= at_one.mean && at_one.mean <= high));
        }
    }
}
