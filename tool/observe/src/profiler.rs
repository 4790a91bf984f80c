//! Samples what runs on the processors: the stacks of every thread of some processes, by perf_event_open(2).
//!
//! Where the kernel lets this user, an event counts all that a processor does, and what is of other processes is dropped:
//! that sees threads too that live for less than the time between two samples. Otherwise an event counts the time of one
//! thread on one processor, and of all that the thread starts later, each from its own beginning. Samples go to a ring
//! buffer that all events of the processor share, which a thread of ours empties. Needs neither perf nor hardware counters.

mod event;
mod record;
mod ring;

use std::{
    collections::BTreeSet,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use analysis::{profile::Sampled, run::ProfileTrouble};

use self::{event::Depth, ring::Ring};
use crate::kernel_files::{KernelPaths, Pid, numbered_entries, read_or_empty};

/// Samples per second of processor time: not a round number, so that nothing that repeats ten times a second keeps step.
const HERTZ: u32 = 99;

/// How often the ring buffers are emptied: each has room for several times as much.
const EMPTYING: Duration = Duration::from_millis(100);

/// Samples processes until it is stopped, or its time is over.
#[derive(Debug)]
pub struct Profiler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Sampled>,
}

impl Profiler {
    /// Begins to sample all threads of these processes and those that they start, for at most this long.
    ///
    /// # Errors
    /// What keeps it from sampling anything.
    pub fn start(pids: &BTreeSet<Pid>, most: Duration) -> Result<Self, ProfileTrouble> {
        let began = Instant::now();
        if !pids.iter().any(|pid| KernelPaths::default().process(*pid).exists()) {
            return Err(ProfileTrouble::NotHere);
        }
        let events = match Events::of_processors(pids) {
            Some(events) => events,
            None => Events::of_threads(pids)?,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let sample = move || events.sample(began, most, &stopped);
        let thread = thread::Builder::new().name("profiler".into()).spawn(sample);
        let thread = thread.map_err(|error| unavailable(&error))?;
        Ok(Self { stop, thread })
    }

    /// Ends it. Returns what was sampled.
    pub fn stop(self) -> Sampled {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

/// The events of all threads, and the ring buffer of each processor.
#[derive(Debug, Default)]
struct Events {
    depth: Depth,
    rings: Vec<(u32, Ring)>,
    events: Vec<OwnedFd>,
    left_out: u64,
    /// The processes whose samples count, where all that the processors do is sampled.
    among_all: Option<BTreeSet<Pid>>,
}

impl Events {
    /// Opens an event for all that each processor does; `None` where the kernel lets this user do no such thing.
    fn of_processors(pids: &BTreeSet<Pid>) -> Option<Self> {
        let mut events = Self { among_all: Some(pids.clone()), ..Self::default() };
        for processor in 0..event::processors() {
            match event::open_all(processor).and_then(Ring::new) {
                Ok(ring) => events.rings.push((processor, ring)),
                // It is offline.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(_) => return None,
            }
        }
        (!events.rings.is_empty()).then_some(events)
    }

    /// Opens events for every thread of some processes.
    fn of_threads(pids: &BTreeSet<Pid>) -> Result<Self, ProfileTrouble> {
        let mut events = Self::default();
        pids.iter().try_for_each(|pid| events.open(*pid))?;
        if events.rings.is_empty() { Err(ProfileTrouble::NotHere) } else { Ok(events) }
    }

    /// Opens an event for every thread of a process on every processor. One that has ended has none.
    fn open(&mut self, pid: Pid) -> Result<(), ProfileTrouble> {
        let threads = KernelPaths::default().process(pid).join("task");
        for thread in numbered_entries(&threads).unwrap_or_default() {
            for processor in 0..event::processors() {
                match self.open_on(thread, processor) {
                    Ok(()) => {}
                    Err(error) => match error.raw_os_error() {
                        Some(libc::ESRCH | libc::ENODEV) => {}
                        Some(libc::EMFILE | libc::ENFILE) if !self.rings.is_empty() => {
                            self.left_out += 1;
                            break;
                        }
                        Some(libc::EACCES | libc::EPERM) => return Err(refused()),
                        _ => return Err(unavailable(&error)),
                    },
                }
            }
        }
        Ok(())
    }

    fn open_on(&mut self, thread: u32, processor: u32) -> io::Result<()> {
        let event = match event::open(thread, processor, self.depth) {
            Err(error) if is_refusal(&error) && self.depth == Depth::Everything => {
                self.depth = Depth::ProgramAlone;
                event::open(thread, processor, self.depth)?
            }
            other => other?,
        };
        match self.rings.iter().find(|(of, _)| *of == processor) {
            Some((_, ring)) => {
                event::redirect(&event, ring.event())?;
                self.events.push(event);
            }
            None => self.rings.push((processor, Ring::new(event)?)),
        }
        Ok(())
    }

    /// Samples as long as wanted since it began: events count from when they are opened, before this thread runs.
    fn sample(mut self, began: Instant, most: Duration, stop: &AtomicBool) -> Sampled {
        let with_kernel = self.depth == Depth::Everything;
        let by_thread = self.among_all.is_none();
        let mut sampled = Sampled { hertz: HERTZ, with_kernel, by_thread, ..Sampled::default() };
        let mut lost = 0;
        let mut buffer = Vec::new();
        loop {
            let over = stop.load(Ordering::Relaxed) || began.elapsed() >= most;
            if over {
                sampled.elapsed_s = began.elapsed().as_secs_f64();
            }
            for (_, ring) in &mut self.rings {
                buffer.clear();
                ring.empty_into(&mut buffer);
                lost += record::read_into(&buffer, &mut sampled);
            }
            if over {
                break;
            }
            thread::park_timeout(EMPTYING.min(most.saturating_sub(began.elapsed())));
        }
        sampled.troubles = self.troubles(lost);
        match &self.among_all {
            Some(pids) => sampled.of(|pid| pids.contains(&pid)),
            None => sampled,
        }
    }

    fn troubles(&self, lost: u64) -> Vec<ProfileTrouble> {
        let left_out = self.left_out;
        [
            (self.depth == Depth::ProgramAlone)
                .then(|| ProfileTrouble::WithoutKernel { paranoid: paranoid() }),
            (left_out > 0).then_some(ProfileTrouble::TooManyThreads { left_out }),
            (lost > 0).then_some(ProfileTrouble::Lost { samples: lost }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn refused() -> ProfileTrouble {
    ProfileTrouble::Refused { paranoid: paranoid() }
}

fn unavailable(error: &io::Error) -> ProfileTrouble {
    ProfileTrouble::Unavailable { os_error: error.raw_os_error().unwrap_or_default() }
}

fn paranoid() -> Option<i32> {
    let path = KernelPaths::default().proc.join("sys/kernel/perf_event_paranoid");
    read_or_empty(&path).trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of ours, busy in its own code: whatever the machine does meanwhile, all samples of it are of it.
    #[test]
    fn a_busy_process_is_sampled() {
        let mut busy =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        let pid = busy.id();
        let sampled = Profiler::start(&[pid].into(), Duration::from_secs(10)).map(|profiler| {
            // As long as it takes for a busy machine to run it for a moment.
            thread::sleep(Duration::from_millis(1_000));
            profiler.stop()
        });
        busy.kill().and_then(|()| busy.wait()).expect("it ends");
        match sampled {
            Err(trouble) => eprintln!("SKIPPED: the kernel lets nothing be sampled here: {trouble:?}"),
            Ok(sampled) => {
                assert!(!sampled.stacks.is_empty(), "{sampled:?}");
                assert!(sampled.stacks.keys().all(|stack| stack.pid == pid), "{sampled:?}");
                assert!(sampled.elapsed_s >= 1.0, "{sampled:?}");
            }
        }
    }

    /// A server that starts a thread for each request showed no CPU time at all: none lived until its first sample.
    #[test]
    fn threads_that_live_for_a_moment_are_sampled() {
        const BURN: &str = "import threading\nwhile True:\n t=threading.Thread(target=lambda: sum(range(20000)))\n t.start()\n t.join()";
        let mut busy =
            std::process::Command::new("python3").args(["-c", BURN]).spawn().expect("python3 is installed");
        let pid = busy.id();
        let cpu_s = || {
            let stat = read_or_empty(&KernelPaths::default().process(pid).join("stat"));
            let fields: Vec<i64> = stat.split(' ').filter_map(|field| field.parse().ok()).collect();
            // After the process's number: four of its parent and terminal, flags, four of pages, then user and kernel time.
            fields.get(11..13).map_or(0.0, |times| times.iter().sum::<i64>() as f64 / 100.0)
        };
        thread::sleep(Duration::from_millis(500));
        let sampled = Profiler::start(&[pid].into(), Duration::from_secs(60)).map(|profiler| {
            let before = cpu_s();
            thread::sleep(Duration::from_millis(1_500));
            (cpu_s() - before, profiler.stop())
        });
        busy.kill().and_then(|()| busy.wait()).expect("it ends");
        match sampled {
            Ok((used_s, sampled)) if !sampled.by_thread => {
                let seen_s = sampled.stacks.values().sum::<u64>() as f64 / f64::from(HERTZ);
                assert!(used_s > 0.0 && seen_s > 0.5 * used_s, "{seen_s} s of {used_s} s were sampled");
            }
            other => eprintln!("SKIPPED: the kernel lets only single threads be sampled here: {other:?}"),
        }
    }

    #[test]
    fn a_process_that_has_ended_cannot_be_sampled() {
        let started = Profiler::start(&[u32::MAX / 2].into(), Duration::from_secs(1));
        assert!(matches!(started, Err(ProfileTrouble::NotHere)), "{started:?}");
    }
}
