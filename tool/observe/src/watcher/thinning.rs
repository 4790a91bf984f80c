//! Keeps the samples of a long run few: each time they have become many, every second one is dropped, and from then on samples
//! are taken half as often. So those that are left are spread evenly over the run, as averages over them have to be.
//!
//! Rates are differences between counters that only grow, so they lose nothing with a sample in the middle. A process that ends
//! right after a dropped sample would lose the CPU time that only that sample shows, so it is carried over to the next sample.

use std::collections::{BTreeMap, BTreeSet};

use analysis::counters::{Counters, Process};

/// Samples are dropped when there are more: at four a second, those of a quarter of an hour.
const SAMPLES_MAX: usize = 4_000;

/// Samples are dropped too when there are more threads in all of them: they take about 0.1 GB then.
const THREADS_MAX: usize = 1_000_000;

/// Samples are taken half as often no more than so many times.
const TIMES_MAX: u32 = 16;

/// Of more processes whose CPU time is carried over, those that have ended are forgotten.
const CARRIED_MAX: usize = 1 << 16;

/// What names a process for good: its number and when it started.
type ProcessKey = (u32, u64);

/// CPU time, microseconds, by the process to whose reaped children it is added.
type Carried = BTreeMap<ProcessKey, u64>;

/// What is to be known of samples that were dropped, and of those that may not be.
#[derive(Debug, Default)]
pub struct Thinning {
    /// When the samples at borders of measurements were taken, which are never dropped.
    borders: BTreeSet<u64>,
    /// How often every second sample was dropped.
    times: u32,
    /// The limit where samples that must be kept exceed [`SAMPLES_MAX`], so that not every sample thins again.
    most: usize,
    /// How many threads there are in all samples.
    threads: usize,
    /// The limit for these where samples that must be kept exceed [`THREADS_MAX`].
    most_threads: usize,
    /// CPU time that only dropped samples tell of.
    carried: Carried,
    /// How many samples were dropped since the last that was kept, of those that come as often as before.
    skipped: u32,
}

impl Thinning {
    /// Adds a sample, and drops every second one if there are too many by then. One at a border of a measurement is never dropped.
    pub fn add(&mut self, samples: &mut Vec<Counters>, mut sample: Counters, is_border: bool) {
        if is_border {
            self.borders.insert(sample.at_us);
        }
        add_carried(&self.carried, &mut sample);
        self.push(samples, sample);
    }

    /// Adds a sample of somebody who goes on taking them as often as before. Where they are to be further apart by now, the one
    /// before it is dropped.
    pub fn add_unpaced(&mut self, samples: &mut Vec<Counters>, mut sample: Counters, is_border: bool) {
        if is_border {
            self.borders.insert(sample.at_us);
        }
        add_carried(&self.carried, &mut sample);
        if let [.., before, last] = samples.as_slice()
            && self.skipped + 1 < self.stretch()
            && self.may_be_dropped(last, before)
        {
            carry_over((before, last), &mut sample, &mut self.carried);
            self.threads = self.threads.saturating_sub(threads(last));
            samples.pop();
            self.skipped += 1;
        } else {
            self.skipped = 0;
        }
        self.push(samples, sample);
    }

    fn push(&mut self, samples: &mut Vec<Counters>, sample: Counters) {
        if self.carried.len() > CARRIED_MAX {
            let alive: BTreeSet<ProcessKey> = sample.processes.iter().map(key).collect();
            self.carried.retain(|process, _| alive.contains(process));
        }
        self.threads += threads(&sample);
        samples.push(sample);
        let is_large = self.threads > THREADS_MAX.max(self.most_threads);
        if is_large || samples.len() > SAMPLES_MAX.max(self.most) {
            self.thin(samples);
        }
    }

    /// How many samples at borders there are.
    #[cfg(test)]
    pub(super) fn borders(&self) -> usize {
        self.borders.len()
    }

