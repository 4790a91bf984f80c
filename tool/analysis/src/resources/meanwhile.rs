//! What went on while nothing was answered: what was counted between two samples, beside how much of that time was silent.

use std::collections::BTreeMap;

use super::collectors::{COLLECTING, collect_in_workers, collects};
use super::hops::GroupKey;
use super::process::family;
use super::samples::growth;
use crate::counters::{Counters, Process, Role};
use crate::run::HostName;
use crate::statistics::mean::mean;
use crate::statistics::t_95;

/// What goes with silence takes at least this share of it.
const MUCH: f64 = 0.5;

/// And beyond chance at least this share.
const AT_LEAST: f64 = 0.25;

/// Fewer pairs of samples than this show no relation.
const FEWEST: usize = 4;

/// Something that went on while nothing was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Meanwhile {
    /// The thing.
    pub what: Happened,
    /// The share of that time that it took, 0 to 1; of threads, how many cores they used then.
    pub share: f64,
}

/// A thing that keeps servers from answering.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// Processes were kept stopped, because their cgroup had used up its CPU quota.
    Throttled {
        /// Processes in it.
        of: GroupKey,
        /// The cgroup's path.
        cgroup: String,
    },
    /// Threads named after a garbage collector worked.
    Collected {
        /// Their processes.
        of: GroupKey,
        /// Their name.
        threads: String,
    },
    /// Some task waited for memory: until some was reclaimed, or came back.
    MemoryAwaited {
        /// The host.
        on: HostName,
    },
    /// A disk was at work, or some task waited for one.
    DiskAwaited {
        /// The host.
        on: HostName,
        /// The disk, where one is known.
        device: Option<String>,
    },
    /// A runtime that collects garbage in its working threads went on working.
    WorkedOn {
        /// Its processes.
        of: GroupKey,
    },
}

impl Meanwhile {
    /// The same as seen by an observer of that place on that machine; `None` for what another tells of the machine.
    pub(super) fn seen_at(mut self, place: &HostName, machine: Option<&HostName>) -> Option<Self> {
        match &mut self.what {
            Happened::Throttled { of, .. } | Happened::Collected { of, .. } | Happened::WorkedOn { of } => {
                of.on.clone_from(place);
            }
            Happened::MemoryAwaited { on } | Happened::DiskAwaited { on, .. } => on.clone_from(machine?),
        }
        Some(self)
    }
}

/// Everything that went with the silences within the windows, what tells most first. All times are of one clock.
pub(super) fn meanwhile(
    counters: &[Counters],
    windows: &[(u64, u64)],
    silences: &[(u64, u64)],
) -> Vec<Meanwhile> {
    let intervals = Intervals::within(counters, windows, silences);
    if intervals.silent_us() <= 0.0 {
        return Vec::new();
    }
    let host = [intervals.memory(), intervals.disk()];
    let found = intervals.throttled().into_iter().chain(intervals.collected());
    found.chain(host.into_iter().flatten()).chain(intervals.worked_on()).collect()
}

/// Two consecutive samples, and how much of the time between them nothing was answered.
struct Interval<'a> {
    before: &'a Counters,
    after: &'a Counters,
    length_us: f64,
    silent_us: f64,
}

