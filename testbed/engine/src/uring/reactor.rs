//! What the connections of one loop share: the ring, what is in flight, timers, buffers.

use std::{
    cell::RefCell, collections::VecDeque, io, mem, os::fd::AsFd, rc::Rc, sync::Arc, task::Poll,
    time::Duration,
};

use rustix::io::Errno;

use super::{
    ring::{Completion, Kind, Operation, Ring},
    shelf::Shelf,
    source::{Sending, Socket, Source},
};
use crate::{
    buffer::Buffers,
    clock::{self, Micros},
    control::Control,
    loops::{Arena, Key, Timers, Turn, Wait},
};

/// Bytes of a buffer that receives a request: more than most are long. Only what is used takes memory.
const USUAL: usize = 16 << 10;
/// Bytes of a buffer that receives part of a stream.
const STREAM: usize = 64 << 10;
/// Most bytes of a buffer, whatever the service asks for.
const LARGEST: usize = 4 << 20;
/// Bytes of the buffers on one shelf, all together, and how many they are at least and at most. The kernel takes
/// them in turn: more of them than the processor's cache holds made uploads cost a tenth more. Requests use but the
/// beginning of theirs. Tests make do with so few that they run out.
const SHELF_BYTES: usize = 1 << 20;
const SHELF_COUNT_MIN: usize = if cfg!(test) { 2 } else { 8 };
const SHELF_COUNT_MAX: usize = if cfg!(test) { 4 } else { 256 };
/// Sockets that found no buffer and are given another try in one turn of the loop. One of them may take many buffers:
/// to try all of a crowd at once is to fail with most of them, again and again.
const FED_AT_ONCE: usize = if cfg!(test) { 4 } else { 32 };
/// Shelves of different sizes. Beyond, connections make do with buffers of the usual size.
const SHELVES_MAX: usize = 16;
/// How long the kernel has, when a loop ends, to let go of everything, in microseconds.
const SETTLE_US: Micros = 5_000_000;

/// The state of one loop that its connections reach. Never borrowed across a poll.
pub(crate) struct Reactor {
    pub(crate) ring: RefCell<Ring>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) buffers: RefCell<Buffers>,
    pub(crate) turn: Rc<Turn>,
    sources: RefCell<Arena<Source>>,
    shelves: RefCell<Vec<Shelf>>,
    /// Sockets whose receive found no buffer, the longest waiting first.
    starved: RefCell<VecDeque<Key>>,
    control: Arc<Control>,
}

impl Reactor {
    pub(crate) fn new(control: Arc<Control>) -> io::Result<Self> {
        let reactor = Self {
            ring: RefCell::new(Ring::new()?),
            timers: RefCell::default(),
            buffers: RefCell::default(),
            turn: Rc::new(Turn::new()),
            sources: RefCell::new(Arena::new()),
            shelves: RefCell::default(),
            starved: RefCell::default(),
            control,
        };
        reactor.add_shelf(USUAL)?;
        Ok(reactor)
    }

    pub(crate) fn draining(&self) -> bool {
        self.control.draining()
    }

    // The loop's side.

    /// Takes note of a completion; returns the task that waited for it.
    pub(crate) fn complete(&self, key: Key, kind: Kind, completion: &Completion) -> Option<Key> {
        let mut sources = self.sources.borrow_mut();
        let source = sources.get_mut(key)?;
        if !completion.more {
            source.end(kind);
        }
        match kind {
            Kind::Receive => self.received(key, source, completion),
            Kind::Send => {
                if !source.note_sent(completion.result) {
                    self.submit_send(key, source);
                }
            }
            Kind::Writable => {}
        }
        if source.abandoned {
            let gone = source.is_at_rest().then(|| sources.remove(key));
            drop(sources);
            drop(gone);
            return None;
        }
        let (ready, at_rest) = (source.received.is_ready(), !source.is_in_flight(kind));
        source.wait.end_if(|awaited| match awaited {
            Kind::Receive => ready,
            Kind::Send | Kind::Writable => awaited == kind && at_rest,
        })
    }

    fn received(&self, key: Key, source: &mut Source, completion: &Completion) {
        let bytes = self.unshelve(source.received.shelf, completion);
        let full = bytes.len() == self.size_of(source.received.shelf);
        let grows =
            full && source.received.at_most.is_none() && !mem::replace(&mut source.received.streaming, full);
        let stop = source.note_received(completion.result, bytes);
        if source.abandoned {
            return;
        }
        if source.is_in_flight(Kind::Receive) {
            if stop || grows {
                self.ring.borrow_mut().cancel(Operation::Socket(key, Kind::Receive));
            }
        } else if completion.result == Err(Errno::NOBUFS) {
            source.received.starved = true;
            self.starved.borrow_mut().push_back(key);
        } else if !source.received.is_ready() && source.wait.is_for(Kind::Receive) {
            // An operation may end for reasons of its own while a task goes on waiting.
            let _ = self.submit_receive(key, source);
        }
    }

