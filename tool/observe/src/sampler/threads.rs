//! Samples of a process's threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::counters::{Thread, ThreadState};

use crate::clock::ticks_per_second;
use crate::kernel_files::{numbered_entries, read_or_empty};
use crate::proc::process::{self, Schedstat};

/// Threads may be renamed, so each name is read once in this many samples.
const NAMES: u64 = 16;

/// Where there are more threads than a sample covers, one in so many of those that it does were not busy lately.
const OTHERS: usize = 4;

/// A thread that has used less processor time in all its life is not sampled again at once to see how busy it is,
/// nanoseconds.
const HARDLY_ANY_NS: u64 = 1_000_000;

/// Samples the threads of a process.
#[derive(Debug)]
pub(super) struct ThreadSampler {
    task: PathBuf,
    known: BTreeMap<u32, KnownThread>,
    /// Run-queue wait of all threads, including ended ones as far as they were sampled. What a thread waited before it was
    /// sampled first counts only if it was new then.
    wait_ns: u64,
    samples: u64,
    /// The numbers of all threads when they were last listed, ascending.
    alive: Vec<u32>,
    /// The same of the time before.
    before: Vec<u32>,
}

#[derive(Debug, Clone, Default)]
struct KnownThread {
    account: Schedstat,
    /// CPU time from one sample of the process to the next, on average since its own last one but one. `None` where it had
    /// only one, and may be busy.
    lately_ns: Option<u64>,
    /// The number of the last sample that covered it; 0 where none did yet.
    last_sample: u64,
    thread: Thread,
}

impl ThreadSampler {
    pub(super) fn new(task: PathBuf) -> Self {
        let (alive, before) = (Vec::new(), Vec::new());
        Self { task, known: BTreeMap::new(), wait_ns: 0, samples: 0, alive, before }
    }

    /// Lists the threads for the next sample. Returns how many there are.
    pub(super) fn list(&mut self) -> usize {
        // Where they cannot be listed just now, as with too many open files, none is taken for ended, and later for new.
        if let Ok(alive) = numbered_entries(&self.task) {
            self.before = std::mem::replace(&mut self.alive, alive);
            self.known.retain(|tid, _| self.alive.binary_search(tid).is_ok());
        }
        self.alive.len()
    }

    /// Takes a sample of at most so many of the threads that were listed. Returns these, by number, and the run-queue wait of
    /// all, microseconds.
    pub(super) fn sample(&mut self, most: usize) -> (Vec<Thread>, u64) {
        self.samples += 1;
        let mut threads = Vec::new();
        for tid in self.chosen(self.alive.clone(), most) {
            threads.extend(self.sample_thread(tid));
        }
        threads.sort_unstable_by_key(|thread| thread.tid);
        (threads, self.wait_ns / 1000)
    }

    /// The directory `task`, and the threads that the last sample found there.
    pub(super) fn alive(&self) -> (&Path, &[u32]) {
        (&self.task, &self.alive)
    }

    fn chosen(&self, mut alive: Vec<u32>, most: usize) -> Vec<u32> {
        if alive.len() <= most {
            return alive;
        }
        let lately_ns = |tid: &u32| self.known.get(tid).and_then(|known| known.lately_ns).unwrap_or(0);
        alive.sort_by_key(|tid| std::cmp::Reverse(lately_ns(tid)));
        let others_most = (most / OTHERS).max(1);
        let mut others = alive.split_off(most.saturating_sub(others_most));
        others.sort_by_key(|tid| self.turn(*tid));
        alive.extend(others.into_iter().take(others_most));
        alive
    }

    /// When a thread that was not busy lately is to be sampled: the lower, the sooner. Those that may be busy are first.
    fn turn(&self, tid: u32) -> u64 {
        match self.known.get(&tid) {
            Some(KnownThread { lately_ns: None, .. }) => 0,
            Some(known) => known.last_sample + 1,
            None => 1,
        }
    }

