//! Who is blocked, and where: so that a drain can reach them.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread::{self, Thread},
    time::Duration,
};

use rustix::net::{Shutdown, shutdown};
use slab::Slab;

use crate::control::Control;

/// The sockets and threads of a server whose calls block.
#[derive(Debug)]
pub(crate) struct Registry {
    control: Arc<Control>,
    aborted: AtomicBool,
    state: Mutex<State>,
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct State {
    links: Slab<Arc<Link>>,
    seats: Slab<Arc<OnceLock<Thread>>>,
}

impl Registry {
    pub(crate) fn new(control: Arc<Control>) -> Self {
        Self { control, aborted: AtomicBool::new(false), state: Mutex::default(), emptied: Condvar::new() }
    }

    pub(crate) fn draining(&self) -> bool {
        self.control.draining()
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
        self.lock().links.try_remove(key);
    }

    /// Wakes the threads that wait for a new request with the end of their input.
    ///
    /// A request that arrives at this very moment is still read as far as it has come, but no further:
    /// as with any kept connection, a server may close it while the next request is under way.
    pub(crate) fn end_idle(&self) {
        for (_, link) in &self.lock().links {
            if link.idle.load(SeqCst) {
                // A socket that is broken already needs no ending.
                let _ = shutdown(&link.socket, Shutdown::Read);
            }
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
    idle: AtomicBool,
}

impl Link {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, idle: AtomicBool::new(false) }
    }

    /// Says whether its thread is about to wait for a new request.
    ///
    /// Said before looking at [`Registry::draining`]; a drain looks the other way round, so one sees the other.
    pub(crate) fn set_idle(&self, idle: bool) {
        self.idle.store(idle, SeqCst);
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