    /// Whether sockets wait for buffers. The loop asks before it waits.
    pub(crate) fn has_starved(&self) -> bool {
        !self.starved.borrow().is_empty()
    }

    /// Lets some of those go on.
    pub(crate) fn feed(&self) {
        let mut starved = self.starved.borrow_mut();
        let (mut sources, count) = (self.sources.borrow_mut(), starved.len().min(FED_AT_ONCE));
        for key in starved.drain(..count) {
            let Some(source) = sources.get_mut(key) else { continue };
            source.received.starved = false;
            if !source.abandoned && source.wait.is_for(Kind::Receive) {
                let _ = self.submit_receive(key, source);
            }
        }
    }

    /// The bytes of a completion, in the buffer that holds them.
    fn unshelve(&self, shelf: u16, completion: &Completion) -> Vec<u8> {
        let mut shelves = self.shelves.borrow_mut();
        match (completion.buffer, shelves.get_mut(usize::from(shelf))) {
            (Some(number), Some(shelf)) => {
                let count = completion.result.map_or(0, |count| count as usize);
                shelf.take(number, count, &mut self.buffers.borrow_mut())
            }
            _ => Vec::new(),
        }
    }

    /// The timer of a socket set for `at` went off; returns the task whose wait has failed.
    pub(crate) fn expire(&self, key: Key, at: Micros, now: Micros) -> Option<Key> {
        let mut sources = self.sources.borrow_mut();
        sources.get_mut(key)?.wait.expire((at, now), key, &mut self.timers.borrow_mut())
    }

    // The connections' side.

    pub(crate) fn add_source(&self, socket: Rc<Socket>) -> Key {
        self.sources.borrow_mut().insert(Source::new(socket))
    }

    /// The connection is gone. The source stays until the kernel has let go of it.
    pub(crate) fn abandon(&self, key: Key) {
        let mut sources = self.sources.borrow_mut();
        let Some(source) = sources.get_mut(key) else { return };
        source.abandoned = true;
        let mut ring = self.ring.borrow_mut();
        for kind in [Kind::Receive, Kind::Send, Kind::Writable] {
            if source.is_in_flight(kind) {
                ring.cancel(Operation::Socket(key, kind));
            }
        }
        let gone = source.is_at_rest().then(|| sources.remove(key));
        drop((sources, ring));
        // Closes the socket, and tells a worker that waits for a place.
        drop(gone);
    }

    /// From now on one receive brings so much at most.
    pub(crate) fn read_at_most(&self, key: Key, bytes: usize) {
        if let Some(source) = self.sources.borrow_mut().get_mut(key) {
            source.received.at_most = Some(bytes);
            if source.is_in_flight(Kind::Receive) {
                self.ring.borrow_mut().cancel(Operation::Socket(key, Kind::Receive));
            }
        }
    }

    /// Whether input waits to be taken.
    pub(crate) fn has_received(&self, key: Key) -> bool {
        self.sources.borrow_mut().get_mut(key).is_some_and(|source| source.received.is_ready())
    }

    /// The next bytes that came in; none of them at the end of input.
    pub(crate) fn take_received(&self, key: Key) -> Option<io::Result<Vec<u8>>> {
        self.sources.borrow_mut().get_mut(key)?.received.take()
    }

    /// Makes the current task wait for input, or tells that its deadline has passed.
    pub(crate) fn wait_to_receive(&self, key: Key, deadline: Micros) -> Poll<io::Result<()>> {
        self.wait(key, Kind::Receive, deadline, |source| self.submit_receive(key, source))
    }

    /// Whether a wait for the socket to take more goes on.
    pub(crate) fn is_waiting_to_write(&self, key: Key) -> bool {
        self.sources.borrow_mut().get_mut(key).is_some_and(|source| source.is_in_flight(Kind::Writable))
    }

    /// Makes the current task wait until the socket takes more.
    pub(crate) fn wait_to_write(&self, key: Key, deadline: Micros) -> Poll<io::Result<()>> {
        self.wait(key, Kind::Writable, deadline, |source| {
            if source.begin(Kind::Writable) {
                self.ring.borrow_mut().writable(source.socket.as_fd(), key);
            }
            Ok(())
        })
    }

