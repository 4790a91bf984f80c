//! What the connections of one loop share: who waits for which socket, timers, buffers.

use std::{
    cell::{Cell, RefCell},
    io,
    os::fd::BorrowedFd,
    sync::Arc,
    task::Poll,
};

use super::{
    arena::{Arena, Key},
    poller::{Event, Interest, Poller},
    timers::{Target, Timers},
};
use crate::{
    buffer::Buffers,
    clock::{self, Micros, NEVER},
    control::Control,
};

/// Transfers a task may make before the others get their turn.
const BUDGET: u32 = 64;

/// The state of one loop that its connections reach. Never borrowed across a poll.
pub(crate) struct Reactor<P> {
    pub(crate) poller: RefCell<P>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) buffers: RefCell<Buffers>,
    sources: RefCell<Arena<Source>>,
    yielded: RefCell<Vec<Key>>,
    current: Cell<Key>,
    budget: Cell<u32>,
    control: Arc<Control>,
}

/// A socket, and the task that waits for it.
struct Source {
    waiter: Option<(Key, Interest)>,
    /// False once a transfer found the socket exhausted, until the poller says otherwise.
    readable: bool,
    writable: bool,
    /// The peer's side is closed: stays readable.
    closed: bool,
    watched: bool,
    /// When the wait fails.
    deadline: Micros,
    /// The earliest timer set for it, which may be earlier than the deadline, never later.
    timer: Micros,
}

impl Source {
    /// Ready until found otherwise: the first transfer is tried at once.
    const fn new() -> Self {
        Self {
            waiter: None,
            readable: true,
            writable: true,
            closed: false,
            watched: false,
            deadline: NEVER,
            timer: NEVER,
        }
    }

    fn is_ready(&self, interest: Interest) -> bool {
        match interest {
            Interest::Read => self.readable,
            Interest::Write => self.writable,
        }
    }

    /// The task to poll, if it waits for something that is ready.
    fn take_waiter(&mut self) -> Option<Key> {
        let (task, interest) = self.waiter?;
        if !self.is_ready(interest) {
            return None;
        }
        self.waiter = None;
        Some(task)
    }
}

impl<P: Poller> Reactor<P> {
    pub(crate) fn new(control: Arc<Control>) -> io::Result<Self> {
        Ok(Self {
            poller: RefCell::new(P::new()?),
            timers: RefCell::default(),
            buffers: RefCell::default(),
            sources: RefCell::new(Arena::new()),
            yielded: RefCell::default(),
            current: Cell::new(Key::reserved(0)),
            budget: Cell::new(0),
            control,
        })
    }

    pub(crate) fn draining(&self) -> bool {
        self.control.draining()
    }

    // The loop's side.

    /// From now on, waits are those of `task`.
    pub(crate) fn enter(&self, task: Key) {
        self.current.set(task);
        self.budget.set(BUDGET);
    }

    /// Takes note of an event; returns the task that waited for it.
    pub(crate) fn note(&self, event: &Event) -> Option<Key> {
        let mut sources = self.sources.borrow_mut();
        let source = sources.get_mut(event.key)?;
        source.readable |= event.readable;
        source.writable |= event.writable;
        source.closed |= event.closed;
        source.take_waiter()
    }

    /// Tasks that gave way to the others, into `tasks`.
    pub(crate) fn take_yielded(&self, tasks: &mut Vec<Key>) {
        std::mem::swap(tasks, &mut self.yielded.borrow_mut());
    }

    pub(crate) fn has_yielded(&self) -> bool {
        !self.yielded.borrow().is_empty()
    }

    /// The timer of a socket set for `at` went off; returns the task whose wait has failed.
    pub(crate) fn expire(&self, key: Key, at: Micros, now: Micros) -> Option<Key> {
        let mut sources = self.sources.borrow_mut();
        let source = sources.get_mut(key)?;
        if source.timer != at {
            return None; // An earlier one stood in for it.
        }
        source.timer = NEVER;
        let (task, _) = source.waiter?;
        if source.deadline <= now {
            source.waiter = None;
            return Some(task);
        }
        source.timer = source.deadline;
        self.timers.borrow_mut().set(source.deadline, Target::Socket(key));
        None
    }

    // The connections' side.

    pub(crate) fn add_source(&self) -> Key {
        self.sources.borrow_mut().insert(Source::new())
    }

    /// Forgets a socket about to be closed.
    pub(crate) fn remove_source(&self, socket: BorrowedFd<'_>, key: Key) {
        let removed = self.sources.borrow_mut().remove(key);
        if removed.is_some_and(|source| source.watched) {
            self.poller.borrow_mut().forget_closing(socket, key);
        }
    }

    /// Whether a transfer may go without waiting.
    pub(crate) fn is_ready(&self, key: Key, interest: Interest) -> bool {
        self.sources.borrow_mut().get_mut(key).is_some_and(|source| source.is_ready(interest))
    }

    /// A transfer was cut short: no more until the poller says so.
    pub(crate) fn exhausted(&self, key: Key, interest: Interest) {
        if let Some(source) = self.sources.borrow_mut().get_mut(key) {
            match interest {
                Interest::Read => source.readable = source.closed,
                Interest::Write => source.writable = false,
            }
        }
    }

    /// Makes the current task wait for a socket, or tells that its deadline has passed.
    pub(crate) fn wait(
        &self,
        socket: BorrowedFd<'_>,
        key: Key,
        interest: Interest,
        deadline: Micros,
    ) -> Poll<io::Result<()>> {
        if deadline != NEVER && deadline <= clock::coarse() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let mut sources = self.sources.borrow_mut();
        let Some(source) = sources.get_mut(key) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        source.waiter = Some((self.current.get(), interest));
        source.deadline = deadline;
        if deadline < source.timer {
            source.timer = deadline;
            self.timers.borrow_mut().set(deadline, Target::Socket(key));
        }
        let mut poller = self.poller.borrow_mut();
        let watched = match std::mem::replace(&mut source.watched, true) {
            false => poller.watch(socket, key, interest),
            true => poller.rearm(socket, key, interest),
        };
        match watched {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Counts a transfer of the current task; false when it is to give way first.
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

    /// Wakes the current task at `at`.
    pub(crate) fn wake_at(&self, at: Micros) {
        self.timers.borrow_mut().set(at, Target::Task(self.current.get()));
    }
}