    fn sample_thread(&mut self, tid: u32) -> Option<Thread> {
        let directory = self.task.join(tid.to_string());
        let was_there = self.before.binary_search(&tid).is_ok();
        let known = self.known.entry(tid).or_default();
        let last_sample = std::mem::replace(&mut known.last_sample, self.samples);
        let passed = match last_sample {
            0 if was_there || self.samples == 1 => None,
            0 => Some(1),
            last => Some(self.samples - last),
        };
        let account = process::schedstat(&read_or_empty(&directory.join("schedstat")));
        known.lately_ns = account.map_or(Some(0), |account| known.lately_ns(account, passed));
        if let Some(account) = account {
            let asleep = matches!(known.thread.state, ThreadState::Sleeping | ThreadState::Futex);
            let idle = account == known.account;
            // An old thread that is sampled first waited some time before, which is not known.
            if last_sample > 0 || !was_there {
                self.wait_ns += account.wait_ns.saturating_sub(known.account.wait_ns);
            }
            known.account = account;
            // The thread has not run, so it still waits where it did.
            if idle && asleep {
                return Some(known.thread.clone());
            }
        }
        let named = !known.thread.name.is_empty() && !(self.samples + u64::from(tid)).is_multiple_of(NAMES);
        let syscall = read_or_empty(&directory.join("syscall"));
        // This costs less than the file `stat`, and often suffices.
        match (account, state_by_syscall(&syscall)) {
            (Some(account), Some(state)) if named => {
                (known.thread.state, known.thread.futex) = (state, futex_address(&syscall));
                known.thread.cpu_us = account.cpu_ns / 1000;
                known.thread.run_queue_wait_us = account.wait_ns / 1000;
            }
            _ => known.thread = read_thread(&directory, tid, account, &syscall)?,
        }
        Some(known.thread.clone())
    }
}

impl KnownThread {
    /// The processor time that it used from one sample to the next, by its account so many samples after its last one. Without
    /// a last one it is not known what it used lately, unless it never used anything.
    fn lately_ns(&self, account: Schedstat, passed: Option<u64>) -> Option<u64> {
        match passed {
            Some(passed) => Some(account.cpu_ns.saturating_sub(self.account.cpu_ns) / passed.max(1)),
            None => (account.cpu_ns < HARDLY_ANY_NS).then_some(0),
        }
    }
}

/// `None` once the thread is gone.
fn read_thread(directory: &Path, tid: u32, account: Option<Schedstat>, syscall: &str) -> Option<Thread> {
    let stat = process::stat(&read_or_empty(&directory.join("stat")))?;
    let (state, futex) = state(directory, stat.state, syscall);
    let ticks = stat.user_ticks.saturating_add(stat.system_ticks);
    // For kernels without schedstat.
    let by_ticks = || ticks.saturating_mul(1_000_000) / ticks_per_second();
    Some(Thread {
        tid,
        name: stat.name,
        cpu_us: account.map_or_else(by_ticks, |account| account.cpu_ns / 1000),
        run_queue_wait_us: account.unwrap_or_default().wait_ns / 1000,
        state,
        futex,
    })
}

/// The state, and the address of the futex that it waits for, if it does and that may be read.
fn state(directory: &Path, letter: char, syscall: &str) -> (ThreadState, Option<u64>) {
    let state = match letter {
        'R' => ThreadState::Running,
        'D' => ThreadState::Disk,
        'S' => return asleep(directory, syscall),
        'I' => ThreadState::Sleeping,
        _ => ThreadState::Other,
    };
    (state, None)
}

/// Whether a sleeping thread waits for a futex. The system call it is in tells, otherwise the kernel function in which it
/// sleeps. Both need the right to trace the thread.
fn asleep(directory: &Path, syscall: &str) -> (ThreadState, Option<u64>) {
    let in_futex = match system_call(syscall) {
        Some(number) if FUTEX_CALLS.contains(&number) => true,
        Some(number) => number == FUTEX_WAITV,
        None => read_or_empty(&directory.join("wchan")).starts_with("futex"),
    };
    if in_futex { (ThreadState::Futex, futex_address(syscall)) } else { (ThreadState::Sleeping, None) }
}

/// The state as far as the file `syscall` alone tells it: running, or asleep in a call that never waits for a disk.
fn state_by_syscall(text: &str) -> Option<ThreadState> {
    match system_call(text) {
        None => text.starts_with("running").then_some(ThreadState::Running),
        Some(number) if FUTEX_CALLS.contains(&number) || number == FUTEX_WAITV => Some(ThreadState::Futex),
        Some(number) => (SLEEPING_CALLS.contains(&number) || OLDER_CALLS.contains(&number))
            .then_some(ThreadState::Sleeping),
    }
}

/// The number of the system call in the file `syscall`; `None` of a running thread.
fn system_call(text: &str) -> Option<i64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The address of the futex that the thread with this file `syscall` waits for. The first argument of futex_waitv is a
/// list of futexes, which is not read.
pub(super) fn futex_address(text: &str) -> Option<u64> {
    system_call(text).filter(|number| FUTEX_CALLS.contains(number))?;
    u64::from_str_radix(text.split_whitespace().nth(1)?.strip_prefix("0x")?, 16).ok()
}

