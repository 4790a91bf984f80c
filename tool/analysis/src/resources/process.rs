//! Processes, gathered into groups of one role and one name.
//!
//! A server's workers, preforked children and children forked per connection share its name, and
//! together they are what serves; their master process, which does no work, drops out of `pids`.

mod io_limit;
mod tally;
mod threads;
mod waiters;

pub use io_limit::IoLimitUse;
pub(super) use threads::family;
pub use threads::{States, ThreadFamilyUse, ThreadUse};
pub(super) use waiters::looked_at;
pub use waiters::{Average, Waiters};

use std::collections::BTreeMap;

use super::GroupKey;
use super::host::HostUse;
use super::samples::growth;
use crate::counters::{Container, Counters, CpuQuota, Process, Role, ThreadState};
use crate::run::{HostName, Processes};
use crate::statistics::normal_equations::NormalEquations;
use tally::Tally;

/// A process that did less than this share of what the busiest one of its group did is not counted
/// among those that do the work: a master process wakes now and then.
const WORKING_SHARE: f64 = 0.05;

/// Below this many cores a whole group is idle, and none of its processes is singled out.
const IDLE_CORES: f64 = 0.005;

/// A thread busy at least this share of a core is counted in [`Group::full_threads`]. Two threads that
/// share the work are rarely both as busy as the busier one, so this is a little less than full.
pub const FULL_THREAD: f64 = 0.85;

/// The processes of one role and name, together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    /// Their role in the measurement.
    pub role: Role,
    /// The kernel's short name of them.
    pub name: String,
    /// The host, or the container, that they run on.
    pub on: HostName,
    /// The host whose processors they use.
    pub machine: HostName,
    /// The file that they run, without the folders; empty where that may not be read.
    pub program: String,
    /// Numbers of the processes that did the work, ascending.
    pub pids: Vec<u32>,
    /// Most of them in any one sample.
    pub processes: usize,
    /// Processor time used, in cores.
    pub cores: f64,
    /// Share of that in kernel mode, as far as the two modes are counted apart.
    pub kernel: f64,
    /// Cores used by children that ended before a sample saw them, part of `cores`.
    pub reaped_cores: f64,
    /// Processors they may use, by number; empty where only the count is known.
    pub allowed: Vec<u32>,
    /// How many processors they may use, less what the hypervisor took of them.
    pub allowed_cores: f64,
    /// The single process that used most processor time, in cores.
    pub busiest_process_cores: f64,
    /// The single thread that used most processor time.
    pub busiest_thread: Option<ThreadUse>,
    /// Threads that kept a core to themselves ([`FULL_THREAD`]).
    pub full_threads: usize,
    /// Threads, most in any one process.
    pub threads: u32,
    /// Threads that did any work at all.
    pub working_threads: usize,
    /// Use by threads of one name, most first; threads that ended between two samples are in none.
    pub threads_by_name: Vec<ThreadFamilyUse>,
    /// Share of their threads that samples left out because there were too many.
    pub threads_left_out: f64,
    /// Runnable threads waiting for a processor, on average.
    pub run_queue: f64,
    /// Share of the samples that found some thread of theirs running or waiting to run.
    pub found_runnable: f64,
    /// The states that the threads were found in.
    pub states: States,
    /// Threads that waited at futexes; `None` where no thread was seen.
    pub waiters: Option<Waiters>,
    /// The thread most often found waiting for a disk: share of the samples of it.
    pub disk_waiting_thread: f64,
    /// The fullest descriptor table: (open, limit).
    pub open_files: Option<(u64, u64)>,
    /// Bytes read from and written to block devices per second, where that may be read.
    pub disk_bytes_per_s: Option<f64>,
    /// Bytes read from block devices per second, where that may be read.
    pub disk_read_bytes_per_s: Option<f64>,
    /// Page faults that read from a disk, per second.
    pub major_faults_per_s: f64,
    /// Share of the samples that found some thread of theirs waiting for a disk.
    pub found_disk_waiting: f64,
    /// Limits of their cgroups on block devices, the fullest first.
    pub io_limits: Vec<IoLimitUse>,
    /// The CPU quota they are under.
    pub quota: Option<QuotaUse>,
    /// The containers that they run in, ascending.
    pub containers: Vec<Container>,
    /// The services of the init system that they run in, ascending.
    pub units: Vec<String>,
    /// Processor time, microseconds, by completions of each kind of request; empty where the load has one kind.
    pub by_kind: NormalEquations,
}

