//! The generator's threads: started, pinned, told, joined.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{Sender, sync_channel};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, gettid, sched_setaffinity, set_current_timer_slack};

use crate::error::LoadError;
use crate::plan::{Pacing, Plan};
use crate::transport::poller::Waker;
use crate::worker::pacing::{Schedule, Thread};
use crate::worker::{Command, Drive, Mailbox, Report, Settings, Worker};

/// One generator thread.
pub(crate) struct Running {
    mailbox: Arc<Mailbox>,
    waker: Waker,
    pub(crate) tid: u32,
    handle: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn tell(&self, command: Command) {
        self.mailbox.put(command);
        self.waker.wake();
    }

    /// Whether it ended.
    pub(crate) fn is_lost(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until it has ended.
    pub(crate) fn join(&mut self) {
        if let Some(handle) = self.handle.take() {
            // A thread that panicked has said so; there is nothing to add here.
            let _ = handle.join();
        }
    }
}

/// Starts thread `number` of the plan.
pub(crate) fn spawn(
    plan: &Plan,
    settings: &Arc<Settings>,
    number: usize,
    reports: Sender<Report>,
) -> Result<Running, LoadError> {
    let thread = Thread { number, of: plan.threads, seed: plan.seed };
    let drive = match plan.pacing {
        Pacing::Closed { think } => Drive::Closed { think },
        Pacing::Open { rate_per_s, arrivals } => Drive::Open(Schedule::new(rate_per_s, arrivals, thread)),
    };
    let mailbox = Arc::new(Mailbox::default());
    let worker = Worker::new(settings, thread, drive, mailbox.clone(), reports)?;
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
    Ok(Running { mailbox, waker, tid, handle: Some(handle) })
}

/// Readies the calling thread; its kernel number.
fn prepare(cpu: Option<usize>) -> Result<u32, LoadError> {
    cpu.map_or(Ok(()), pin)?;
    // Alarms go off when they are due, not up to 50 us later. Without this think times and intended
    // starts are only a little late, so a refusal is no reason to stop.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    Ok(gettid().as_raw_nonzero().get().unsigned_abs())
}

/// Keeps the calling thread on one processor.
pub(crate) fn pin(cpu: usize) -> Result<(), LoadError> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(LoadError::Plan("it names a processor beyond what the kernel can number"));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(LoadError::system("pin a thread to its processor"))
}