/// Whether the thread with this file `syscall` sleeps until a time and waits for nothing else. A wait for a futex or a
/// socket with a time-out may be either.
pub(super) fn sleeps_until_a_time(text: &str) -> bool {
    system_call(text).is_some_and(|number| TIMED_CALLS.contains(&number))
}

/// futex, futex_wait.
const FUTEX_CALLS: [i64; 2] = [libc::SYS_futex, 455];
const FUTEX_WAITV: i64 = 449;

/// Calls that return once a time has come.
const TIMED_CALLS: [i64; 2] = [libc::SYS_nanosleep, libc::SYS_clock_nanosleep];

/// Calls that wait for a socket, or for time to pass.
const SLEEPING_CALLS: [i64; 9] = [
    libc::SYS_epoll_pwait,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
];

/// The same; only the first architectures have them.
#[cfg(target_arch = "x86_64")]
const OLDER_CALLS: [i64; 3] = [libc::SYS_epoll_wait, libc::SYS_poll, libc::SYS_select];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_CALLS: [i64; 0] = [];

#[cfg(test)]
mod tests {
    use analysis::counters::SAMPLED_THREADS_MAX;

    use super::*;

    fn lay_out(task: &Path, tid: u32, account: &str, state: char) {
        let directory = task.join(tid.to_string());
        std::fs::create_dir_all(&directory).unwrap();
        let stat = format!("{tid} (worker) {state} 1{}", " 0".repeat(30));
        std::fs::write(directory.join("stat"), stat).unwrap();
        std::fs::write(directory.join("schedstat"), account).unwrap();
    }

    /// A sample of as many threads as one takes in.
    fn sampled(threads: &mut ThreadSampler) -> (Vec<Thread>, u64) {
        threads.list();
        threads.sample(SAMPLED_THREADS_MAX)
    }

    #[test]
    fn a_thread_in_a_futex() {
        let task = tempfile::tempdir().unwrap();
        lay_out(task.path(), 7, "5000000 3000 9\n", 'S');
        std::fs::write(task.path().join("7/syscall"), format!("{} 0x7f3c 0x1\n", libc::SYS_futex)).unwrap();
        lay_out(task.path(), 8, "0 0 0\n", 'S');
        std::fs::write(task.path().join("8/wchan"), "futex_wait_queue").unwrap();
        lay_out(task.path(), 9, "1000 2000 1\n", 'D');
        let (threads, wait_us) = sampled(&mut ThreadSampler::new(task.path().to_owned()));
        let states: Vec<_> = threads.iter().map(|thread| thread.state).collect();
        assert_eq!(states, [ThreadState::Futex, ThreadState::Futex, ThreadState::Disk]);
        let futexes: Vec<_> = threads.iter().map(|thread| thread.futex).collect();
        assert_eq!(futexes, [Some(0x7f3c), None, None]);
        assert_eq!((threads[0].cpu_us, threads[0].name.as_str(), wait_us), (5000, "worker", 5));
    }

    #[test]
    fn the_system_call_tells_the_state_unless_it_may_wait_for_a_disk() {
        let state = |text: &str| state_by_syscall(text);
        assert_eq!(state("running\n"), Some(ThreadState::Running));
        assert_eq!(state(&format!("{} 0x1 0x2\n", libc::SYS_futex)), Some(ThreadState::Futex));
        assert_eq!(state(&format!("{} 0x1 0x2\n", libc::SYS_recvfrom)), Some(ThreadState::Sleeping));
        assert_eq!(state(&format!("{} 0x1 0x2\n", libc::SYS_read)), None);
        assert_eq!((state("-1 0x1 0x2\n"), state("")), (None, None));
    }

    #[test]
    fn a_known_thread_that_ran_is_told_by_its_system_call_and_renamed_in_time() {
        let task = tempfile::tempdir().unwrap();
        lay_out(task.path(), 7, "1000000 0 1\n", 'R');
        let mut threads = ThreadSampler::new(task.path().to_owned());
        let mut seen = |account: u64| {
            std::fs::write(task.path().join("7/schedstat"), format!("{account} 0 2\n")).unwrap();
            sampled(&mut threads).0.remove(0)
        };
        seen(2_000_000);
        std::fs::write(task.path().join("7/syscall"), format!("{} 0x10\n", libc::SYS_futex)).unwrap();
        std::fs::write(task.path().join("7/stat"), format!("7 (new) S 1{}", " 0".repeat(30))).unwrap();
        let found = seen(3_000_000);
        let expected = (ThreadState::Futex, Some(0x10), 3_000, "worker");
        assert_eq!((found.state, found.futex, found.cpu_us, found.name.as_str()), expected);
        let names: Vec<String> = (0..NAMES).map(|round| seen(4_000_000 + round).name).collect();
        assert!(names.contains(&"new".to_owned()), "{names:?}");
    }

