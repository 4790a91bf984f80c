//! Keeps the samples of a long run few: each time they have become many, every second one is dropped, and from then on samples
//! are taken half as often. So those that are left are spread evenly over the run, as averages over them have to be.
//!
//! Rates are differences between counters that only grow, so they lose nothing with a sample in the middle. Only what a process
//! used that ended right after such a sample would be lost with it, and is counted on.

use std::collections::{BTreeMap, BTreeSet};

use analysis::counters::{Counters, Process};

/// Samples are dropped when there are more: at four a second, those of a quarter of an hour.
const SAMPLES_MAX: usize = 4_000;

/// Samples are taken half as often no more than so many times.
const TIMES_MAX: u32 = 16;

/// What names a process for good: its number and when it started.
type ProcessKey = (u32, u64);

/// CPU time, microseconds, by the process to whose reaped children it is added.
type Carried = BTreeMap<ProcessKey, u64>;

/// What is to be known of samples that were dropped, and of those that may not be.
#[derive(Debug, Default)]
pub(super) struct Thinning {
    /// When the samples at borders of measurements were taken, which are never dropped.
    borders: BTreeSet<u64>,
    /// How often every second sample was dropped.
    times: u32,
    /// So many samples may be kept if that is more than [`SAMPLES_MAX`]: those that may not be dropped are no reason to try anew.
    most: usize,
    /// CPU time that only dropped samples tell of.
    carried: Carried,
}

impl Thinning {
    /// Adds a sample, and drops every second one if there are too many by then.
    pub(super) fn add(&mut self, samples: &mut Vec<Counters>, mut sample: Counters, is_border: bool) {
        if is_border {
            self.borders.insert(sample.at_us);
        }
        add_carried(&self.carried, &mut sample);
        samples.push(sample);
        if samples.len() > SAMPLES_MAX.max(self.most) {
            self.thin(samples);
        }
    }

    /// How many samples at borders there are.
    #[cfg(test)]
    pub(super) fn borders(&self) -> usize {
        self.borders.len()
    }

    /// How many times as long as asked for the time between two samples is by now.
    pub(super) fn stretch(&self) -> u32 {
        1 << self.times.min(TIMES_MAX)
    }

    /// Drops every second sample, but never the last.
    fn thin(&mut self, samples: &mut Vec<Counters>) {
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

    #[test]
    fn a_short_run_keeps_all_its_samples() {
        let (mut thinning, mut samples) = (Thinning::default(), Vec::new());
        for number in 0..SAMPLES_MAX as u64 {
            thinning.add(&mut samples, sample(number * PERIOD_US, Vec::new()), false);
        }
        assert_eq!((samples.len(), thinning.stretch()), (SAMPLES_MAX, 1));
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
