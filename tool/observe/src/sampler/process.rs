//! Samples of a process.

use std::collections::BTreeSet;
use std::path::Path;

use analysis::counters::{Process, Role};

use super::container::ContainerSampler;
use super::io_limit::IoLimitSampler;
use super::looks::Looked;
use super::quota::QuotaSampler;
use super::threads::ThreadSampler;
use crate::clock::{page_bytes, process_cpu_ns, ticks_per_second};
use crate::kernel_files::{KernelPaths, Pid, SampledFile, numbered_entries, read_or_empty};
use crate::proc::named;
use crate::proc::process::{self, Stat};

/// Limits and affinity change rarely, so they are read once in this many samples.
const SAMPLES_PER_SLOW_READ: u32 = 8;

/// A sample of a process.
#[derive(Debug)]
pub(super) struct ProcessSample {
    pub(super) process: Process,
    pub(super) parent: Pid,
}

/// Samples one process.
#[derive(Debug)]
pub(super) struct ProcessSampler {
    pid: Pid,
    paths: KernelPaths,
    stat: SampledFile,
    io: SampledFile,
    threads: ThreadSampler,
    quota: QuotaSampler,
    io_limits: IoLimitSampler,
    container: ContainerSampler,
    split: CpuSplit,
    slow: SlowlyChanging,
    samples: u32,
    role: Role,
    name: String,
}

#[derive(Debug, Default)]
struct SlowlyChanging {
    program: String,
    allowed_cpus: Vec<u32>,
    open_files_limit: Option<u64>,
}

impl ProcessSampler {
    pub(super) fn new(paths: &KernelPaths, pid: Pid) -> Self {
        let directory = paths.process(pid);
        Self {
            pid,
            paths: paths.clone(),
            stat: SampledFile::new(directory.join("stat")),
            io: SampledFile::new(directory.join("io")),
            threads: ThreadSampler::new(directory.join("task")),
            quota: QuotaSampler::new(paths, pid),
            io_limits: IoLimitSampler::new(paths, pid),
            container: ContainerSampler::new(paths, pid),
            split: CpuSplit::default(),
            slow: SlowlyChanging::default(),
            samples: 0,
            role: Role::default(),
            name: String::new(),
        }
    }

    /// Lists the threads for the next sample. Returns how many there are.
    pub(super) fn list_threads(&mut self) -> usize {
        self.threads.list()
    }

    /// Takes a sample, of at most so many threads. Returns `None` once the process is gone. `online` holds the processors of the
    /// host.
    pub(super) fn sample(
        &mut self,
        role: Role,
        online: &BTreeSet<u32>,
        threads_most: usize,
    ) -> Option<ProcessSample> {
        let stat = process::stat(&self.stat.text())?;
        if self.samples.is_multiple_of(SAMPLES_PER_SLOW_READ) {
            self.read_slowly_changing(online);
        }
        self.samples = self.samples.wrapping_add(1);
        let (user_us, system_us) = self.split.of(self.cpu_us(&stat), stat.user_ticks, stat.system_ticks);
        self.role = role;
        self.name.clone_from(&stat.name);
        let io = self.io.text();
        let (threads, run_queue_wait_us) = self.threads.sample(threads_most);
        let process = Process {
            pid: self.pid,
            started_ticks: stat.started_ticks,
            name: stat.name,
            program: self.slow.program.clone(),
            role,
            user_us,
            system_us,
            reaped_children_us: ticks_to_us(stat.reaped_ticks),
            run_queue_wait_us,
            threads,
            thread_count: stat.thread_count,
            allowed_cpus: self.slow.allowed_cpus.len().try_into().unwrap_or(u32::MAX),
            allowed_cpu_numbers: self.slow.allowed_cpus.clone(),
            open_files: self.open_files(),
            open_files_limit: self.slow.open_files_limit,
            major_faults: stat.major_faults,
            disk_read_bytes: io_bytes(&io, "read_bytes:"),
            disk_written_bytes: io_bytes(&io, "write_bytes:"),
            resident_bytes: stat.resident_pages.saturating_mul(page_bytes()),
            cpu_quota: self.quota.sample(),
            io_limits: self.io_limits.sample(),
            container: self.container.container(),
            unit: self.container.unit(),
        };
        Some(ProcessSample { process, parent: stat.parent })
    }