    /// How many times as long as asked for the time between two samples is by now.
    #[must_use]
    pub fn stretch(&self) -> u32 {
        1 << self.times.min(TIMES_MAX)
    }

    /// Drops every second sample, but never the last.
    pub fn thin(&mut self, samples: &mut Vec<Counters>) {
        let mut kept: Vec<Counters> = Vec::with_capacity(SAMPLES_MAX);
        let mut carried = Carried::new();
        let mut dropped: Option<Counters> = None;
        for mut sample in samples.drain(..) {
            add_carried(&carried, &mut sample);
            if let Some(dropped) = dropped.take() {
                if let Some(before) = kept.last() {
                    carry_over((before, &dropped), &mut sample, &mut carried);
                }
                kept.push(sample);
            } else if kept.last().is_some_and(|before| self.may_be_dropped(&sample, before)) {
                dropped = Some(sample);
            } else {
                kept.push(sample);
            }
        }
        kept.extend(dropped);
        *samples = kept;
        self.times = self.times.saturating_add(1);
        self.most = samples.len() + SAMPLES_MAX / 2;
        self.threads = samples.iter().map(threads).sum();
        self.most_threads = self.threads + THREADS_MAX / 2;
        for (process, used_us) in carried {
            *self.carried.entry(process).or_default() += used_us;
        }
    }

    /// Whether it lies at no border, and the sample before it, which is kept, tells of all that it does: what changes slowly, and
    /// connections where there are many, are not looked at by every sample.
    fn may_be_dropped(&self, sample: &Counters, before: &Counters) -> bool {
        let is_told = |looks: fn(&Counters) -> bool| looks(before) || !looks(sample);
        !self.borders.contains(&sample.at_us)
            && is_told(|sample| sample.hops.is_some())
            && is_told(|sample| sample.memory_limits.is_some())
            && is_told(|sample| sample.connection_limits.is_some())
    }
}

/// How many threads of all processes a sample holds.
fn threads(sample: &Counters) -> usize {
    sample.processes.iter().map(|process| process.threads.len()).sum()
}

fn add_carried(carried: &Carried, sample: &mut Counters) {
    for process in &mut sample.processes {
        if let Some(more_us) = carried.get(&key(process)) {
            process.reaped_children_us = process.reaped_children_us.saturating_add(*more_us);
        }
    }
}

/// Counts on what processes used that a dropped sample is the last to tell of. What its parent's reaped children used leaves out
/// what samples told of a process while it lived. So that is added there, in the sample after it and in all later ones, to the
/// eldest process of the same group.
fn carry_over((before, dropped): (&Counters, &Counters), after: &mut Counters, carried: &mut Carried) {
    // Nearly always none has ended. This is done while the samples are locked.
    if dropped.processes.iter().map(key).eq(after.processes.iter().map(key)) {
        return;
    }
    let known: BTreeMap<ProcessKey, &Process> =
        before.processes.iter().map(|process| (key(process), process)).collect();
    let newest = before.processes.iter().map(|process| process.started_ticks).max().unwrap_or(u64::MAX);
    let left: BTreeSet<ProcessKey> = after.processes.iter().map(key).collect();
    for ended in dropped.processes.iter().filter(|process| !left.contains(&key(process))) {
        let used_us = match known.get(&key(ended)) {
            Some(earlier) => cpu_us(ended).saturating_sub(cpu_us(earlier)),
            // One that was only found late did not use all that lately.
            None if ended.started_ticks > newest => cpu_us(ended),
            None => 0,
        };
        let is_of_group = |process: &&mut Process| {
            (process.role, &process.name) == (ended.role, &ended.name) && known.contains_key(&key(process))
        };
        let group = after.processes.iter_mut().filter(is_of_group);
        if let Some(eldest) = group.min_by_key(|process| process.started_ticks) {
            eldest.reaped_children_us = eldest.reaped_children_us.saturating_add(used_us);
            *carried.entry(key(eldest)).or_default() += used_us;
        }
    }
}

