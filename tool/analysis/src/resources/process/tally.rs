//! Sums over the samples of one step, process by process.

use std::collections::{BTreeMap, BTreeSet};

use super::io_limit::IoLimits;
use super::threads::Threads;
use crate::counters::{Container, Counters, CpuQuota, Process, Role};
use crate::resources::samples::growth;

/// Identifies a process: its number and when it started.
type ProcessKey = (u32, u64);

/// Sums for one group so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) program: String,
    pub(super) most_at_once: usize,
    pub(super) samples_runnable: usize,
    pub(super) samples_disk: usize,
    pub(super) most_threads: u32,
    pub(super) user_us: u64,
    pub(super) system_us: u64,
    pub(super) reaped_us: u64,
    pub(super) run_queue_wait_us: u64,
    pub(super) major_faults: u64,
    /// Bytes read from and written to block devices, where that may be read.
    pub(super) disk_bytes: Option<u64>,
    /// Bytes read from them, part of `disk_bytes`.
    pub(super) disk_read_bytes: Option<u64>,
    pub(super) open_files: Option<(u64, u64)>,
    pub(super) quota: Option<(CpuQuota, CpuQuota)>,
    pub(super) io_limits: IoLimits,
    pub(super) containers: BTreeSet<Container>,
    pub(super) units: BTreeSet<String>,
    pub(super) by_process: BTreeMap<ProcessKey, ProcessTally>,
    pub(super) threads: Threads,
}

/// Sums for one process so far.
#[derive(Debug, Default)]
pub(super) struct ProcessTally {
    pub(super) cpu_us: u64,
    allowed_count: u32,
    allowed_numbers: Vec<u32>,
}

impl Tally {
    /// Adds the gauges of one process in one sample.
    pub(super) fn add_sample(&mut self, process: &Process) {
        self.most_threads = self.most_threads.max(process.thread_count);
        self.program.clone_from(&process.program);
        let entry = self.by_process.entry((process.pid, process.started_ticks)).or_default();
        entry.allowed_count = process.allowed_cpus;
        entry.allowed_numbers.clone_from(&process.allowed_cpu_numbers);
        self.add_descriptors(process);
        self.add_quota(process.cpu_quota.as_ref());
        self.io_limits.add_sample(process);
        self.containers.extend(process.container.clone());
        self.units.extend(process.unit.clone());
        self.threads.add_sample(process);
    }

    fn add_descriptors(&mut self, process: &Process) {
        let (Some(open), Some(limit)) = (process.open_files, process.open_files_limit) else { return };
        let fill = |(open, limit): (u64, u64)| open as f64 / limit.max(1) as f64;
        if limit > 0 && self.open_files.is_none_or(|fullest| fill((open, limit)) > fill(fullest)) {
            self.open_files = Some((open, limit));
        }
    }

    /// Keeps the first and the last sample of the cgroup; one that was changed begins anew.
    fn add_quota(&mut self, quota: Option<&CpuQuota>) {
        let Some(quota) = quota else { return };
        match &mut self.quota {
            Some((first, last)) if first.cgroup == quota.cgroup && first.usage_us <= quota.usage_us => {
                last.clone_from(quota);
            }
            other => *other = Some((quota.clone(), quota.clone())),
        }
    }

    /// Adds what one process counted between two samples.
    fn add(&mut self, before: &Process, after: &Process) {
        let user = growth(before.user_us, after.user_us);
        let system = growth(before.system_us, after.system_us);
        self.user_us = self.user_us.saturating_add(user);
        self.system_us = self.system_us.saturating_add(system);
        let entry = self.by_process.entry((after.pid, after.started_ticks)).or_default();
        entry.cpu_us = entry.cpu_us.saturating_add(user).saturating_add(system);
        let reaped = growth(before.reaped_children_us, after.reaped_children_us);
        self.reaped_us = self.reaped_us.saturating_add(reaped);
        let waited = growth(before.run_queue_wait_us, after.run_queue_wait_us);
        self.run_queue_wait_us = self.run_queue_wait_us.saturating_add(waited);
        self.major_faults = self.major_faults.saturating_add(growth(before.major_faults, after.major_faults));
        self.add_disk_bytes(before, after);
        self.threads.add(before, after);
    }

    fn add_disk_bytes(&mut self, before: &Process, after: &Process) {
        let grown = |before: Option<u64>, after: Option<u64>| Some(growth(before?, after?));
        let read = grown(before.disk_read_bytes, after.disk_read_bytes);
        let written = grown(before.disk_written_bytes, after.disk_written_bytes);
        add(&mut self.disk_read_bytes, read);
        add(&mut self.disk_bytes, read);
        add(&mut self.disk_bytes, written);
    }

    pub(super) fn cpu_us(&self) -> f64 {
        self.user_us as f64 + self.system_us as f64 + self.reaped_us as f64
    }

    pub(super) fn busiest_process_us(&self) -> u64 {
        self.by_process.values().map(|process| process.cpu_us).max().unwrap_or(0)
    }

    /// Every processor any of the working processes may use; empty if one of them did not say.
    pub(super) fn allowed_numbers(&self, pids: &[u32]) -> Vec<u32> {
        let mut numbers = Vec::new();
        for process in self.working(pids) {
            if process.allowed_numbers.is_empty() {
                return Vec::new();
            }
            numbers.extend_from_slice(&process.allowed_numbers);
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The most processors any one of the working processes may use.
    pub(super) fn allowed_count(&self, pids: &[u32]) -> u32 {
        self.working(pids).map(|process| process.allowed_count).max().unwrap_or(0)
    }

    fn working(&self, pids: &[u32]) -> impl Iterator<Item = &ProcessTally> {
        self.by_process.iter().filter(|((pid, _), _)| pids.contains(pid)).map(|(_, process)| process)
    }
}

fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(more));
    }
}

/// Adds what happened between two consecutive samples.
pub(super) fn add_interval(
    tallies: &mut BTreeMap<(Role, String), Tally>,
    earlier: &Counters,
    later: &Counters,
) {
    let before: BTreeMap<ProcessKey, &Process> = by_key(earlier);
    let newest = earlier.processes.iter().map(|process| process.started_ticks).max().unwrap_or(u64::MAX);
    let gap_us = growth(earlier.at_us, later.at_us);
    for after in &later.processes {
        let tally = tallies.entry((after.role, after.name.clone())).or_default();
        match before.get(&(after.pid, after.started_ticks)) {
            Some(before) => tally.add(before, after),
            // Newer than all that were there before: forked since, so all it did is recent. An older
            // one was only found late, and what it did before is not this step's.
            None if after.started_ticks > newest => tally.add(&newborn(after), &capped(after, gap_us)),
            None => {}
        }
    }
}

fn by_key(sample: &Counters) -> BTreeMap<ProcessKey, &Process> {
    sample.processes.iter().map(|process| ((process.pid, process.started_ticks), process)).collect()
}

/// The process as it was before it did anything.
fn newborn(process: &Process) -> Process {
    Process {
        disk_read_bytes: process.disk_read_bytes.map(|_| 0),
        disk_written_bytes: process.disk_written_bytes.map(|_| 0),
        ..Process::default()
    }
}

/// The process with no more processor time than the gap between the samples had for it.
fn capped(process: &Process, gap_us: u64) -> Process {
    let most = gap_us.saturating_mul(u64::from(process.allowed_cpus.max(1)));
    Process { user_us: process.user_us.min(most), system_us: process.system_us.min(most), ..process.clone() }
}