impl Interval<'_> {
    fn grown(&self, read: impl Fn(&Counters) -> Option<u64>) -> f64 {
        let both = read(self.before).zip(read(self.after));
        both.map_or(0.0, |(before, after)| growth(before, after) as f64)
    }

    /// The processes of a group that both samples hold.
    fn processes<'b>(&'b self, of: &'b GroupKey) -> impl Iterator<Item = (&'b Process, &'b Process)> {
        let known = |after: &&'b Process| GroupKey::of(after) == *of;
        self.after.processes.iter().filter(known).filter_map(|after| {
            let same =
                |before: &&Process| (before.pid, before.started_ticks) == (after.pid, after.started_ticks);
            Some((self.before.processes.iter().find(same)?, after))
        })
    }

    /// CPU time of the collector's threads of a group.
    fn collector_us(&self, of: &GroupKey) -> f64 {
        let of_process = |(before, after): (&Process, &Process)| -> f64 {
            let threads = after.threads.iter().filter(|thread| collects(&thread.name));
            let grown = threads.filter_map(|thread| {
                let same = before.threads.iter().find(|earlier| earlier.tid == thread.tid)?;
                Some(growth(same.cpu_us, thread.cpu_us) as f64)
            });
            grown.sum()
        };
        self.processes(of).map(of_process).sum()
    }

    /// CPU time of the busiest process of a group.
    fn busiest_us(&self, of: &GroupKey) -> f64 {
        let used = |process: &Process| process.user_us.saturating_add(process.system_us);
        let grown = self.processes(of).map(|(before, after)| growth(used(before), used(after)) as f64);
        grown.fold(0.0, f64::max)
    }
}

struct Intervals<'a>(Vec<Interval<'a>>);

impl<'a> Intervals<'a> {
    fn within(counters: &'a [Counters], windows: &[(u64, u64)], silences: &[(u64, u64)]) -> Self {
        let mut all: Vec<&Counters> = counters.iter().collect();
        all.sort_by_key(|sample| sample.at_us);
        let interval = |pair: &[&'a Counters]| {
            let (before, after) = (*pair.first()?, *pair.last()?);
            let span = (before.at_us, after.at_us);
            let measured = windows.iter().any(|window| overlap_us(*window, span) * 2 > span.1 - span.0);
            measured.then(|| Interval {
                before,
                after,
                length_us: (span.1 - span.0) as f64,
                silent_us: silences.iter().map(|silence| overlap_us(*silence, span) as f64).sum(),
            })
        };
        Self(all.windows(2).filter_map(interval).collect())
    }

    fn silent_us(&self) -> f64 {
        self.0.iter().map(|interval| interval.silent_us).sum()
    }

