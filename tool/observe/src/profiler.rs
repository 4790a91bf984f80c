//! Samples what runs on the processors: the stacks of every thread of some processes, by perf_event_open(2).
//!
//! Where the kernel lets this user, an event counts all that a processor does, and what is of other processes is dropped:
//! that sees threads too that live for less than the time between two samples. Otherwise an event counts the time of one
//! thread on one processor, and of all that the thread starts later, each from its own beginning. Samples go to a ring
//! buffer that all events of the processor share, which a thread of ours empties. Needs neither perf nor hardware counters.
//!
//! The kernel finds callers by frame pointers, which most packaged programs have none of. So it copies registers and the inner
//! part of the stack too, and another thread of ours has them unwound by an [`Unwinder`]. Of a processor's samples, 512 KiB
//! wait in its ring and as much to be unwound, and the copies are dropped once that is done.

mod event;
mod record;
mod registers;
mod ring;
mod unwinding;

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

use analysis::{
    profile::{Sampled, Snapshot, Unwinder},
    run::ProfileTrouble,
};

use self::{
    event::{Callers, Depth},
    record::Sample,
    ring::Ring,
    unwinding::Unwinding,
};
use crate::kernel_files::{KernelPaths, Pid, numbered_entries, read_or_empty};

/// Samples per second of processor time: not a round number, so that nothing that repeats ten times a second keeps step.
const HERTZ: u32 = 99;

/// How often the ring buffers are emptied: each has room for several times as much.
const EMPTYING: Duration = Duration::from_millis(50);

/// Samples processes until it is stopped, or its time is over.
#[derive(Debug)]
pub(crate) struct Profiler {
    stop: Arc<AtomicBool>,
    /// `None` once it was waited for.
    thread: Option<JoinHandle<Sampled>>,
}