/// The use of a cgroup's CPU quota.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuotaUse {
    /// The cgroup's path.
    pub cgroup: String,
    /// The limit, in cores.
    pub cores: f64,
    /// Use by the whole cgroup, in cores.
    pub used_cores: f64,
    /// Share of the enforcement periods in which it was stopped.
    pub throttled_periods: f64,
    /// Processors' worth of time it was kept stopped.
    pub stopped_cores: f64,
}

impl Group {
    /// Whether these are the processes.
    pub fn is(&self, of: &Processes) -> bool {
        (self.role, &self.name, &self.on) == (of.role, &of.name, &of.on)
    }

    /// What tells the group from all others.
    pub fn key(&self) -> GroupKey {
        GroupKey { role: self.role, name: self.name.clone(), on: self.on.clone() }
    }

    /// Busy share of the processors they may use.
    pub fn busy(&self) -> f64 {
        if self.allowed_cores > 0.0 { (self.cores / self.allowed_cores).min(1.0) } else { 0.0 }
    }

    /// How many of their threads wanted a processor, on average, up to one: near one, some thread of
    /// theirs always ran or waited to run. Where the kernel does not count waiting, by what samples found.
    pub fn wanting(&self) -> f64 {
        (self.cores + self.run_queue).max(self.found_runnable).min(1.0)
    }

    /// Whether threads of this name have the process's own name.
    pub fn is_own_name(&self, name: &str) -> bool {
        threads::family(&self.name) == name
    }

    /// Whether they are confined to a single processor.
    pub fn one_core(&self) -> bool {
        if self.allowed.is_empty() { self.allowed_cores <= 1.0 } else { self.allowed.len() == 1 }
    }

    /// How many processors they may use, steal not deducted.
    pub fn allowed_count(&self) -> usize {
        if self.allowed.is_empty() { self.allowed_cores.ceil() as usize } else { self.allowed.len() }
    }
}

pub(super) fn groups(samples: &[&Counters], elapsed_us: f64, host: &HostUse) -> Vec<Group> {
    let mut tallies: BTreeMap<(Role, String), Tally> = BTreeMap::new();
    for sample in samples {
        for (key, processes) in processes_at(sample) {
            let tally = tallies.entry(key).or_default();
            tally.most_at_once = tally.most_at_once.max(processes.len());
            let any = |state| processes.iter().flat_map(|process| &process.threads).any(|t| t.state == state);
            tally.samples_runnable += usize::from(any(ThreadState::Running));
            tally.samples_disk += usize::from(any(ThreadState::Disk));
            tally.threads.count(&processes);
        }
        for process in &sample.processes {
            tallies.entry((process.role, process.name.clone())).or_default().add_sample(process);
        }
    }
    for pair in samples.windows(2) {
        tally::add_interval(&mut tallies, pair[0], pair[1]);
    }
    let share = |found: usize| found as f64 / samples.len().max(1) as f64;
    let group = |(key, tally): ((Role, String), Tally)| Group {
        found_runnable: share(tally.samples_runnable),
        found_disk_waiting: share(tally.samples_disk),
        ..group(key, &tally, elapsed_us, host)
    };
    tallies.into_iter().map(group).collect()
}

/// The processor time of each group between the first and the last of the samples, microseconds, without anything else of it, as
/// this is asked for again and again. A group that only the first sample found is left out.
pub(super) fn cpu_us(samples: &[&Counters]) -> BTreeMap<(Role, String), f64> {
    let mut tallies: BTreeMap<(Role, String), Tally> = BTreeMap::new();
    for pair in samples.windows(2) {
        tally::add_interval(&mut tallies, pair[0], pair[1]);
    }
    tallies.into_iter().map(|(group, tally)| (group, tally.cpu_us())).collect()
}

/// The processes of each group that a sample found.
fn processes_at(sample: &Counters) -> BTreeMap<(Role, String), Vec<&Process>> {
    let mut groups: BTreeMap<(Role, String), Vec<&Process>> = BTreeMap::new();
    for process in &sample.processes {
        groups.entry((process.role, process.name.clone())).or_default().push(process);
    }
    groups
}

