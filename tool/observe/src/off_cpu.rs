//! Looks at what threads are doing, many times a second: whether they sleep, and in which system call, function and stack of
//! the kernel.
//!
//! A look reads the files of at most [`THREADS_MAX`] threads, others at every look where there are more, and each thread of a
//! tier as often as any other. What a look costs decides when the next one is.

mod calls;
mod thread;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use analysis::{
    profile::{ThreadsSeen, TierSeen},
    run::OffCpuTrouble,
};

use self::thread::Rights;
use crate::{
    clock::own_thread_cpu_us,
    kernel_files::{KernelPaths, Pid, numbered_entries, read_or_empty},
    topology::process_tree::ProcessTree,
};

/// Threads that a look covers, of all tiers together.
const THREADS_MAX: usize = 128;

/// The mean time between looks: as often as processors are sampled.
const PERIOD: Duration = Duration::from_millis(10);

/// Looking may take one part in this many of a processor; the time between looks grows with what they cost.
const SHARE: u32 = 100;

/// How often processes that the tiers have started are looked for.
const TRACK_PERIOD: Duration = Duration::from_millis(250);

/// The golden ratio: its multiples are spread evenly, whatever period the server has.
const SPREAD: f64 = 0.618_033_988_749_895;

/// Looks at the threads of some tiers until it is stopped, or its time is over.
#[derive(Debug)]
pub(crate) struct OffCpuSampler {
    stop: Arc<AtomicBool>,
    /// `None` once it was waited for.
    thread: Option<JoinHandle<ThreadsSeen>>,
}

impl OffCpuSampler {
    /// Begins to look at all threads of these tiers' processes, and of those that they start, for at most this long. `None`
    /// where none of them is here, or no thread can be started.
    #[must_use]
    pub(crate) fn start(tiers: Vec<BTreeSet<Pid>>, most: Duration) -> Option<Self> {
        Self::start_in(KernelPaths::default(), tiers, most)
    }