impl Profiler {
    /// Begins to sample all threads of these processes and those that they start, for at most this long. Without an unwinder,
    /// callers are those that frame pointers tell.
    ///
    /// # Errors
    /// What keeps it from sampling anything.
    pub(crate) fn start(
        pids: &BTreeSet<Pid>,
        most: Duration,
        unwinder: Option<Box<dyn Unwinder>>,
    ) -> Result<Self, ProfileTrouble> {
        let began = Instant::now();
        if !pids.iter().any(|pid| KernelPaths::default().process(*pid).exists()) {
            return Err(ProfileTrouble::NotHere);
        }
        let callers =
            if unwinder.is_some() && registers::MASK != 0 { Callers::Copied } else { Callers::Linked };
        let events = match Events::of_processors(pids, callers) {
            Some(events) => events.sampling()?,
            None => Events::of_threads(pids, callers)?,
        };
        let unwinder = unwinder.filter(|_| events.callers == Callers::Copied);
        let unwinding = unwinder.map(|unwinder| Unwinding::start(unwinder, events.rings.len()));
        let unwinding = unwinding.transpose().map_err(|error| unavailable(&error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let sample = move || events.sample(began, most, &stopped, unwinding);
        let thread = thread::Builder::new().name("profiler".into()).spawn(sample);
        let thread = thread.map_err(|error| unavailable(&error))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends it. Returns what was sampled.
    pub(crate) fn stop(mut self) -> Sampled {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Sampled> {
        let thread = self.thread.take()?;
        self.stop.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        thread.join().ok()
    }
}

/// Whoever gives up what was to be measured begins again, with ring buffers that take as much of what a user may lock.
impl Drop for Profiler {
    fn drop(&mut self) {
        self.end();
    }
}

/// The events of all threads, and the ring buffer of each processor.
#[derive(Debug, Default)]
struct Events {
    depth: Depth,
    callers: Callers,
    rings: Vec<(u32, Ring)>,
    /// The processors that have none, because this user may lock no more memory.
    without_ring: BTreeSet<u32>,
    events: Vec<OwnedFd>,
    left_out: u64,
    /// The processes whose samples count, where all that the processors do is sampled.
    among_all: Option<BTreeSet<Pid>>,
}

impl Events {
    /// Opens an event for all that each processor does; `None` where the kernel lets this user do no such thing.
    fn of_processors(pids: &BTreeSet<Pid>, callers: Callers) -> Option<Self> {
        let mut events = Self { among_all: Some(pids.clone()), callers, ..Self::default() };
        for processor in 0..event::processors() {
            match events.copying_if_it_can(|callers| event::open_all(processor, callers)) {
                Ok(event) => events.add_ring(processor, Ring::new(event)),
                // It is offline.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(_) => return None,
            }
        }
        (!events.rings.is_empty() || !events.without_ring.is_empty()).then_some(events)
    }

    /// Has samples of a processor go to its ring buffer. One that cannot be mapped is refused for want of memory, and not of
    /// rights, though the error may be the same.
    fn add_ring(&mut self, processor: u32, ring: io::Result<Ring>) {
        match ring {
            Ok(ring) => self.rings.push((processor, ring)),
            Err(_) => {
                self.without_ring.insert(processor);
            }
        }
    }

    /// The same, if anything is sampled.
    fn sampling(self) -> Result<Self, ProfileTrouble> {
        match self.no_room() {
            _ if !self.rings.is_empty() => Ok(self),
            Some(no_room) => Err(no_room),
            None => Err(ProfileTrouble::NotHere),
        }
    }

    /// How many processors are not sampled for want of memory, if any.
    fn no_room(&self) -> Option<ProfileTrouble> {
        let left_out = u32::try_from(self.without_ring.len()).unwrap_or(u32::MAX);
        let of = u32::try_from(self.rings.len()).unwrap_or(u32::MAX).saturating_add(left_out);
        (left_out > 0).then_some(ProfileTrouble::NoRoom { left_out, of })
    }

    /// Opens an event, the first one without copies where this kernel or processor makes none; the others then too, since all
    /// samples in a ring must be laid out alike.
    fn copying_if_it_can(&mut self, open: impl Fn(Callers) -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
        match open(self.callers) {
            Err(error) if self.rings.is_empty() && event::copies_nothing(&error) => {
                self.callers = Callers::Linked;
                open(self.callers)
            }
            other => other,
        }
    }

    /// Opens events for every thread of some processes.
    fn of_threads(pids: &BTreeSet<Pid>, callers: Callers) -> Result<Self, ProfileTrouble> {
        let mut events = Self { callers, ..Self::default() };
        pids.iter().try_for_each(|pid| events.open(*pid))?;
        events.sampling()
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
        if self.without_ring.contains(&processor) {
            return Ok(());
        }
        let depth = self.depth;
        let event = match self.copying_if_it_can(|callers| event::open(thread, processor, depth, callers)) {
            Err(error) if is_refusal(&error) && depth == Depth::Everything => {
                self.depth = Depth::ProgramAlone;
                self.copying_if_it_can(|callers| {
                    event::open(thread, processor, Depth::ProgramAlone, callers)
                })?
            }
            other => other?,
        };
        match self.rings.iter().find(|(of, _)| *of == processor) {
            Some((_, ring)) => {
                event::redirect(&event, ring.event())?;
                self.events.push(event);
            }
            None => self.add_ring(processor, Ring::new(event)),
        }
        Ok(())
    }

    /// Samples as long as wanted since it began: events count from when they are opened, before this thread runs.
    fn sample(
        mut self,
        began: Instant,
        most: Duration,
        stop: &AtomicBool,
        mut unwinding: Option<Unwinding>,
    ) -> Sampled {
        let with_kernel = self.depth == Depth::Everything;
        let by_thread = self.among_all.is_none();
        let mut sampled = Sampled { hertz: HERTZ, with_kernel, by_thread, ..Sampled::default() };
        let mut lost = 0;
        loop {
            let over = stop.load(Ordering::Relaxed) || began.elapsed() >= most;
            if over {
                sampled.elapsed_s = began.elapsed().as_secs_f64();
            }
            lost += self.take_into(&mut sampled, &mut unwinding);
            if over {
                break;
            }
            thread::park_timeout(EMPTYING.min(most.saturating_sub(began.elapsed())));
        }
        if let Some(unwinding) = unwinding {
            unwinding.finish(&mut sampled.stacks);
        }
        sampled.troubles = self.troubles(lost);
        sampled
    }

    /// Takes what waits in the rings. Returns how many samples were lost.
    fn take_into(&mut self, sampled: &mut Sampled, unwinding: &mut Option<Unwinding>) -> u64 {
        let records: Vec<Vec<u8>> = self.rings.iter_mut().map(|(_, ring)| ring.take()).collect();
        // First of all of them, because a process may be sampled on another processor than the one that started it.
        let lost = records.iter().map(|records| record::processes_into(records, sampled)).sum();
        for sample in records.iter().flat_map(|records| record::samples(records, self.callers)) {
            self.count(sample, sampled, unwinding);
        }
        if let Some(unwinding) = unwinding {
            unwinding.collect(&mut sampled.stacks);
        }
        lost
    }

    /// Counts a sample, or first has it unwound.
    fn count(
        &self,
        Sample { stack, copied }: Sample<'_>,
        sampled: &mut Sampled,
        unwinding: &mut Option<Unwinding>,
    ) {
        let pid = stack.pid;
        if !self.is_wanted(pid, sampled) {
            return;
        }
        let (Some(unwinding), Some(copied)) = (unwinding, copied) else {
            return unwinding::count(stack, &mut sampled.stacks);
        };
        let copied_from = sampled.parents.get(&pid).copied().filter(|_| !sampled.replaced.contains(&pid));
        let snapshot = Snapshot {
            pid,
            copied_from,
            registers: copied.registers,
            stack: copied.stack.into(),
            goes_on: copied.is_full,
            linked: stack.user.clone(),
        };
        unwinding.take(stack, snapshot, &mut sampled.stacks);
    }

    /// Whether a process is among those that are asked for, or was started by them meanwhile.
    fn is_wanted(&self, pid: Pid, sampled: &Sampled) -> bool {
        self.among_all.as_ref().is_none_or(|pids| sampled.ancestor(pid, |pid| pids.contains(&pid)).is_some())
    }

    fn troubles(&self, lost: u64) -> Vec<ProfileTrouble> {
        let left_out = self.left_out;
        [
            (self.depth == Depth::ProgramAlone)
                .then(|| ProfileTrouble::WithoutKernel { paranoid: paranoid() }),
            (self.callers == Callers::Linked).then_some(ProfileTrouble::FramePointersAlone),
            (left_out > 0).then_some(ProfileTrouble::TooManyThreads { left_out }),
            self.no_room(),
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
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use analysis::profile::{SampledStack, StackEnd, Unwound};

    use super::*;

    /// Held by each test that samples: several at a time need more memory than may be locked, and each would leave something out.
    static RINGS: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        RINGS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process of ours, busy in its own code: whatever the machine does meanwhile, all samples of it are of it.
    #[test]
    fn a_busy_process_is_sampled() {
        let _alone = alone();
        let mut busy =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        let pid = busy.id();
        let sampled = Profiler::start(&[pid].into(), Duration::from_secs(10), None).map(|profiler| {
            // As long as it takes for a busy machine to run it for a moment.
            thread::sleep(Duration::from_millis(1_000));
            profiler.stop()
        });
        busy.kill().and_then(|()| busy.wait()).expect("it ends");
        match sampled {
            Err(trouble) => eprintln!("SKIPPED: the kernel lets nothing be sampled here: {trouble:?}"),
            Ok(sampled) if lacks_room(&sampled) => eprintln!("SKIPPED: not even a lone profiler has room"),
            Ok(sampled) => {
                assert!(!sampled.stacks.is_empty(), "{sampled:?}");
                assert!(sampled.stacks.keys().all(|stack| stack.pid == pid), "{sampled:?}");
                assert!(sampled.elapsed_s >= 1.0, "{sampled:?}");
            }
        }
    }

    /// Takes the place of the real one: callers are none, and where the stack ends says whether there was one.
    struct Fake;

    impl Unwinder for Fake {
        fn unwind(&mut self, snapshot: &Snapshot) -> Unwound {
            let Snapshot { registers, stack, linked, .. } = snapshot;
            let is_whole =
                linked.first() == Some(&registers.instruction) && registers.stack != 0 && stack.len() >= 8;
            let end = if is_whole { StackEnd::Start } else { StackEnd::Untold };
            Unwound { calls: vec![registers.instruction], end }
        }
    }

    #[test]
    fn the_stack_of_a_sample_comes_with_it() {
        let _alone = alone();
        let mut busy =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        let sampled = Profiler::start(&[busy.id()].into(), Duration::from_secs(10), Some(Box::new(Fake)));
        let sampled = sampled.map(|profiler| {
            // As long as it takes for a busy machine to run it for a moment.
            thread::sleep(Duration::from_millis(1_000));
            profiler.stop()
        });
        busy.kill().and_then(|()| busy.wait()).expect("it ends");
        match sampled {
            Err(trouble) => eprintln!("SKIPPED: the kernel lets nothing be sampled here: {trouble:?}"),
            Ok(sampled) if sampled.troubles.contains(&ProfileTrouble::FramePointersAlone) => {
                eprintln!("SKIPPED: no stack is copied here");
            }
            Ok(sampled) if lacks_room(&sampled) => eprintln!("SKIPPED: not even a lone profiler has room"),
            Ok(sampled) => {
                assert!(!sampled.stacks.is_empty(), "{sampled:?}");
                assert!(sampled.stacks.keys().all(|stack| stack.end == Some(StackEnd::Start)), "{sampled:?}");
                assert!(sampled.stacks.keys().all(|stack| stack.user.len() == 1), "{sampled:?}");
            }
        }
    }

    /// A server that starts a thread for each request showed no CPU time at all: none lived until its first sample.
    #[test]
    fn threads_that_live_for_a_moment_are_sampled() {
        const BURN: &str = "import threading\nwhile True:\n t=threading.Thread(target=lambda: sum(range(20000)))\n t.start()\n t.join()";
        let _alone = alone();
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
        let sampled = Profiler::start(&[pid].into(), Duration::from_secs(60), None).map(|profiler| {
            let (before, begun) = (cpu_s(), Instant::now());
            // Long enough for many samples, also where a busy machine seldom runs it.
            while cpu_s() - before < 1.0 && begun.elapsed() < Duration::from_secs(30) {
                thread::sleep(Duration::from_millis(100));
            }
            (cpu_s() - before, profiler.stop())
        });
        busy.kill().and_then(|()| busy.wait()).expect("it ends");
        match sampled {
            Ok((used_s, sampled)) if !sampled.by_thread && !lacks_room(&sampled) => {
                let seen_s = sampled.stacks.values().sum::<u64>() as f64 / f64::from(HERTZ);
                assert!(used_s > 0.0 && seen_s > 0.5 * used_s, "{seen_s} s of {used_s} s were sampled");
            }
            other => eprintln!("SKIPPED: the kernel does not let all be sampled here: {other:?}"),
        }
    }

    /// Has so much processor time, whoever else is busy.
    fn compute(for_s: f64) {
        let had_s = || {
            let had = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            had.tv_sec as f64 + had.tv_nsec as f64 / 1e9
        };
        let end_s = had_s() + for_s;
        while had_s() < end_s {
            for number in 0..100_000_u64 {
                std::hint::black_box(number);
            }
        }
    }

    /// How long the busy thread below computes, seconds of processor time.
    const COMPUTING_S: f64 = 1.0;

    /// What is sampled of the threads of this process, each by itself, while one of them computes.
    fn sampled_by_thread() -> Result<Sampled, ProfileTrouble> {
        let stop = AtomicBool::new(false);
        let stop = &stop;
        thread::scope(|threads| {
            let (begin, begun) = std::sync::mpsc::channel();
            threads.spawn(move || {
                if begun.recv().is_ok() {
                    compute(COMPUTING_S);
                }
                stop.store(true, Ordering::Relaxed);
            });
            let events = Events::of_threads(&[std::process::id()].into(), Callers::Linked)?;
            begin.send(()).expect("it waits");
            Ok(events.sample(Instant::now(), Duration::from_secs(100), stop, None))
        })
    }

    /// Whether some processors were not sampled, as other processes have rings as well.
    fn lacks_room(sampled: &Sampled) -> bool {
        sampled.troubles.iter().any(|trouble| matches!(trouble, ProfileTrouble::NoRoom { .. }))
    }

    /// The thread that computed was seen, in its own code. What other tests start meanwhile may be seen too.
    fn assert_is_seen(sampled: &Sampled) {
        assert!(sampled.by_thread, "{sampled:?}");
        if sampled.troubles.iter().any(|trouble| matches!(trouble, ProfileTrouble::TooManyThreads { .. })) {
            return eprintln!("SKIPPED: fewer files may be open than there are threads and processors");
        }
        if lacks_room(sampled) {
            return eprintln!("SKIPPED: not even a lone profiler has room");
        }
        let own = |stack: &SampledStack| stack.pid == std::process::id() && stack.kernel.is_empty();
        let seen = sampled.stacks.iter().filter(|(stack, _)| own(stack)).map(|(_, samples)| *samples);
        let seen_s = seen.sum::<u64>() as f64 / f64::from(HERTZ);
        // What is left of its time on each processor when it moves to another is not seen.
        assert!(seen_s > 0.25 * COMPUTING_S, "{seen_s} s: {sampled:?}");
    }

    #[test]
    fn threads_are_sampled_each_by_itself() {
        let _alone = alone();
        match sampled_by_thread() {
            Err(trouble) => eprintln!("SKIPPED: the kernel lets nothing be sampled here: {trouble:?}"),
            Ok(sampled) => assert_is_seen(&sampled),
        }
    }

    /// The same as a user without rights: on a thread of its own, which alone changes its user. `None` where this user may sample
    /// nothing, or cannot become another.
    fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> Option<T> {
        let nobody = rustix::thread::Uid::from_raw(65_534);
        let can_sample = Events::of_threads(&[std::process::id()].into(), Callers::Linked).is_ok();
        let act = move || {
            let becomes = || rustix::thread::set_thread_res_uid(nobody, nobody, nobody).is_ok();
            (can_sample && rustix::process::geteuid().is_root() && becomes()).then(act)
        };
        let done = thread::scope(|threads| threads.spawn(act).join().expect("the thread ends"));
        if done.is_none() {
            eprintln!("SKIPPED: it needs root, and a kernel that lets root sample");
        }
        done
    }

    /// Which of these it is depends on the setting: up to 1 all, at 2 no kernel, and from 3 on nothing where the kernel is a
    /// distribution's that knows such a level.
    #[test]
    fn without_rights_ones_own_threads_are_sampled_as_far_as_the_setting_lets() {
        let _alone = alone();
        let Some(sampled) = as_nobody(sampled_by_thread) else { return };
        let level = paranoid().expect("this kernel samples");
        match sampled {
            Ok(sampled) => {
                assert_is_seen(&sampled);
                let without = ProfileTrouble::WithoutKernel { paranoid: Some(level) };
                let is_told = sampled.troubles.contains(&without);
                assert_eq!((sampled.with_kernel, is_told), (level < 2, level >= 2), "{sampled:?}");
                let in_kernel = sampled.stacks.keys().any(|stack| !stack.kernel.is_empty());
                assert!(!in_kernel || level < 2, "{sampled:?}");
            }
            refused => {
                assert!(level >= 3, "at {level}: {refused:?}");
                assert_eq!(refused, Err(ProfileTrouble::Refused { paranoid: Some(level) }));
            }
        }
    }

    #[test]
    fn without_rights_a_process_of_another_user_is_refused() {
        let _alone = alone();
        let mut others = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep");
        let pid = others.id();
        let begun = as_nobody(|| Events::of_threads(&[pid].into(), Callers::Linked).map(drop));
        others.kill().and_then(|()| others.wait()).expect("it ends");
        if let Some(begun) = begun {
            assert_eq!(begun, Err(ProfileTrouble::Refused { paranoid: paranoid() }));
        }
    }

    /// A file can be mapped as an event can.
    fn ring() -> io::Result<Ring> {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(1 << 20).expect("it is long enough");
        Ring::new(file.into())
    }

    /// The kernel refuses to map a ring as it refuses to sample, once too much is locked.
    #[test]
    fn a_ring_that_cannot_be_mapped_is_no_missing_right_and_leaves_out_its_processor_alone() {
        let refused = || Err(io::Error::from_raw_os_error(libc::EPERM));
        let mut events = Events::default();
        events.add_ring(0, refused());
        assert_eq!(events.sampling().map(drop), Err(ProfileTrouble::NoRoom { left_out: 1, of: 1 }));
        let mut events = Events::default();
        events.add_ring(0, ring());
        events.add_ring(1, refused());
        events.add_ring(2, ring());
        let events = events.sampling().expect("two processors are sampled");
        assert_eq!(events.rings.iter().map(|(processor, _)| *processor).collect::<Vec<_>>(), [0, 2]);
        assert!(events.troubles(0).contains(&ProfileTrouble::NoRoom { left_out: 1, of: 3 }));
    }

    #[test]
    fn a_profiler_that_nobody_stops_ends_with_it() {
        let _alone = alone();
        match Profiler::start(&[std::process::id()].into(), Duration::from_secs(600), None) {
            Err(trouble) => eprintln!("SKIPPED: the kernel lets nothing be sampled here: {trouble:?}"),
            Ok(profiler) => {
                let stop = Arc::clone(&profiler.stop);
                drop(profiler);
                assert_eq!(Arc::strong_count(&stop), 1, "its thread has ended");
            }
        }
    }

    #[test]
    fn a_process_that_has_ended_cannot_be_sampled() {
        let _alone = alone();
        let started = Profiler::start(&[u32::MAX / 2].into(), Duration::from_secs(1), None);
        assert!(matches!(started, Err(ProfileTrouble::NotHere)), "{started:?}");
    }
}