    /// The process as the last sample found it, for looks at its threads in between.
    pub(super) fn to_look_at(&self) -> Looked<'_> {
        let (task, tids) = self.threads.alive();
        Looked { role: self.role, name: &self.name, task, tids }
    }

    fn read_slowly_changing(&mut self, online: &BTreeSet<u32>) {
        let directory = self.paths.process(self.pid);
        let mut allowed_cpus = process::allowed_cpus(&read_or_empty(&directory.join("status")));
        // The kernel's list may name processors that this host could have but does not.
        allowed_cpus.retain(|cpu| online.contains(cpu));
        self.slow = SlowlyChanging {
            program: program(&directory),
            allowed_cpus,
            open_files_limit: process::open_files_limit(&read_or_empty(&directory.join("limits"))),
        };
        self.quota.locate();
        self.io_limits.locate();
        self.container.locate();
    }

    /// All CPU time, including that of ended threads. It comes from the process's CPU clock, which any user may read,
    /// otherwise from `stat` with its ten milliseconds. The sum of the threads' schedstat would lose ended threads.
    fn cpu_us(&self, stat: &Stat) -> u64 {
        let by_ticks = ticks_to_us(stat.user_ticks.saturating_add(stat.system_ticks));
        let clock = if self.paths.are_this_host() { process_cpu_ns(self.pid) } else { None };
        // The clock is never behind the file, unless another process has taken the number meanwhile.
        clock.map(|ns| ns / 1000).filter(|us| *us >= by_ticks).unwrap_or(by_ticks)
    }

    /// The number of open descriptors: the size of the directory since Linux 6.2, its entries before.
    fn open_files(&self) -> Option<u64> {
        let directory = self.paths.process(self.pid).join("fd");
        let size = std::fs::metadata(&directory).ok().map(|metadata| metadata.len());
        if self.paths.are_this_host() && size > Some(0) {
            return size;
        }
        numbered_entries(&directory).ok().map(|entries| entries.len() as u64)
    }
}

/// The file that a process runs, without the folders.
fn program(directory: &Path) -> String {
    let path = std::fs::read_link(directory.join("exe")).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(" (deleted)").to_owned()
}

fn ticks_to_us(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000) / ticks_per_second()
}

fn io_bytes(io: &str, name: &str) -> Option<u64> {
    io.contains(name).then(|| named(io, name))
}

/// Splits an exact total by the kernel's coarse shares of user and kernel mode. Neither part ever decreases.
#[derive(Debug, Default)]
struct CpuSplit {
    user_us: u64,
    system_us: u64,
}

impl CpuSplit {
    fn of(&mut self, total_us: u64, user_ticks: u64, system_ticks: u64) -> (u64, u64) {
        let total_us = total_us.max(self.user_us + self.system_us);
        let ticks = user_ticks.saturating_add(system_ticks);
        let share = if ticks == 0 { 1.0 } else { user_ticks as f64 / ticks as f64 };
        let user_us = (total_us as f64 * share) as u64;
        self.user_us = user_us.clamp(self.user_us, total_us - self.system_us);
        self.system_us = total_us - self.user_us;
        (self.user_us, self.system_us)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_split_follows_the_ticks() {
        assert_eq!(CpuSplit::default().of(1_000_003, 75, 25), (750_002, 250_001));
        assert_eq!(CpuSplit::default().of(9000, 0, 0), (9000, 0));
    }

    proptest! {
        #[test]
        fn parts_never_decrease_and_add_up(steps in prop::collection::vec((0u64..50_000, 0u64..5, 0u64..5), 1..50)) {
            let mut split = CpuSplit::default();
            let (mut total, mut user, mut system, mut before) = (0, 0, 0, (0, 0));
            for step in steps {
                total += step.0;
                user += step.1;
                system += step.2;
                let now = split.of(total, user, system);
                prop_assert_eq!(now.0 + now.1, total);
                prop_assert!(now.0 >= before.0 && now.1 >= before.1);
                before = now;
            }
        }
    }

    #[test]
    fn bytes_that_may_not_be_read_are_absent() {
        assert_eq!(io_bytes("rchar: 5\nread_bytes: 4096\n", "read_bytes:"), Some(4096));
        assert_eq!(io_bytes("", "read_bytes:"), None);
    }
}
