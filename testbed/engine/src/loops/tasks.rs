//! A task of a loop, and its waker, which works from any thread.

use std::{
    cell::Cell,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};

use super::arena::Key;
use crate::control::Notifier;

/// One connection's service at work.
pub(crate) struct Task {
    pub(crate) peer: SocketAddr,
    /// Out while it is being polled.
    pub(crate) work: Option<Work>,
}

/// A task's future, with the waker it is polled with.
pub(crate) struct Work {
    future: Pin<Box<dyn Future<Output = ()>>>,
    alarm: Arc<Alarm>,
    waker: Waker,
}

impl Work {
    pub(crate) fn new(future: impl Future<Output = ()> + 'static, remote: Arc<Remote>, task: Key) -> Self {
        let alarm = Arc::new(Alarm { remote, task, queued: AtomicBool::new(false) });
        Self { future: Box::pin(future), waker: Waker::from(Arc::clone(&alarm)), alarm }
    }

    /// Polls it once. A wake from here on polls it again.
    pub(crate) fn poll(&mut self) -> Poll<()> {
        self.alarm.queued.store(false, SeqCst);
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

/// How other threads, and tasks of the same loop, ask a loop to poll a task.
#[derive(Debug)]
pub(crate) struct Remote {
    notifier: Arc<Notifier>,
    woken: Mutex<Vec<Key>>,
    pending: AtomicBool,
}

thread_local! {
    /// The remote of the loop that runs on this thread, as an identity only.
    static HERE: Cell<*const Remote> = const { Cell::new(ptr::null()) };
}

impl Remote {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Self {
        Self { notifier, woken: Mutex::default(), pending: AtomicBool::new(false) }
    }

    pub(crate) fn notifier(&self) -> &Arc<Notifier> {
        &self.notifier
    }

    /// The calling thread runs this loop: its own wakes need no notification.
    pub(crate) fn run_here(&self) {
        HERE.set(ptr::from_ref(self));
    }

    /// Whether tasks were woken. The loop asks before it waits.
    pub(crate) fn has_woken(&self) -> bool {
        self.pending.load(SeqCst)
    }

    /// The tasks woken, into `tasks`.
    pub(crate) fn take_woken(&self, tasks: &mut Vec<Key>) {
        if self.pending.swap(false, SeqCst) {
            std::mem::swap(tasks, &mut self.woken.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn wake(&self, task: Key) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(task);
        let first = !self.pending.swap(true, SeqCst);
        if first && !ptr::eq(HERE.get(), self) {
            self.notifier.notify();
        }
    }
}

/// Wakes one task.
#[derive(Debug)]
struct Alarm {
    remote: Arc<Remote>,
    task: Key,
    /// Woken and not yet polled since: another wake adds nothing.
    queued: AtomicBool,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, SeqCst) {
            self.remote.wake(self.task);
        }
    }
}
