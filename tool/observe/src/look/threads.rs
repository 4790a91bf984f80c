//! The threads of a process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::counters::{Thread, ThreadState};

use crate::clock::ticks_per_second;
use crate::proc::schedstat::{self, Schedstat};
use crate::proc::{stat, status};
use crate::roots::{numbered_entries, read_or_empty};

/// Threads looked at per process and look. Of more, the busiest lately are looked at, and some of the
/// others in turn.
const THREADS_MAX: usize = 256;

/// How many of [`THREADS_MAX`] are kept for threads that were not busy lately.
const OTHERS: usize = 64;

/// What is kept of a process's threads between looks.
#[derive(Debug)]
pub(super) struct Threads {
    task: PathBuf,
    known: BTreeMap<u32, Known>,
    /// Run-queue wait of all threads, those that ended included as far as they were seen.
    wait_ns: u64,
    looks: u64,
}

#[derive(Debug, Clone, Default)]
struct Known {
    account: Schedstat,
    /// CPU time between its last two looks.
    lately_ns: u64,
    seen_at_look: u64,
    thread: Thread,
}

impl Threads {
    pub(super) fn new(task: PathBuf) -> Self {
        Self { task, known: BTreeMap::new(), wait_ns: 0, looks: 0 }
    }

    /// The threads, by number, and the run-queue wait of all, microseconds.
    pub(super) fn take(&mut self) -> (Vec<Thread>, u64) {
        self.looks += 1;
        let alive = numbered_entries(&self.task).unwrap_or_default();
        self.known.retain(|tid, _| alive.binary_search(tid).is_ok());
        let mut threads = Vec::new();
        for tid in self.chosen(alive) {
            threads.extend(self.look_at(tid));
        }
        threads.sort_unstable_by_key(|thread| thread.tid);
        (threads, self.wait_ns / 1000)
    }

    fn chosen(&self, mut alive: Vec<u32>) -> Vec<u32> {
        if alive.len() <= THREADS_MAX {
            return alive;
        }
        let known = |tid: &u32| self.known.get(tid);
        alive.sort_by_key(|tid| std::cmp::Reverse(known(tid).map_or(0, |known| known.lately_ns)));
        let mut others = alive.split_off(THREADS_MAX - OTHERS);
        others.sort_by_key(|tid| known(tid).map_or(0, |known| known.seen_at_look));
        alive.extend(others.into_iter().take(OTHERS));
        alive
    }

    fn look_at(&mut self, tid: u32) -> Option<Thread> {
        let directory = self.task.join(tid.to_string());
        let known = self.known.entry(tid).or_default();
        known.seen_at_look = self.looks;
        let account = schedstat::parse(&read_or_empty(&directory.join("schedstat")));
        if let Some(account) = account {
            let asleep = matches!(known.thread.state, ThreadState::Sleeping | ThreadState::Futex);
            let idle = account == known.account;
            known.lately_ns = account.cpu_ns.saturating_sub(known.account.cpu_ns);
            self.wait_ns += account.wait_ns.saturating_sub(known.account.wait_ns);
            known.account = account;
            // It has not run, so it still waits where it did.
            if idle && asleep {
                return Some(known.thread.clone());
            }
        }
        known.thread = read_thread(&directory, tid, account)?;
        Some(known.thread.clone())
    }
}

/// `None` once the thread is gone.
fn read_thread(directory: &Path, tid: u32, account: Option<Schedstat>) -> Option<Thread> {
    let status = status::parse(&read_or_empty(&directory.join("status")));
    if status.state == '?' {
        return None;
    }
    Some(Thread {
        tid,
        name: status.name,
        cpu_us: account.map_or_else(|| cpu_by_ticks(directory), |account| account.cpu_ns / 1000),
        run_queue_wait_us: account.unwrap_or_default().wait_ns / 1000,
        voluntary_switches: status.voluntary_switches,
        state: state(directory, status.state),
    })
}

