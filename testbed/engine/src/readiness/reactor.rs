//! What the connections of one loop share: waits, timers, buffers.

use std::{
    cell::{Cell, RefCell},
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    rc::Rc,
    sync::Arc,
    task::Poll,
};

use super::poller::{Event, Interest, Poller, Received};
use crate::{
    buffer::{Buffers, Input},
    clock::Micros,
    control::Control,
    idle,
    loops::{Arena, Key, Timers, Turn, Wait},
};

/// The state that the connections of one loop share. Never borrowed across a poll.
pub(crate) struct Reactor<P> {
    pub(crate) poller: RefCell<P>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) buffers: RefCell<Buffers>,
    pub(crate) turn: Rc<Turn>,
    sources: RefCell<Arena<Source>>,
    moved: Cell<bool>,
    control: Arc<Control>,
}

/// A socket, and the task that waits for it.
struct Source {
    wait: Wait<Interest>,
    /// False from when a transfer exhausts the socket until the poller reports it readable.
    readable: bool,
    writable: bool,
    /// The peer's side is closed, so the socket stays readable.
    closed: bool,
    watched: bool,
    /// The socket, while its task waits for a request.
    idle: Option<RawFd>,
    /// The connection ends unless a request has come.
    ended: bool,
}

impl Source {
    /// A source is taken to be ready until a transfer shows otherwise, so the first one is tried at once.
    const fn new() -> Self {
        Self {
            wait: Wait::new(),
            readable: true,
            writable: true,
            closed: false,
            watched: false,
            idle: None,
            ended: false,
        }
    }

    const fn is_ready(&self, interest: Interest) -> bool {
        match interest {
            Interest::Read => self.readable,
            Interest::Write => self.writable,
        }
    }
}

impl<P: Poller> Reactor<P> {
    pub(crate) fn new(control: Arc<Control>) -> io::Result<Self> {
        Ok(Self {
            poller: RefCell::new(P::new()?),
            timers: RefCell::default(),
            buffers: RefCell::default(),
            turn: Rc::new(Turn::new()),
            sources: RefCell::new(Arena::new()),
            moved: Cell::new(false),
            control,
        })
    }

    pub(crate) fn draining(&self) -> bool {
        self.control.draining()
    }

    // The loop's side.

    /// Records an event. Returns the task that waited for it.
    pub(crate) fn note(&self, event: &Event) -> Option<Key> {
        let mut sources = self.sources.borrow_mut();
        let source = sources.get_mut(event.key)?;
        source.readable |= event.readable;
        source.writable |= event.writable;
        source.closed |= event.closed;
        let (readable, writable) = (source.readable, source.writable);
        source.wait.end_if(|interest| match interest {
            Interest::Read => readable,
            Interest::Write => writable,
        })
    }

    /// Whether anything moved since the last call.
    pub(crate) fn take_moved(&self) -> bool {
        self.moved.replace(false)
    }

    /// Handles the timer that was set for `at` on a socket. Returns the task whose wait has failed.
    pub(crate) fn expire(&self, key: Key, at: Micros, now: Micros) -> Option<Key> {
        let mut sources = self.sources.borrow_mut();
        sources.get_mut(key)?.wait.expire((at, now), key, &mut self.timers.borrow_mut())
    }

    /// Ends the waits of those connections that have been idle longest, so that `wanted` clients find room. Returns the
    /// tasks to poll.
    pub(crate) fn end_idle(&self, wanted: usize) -> Vec<Key> {
        let mut sources = self.sources.borrow_mut();
        let idle = sources.iter().filter(|(_, source)| source.wait.is_for(Interest::Read));
        let chosen = idle::longest_idle(idle.filter_map(|(key, source)| Some((key, source.idle?))), wanted);
        let end = |key| {
            let source = sources.get_mut(key)?;
            source.ended = true;
            source.wait.end_if(|_| true)
        };
        chosen.into_iter().filter_map(end).collect()
    }

    // The connections' side.

    pub(crate) fn add_source(&self) -> Key {
        self.sources.borrow_mut().insert(Source::new())
    }

    /// Forgets a socket that is about to be closed.
    pub(crate) fn remove_source(&self, socket: BorrowedFd<'_>, key: Key) {
        self.sources.borrow_mut().remove(key);
        self.poller.borrow_mut().forget_closing(socket, key);
    }

    /// Whether a transfer may succeed without waiting.
    pub(crate) fn is_ready(&self, key: Key, interest: Interest) -> bool {
        self.sources.borrow_mut().get_mut(key).is_some_and(|source| source.is_ready(interest))
    }

    /// Whether a receive may succeed without waiting, and whether the connection ends unless it does.
    pub(crate) fn may_receive(&self, key: Key) -> (bool, bool) {
        self.sources
            .borrow_mut()
            .get_mut(key)
            .map_or((false, false), |source| (source.readable, source.ended))
    }

    /// Records that a transfer was cut short: no more are tried until the poller reports the socket.
    pub(crate) fn exhausted(&self, key: Key, interest: Interest) {
        if let Some(source) = self.sources.borrow_mut().get_mut(key) {
            match interest {
                Interest::Read => source.readable = source.closed,
                Interest::Write => source.writable = false,
            }
        }
    }

    /// Records that bytes, a connection or an end came or went.
    pub(crate) fn note_moved(&self) {
        self.moved.set(true);
    }

    /// Receives from a socket without waiting.
    pub(crate) fn receive(
        &self,
        socket: BorrowedFd<'_>,
        key: Key,
        into: &mut Input,
    ) -> Poll<io::Result<Received>> {
        self.poller.borrow_mut().receive((socket, key), into, &mut self.buffers.borrow_mut())
    }

    /// Makes the current task wait for a socket, `between_requests` or not. Never returns ready without an error, which is
    /// `TimedOut` if the deadline has passed.
    pub(crate) fn wait(
        &self,
        socket: BorrowedFd<'_>,
        key: Key,
        interest: Interest,
        between_requests: bool,
        deadline: Micros,
    ) -> Poll<io::Result<()>> {
        if Wait::<Interest>::is_late(deadline) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let mut sources = self.sources.borrow_mut();
        let Some(source) = sources.get_mut(key) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let waiter = (self.turn.current(), interest);
        source.wait.begin(waiter, deadline, key, &mut self.timers.borrow_mut());
        source.idle = between_requests.then_some(socket.as_raw_fd());
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
}
