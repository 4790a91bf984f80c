//! The threads that may be blocked and the sockets they may be blocked on, so that a drain can reach them.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering::SeqCst},
    },
    thread::{self, Thread},
    time::Duration,
};

use rustix::net::{Shutdown, shutdown};
use slab::Slab;

use crate::{control::Control, idle, service::Waiting, signals};

/// Tells whether connections wait for workers that others hold.
pub(crate) trait Contention: Send + Sync + std::fmt::Debug {
    /// Whether a connection waits and no worker is free.
    fn others_wait(&self) -> bool;

    /// Records that the calling worker waits for another request on a kept connection, or that it is at work. Called
    /// before [`others_wait`](Self::others_wait).
    fn set_kept(&self, _kept: bool) {}
}

/// The sockets and threads of a server in the blocking family.
#[derive(Debug)]
pub(crate) struct Registry {
    control: Arc<Control>,
    interruption: Interruption,
    contention: Option<Arc<dyn Contention>>,
    aborted: AtomicBool,
    state: Mutex<State>,
    emptied: Condvar,
}

/// How a thread that waits for input is interrupted.
#[derive(Debug)]
enum Interruption {
    /// Through its socket, which is in the registry.
    Socket,
    /// By a signal to the process, which has only one such thread.
    Signal,
}

#[derive(Debug, Default)]
struct State {
    sockets: Slab<Arc<BlockingSocket>>,
    threads: Slab<Arc<OnceLock<Thread>>>,
}

impl Registry {
    /// A registry for a server whose connections never wait for each other.
    pub(crate) fn new(control: Arc<Control>) -> Self {
        Self {
            control,
            interruption: Interruption::Socket,
            contention: None,
            aborted: AtomicBool::new(false),
            state: Mutex::default(),
            emptied: Condvar::new(),
        }
    }

    /// A registry for a process forked to serve one connection at a time.
    pub(crate) fn of_child(control: Arc<Control>) -> Self {
        Self { interruption: Interruption::Signal, ..Self::new(control) }
    }

    /// The same registry, for connections that hold workers others may wait for.
    pub(crate) fn with_contention(self, contention: Arc<dyn Contention>) -> Self {
        Self { contention: Some(contention), ..self }
    }

    /// Whether a connection should end after the current request.
    pub(crate) fn ending(&self) -> bool {
        self.draining() || self.others_wait()
    }

    /// Whether everything should end after the current requests.
    pub(crate) fn draining(&self) -> bool {
        self.control.draining() || matches!(self.interruption, Interruption::Signal) && signals::is_stopping()
    }

    /// Whether a connection that waits in this way should end.
    pub(crate) fn ends(&self, waiting: Waiting) -> bool {
        match waiting {
            Waiting::Within => false,
            Waiting::First => self.draining(),
            Waiting::Next => self.ending(),
        }
    }

    fn others_wait(&self) -> bool {
        self.contention.as_ref().is_some_and(|contention| contention.others_wait())
    }

    /// Whether everything must end now.
    pub(crate) fn aborted(&self) -> bool {
        self.aborted.load(SeqCst)
    }

    /// Adds a thread that is about to start.
    pub(crate) fn add_thread(registry: &Arc<Self>) -> ThreadEntry {
        let thread = Arc::new(OnceLock::new());
        let key = registry.lock().threads.insert(Arc::clone(&thread));
        ThreadEntry { registry: Arc::clone(registry), key, thread }
    }

    /// Adds a socket. Returns the key for [`remove`](Self::remove).
    ///
    /// # Errors
    /// When everything must end now.
    pub(crate) fn add(&self, socket: Arc<BlockingSocket>) -> io::Result<usize> {
        let mut state = self.lock();
        if self.aborted() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(state.sockets.insert(socket))
    }

    pub(crate) fn remove(&self, key: usize) {
        if let Some(socket) = self.lock().sockets.try_remove(key) {
            self.set_waiting(&socket, Waiting::Within);
        }
    }