/// For kernels without schedstat.
fn cpu_by_ticks(directory: &Path) -> u64 {
    let stat = stat::parse(&read_or_empty(&directory.join("stat"))).unwrap_or_default();
    stat.user_ticks.saturating_add(stat.system_ticks).saturating_mul(1_000_000) / ticks_per_second()
}

fn state(directory: &Path, letter: char) -> ThreadState {
    match letter {
        'R' => ThreadState::Running,
        'D' => ThreadState::Disk,
        'S' if waits_for_futex(directory) => ThreadState::Futex,
        'S' | 'I' => ThreadState::Sleeping,
        _ => ThreadState::Other,
    }
}

/// By the system call it is in, else by the kernel function it sleeps in; both need the right to trace it.
fn waits_for_futex(directory: &Path) -> bool {
    let syscall = read_or_empty(&directory.join("syscall"));
    match syscall.split_whitespace().next().and_then(|number| number.parse::<i64>().ok()) {
        Some(number) => FUTEX_CALLS.contains(&number),
        None => read_or_empty(&directory.join("wchan")).starts_with("futex"),
    }
}

/// futex, futex_waitv, futex_wait.
const FUTEX_CALLS: [i64; 3] = [libc::SYS_futex, 449, 455];

#[cfg(test)]
mod tests {
    use super::*;

    fn lay_out(task: &Path, tid: u32, account: &str, state: char) {
        let directory = task.join(tid.to_string());
        std::fs::create_dir_all(&directory).unwrap();
        let status = format!("Name:\tworker\nState:\t{state} (x)\nvoluntary_ctxt_switches:\t4\n");
        std::fs::write(directory.join("status"), status).unwrap();
        std::fs::write(directory.join("schedstat"), account).unwrap();
    }

    #[test]
    fn a_thread_in_a_futex() {
        let task = tempfile::tempdir().unwrap();
        lay_out(task.path(), 7, "5000000 3000 9\n", 'S');
        std::fs::write(task.path().join("7/syscall"), format!("{} 0x0 0x1\n", libc::SYS_futex)).unwrap();
        lay_out(task.path(), 8, "0 0 0\n", 'S');
        std::fs::write(task.path().join("8/wchan"), "futex_wait_queue").unwrap();
        lay_out(task.path(), 9, "1000 2000 1\n", 'D');
        let (threads, wait_us) = Threads::new(task.path().to_owned()).take();
        let states: Vec<_> = threads.iter().map(|thread| thread.state).collect();
        assert_eq!(states, [ThreadState::Futex, ThreadState::Futex, ThreadState::Disk]);
        assert_eq!((threads[0].cpu_us, threads[0].voluntary_switches, wait_us), (5000, 4, 5));
    }

    #[test]
    fn the_wait_of_a_thread_that_ended_stays() {
        let task = tempfile::tempdir().unwrap();
        lay_out(task.path(), 7, "1 4000 9\n", 'S');
        lay_out(task.path(), 8, "1 6000 9\n", 'R');
        let mut threads = Threads::new(task.path().to_owned());
        assert_eq!(threads.take().1, 10);
        std::fs::remove_dir_all(task.path().join("8")).unwrap();
        let (left, wait_us) = threads.take();
        assert_eq!((left.len(), wait_us), (1, 10));
    }

    #[test]
    fn of_many_threads_the_busiest_are_always_looked_at_and_all_in_turn() {
        let task = tempfile::tempdir().unwrap();
        let count = 600;
        for tid in 1..=count {
            lay_out(task.path(), tid, "10 0 1\n", 'S');
        }
        let mut threads = Threads::new(task.path().to_owned());
        let mut ever = std::collections::BTreeSet::new();
        for round in 1..=10u64 {
            lay_out(task.path(), count, &format!("{} 0 {round}\n", round * 1_000_000), 'R');
            let (seen, _) = threads.take();
            assert_eq!(seen.len(), THREADS_MAX);
            ever.extend(seen.iter().map(|thread| thread.tid));
        }
        assert_eq!(ever.len(), count as usize);
        let busiest = threads.take().0.into_iter().map(|thread| thread.cpu_us).max();
        assert_eq!(busiest, Some(10_000));
    }
}
