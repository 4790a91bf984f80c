//! Slows processes by stopping them (SIGSTOP, SIGCONT) for short slices of about a tenth of the time.
//!
//! Whatever ends first, the processes go on: the thread that stops them lets them go however it ends, and a shell stands by
//! that does so once nstar is gone.

use std::{
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use analysis::run::LeftAloneReason;
use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use super::stand_by::{Script, StandBy};

/// How long processes are stopped at a time: short against the queues that keep the others busy meanwhile.
pub(super) const SLICE: Duration = Duration::from_millis(2);
/// How many slices long the time between two is, in turn; on average nine. Several lengths, so that nothing periodic in the
/// server runs in step with them.
const BETWEEN: [u32; 5] = [9, 5, 12, 7, 12];

/// Processes that are stopped slice by slice, until this is finished or dropped.
#[derive(Debug)]
pub(super) struct Stopping {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<f64>>>,
}

impl Stopping {
    /// Begins to stop processes, but for those that have ended.
    ///
    /// # Errors
    /// The reason to leave them alone: all have ended, a program is missing, or the system does not allow it.
    pub(super) fn start(pids: &[u32]) -> Result<Self, LeftAloneReason> {
        let (mut processes, mut living) = (Vec::new(), Vec::new());
        for pid in pids {
            match open(*pid) {
                Err(LeftAloneReason::Ended) => {}
                opened => {
                    processes.push(opened?);
                    living.push(*pid);
                }
            }
        }
        if living.is_empty() {
            return Err(LeftAloneReason::Ended);
        }
        let stand_by = stand_by(&living)?;
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = thread::Builder::new()
            .name("nstar-slow".into())
            .spawn(move || {
                let share = alternate(&Stopped(&processes), &told);
                // Only now that everything goes on again is nobody needed who would see to it.
                stand_by.finish().then_some(share)
            })
            .map_err(|_| LeftAloneReason::NotAllowed)?;
        Ok(Stopping { over, thread: Some(thread) })
    }

    /// Ends it. Returns the share of the time for which the processes were stopped, 0 to 1; `None` where nstar was suspended
    /// meanwhile for longer than anybody stands by.
    pub(super) fn finish(mut self) -> Option<f64> {
        self.end()
    }

    fn end(&mut self) -> Option<f64> {
        self.over.store(true, Ordering::Relaxed);
        // A thread that panicked has let the processes go, and stopped them for no known time.
        self.thread.take().and_then(|thread| thread.join().ok().flatten())
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        self.end();
    }
}

/// A handle on a process that stays that of this one, whoever gets its number later.
fn open(pid: u32) -> Result<OwnedFd, LeftAloneReason> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(LeftAloneReason::Ended)?;
    pidfd_open(pid, PidfdFlags::empty()).map_err(|error| match error {
        Errno::SRCH => LeftAloneReason::Ended,
        _ => LeftAloneReason::NotAllowed,
    })
}

/// Lets processes go on once nstar is gone.
fn stand_by(pids: &[u32]) -> Result<StandBy, LeftAloneReason> {
    StandBy::start(Script {
        begin: ":",
        undo: r#"kill -CONT "$@""#,
        arguments: pids.iter().map(|pid| pid.to_string().into()).collect(),
        namespace: None,
        lock: None,
    })
}

/// Processes that go on once this is dropped.
struct Stopped<'a>(&'a [OwnedFd]);

impl Stopped<'_> {
    fn signal(&self, signal: Signal) {
        for process in self.0 {
            // One that has ended needs no signal.
            let _ = pidfd_send_signal(process, signal);
        }
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
    }
}

/// Stops the processes slice by slice until told. Returns the share of the time.
fn alternate(processes: &Stopped<'_>, over: &AtomicBool) -> f64 {
    let begun = Instant::now();
    let mut stopped = Duration::ZERO;
    for slices in BETWEEN.iter().cycle() {
        thread::sleep(SLICE * *slices);
        if over.load(Ordering::Relaxed) {
            break;
        }
        processes.signal(Signal::STOP);
        let since = Instant::now();
        thread::sleep(SLICE);
        processes.signal(Signal::CONT);
        stopped += since.elapsed();
    }
    stopped.as_secs_f64() / begun.elapsed().as_secs_f64().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        process::{Child, Command},
    };

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn state(pid: u32) -> char {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    #[test]
    fn processes_are_stopped_for_part_of_the_time_and_go_on_afterwards() {
        let mut child = sleeper();
        let stopping = Stopping::start(&[child.id()]).unwrap();
        let begun = Instant::now();
        let mut seen = false;
        while !seen && begun.elapsed() < Duration::from_secs(20) {
            seen = state(child.id()) == 'T';
        }
        let share = stopping.finish().unwrap();
        assert!(seen, "it was stopped now and then");
        assert!(share > 0.0 && share < 1.0, "{share}");
        assert_eq!(state(child.id()), 'S', "it goes on");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Stopping::start(&[child.id()]).err(), Some(LeftAloneReason::Ended));
        let mut other = sleeper();
        let stopping = Stopping::start(&[child.id(), other.id()]).expect("one of them is there");
        assert!(stopping.finish().is_some());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn processes_go_on_once_nstar_is_gone() {
        let mut child = sleeper();
        let stand_by = stand_by(&[child.id()]).unwrap();
        let process = open(child.id()).unwrap();
        pidfd_send_signal(&process, Signal::STOP).unwrap();
        while state(child.id()) != 'T' {}
        // As if by the end of this program: its end of the pipe closes.
        drop(stand_by);
        while state(child.id()) != 'S' {}
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
