//! Who is blocked, and where: so that a drain can reach them.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering::SeqCst},
    },
    thread::{self, Thread},
    time::Duration,
};

use rustix::net::{Shutdown, shutdown};
use slab::Slab;

use crate::{control::Control, process::signals, service::Waiting};

/// Whether connections wait for workers that others hold.
pub(crate) trait Pressure: Send + Sync + std::fmt::Debug {
    /// Whether a worker is wanted and none is free.
    fn others_wait(&self) -> bool;

    /// The calling worker begins to wait for another request of a kept connection, or is at work. Said before
    /// [`others_wait`](Self::others_wait) is asked.
    fn set_kept(&self, _kept: bool) {}
}

/// The sockets and threads of a server whose calls block.
#[derive(Debug)]
pub(crate) struct Registry {
    control: Arc<Control>,
    reach: Reach,
    pressure: Option<Arc<dyn Pressure>>,
    aborted: AtomicBool,
    state: Mutex<State>,
    emptied: Condvar,
}

/// How those who wait for input are reached.
#[derive(Debug)]
enum Reach {
    /// Each through its socket, which is in the registry.
    Registry,
    /// The process's only one by a signal to the process.
    Signal,
}

#[derive(Debug, Default)]
struct State {
    links: Slab<Arc<Link>>,
    seats: Slab<Arc<OnceLock<Thread>>>,
}

impl Registry {
    /// Of a server whose connections never wait for each other.
    pub(crate) fn new(control: Arc<Control>) -> Self {
        Self {
            control,
            reach: Reach::Registry,
            pressure: None,
            aborted: AtomicBool::new(false),
            state: Mutex::default(),
            emptied: Condvar::new(),
        }
    }

    /// Of a process forked to serve one connection at a time.
    pub(crate) fn of_child(control: Arc<Control>) -> Self {
        Self { reach: Reach::Signal, ..Self::new(control) }
    }

    /// The same, where connections hold workers that others may wait for.
    pub(crate) fn under(self, pressure: Arc<dyn Pressure>) -> Self {
        Self { pressure: Some(pressure), ..self }
    }

    /// Whether a connection is to end after the request in hand.
    pub(crate) fn ending(&self) -> bool {
        self.draining() || self.others_wait()
    }

    /// Whether everything is to end once the requests in hand are answered.
    pub(crate) fn draining(&self) -> bool {
        self.control.draining() || matches!(self.reach, Reach::Signal) && signals::told()
    }

    /// Whether a connection that waits in this way is to end.
    pub(crate) fn ends(&self, waiting: Waiting) -> bool {
        match waiting {
            Waiting::Within => false,
            Waiting::First => self.draining(),
            Waiting::Next => self.ending(),
        }
    }

    fn others_wait(&self) -> bool {
        self.pressure.as_ref().is_some_and(|pressure| pressure.others_wait())
    }

    /// Whether everything is to end now.
    pub(crate) fn aborted(&self) -> bool {
        self.aborted.load(SeqCst)
    }

    /// A place for a thread about to start.
    pub(crate) fn seat(registry: &Arc<Self>) -> Seat {
        let thread = Arc::new(OnceLock::new());
        let key = registry.lock().seats.insert(Arc::clone(&thread));
        Seat { registry: Arc::clone(registry), key, thread }
    }

    /// Enters a socket; its key takes it out again.
    ///
    /// # Errors
    /// When everything is to end.
    pub(crate) fn enter(&self, link: Arc<Link>) -> io::Result<usize> {
        let mut state = self.lock();
        if self.aborted() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(state.links.insert(link))
    }

    pub(crate) fn leave(&self, key: usize) {
        if let Some(link) = self.lock().links.try_remove(key) {
            self.set(&link, Waiting::Within);
        }
    }

    /// Says what the thread of a connection is about to wait for.
    ///
    /// Said before asking [`ends`](Self::ends); whoever ends connections looks the other way round, so one sees the
    /// other.
    pub(crate) fn set(&self, link: &Link, waiting: Waiting) {
        link.set(waiting);
        if matches!(self.reach, Reach::Signal) {
            let on = |waits: bool| waits.then_some(link.socket.as_fd());
            signals::set_idle(on(waiting != Waiting::Within), on(waiting == Waiting::Next));
        }
        if let Some(pressure) = &self.pressure {
            pressure.set_kept(waiting == Waiting::Next);
        }
    }

    /// Wakes the threads that wait for a new request with the end of their input.
    ///
    /// A request that arrives at this very moment is still read as far as it has come, but no further:
    /// as with any kept connection, a server may close it while the next request is under way.
    pub(crate) fn end_idle(&self) {
        for (_, link) in &self.lock().links {
            if !link.is(Waiting::Within) {
                link.end_input();
            }
        }
    }

    /// Wakes one thread that waits for the next request of a connection it has answered before, as others wait for
    /// that thread. What is said of [`end_idle`](Self::end_idle) holds here too.
    pub(crate) fn end_one_kept(&self) {
        let state = self.lock();
        if let Some((_, link)) = state.links.iter().find(|(_, link)| link.is(Waiting::Next)) {
            link.set(Waiting::Within);
            link.end_input();
        }
    }

    /// Breaks every connection and wakes every thread.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, SeqCst);
        let state = self.lock();
        for (_, link) in &state.links {
            let _ = shutdown(&link.socket, Shutdown::Both);
        }
        for (_, seat) in &state.seats {
            if let Some(thread) = seat.get() {
                thread.unpark();
            }
        }
    }

    /// Waits until no thread is left, or so long; whether none is.
    pub(crate) fn wait_empty(&self, for_at_most: Duration) -> bool {
        let state = self.lock();
        let waited = self.emptied.wait_timeout_while(state, for_at_most, |state| !state.seats.is_empty());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.seats.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of others runs under the lock, so the state is whole even when a thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket someone may be blocked on.
#[derive(Debug)]
pub(crate) struct Link {
    socket: OwnedFd,
    waiting: AtomicU8,
}

impl Link {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, waiting: AtomicU8::new(Waiting::Within as u8) }
    }

    fn set(&self, waiting: Waiting) {
        self.waiting.store(waiting as u8, SeqCst);
    }

    fn is(&self, waiting: Waiting) -> bool {
        self.waiting.load(SeqCst) == waiting as u8
    }

    fn end_input(&self) {
        // A socket that is broken already needs no ending.
        let _ = shutdown(&self.socket, Shutdown::Read);
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A thread's place, held until it ends.
#[derive(Debug)]
pub(crate) struct Seat {
    registry: Arc<Registry>,
    key: usize,
    thread: Arc<OnceLock<Thread>>,
}

impl Seat {
    /// The calling thread takes it.
    pub(crate) fn take(&self) {
        self.thread.get_or_init(thread::current);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        state.seats.try_remove(self.key);
        if state.seats.is_empty() {
            self.registry.emptied.notify_all();
        }
    }
}