    /// Records what the thread of a connection is about to wait for.
    ///
    /// Call this before [`ends`](Self::ends). Whoever ends connections reads in the opposite order, so one of the two
    /// sees the other.
    pub(crate) fn set_waiting(&self, socket: &BlockingSocket, waiting: Waiting) {
        socket.set(waiting);
        if matches!(self.interruption, Interruption::Signal) {
            let on = |waits: bool| waits.then_some(socket.as_fd());
            signals::set_idle(on(waiting != Waiting::Within), on(waiting == Waiting::Next));
        }
        if let Some(contention) = &self.contention {
            contention.set_kept(waiting == Waiting::Next);
        }
    }

    /// Wakes the threads that wait for a new request, with an end of input.
    ///
    /// A request that arrives at this very moment is read only as far as it has come: a server may close any kept
    /// connection while the next request is on its way.
    pub(crate) fn end_idle(&self) {
        for (_, socket) in &self.lock().sockets {
            if !socket.is(Waiting::Within) {
                socket.end_input();
            }
        }
    }

    /// Wakes one thread that waits for the next request of a connection it has served before, because others wait for
    /// a thread. A request that arrives at this very moment fares as in [`end_idle`](Self::end_idle).
    pub(crate) fn end_one_kept(&self) {
        let state = self.lock();
        if let Some((_, socket)) = state.sockets.iter().find(|(_, socket)| socket.is(Waiting::Next)) {
            socket.set(Waiting::Within);
            socket.end_input();
        }
    }

    /// Ends the connections that have been idle longest, so that `wanted` clients find room. A request that arrives at
    /// this very moment fares as in [`end_idle`](Self::end_idle).
    pub(crate) fn end_longest_idle(&self, wanted: usize) {
        let state = self.lock();
        let idle =
            state.sockets.iter().map(|(_, socket)| socket).filter(|socket| !socket.is(Waiting::Within));
        for socket in idle::longest_idle(idle.map(|socket| (socket, socket.as_fd().as_raw_fd())), wanted) {
            socket.set(Waiting::Within);
            socket.end_input();
        }
    }

    /// Breaks every connection and wakes every thread.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, SeqCst);
        let state = self.lock();
        for (_, socket) in &state.sockets {
            let _ = shutdown(&socket.descriptor, Shutdown::Both);
        }
        for (_, entry) in &state.threads {
            if let Some(thread) = entry.get() {
                thread.unpark();
            }
        }
    }

    /// Waits until no thread is left, but at most for `timeout`. Returns whether none is left.
    pub(crate) fn wait_empty(&self, timeout: Duration) -> bool {
        let state = self.lock();
        let waited = self.emptied.wait_timeout_while(state, timeout, |state| !state.threads.is_empty());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.threads.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock, so the state is consistent even after a thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket that a thread may be blocked on.
#[derive(Debug)]
pub(crate) struct BlockingSocket {
    descriptor: OwnedFd,
    waiting: AtomicU8,
}

impl BlockingSocket {
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        Self { descriptor, waiting: AtomicU8::new(Waiting::Within as u8) }
    }

    fn set(&self, waiting: Waiting) {
        self.waiting.store(waiting as u8, SeqCst);
    }

    fn is(&self, waiting: Waiting) -> bool {
        self.waiting.load(SeqCst) == waiting as u8
    }

    fn end_input(&self) {
        // This fails only if the connection is already broken.
        let _ = shutdown(&self.descriptor, Shutdown::Read);
    }
}

impl AsFd for BlockingSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A thread's entry in the registry, held until the thread ends.
#[derive(Debug)]
pub(crate) struct ThreadEntry {
    registry: Arc<Registry>,
    key: usize,
    thread: Arc<OnceLock<Thread>>,
}

impl ThreadEntry {
    /// Makes this the entry of the calling thread.
    pub(crate) fn run_here(&self) {
        self.thread.get_or_init(thread::current);
    }
}

impl Drop for ThreadEntry {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        state.threads.try_remove(self.key);
        if state.threads.is_empty() {
            self.registry.emptied.notify_all();
        }
    }
}