    fn start_in(paths: KernelPaths, tiers: Vec<BTreeSet<Pid>>, most: Duration) -> Option<Self> {
        if !tiers.iter().flatten().any(|pid| paths.process(*pid).exists()) {
            return None;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let look = move || Looking::new(paths, tiers).until(most, &stopped);
        let thread = std::thread::Builder::new().name("off-cpu".into()).spawn(look).ok()?;
        Some(Self { stop, thread: Some(thread) })
    }

    /// Ends it. Returns what was seen.
    #[must_use]
    pub(crate) fn stop(mut self) -> ThreadsSeen {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<ThreadsSeen> {
        let thread = self.thread.take()?;
        self.stop.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        thread.join().ok()
    }
}

/// Whoever gives up what was to be measured begins again, and looks at the same threads.
impl Drop for OffCpuSampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// What looks at the threads, and what it has seen so far.
struct Looking {
    paths: KernelPaths,
    tiers: Vec<BTreeSet<Pid>>,
    /// The processes that were descendants of these at the last search.
    processes: Vec<BTreeSet<Pid>>,
    tree: Option<ProcessTree>,
    rights: Rights,
    seen: ThreadsSeen,
}

impl Looking {
    fn new(paths: KernelPaths, tiers: Vec<BTreeSet<Pid>>) -> Self {
        let seen = ThreadsSeen { tiers: vec![TierSeen::default(); tiers.len()], ..ThreadsSeen::default() };
        let tree = ProcessTree::read(&paths).ok();
        Self { paths, processes: tiers.clone(), tiers, tree, rights: Rights::default(), seen }
    }

    fn until(mut self, most: Duration, stop: &AtomicBool) -> ThreadsSeen {
        let began = Instant::now();
        let mut track_at = began;
        while !stop.load(Ordering::Relaxed) && began.elapsed() < most {
            let (at, cpu_us) = (Instant::now(), own_thread_cpu_us());
            if at >= track_at {
                self.track();
                track_at = at + TRACK_PERIOD;
            }
            self.look();
            let cost = Duration::from_micros(own_thread_cpu_us().saturating_sub(cpu_us));
            wait_until(at + self.pause().max(cost * SHARE), began + most, stop);
        }
        self.seen.elapsed_s = began.elapsed().min(most).as_secs_f64();
        self.seen.troubles = self.troubles();
        self.seen
    }

    /// Looks for what the processes have started. One that is of a tier itself is not its parent's.
    fn track(&mut self) {
        let Some(tree) = &mut self.tree else { return };
        if tree.refresh(&self.paths).is_err() {
            return;
        }
        let of_tier = |tier: &BTreeSet<Pid>| {
            let alive = tree.alive(&tier.iter().copied().collect::<Vec<_>>()).into_iter();
            let is_anothers = |pid: &Pid| !tier.contains(pid) && self.tiers.iter().any(|of| of.contains(pid));
            alive.filter(|pid| !is_anothers(pid)).collect()
        };
        self.processes = self.tiers.iter().map(of_tier).collect();
    }

    /// Looks once at as many threads as a look covers, each tier having its share.
    fn look(&mut self) {
        let threads: Vec<Vec<PathBuf>> = self.processes.iter().map(|pids| self.threads(pids)).collect();
        let number = usize::try_from(self.seen.looks).unwrap_or_default();
        let most = (THREADS_MAX / self.tiers.len().max(1)).max(1);
        for (tier, threads) in self.seen.tiers.iter_mut().zip(&threads) {
            tier.threads += threads.len() as u64;
            for thread in chosen(threads, most, number) {
                if let Some(seen) = thread::look(thread, &mut self.rights) {
                    *tier.seen.entry(seen).or_default() += 1;
                }
            }
        }
        self.seen.looks += 1;
    }

    fn threads(&self, pids: &BTreeSet<Pid>) -> Vec<PathBuf> {
        let of_process = |pid: &Pid| {
            let task = self.paths.process(*pid).join("task");
            let numbers = numbered_entries(&task).unwrap_or_default().into_iter();
            numbers.map(move |number| task.join(number.to_string())).collect::<Vec<_>>()
        };
        pids.iter().flat_map(of_process).collect()
    }

    /// The time from one look to the next, between half the period and one and a half.
    fn pause(&self) -> Duration {
        PERIOD.mul_f64(0.5 + (self.seen.looks as f64 * SPREAD).fract())
    }

    fn troubles(&self) -> Vec<OffCpuTrouble> {
        let ptrace_scope =
            || read_or_empty(&self.paths.proc.join("sys/kernel/yama/ptrace_scope")).trim().parse().ok();
        let calls =
            self.rights.calls_refused.then(|| OffCpuTrouble::CallsRefused { ptrace_scope: ptrace_scope() });
        let stacks = self.rights.stacks_refused.then_some(OffCpuTrouble::StacksRefused);
        calls.into_iter().chain(stacks).collect()
    }
}

/// So many of the threads, spread evenly, and others at the next look: all of them equally often.
fn chosen(threads: &[PathBuf], most: usize, number: usize) -> impl Iterator<Item = &PathBuf> {
    let all = threads.len();
    let first = if all == 0 { 0 } else { number % all };
    let most = most.min(all);
    (0..most).filter_map(move |index| threads.get((first + index * all / most) % all))
}

fn wait_until(due: Instant, end: Instant, stop: &AtomicBool) {
    let due = due.min(end);
    // Whoever parks may be woken for nothing.
    while !stop.load(Ordering::Relaxed) {
        match due.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => std::thread::park_timeout(left),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, process::Command};

    use analysis::run::RunState;

    use super::*;

    #[test]
    fn all_threads_have_their_turn_equally_often() {
        let threads: Vec<PathBuf> = (0..300).map(|number: u32| number.to_string().into()).collect();
        let mut often = BTreeMap::new();
        for number in 0..threads.len() {
            let mut once = BTreeSet::new();
            chosen(&threads, THREADS_MAX, number).for_each(|thread| {
                *often.entry(thread).or_insert(0) += 1;
                once.insert(thread);
            });
            assert_eq!(once.len(), THREADS_MAX, "nobody twice in one look");
        }
        assert_eq!(often.len(), threads.len());
        assert!(often.values().all(|times| *times == THREADS_MAX), "{often:?}");
        assert_eq!(chosen(&[], 3, 7).count(), 0);
    }

    /// The calls in which threads of a tier slept, looked at for a while.
    fn calls_of(pid: Pid) -> (ThreadsSeen, BTreeSet<String>) {
        let tiers = vec![[pid].into(), [u32::MAX / 2].into()];
        let sampler = OffCpuSampler::start(tiers, Duration::from_secs(60)).expect("it is here");
        std::thread::sleep(Duration::from_millis(300));
        let seen = sampler.stop();
        let asleep = seen.tiers[0].seen.keys().filter(|thread| thread.state == RunState::Sleeping);
        let calls = asleep.filter_map(|thread| thread.call.clone()).collect();
        (seen, calls)
    }

    /// A process that sleeps, and one of its children that does so in another call.
    #[test]
    fn threads_that_sleep_are_seen_where_they_sleep() {
        const SLEEP: &str =
            "import os,time,select\nif os.fork() == 0:\n select.epoll().poll(60)\ntime.sleep(60)";
        let mut sleeper = Command::new("python3").args(["-c", SLEEP]).spawn().expect("python3 is installed");
        let is_asleep = |calls: &BTreeSet<String>| {
            let holds = |name: &str| calls.contains(name);
            holds("clock_nanosleep") && (holds("epoll_wait") || holds("epoll_pwait"))
        };
        let is_refused = |seen: &ThreadsSeen| {
            seen.troubles.iter().any(|trouble| matches!(trouble, OffCpuTrouble::CallsRefused { .. }))
        };
        let give_up = Instant::now() + Duration::from_secs(60);
        let (seen, calls) = loop {
            let (seen, calls) = calls_of(sleeper.id());
            // It may take a while to start.
            if is_asleep(&calls) || is_refused(&seen) || Instant::now() > give_up {
                break (seen, calls);
            }
        };
        let children = format!("/proc/{0}/task/{0}/children", sleeper.id());
        for child in read_or_empty(children.as_ref()).split_whitespace() {
            let _ = Command::new("kill").arg(child).status();
        }
        sleeper.kill().and_then(|()| sleeper.wait()).expect("it ends");
        let [of_it, of_none] = &seen.tiers[..] else { panic!("two tiers: {seen:?}") };
        assert!(of_none.seen.is_empty() && seen.looks > 0 && of_it.threads >= seen.looks, "{seen:?}");
        if is_refused(&seen) {
            eprintln!("SKIPPED: the kernel does not let this user see system calls: {:?}", seen.troubles);
            return;
        }
        assert!(is_asleep(&calls), "{seen:?}");
    }

    #[test]
    fn a_sampler_that_nobody_stops_ends_with_it() {
        let own = vec![[std::process::id()].into()];
        let sampler = OffCpuSampler::start(own, Duration::from_secs(600)).expect("it is here");
        let stop = Arc::clone(&sampler.stop);
        drop(sampler);
        assert_eq!(Arc::strong_count(&stop), 1, "its thread has ended");
    }

    #[test]
    fn processes_that_are_not_here_are_not_looked_at() {
        assert!(OffCpuSampler::start(vec![[u32::MAX / 2].into()], Duration::from_secs(1)).is_none());
        assert!(OffCpuSampler::start(vec![], Duration::from_secs(1)).is_none());
    }
}