fn group((role, name): (Role, String), tally: &Tally, elapsed_us: f64, host: &HostUse) -> Group {
    let per_s = 1e6 / elapsed_us;
    let cores = tally.cpu_us() / elapsed_us;
    let pids = working(tally, elapsed_us);
    let allowed = tally.allowed_numbers(&pids);
    let allowed_cores = allowed_cores(&allowed, tally.allowed_count(&pids), host).max(cores);
    Group {
        role,
        name,
        on: None,
        machine: None,
        program: tally.program.clone(),
        processes: tally.most_at_once,
        cores,
        kernel: tally.system_us as f64 / (tally.user_us as f64 + tally.system_us as f64).max(1.0),
        reaped_cores: tally.reaped_us as f64 / elapsed_us,
        allowed,
        allowed_cores,
        busiest_process_cores: tally.busiest_process_us() as f64 / elapsed_us,
        busiest_thread: tally.threads.busiest(elapsed_us),
        full_threads: tally.threads.working(elapsed_us, FULL_THREAD),
        threads: tally.most_threads,
        working_threads: tally.threads.working(elapsed_us, IDLE_CORES),
        threads_by_name: tally.threads.by_name(elapsed_us),
        threads_left_out: tally.threads.left_out(),
        run_queue: tally.run_queue_wait_us as f64 / elapsed_us,
        found_runnable: 0.0,
        found_disk_waiting: 0.0,
        io_limits: tally.io_limits.uses(elapsed_us),
        states: tally.threads.states(),
        waiters: (tally.most_threads > 0).then(|| tally.threads.waiters()),
        disk_waiting_thread: tally.threads.disk_waiting(),
        open_files: tally.open_files,
        disk_bytes_per_s: tally.disk_bytes.map(|bytes| bytes as f64 * per_s),
        disk_read_bytes_per_s: tally.disk_read_bytes.map(|bytes| bytes as f64 * per_s),
        major_faults_per_s: tally.major_faults as f64 * per_s,
        quota: tally.quota.as_ref().and_then(|(first, last)| quota(first, last, elapsed_us, cores)),
        containers: tally.containers.iter().cloned().collect(),
        units: tally.units.iter().cloned().collect(),
        by_kind: NormalEquations::default(),
        pids,
    }
}

/// The processes that did the work.
fn working(tally: &Tally, elapsed_us: f64) -> Vec<u32> {
    let busiest = tally.busiest_process_us() as f64;
    let idle = tally.cpu_us() / elapsed_us < IDLE_CORES;
    let works = |cpu_us: u64| idle || cpu_us as f64 >= WORKING_SHARE * busiest;
    let mut pids: Vec<u32> =
        tally.by_process.iter().filter(|(_, p)| works(p.cpu_us)).map(|((pid, _), _)| *pid).collect();
    pids.dedup();
    pids
}

/// Cores the hypervisor left of those allowed; the whole host where nothing says otherwise.
fn allowed_cores(numbers: &[u32], count: u32, host: &HostUse) -> f64 {
    let left = |cpu: &super::CpuUse| 1.0 - cpu.steal;
    let of_numbers: f64 = host.cpus.iter().filter(|cpu| numbers.contains(&cpu.number)).map(left).sum();
    if of_numbers > 0.0 {
        return of_numbers;
    }
    let online = host.cpus.len() as f64;
    match (count, host.cpus.is_empty()) {
        (0, true) => 1.0,
        (count, true) => f64::from(count),
        (0, false) => host.available_cores(),
        (count, false) => f64::from(count).min(online) * (1.0 - host.steal()),
    }
}

/// `cores` is what the processes used themselves: all there is to know where the cgroup's own use is not counted, as by
/// version 1 with the accounting mounted apart.
fn quota(first: &CpuQuota, last: &CpuQuota, elapsed_us: f64, cores: f64) -> Option<QuotaUse> {
    let counted = last.usage_us > 0;
    let periods = growth(first.periods, last.periods);
    let throttled = growth(first.throttled_periods, last.throttled_periods).min(periods);
    let limited = last.cores.is_finite() && last.cores > 0.0;
    limited.then(|| QuotaUse {
        cgroup: last.cgroup.clone(),
        cores: last.cores,
        used_cores: if counted { growth(first.usage_us, last.usage_us) as f64 / elapsed_us } else { cores },
        throttled_periods: throttled as f64 / periods.max(1) as f64,
        stopped_cores: growth(first.throttled_us, last.throttled_us) as f64 / elapsed_us,
    })
}