    /// Whether a send is in flight.
    pub(crate) fn is_sending(&self, key: Key) -> bool {
        self.sources.borrow_mut().get_mut(key).is_some_and(|source| source.is_in_flight(Kind::Send))
    }

    /// Begins to send `bytes`, but for the first `sent`.
    pub(crate) fn send(&self, key: Key, bytes: Vec<u8>, sent: usize) -> io::Result<()> {
        let mut sources = self.sources.borrow_mut();
        let source = sources.get_mut(key).ok_or(io::ErrorKind::NotConnected)?;
        source.socket.set_nonblocking(false)?;
        source.sending = Sending { bytes, sent, outcome: Ok(()) };
        self.submit_send(key, source);
        Ok(())
    }

    /// The buffer, once all of it is sent.
    pub(crate) fn poll_sent(&self, key: Key, deadline: Micros) -> Poll<io::Result<Vec<u8>>> {
        if let Some(source) =
            self.sources.borrow_mut().get_mut(key).filter(|source| !source.is_in_flight(Kind::Send))
        {
            source.sending.outcome?;
            return Poll::Ready(Ok(mem::take(&mut source.sending.bytes)));
        }
        self.wait(key, Kind::Send, deadline, |_| Ok(())).map_ok(|()| Vec::new())
    }

    /// Never ready without an error.
    fn wait(
        &self,
        key: Key,
        kind: Kind,
        deadline: Micros,
        submit: impl FnOnce(&mut Source) -> io::Result<()>,
    ) -> Poll<io::Result<()>> {
        if Wait::<Kind>::is_late(deadline) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let mut sources = self.sources.borrow_mut();
        let Some(source) = sources.get_mut(key) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        submit(source)?;
        source.wait.begin((self.turn.current(), kind), deadline, key, &mut self.timers.borrow_mut());
        Poll::Pending
    }

    fn submit_receive(&self, key: Key, source: &mut Source) -> io::Result<()> {
        if source.is_in_flight(Kind::Receive) || source.received.starved {
            return Ok(());
        }
        source.socket.set_nonblocking(false)?;
        source.received.shelf = self.shelf_for(source);
        source.begin(Kind::Receive);
        self.ring.borrow_mut().receive(source.socket.as_fd(), source.received.shelf, key);
        Ok(())
    }

    fn submit_send(&self, key: Key, source: &mut Source) {
        source.begin(Kind::Send);
        // SAFETY: the bytes lie in the source, which changes and removes them only while no send is in flight.
        unsafe { self.ring.borrow_mut().send(source.socket.as_fd(), source.sending.rest(), key) };
    }

    // Shelves.

    fn size_of(&self, shelf: u16) -> usize {
        self.shelves.borrow().get(usize::from(shelf)).map_or(0, Shelf::size)
    }

    /// The shelf of the size that suits a source.
    fn shelf_for(&self, source: &Source) -> u16 {
        let usual = if source.received.streaming { STREAM } else { USUAL };
        let size = source.received.at_most.unwrap_or(usual).min(LARGEST);
        let known = self.shelves.borrow().iter().position(|shelf| shelf.size() == size);
        // The first is of the usual size; larger pieces than were asked for are divided.
        known.map_or_else(|| self.add_shelf(size).unwrap_or(0), |known| known as u16)
    }

    fn add_shelf(&self, size: usize) -> io::Result<u16> {
        let mut shelves = self.shelves.borrow_mut();
        if shelves.len() == SHELVES_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let count = (SHELF_BYTES / size).clamp(SHELF_COUNT_MIN, SHELF_COUNT_MAX).next_power_of_two();
        let (shelf, group) =
            (Shelf::new(count as u16, size, &mut self.buffers.borrow_mut())?, shelves.len() as u16);
        self.ring.borrow_mut().register(&shelf, group)?;
        shelves.push(shelf);
        Ok(group)
    }

    /// Waits until the kernel holds nothing any more; whether it came to that.
    fn settle(&mut self) -> bool {
        let (ring, end) = (self.ring.get_mut(), clock::now() + SETTLE_US);
        let mut completions = Vec::new();
        ring.cancel_all();
        while ring.in_flight() > 0 {
            let step = Some(Duration::from_millis(10));
            if ring.enter(step, &mut completions).is_err() || clock::now() > end {
                return false;
            }
            let accepted =
                completions.drain(..).filter(|completion| completion.operation == Operation::Accept);
            accepted.for_each(|completion| drop(completion.accepted()));
        }
        true
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        if !self.settle() {
            tracing::error!("the kernel does not let go of a loop's buffers: their memory is lost");
            mem::forget(self.sources.replace(Arena::new()));
            mem::forget(self.shelves.take());
        }
    }
}