    #[test]
    fn the_wait_of_an_ended_thread_still_counts() {
        let task = tempfile::tempdir().unwrap();
        lay_out(task.path(), 7, "1 4000 9\n", 'S');
        lay_out(task.path(), 8, "1 6000 9\n", 'R');
        let mut threads = ThreadSampler::new(task.path().to_owned());
        assert_eq!(sampled(&mut threads).1, 10);
        std::fs::remove_dir_all(task.path().join("8")).unwrap();
        let (left, wait_us) = sampled(&mut threads);
        assert_eq!((left.len(), wait_us), (1, 10));
    }

    /// Each has waited for 5 ms since it began, long ago.
    fn many(count: u32) -> tempfile::TempDir {
        let task = tempfile::tempdir().unwrap();
        (1..=count).for_each(|tid| lay_out(task.path(), tid, "10 5000000 1\n", 'S'));
        task
    }

    #[test]
    fn of_many_threads_the_busiest_are_always_sampled_and_all_in_turn() {
        let count = 600;
        let task = many(count);
        let mut threads = ThreadSampler::new(task.path().to_owned());
        let mut ever = std::collections::BTreeSet::new();
        for round in 1..=10u64 {
            lay_out(task.path(), count, &format!("{} 5000000 {round}\n", round * 1_000_000), 'R');
            let (seen, _) = sampled(&mut threads);
            assert_eq!(seen.len(), SAMPLED_THREADS_MAX);
            ever.extend(seen.iter().map(|thread| thread.tid));
        }
        assert_eq!(ever.len(), count as usize);
        let busiest = sampled(&mut threads).0.into_iter().map(|thread| thread.cpu_us).max();
        assert_eq!(busiest, Some(10_000));
    }

    #[test]
    fn what_a_thread_waited_before_it_was_sampled_first_counts_only_if_it_is_new() {
        let task = many(600);
        let mut threads = ThreadSampler::new(task.path().to_owned());
        // The first sample is where counting begins, whatever it says.
        let (_, begun_us) = sampled(&mut threads);
        for round in 2..=12 {
            assert_eq!(sampled(&mut threads).1, begun_us, "round {round}");
        }
        lay_out(task.path(), 601, "10 7000000 1\n", 'S');
        assert_eq!(sampled(&mut threads).1, begun_us + 7_000, "it began since");
        lay_out(task.path(), 601, "10 8000000 1\n", 'S');
        for _ in 0..12 {
            sampled(&mut threads);
        }
        assert_eq!(sampled(&mut threads).1, begun_us + 8_000);
    }

    /// Old threads that used much long ago do not take the places of those that are busy now.
    #[test]
    fn what_a_thread_used_long_ago_does_not_make_it_one_of_the_busiest() {
        let task = tempfile::tempdir().unwrap();
        (1..=600).for_each(|tid| lay_out(task.path(), tid, "9000000000 0 1\n", 'S'));
        let mut threads = ThreadSampler::new(task.path().to_owned());
        let mut missed = 0;
        for round in 1..=30u64 {
            let busy = format!("{} 0 {round}\n", 9_000_000_000 + round * 1_000);
            (1..=150).for_each(|tid| lay_out(task.path(), tid, &busy, 'R'));
            let seen = sampled(&mut threads).0;
            missed += (1..=150).filter(|tid| !seen.iter().any(|thread| thread.tid == *tid)).count();
        }
        assert_eq!(missed, 0);
    }

    #[test]
    fn fewer_threads_are_sampled_where_a_sample_may_cover_fewer() {
        let task = many(20);
        let mut threads = ThreadSampler::new(task.path().to_owned());
        let mut ever = std::collections::BTreeSet::new();
        for _ in 0..40 {
            assert_eq!(threads.list(), 20);
            let (seen, _) = threads.sample(2);
            assert_eq!(seen.len(), 2);
            ever.extend(seen.iter().map(|thread| thread.tid));
        }
        assert_eq!(ever.len(), 20, "each has its turn");
    }
}