fn key(process: &Process) -> ProcessKey {
    (process.pid, process.started_ticks)
}

fn cpu_us(process: &Process) -> u64 {
    process.user_us.saturating_add(process.system_us).saturating_add(process.reaped_children_us)
}

#[cfg(test)]
mod tests {
    use analysis::counters::Thread;
    use analysis::resources::usage;

    use super::*;

    const PERIOD_US: u64 = 250_000;

    fn sample(at_us: u64, processes: Vec<Process>) -> Counters {
        Counters { at_us, processes, ..Counters::default() }
    }

    fn process(pid: u32, user_us: u64) -> Process {
        Process { pid, started_ticks: pid.into(), name: "app".into(), user_us, ..Process::default() }
    }

    /// The processor time of the only group, in milliseconds.
    fn used_ms(samples: &[Counters]) -> u64 {
        let window = (0, samples.last().map_or(0, |last| last.at_us));
        let seen = usage(samples, &[], window);
        (seen.groups[0].cores * seen.elapsed_us / 1e3).round() as u64
    }

    #[test]
    fn the_samples_of_a_day_are_few_and_spread_evenly_over_it() {
        const DAY_US: u64 = 24 * 3_600_000_000;
        let (mut thinning, mut samples, mut at_us) = (Thinning::default(), Vec::new(), 0);
        while at_us <= DAY_US {
            thinning.add(&mut samples, sample(at_us, vec![process(10, at_us / 2)]), false);
            assert!(samples.len() <= SAMPLES_MAX + 8, "{}", samples.len());
            at_us += PERIOD_US * u64::from(thinning.stretch());
        }
        let mean_us = samples.iter().map(|sample| sample.at_us as f64).sum::<f64>() / samples.len() as f64;
        assert!((mean_us / DAY_US as f64 - 0.5).abs() < 0.02, "{mean_us}");
        assert!(samples.len() > SAMPLES_MAX / 3, "{}", samples.len());
        assert_eq!((samples[0].at_us, used_ms(&samples)), (0, samples[samples.len() - 1].at_us / 2_000));
    }

    /// Nobody tells the one who samples to do so less often.
    #[test]
    fn samples_that_go_on_coming_as_often_as_before_are_spread_evenly_too() {
        const HOURS_US: u64 = 8 * 3_600_000_000;
        let (mut thinning, mut samples) = (Thinning::default(), Vec::new());
        for at_us in (0..=HOURS_US).step_by(250_000) {
            thinning.add_unpaced(&mut samples, sample(at_us, vec![process(10, at_us / 2)]), at_us == 500_000);
            assert!(samples.len() <= SAMPLES_MAX + 8, "{}", samples.len());
            assert_eq!(samples[samples.len() - 1].at_us, at_us, "the last is there");
        }
        let mean_us = samples.iter().map(|sample| sample.at_us as f64).sum::<f64>() / samples.len() as f64;
        assert!((mean_us / HOURS_US as f64 - 0.5).abs() < 0.02, "{mean_us}");
        assert!(samples.len() > SAMPLES_MAX / 3, "{}", samples.len());
        assert!(samples.iter().any(|sample| sample.at_us == 500_000), "a border is kept");
        assert_eq!((samples[0].at_us, used_ms(&samples)), (0, HOURS_US / 2_000));
    }

    #[test]
    fn what_a_child_used_that_only_a_skipped_sample_tells_of_is_not_lost() {
        let forked = |number: u32| {
            sample(u64::from(number) * 1_000_000, vec![process(10, 0), process(100 + number, 1_000)])
        };
        let (mut thinning, mut samples) = (Thinning { times: 2, ..Thinning::default() }, Vec::new());
        (0..20).for_each(|number| thinning.add_unpaced(&mut samples, forked(number), false));
        assert_eq!((samples.len(), used_ms(&samples)), (6, 19));
    }