    /// Processes other than the generator's, by group.
    fn groups(&self) -> BTreeMap<GroupKey, &'a Process> {
        let all = self.0.iter().flat_map(|interval| &interval.after.processes);
        let tiers = all.filter(|process| process.role != Role::Generator);
        tiers.map(|process| (GroupKey::of(process), process)).collect()
    }

    /// A cgroup is stopped by nothing but its quota, so that how long is enough where every pair of samples has as much.
    fn throttled(&self) -> Vec<Meanwhile> {
        let limited =
            |(of, process): (GroupKey, &Process)| Some((of, process.cpu_quota.as_ref()?.cgroup.clone()));
        let by_cgroup = self.groups().into_iter().filter_map(limited);
        let found = by_cgroup.filter_map(|(of, cgroup)| {
            let stopped_us = |sample: &Counters| {
                let mut quotas = sample.processes.iter().filter_map(|process| process.cpu_quota.as_ref());
                Some(quotas.find(|quota| quota.cgroup == cgroup)?.throttled_us)
            };
            let amounts = self.amounts(|interval| interval.grown(stopped_us));
            let all = amounts.iter().sum::<f64>() / self.silent_us();
            let share = self.goes_with_silence(&amounts).or((all >= MUCH).then_some(all))?;
            Some(Meanwhile { what: Happened::Throttled { of, cgroup }, share: share.min(1.0) })
        });
        found.collect()
    }

    fn collected(&self) -> Vec<Meanwhile> {
        let found = self.groups().into_keys().filter_map(|of| {
            let cores = self.goes_with_silence(&self.amounts(|interval| interval.collector_us(&of)))?;
            let mut threads =
                self.0.last()?.after.processes.iter().filter(|process| GroupKey::of(process) == of);
            let named =
                |process: &Process| process.threads.iter().find(|thread| collects(&thread.name)).cloned();
            let threads = family(&threads.find_map(named)?.name);
            Some(Meanwhile { what: Happened::Collected { of, threads }, share: cores })
        });
        found.collect()
    }

    fn memory(&self) -> Option<Meanwhile> {
        let waited = self.amounts(|interval| interval.grown(|sample| Some(sample.pressure.memory_some_us)));
        let share = self.goes_with_silence(&waited)?.min(1.0);
        Some(Meanwhile { what: Happened::MemoryAwaited { on: None }, share })
    }

    /// A disk by name where one was at work then, flushes included, or else what tasks waited for.
    fn disk(&self) -> Option<Meanwhile> {
        let found = |device, share: f64| Meanwhile {
            what: Happened::DiskAwaited { on: None, device },
            share: share.min(1.0),
        };
        let named = self.0.last()?.after.disks.iter().find_map(|disk| {
            Some(found(Some(disk.name.clone()), self.goes_with_silence(&self.busy_us(&disk.name))?))
        });
        let waited = || self.amounts(|interval| interval.grown(|sample| Some(sample.pressure.io_some_us)));
        named.or_else(|| Some(found(None, self.goes_with_silence(&waited())?)))
    }

    fn busy_us(&self, name: &str) -> Vec<f64> {
        let busy_us = |sample: &Counters| {
            let disk = sample.disks.iter().find(|disk| disk.name == name)?;
            Some(disk.busy_us.saturating_add(disk.flush_us))
        };
        self.amounts(|interval| interval.grown(busy_us).min(interval.length_us))
    }

    /// Where answers leave no time for anything else, what a process used beyond the time in which it answered it used in
    /// silence.
    fn worked_on(&self) -> Option<Meanwhile> {
        let runtimes = self.groups().into_keys().filter(|of| collect_in_workers(&of.name));
        let share = |of: &GroupKey| {
            let silent = self.0.iter().filter(|interval| interval.silent_us > 0.0);
            let beyond = silent.map(|interval| {
                interval.busiest_us(of).min(interval.length_us) - (interval.length_us - interval.silent_us)
            });
            beyond.sum::<f64>() / self.silent_us()
        };
        let found = runtimes.map(|of| (share(&of), of)).find(|(share, _)| *share >= COLLECTING);
        found.map(|(share, of)| Meanwhile { what: Happened::WorkedOn { of }, share: share.min(1.0) })
    }

    fn amounts(&self, of: impl Fn(&Interval) -> f64) -> Vec<f64> {
        self.0.iter().map(of).collect()
    }

    /// How much of something there was for each microsecond of silence, by least squares over the pairs of samples: where more
    /// was silent, there was more of it. `None` where that is too little, or may be chance.
    fn goes_with_silence(&self, amounts: &[f64]) -> Option<f64> {
        let used = || self.0.iter().zip(amounts).filter(|(interval, _)| interval.length_us > 0.0);
        let silent: Vec<f64> = used().map(|(interval, _)| interval.silent_us / interval.length_us).collect();
        let amount: Vec<f64> = used().map(|(interval, us)| us / interval.length_us).collect();
        let (x, y) = (mean(&silent), mean(&amount));
        let squares: f64 = silent.iter().map(|one| (one - x).powi(2)).sum();
        let products: f64 = silent.iter().zip(&amount).map(|(one, other)| (one - x) * (other - y)).sum();
        let slope = products / squares;
        let left = silent.iter().zip(&amount).map(|(one, other)| (other - y - slope * (one - x)).powi(2));
        let freedom = silent.len().saturating_sub(2) as f64;
        let error = (left.sum::<f64>() / freedom / squares).sqrt();
        let enough = silent.len() >= FEWEST && squares > 0.0 && slope.is_finite();
        (enough && slope >= MUCH && slope - t_95(freedom) * error >= AT_LEAST).then_some(slope)
    }
}

/// How much two spans of time share.
fn overlap_us(one: (u64, u64), other: (u64, u64)) -> u64 {
    one.1.min(other.1).saturating_sub(one.0.max(other.0))
}

#[cfg(test)]
mod tests;
