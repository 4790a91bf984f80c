//! The threads of the generator: started, pinned, commanded, joined.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{Sender, sync_channel};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, gettid, sched_setaffinity, set_current_timer_slack};

use crate::error::LoadError;
use crate::plan::{Pacing, Plan};
use crate::transport::poller::Waker;
use crate::values::stream::mix;
use crate::worker::Worker;
use crate::worker::messages::{Command, FromThread, Mailbox};
use crate::worker::pacing::{LoopMode, Schedule, ThreadShare};
use crate::worker::target::Targets;

/// A running thread.
pub(super) struct ThreadHandle {
    mailbox: Arc<Mailbox>,
    waker: Waker,
    /// Kernel number of the thread.
    pub(super) tid: u32,
    handle: Option<JoinHandle<()>>,
}

impl ThreadHandle {
    pub(super) fn send(&self, command: Command) {
        self.mailbox.put(command);
        self.waker.wake();
    }

    /// Whether the thread has ended.
    pub(super) fn is_lost(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the thread has ended.
    pub(super) fn join(&mut self) {
        if let Some(handle) = self.handle.take() {
            // A thread that panicked has printed why.
            let _ = handle.join();
        }
    }
}

/// Starts thread `number` of the plan.
pub(super) fn spawn(
    plan: &Plan,
    targets: &Targets,
    number: usize,
    reports: Sender<FromThread>,
) -> Result<ThreadHandle, LoadError> {
    let share = ThreadShare { number, of: plan.threads, seed: plan.seed };
    let mode = match plan.pacing {
        Pacing::Closed { think } => LoopMode::Closed { think },
        Pacing::Open { rate_per_s, arrivals } => {
            let share = ThreadShare { seed: schedule_seed(plan), ..share };
            LoopMode::Open(Schedule::new(rate_per_s, arrivals, share))
        }
    };
    let mailbox = Arc::new(Mailbox::default());
    let numbers = plan.member.numbers();
    let worker = Worker::new(targets, (share, numbers), mode, mailbox.clone(), reports)?;
    let waker = worker.waker()?;
    let cpu = plan.cpus.as_ref().and_then(|cpus| cpus.get(number % cpus.len().max(1)).copied());
    let (started, ready) = sync_channel(1);
    let run = move || {
        let prepared = prepare(cpu);
        let failed = prepared.is_err();
        let _ = started.send(prepared);
        if !failed {
            worker.run();
        }
    };
    let handle = std::thread::Builder::new()
        .name(format!("load-{number}"))
        .spawn(run)
        .map_err(|source| LoadError::System { action: "start a generator thread", source })?;
    let tid = ready.recv().map_err(|_| LoadError::ThreadLost)??;
    Ok(ThreadHandle { mailbox, waker, tid, handle: Some(handle) })
}

/// The seed of arrivals, which differs from generator to generator: independent Poisson streams add up to one.
fn schedule_seed(plan: &Plan) -> u64 {
    match plan.member.index() {
        0 => plan.seed,
        index => mix(plan.seed, (1 << 48) + index as u64),
    }
}

/// Prepares the calling thread. Returns its kernel number.
fn prepare(cpu: Option<usize>) -> Result<u32, LoadError> {
    cpu.map_or(Ok(()), pin)?;
    // Lets alarms go off when they are due, not up to 50 us later. If this fails, think times and intended starts are only
    // a little late, which is no reason to stop.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    Ok(gettid().as_raw_nonzero().get().unsigned_abs())
}

/// Pins the calling thread to a processor.
pub(crate) fn pin(cpu: usize) -> Result<(), LoadError> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(LoadError::Plan("it names a processor beyond what the kernel can number"));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(LoadError::system("pin a thread to its processor"))
}