    #[test]
    fn processes_without_end_are_forgotten_once_they_have_ended() {
        let carried: Carried = (0..70_000).map(|pid| ((pid, 1), 5)).chain([((10, 10), 7)]).collect();
        assert!(carried.len() > CARRIED_MAX);
        let mut thinning = Thinning { carried, ..Thinning::default() };
        thinning.add(&mut Vec::new(), sample(0, vec![process(10, 0)]), false);
        assert_eq!(thinning.carried, [((10, 10), 7)].into());
    }

    #[test]
    fn a_short_run_keeps_all_its_samples() {
        let (mut thinning, mut samples) = (Thinning::default(), Vec::new());
        for number in 0..SAMPLES_MAX as u64 {
            thinning.add(&mut samples, sample(number * PERIOD_US, Vec::new()), false);
        }
        assert_eq!((samples.len(), thinning.stretch()), (SAMPLES_MAX, 1));
    }

    #[test]
    fn few_samples_of_very_many_threads_are_thinned_too() {
        let threads = vec![Thread::default(); 2];
        let with_two = |at_us| sample(at_us, vec![Process { threads: threads.clone(), ..process(10, 0) }]);
        let (mut thinning, mut samples) = (Thinning::default(), Vec::new());
        thinning.threads = THREADS_MAX - 4;
        thinning.add(&mut samples, with_two(0), false);
        thinning.add(&mut samples, with_two(1), false);
        assert_eq!((samples.len(), thinning.stretch()), (2, 1));
        thinning.add(&mut samples, with_two(2), false);
        assert_eq!((samples.len(), thinning.stretch(), thinning.threads), (2, 2, 4));
        thinning.add(&mut samples, with_two(3), false);
        assert_eq!((samples.len(), thinning.stretch()), (3, 2), "there is room again");
    }

    #[test]
    fn samples_at_borders_and_what_only_some_samples_look_at_are_kept() {
        let mut thinning = Thinning { borders: [5, 7].into(), ..Thinning::default() };
        let mut samples: Vec<Counters> = (0..16).map(|at_us| sample(at_us, Vec::new())).collect();
        samples[11].connection_limits = Some(Vec::new());
        samples[13].hops = Some(Vec::new());
        thinning.thin(&mut samples);
        let left: Vec<u64> = samples.iter().map(|sample| sample.at_us).collect();
        assert_eq!(left, [0, 2, 4, 5, 7, 9, 11, 13, 15]);
        assert_eq!(thinning.stretch(), 2);
    }

    /// A server forks a child for each connection, and only one sample finds it.
    #[test]
    fn what_children_used_that_only_dropped_samples_tell_of_is_not_lost() {
        let forked = |number: u32| {
            let child = process(100 + number, 1_000);
            sample(u64::from(number) * 1_000_000, vec![process(10, 0), child])
        };
        let mut samples: Vec<Counters> = (0..9).map(forked).collect();
        assert_eq!(used_ms(&samples), 8);
        let mut thinning = Thinning::default();
        thinning.thin(&mut samples);
        assert_eq!((samples.len(), used_ms(&samples)), (5, 8));
        thinning.thin(&mut samples);
        assert_eq!((samples.len(), used_ms(&samples)), (3, 8));
        thinning.add(&mut samples, forked(9), false);
        assert_eq!(used_ms(&samples), 9, "later samples count on from there");
    }

    #[test]
    fn what_a_process_used_until_a_sample_that_is_kept_counts_once() {
        let at = |at_us, processes| sample(at_us, processes);
        let mut samples = vec![
            at(0, vec![process(10, 0), process(20, 0)]),
            at(1_000_000, vec![process(10, 0), process(20, 3_000)]),
            at(2_000_000, vec![process(10, 0), process(20, 5_000)]),
            at(3_000_000, vec![process(10, 0)]),
            at(4_000_000, vec![process(10, 0)]),
        ];
        assert_eq!(used_ms(&samples), 5);
        Thinning::default().thin(&mut samples);
        assert_eq!((samples.len(), used_ms(&samples)), (3, 5));
    }
}
