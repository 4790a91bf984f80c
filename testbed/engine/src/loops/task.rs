//! A task of a loop, its waker, which works from any thread, and its share of the loop's time.

use std::{
    cell::{Cell, RefCell},
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

/// A connection that is being served.
pub(super) struct Task {
    pub(super) peer: SocketAddr,
    /// Taken out while it is being polled.
    pub(super) future: Option<TaskFuture>,
}

/// A task's future, with the waker with which it is polled.
pub(super) struct TaskFuture {
    future: Pin<Box<dyn Future<Output = ()>>>,
    state: Arc<TaskWaker>,
    waker: Waker,
}

impl TaskFuture {
    pub(super) fn new(future: impl Future<Output = ()> + 'static, queue: Arc<WakeQueue>, task: Key) -> Self {
        let state = Arc::new(TaskWaker { queue, task, queued: AtomicBool::new(false) });
        Self { future: Box::pin(future), waker: Waker::from(Arc::clone(&state)), state }
    }

    /// Polls it once. Wakes from here on cause another poll.
    pub(super) fn poll(&mut self) -> Poll<()> {
        self.state.queued.store(false, SeqCst);
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

/// The woken tasks of a loop, through which other threads, and tasks of the same loop, ask it to poll a task.
#[derive(Debug)]
pub(crate) struct WakeQueue {
    notifier: Arc<Notifier>,
    woken: Mutex<Vec<Key>>,
    pending: AtomicBool,
}

thread_local! {
    /// The wake queue of the loop that runs on this thread. Only its identity is used.
    static HERE: Cell<*const WakeQueue> = const { Cell::new(ptr::null()) };
}

impl WakeQueue {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Self {
        Self { notifier, woken: Mutex::default(), pending: AtomicBool::new(false) }
    }

    pub(crate) fn notifier(&self) -> &Arc<Notifier> {
        &self.notifier
    }

    /// Makes this the queue of the calling thread's loop, whose own wakes then need no notification.
    pub(super) fn run_here(&self) {
        HERE.set(ptr::from_ref(self));
    }

    /// Whether tasks were woken. The loop checks before it waits.
    pub(super) fn has_woken(&self) -> bool {
        self.pending.load(SeqCst)
    }

    /// Moves the woken tasks into `tasks`, which must be empty.
    pub(super) fn take_woken(&self, tasks: &mut Vec<Key>) {
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
struct TaskWaker {
    queue: Arc<WakeQueue>,
    task: Key,
    /// Woken and not polled since, so that another wake adds nothing.
    queued: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, SeqCst) {
            self.queue.wake(self.task);
        }
    }
}

/// How many transfers a task may make before it must yield to the others.
const BUDGET: u32 = 64;

/// The task being polled, its remaining budget, and the tasks that yielded.
#[derive(Debug)]
pub(crate) struct Turn {
    current: Cell<Key>,
    budget: Cell<u32>,
    yielded: RefCell<Vec<Key>>,
}

impl Turn {
    pub(crate) fn new() -> Self {
        Self { current: Cell::new(Key::reserved(0)), budget: Cell::new(0), yielded: RefCell::default() }
    }

    /// Begins the turn of `task`: waits from here on are its own.
    pub(super) fn enter(&self, task: Key) {
        self.current.set(task);
        self.budget.set(BUDGET);
    }

    /// The task being polled.
    pub(crate) fn current(&self) -> Key {
        self.current.get()
    }

    /// Counts a transfer of the current task. Returns false if the task must yield first.
    pub(crate) fn spend(&self) -> bool {
        match self.budget.get().checked_sub(1) {
            Some(left) => {
                self.budget.set(left);
                true
            }
            None => {
                self.yielded.borrow_mut().push(self.current.get());
                false
            }
        }
    }

    pub(super) fn has_yielded(&self) -> bool {
        !self.yielded.borrow().is_empty()
    }

    /// Moves the tasks that yielded into `tasks`, which must be empty.
    pub(super) fn take_yielded(&self, tasks: &mut Vec<Key>) {
        std::mem::swap(tasks, &mut self.yielded.borrow_mut());
    }
}
