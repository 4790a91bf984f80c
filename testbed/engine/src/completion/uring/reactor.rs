//! What the connections of one loop share: the ring, operations in flight, timers, buffers.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    io, mem,
    os::fd::{AsFd, AsRawFd},
    rc::Rc,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use rustix::io::Errno;

use super::{
    buffer_ring::BufferRing,
    operation::{Completion, Kind, Operation},
    ring::Ring,
    source::{Sending, Socket, Source},
};
use crate::{
    buffer::Buffers,
    clock::{self, Micros},
    control::Control,
    idle,
    loops::{Arena, Key, Timers, Turn, Wait},
};

/// Size of a buffer for a request, longer than most. Only the part that is used takes memory.
const USUAL: usize = 16 << 10;
/// Size of a buffer for part of a stream.
const STREAM: usize = 64 << 10;
/// The largest size of a buffer, whatever the service asks for.
const LARGEST: usize = 4 << 20;
/// Total size of the buffers in one buffer ring, and the least and the most of them. The kernel takes them in turn; more
/// of them than fit in the processor's cache made uploads cost a tenth more. A request uses only the beginning of its
/// buffer. Tests have so few that they run out.
const RING_BYTES: usize = 1 << 20;
const RING_COUNT_MIN: usize = if cfg!(test) { 2 } else { 8 };
const RING_COUNT_MAX: usize = if cfg!(test) { 4 } else { 256 };
/// How many sockets that found no buffer are tried again in one turn of the loop. One of them may take many buffers, so
/// trying all of a crowd at once would fail for most of them, again and again.
const FED_AT_ONCE: usize = if cfg!(test) { 4 } else { 32 };
/// How many buffer rings, of different sizes, there may be. Beyond that, connections use buffers of the usual size.
const RINGS_MAX: usize = 16;
/// How long the kernel may take to complete everything when a loop ends, in microseconds.
const SETTLE_US: Micros = 5_000_000;

/// The state that the connections of one loop share. Never borrowed across a poll.
pub(crate) struct Reactor {
    pub(crate) ring: RefCell<Ring>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) buffers: RefCell<Buffers>,
    pub(crate) turn: Rc<Turn>,
    sources: RefCell<Arena<Source>>,
    buffer_rings: RefCell<Vec<BufferRing>>,
    /// Sockets whose receive found no buffer, oldest first.
    starved: RefCell<VecDeque<Key>>,
    /// The connection that is being ended because it is idle.
    ending: Cell<Option<Key>>,
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
            buffer_rings: RefCell::default(),
            starved: RefCell::default(),
            ending: Cell::new(None),
            control,
        };
        reactor.add_buffer_ring(USUAL)?;
        Ok(reactor)
    }

    pub(crate) fn draining(&self) -> bool {
        self.control.draining()
    }

    // The loop's side.

    /// Records a completion. Returns the task that waited for it.
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
        let bytes = self.take_bytes(source.received.group, completion);
        let full = bytes.len() == self.size_of(source.received.group);
        let grows =
            full && source.received.at_most.is_none() && !mem::replace(&mut source.received.streaming, full);
        // A buffer that is not full was the last for now.
        source.received.behind &= full || completion.result.is_err();
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
            // An operation may end for reasons of its own while a task is still waiting.
            let _ = self.submit_receive(key, source);
        }
    }

    /// Whether sockets wait for buffers. The loop checks before it waits.
    pub(crate) fn has_starved(&self) -> bool {
        !self.starved.borrow().is_empty()
    }

    /// Tries again to receive on some of the sockets that found no buffer.
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

    /// Takes the buffer with the bytes of a completion out of its buffer ring.
    fn take_bytes(&self, group: u16, completion: &Completion) -> Vec<u8> {
        let mut rings = self.buffer_rings.borrow_mut();
        match (completion.buffer, rings.get_mut(usize::from(group))) {
            (Some(number), Some(ring)) => {
                let count = completion.result.map_or(0, |count| count as usize);
                ring.take(number, count, &mut self.buffers.borrow_mut())
            }
            _ => Vec::new(),
        }
    }

    /// Handles the timer that was set for `at` on a socket. Returns the task whose wait has failed.
    pub(crate) fn expire(&self, key: Key, at: Micros, now: Micros) -> Option<Key> {
        let mut sources = self.sources.borrow_mut();
        sources.get_mut(key)?.wait.expire((at, now), key, &mut self.timers.borrow_mut())
    }

    /// The connections that have been idle longest and may end so that `wanted` clients find room.
    pub(crate) fn longest_idle(&self, wanted: usize) -> Vec<Key> {
        let sources = self.sources.borrow();
        let idle = sources.iter().filter(|(_, source)| source.is_idle());
        idle::longest_idle(idle.map(|(key, source)| (key, source.socket.as_fd().as_raw_fd())), wanted)
    }

    /// Ends the wait of an idle connection, whose task `poll` polls.
    pub(crate) fn end_idle(&self, key: Key, poll: impl FnOnce(Key)) {
        let ended = self.sources.borrow_mut().get_mut(key).and_then(|source| source.wait.end_if(|_| true));
        self.ending.set(Some(key));
        if let Some(task) = ended {
            poll(task);
        }
        self.ending.set(None);
    }

    // The connections' side.

    /// Whether a connection between requests should end.
    pub(crate) fn is_ending(&self, key: Key) -> bool {
        self.draining() || self.ending.get() == Some(key)
    }

    pub(crate) fn add_source(&self, socket: Rc<Socket>) -> Key {
        self.sources.borrow_mut().insert(Source::new(socket))
    }

    /// Cancels the operations of a connection that is gone. The source stays until the kernel no longer uses it.
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
        // Closes the socket, and notifies a loop that waits for a place.
        drop(gone);
    }

    /// Limits each receive to `bytes` from now on.
    pub(crate) fn read_at_most(&self, key: Key, bytes: usize) {
        if let Some(source) = self.sources.borrow_mut().get_mut(key) {
            source.received.at_most = Some(bytes);
            if source.is_in_flight(Kind::Receive) {
                self.ring.borrow_mut().cancel(Operation::Socket(key, Kind::Receive));
            }
        }
    }

    /// Whether there is input to take.
    pub(crate) fn has_received(&self, key: Key) -> bool {
        self.sources.borrow_mut().get_mut(key).is_some_and(|source| source.received.is_ready())
    }

    /// The next bytes received, or an empty buffer at the end of input.
    pub(crate) fn take_received(&self, key: Key) -> Option<io::Result<Vec<u8>>> {
        self.sources.borrow_mut().get_mut(key)?.received.take()
    }

    /// Makes the current task wait for input, `between_requests` or not. Never returns ready without an error.
    pub(crate) fn wait_to_receive(
        &self,
        key: Key,
        between_requests: bool,
        deadline: Micros,
    ) -> Poll<io::Result<()>> {
        self.wait(key, Kind::Receive, deadline, |source| {
            source.between_requests = between_requests;
            self.submit_receive(key, source)
        })
    }

    /// Whether a wait for the socket to take more is in flight.
    pub(crate) fn is_waiting_to_write(&self, key: Key) -> bool {
        self.sources.borrow_mut().get_mut(key).is_some_and(|source| source.is_in_flight(Kind::Writable))
    }

    /// Makes the current task wait until the socket takes more. Never returns ready without an error.
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

    /// Begins to send `bytes`, except for the first `sent`.
    pub(crate) fn send(&self, key: Key, bytes: Vec<u8>, sent: usize) -> io::Result<()> {
        let mut sources = self.sources.borrow_mut();
        let source = sources.get_mut(key).ok_or(io::ErrorKind::NotConnected)?;
        source.socket.set_nonblocking(false)?;
        source.sending = Sending { bytes, sent, outcome: Ok(()) };
        self.submit_send(key, source);
        Ok(())
    }

    /// Returns the buffer once all of it is sent.
    pub(crate) fn poll_sent(&self, key: Key, deadline: Micros) -> Poll<io::Result<Vec<u8>>> {
        if let Some(source) =
            self.sources.borrow_mut().get_mut(key).filter(|source| !source.is_in_flight(Kind::Send))
        {
            source.sending.outcome?;
            return Poll::Ready(Ok(mem::take(&mut source.sending.bytes)));
        }
        self.wait(key, Kind::Send, deadline, |_| Ok(())).map_ok(|()| Vec::new())
    }

    /// Never returns ready without an error, which is `TimedOut` if the deadline has passed.
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
        source.received.group = self.group_for(source);
        source.begin(Kind::Receive);
        let (group, mut ring) = (source.received.group, self.ring.borrow_mut());
        match source.received.behind {
            false => ring.receive(source.socket.as_fd(), group, key),
            true => ring.receive_once(source.socket.as_fd(), (group, self.size_of(group)), key),
        }
        Ok(())
    }

    fn submit_send(&self, key: Key, source: &mut Source) {
        source.begin(Kind::Send);
        // SAFETY: the bytes lie in the source, which changes or removes them only while no send is in flight.
        unsafe { self.ring.borrow_mut().send(source.socket.as_fd(), source.sending.rest(), key) };
    }

    // Buffer rings, by their number (the kernel's "buffer group").

    fn size_of(&self, group: u16) -> usize {
        self.buffer_rings.borrow().get(usize::from(group)).map_or(0, BufferRing::size)
    }

    /// The buffer ring whose buffers have the size that suits a source.
    fn group_for(&self, source: &Source) -> u16 {
        let usual = if source.received.streaming { STREAM } else { USUAL };
        let size = source.received.at_most.unwrap_or(usual).min(LARGEST);
        let known = self.buffer_rings.borrow().iter().position(|ring| ring.size() == size);
        // The first has the usual size; pieces larger than the service asked for are divided.
        known.map_or_else(|| self.add_buffer_ring(size).unwrap_or(0), |known| known as u16)
    }

    fn add_buffer_ring(&self, size: usize) -> io::Result<u16> {
        let mut rings = self.buffer_rings.borrow_mut();
        if rings.len() == RINGS_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let count = (RING_BYTES / size).clamp(RING_COUNT_MIN, RING_COUNT_MAX).next_power_of_two();
        let (ring, group) =
            (BufferRing::new(count as u16, size, &mut self.buffers.borrow_mut())?, rings.len() as u16);
        self.ring.borrow_mut().register(&ring, group)?;
        rings.push(ring);
        Ok(group)
    }

    /// Cancels everything and waits until the kernel uses nothing any more. Returns whether that succeeded.
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
            tracing::error!("the kernel still uses a loop's buffers, so their memory is leaked");
            mem::forget(self.sources.replace(Arena::new()));
            mem::forget(self.buffer_rings.take());
        }
    }
}
