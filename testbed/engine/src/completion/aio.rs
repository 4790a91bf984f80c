//! `aio`: reads by POSIX aio_read(3), which aio_error(3) tells to be done.
//!
//! The C library uses threads for this: a read goes into a queue, a helper thread takes it, makes two system calls
//! (pread(2), which fails on every socket, then read(2)) and records the outcome. This has consequences:
//!
//! - glibc runs one request per descriptor at a time, so a connection has at most one read under way.
//! - It has 20 helper threads for the whole process (aio_init(3) could change that before the first read). A read that
//!   blocked on an idle connection would hold a helper until a request came, and 20 idle connections would stop all
//!   others. So sockets are non-blocking, a read without input fails, and poll(2) tells the loop which sockets are worth
//!   another read. Each connection with input has one read under way, an idle one has none.
//! - aio_error takes a process-wide lock each time. The loop calls it for every read under way, once a turn, and yields
//!   to the helpers when none is done.
//! - A connection that is closed during a read cancels it, or waits until it is done, before its buffer and its
//!   descriptor can be used for anything else.
//!
//! So a request costs the hand-over to another thread and back on top of what `poll` costs: 8 to 9 system calls where
//! `poll` makes 2 to 3, for about a third of its requests per processor. A helper that is woken for a read which another
//! has taken meanwhile exits, so under load every few requests start a thread. A loop that waits for reads spins. Sends,
//! files and connecting work as in the readiness family, whose loop this is.

mod read;

use std::{collections::BTreeMap, io, os::fd::BorrowedFd, task, thread, time::Duration};

use self::read::Read;
use crate::{
    buffer::{Buffers, Input},
    error::EngineError,
    implementation::{Description, Implementation},
    loops::Key,
    options::Options,
    readiness::{
        event_loop,
        poll::Poll,
        poller::{Event, Interest, Poller, Received},
    },
    server::Server,
    service::Factory,
};

/// The model `aio`, and its poller.
pub(crate) struct Aio {
    readiness: Poll,
    /// Reads whose outcome has not been taken yet.
    reads: BTreeMap<Key, Read>,
    /// The reads not yet known to be done.
    running: Vec<Key>,
}

impl Implementation for Aio {
    const DESCRIPTION: Description = Description {
        has_loops: true,
        caution: Some("the C library has 20 helper threads for all reads of this process"),
        ..Description::named("aio")
    };

    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
        event_loop::start::<Self, F>(options, factory)
    }
}

impl Poller for Aio {
    fn new() -> io::Result<Self> {
        Ok(Self { readiness: Poll::new()?, reads: BTreeMap::new(), running: Vec::new() })
    }

    fn watch(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        if interest == Interest::Read && self.reads.contains_key(&key) {
            return Ok(()); // The event will be the end of that read.
        }
        self.readiness.watch(socket, key, interest)
    }

    fn rearm(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        self.watch(socket, key, interest)
    }

    fn receive(
        &mut self,
        (socket, key): (BorrowedFd<'_>, Key),
        into: &mut Input,
        buffers: &mut Buffers,
    ) -> task::Poll<io::Result<Received>> {
        match self.reads.remove(&key) {
            Some(read) if read.is_done() => task::Poll::Ready(take_outcome(read, into, buffers)),
            Some(read) => {
                self.reads.insert(key, read);
                task::Poll::Pending
            }
            None => match self.begin((socket, key), into, buffers) {
                Ok(()) => task::Poll::Pending,
                Err(error) => task::Poll::Ready(Err(error)),
            },
        }
    }

    fn watch_readable(&mut self, descriptor: BorrowedFd<'_>, key: Key) -> io::Result<()> {
        self.readiness.watch_readable(descriptor, key)
    }

    fn forget(&mut self, descriptor: BorrowedFd<'_>, key: Key) {
        self.readiness.forget(descriptor, key);
    }

    fn forget_closing(&mut self, socket: BorrowedFd<'_>, key: Key) {
        // Dropping a read ends it, so that it cannot reach the descriptor's next owner.
        self.reads.remove(&key);
        self.readiness.forget_closing(socket, key);
    }

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        let timeout = if self.running.is_empty() { timeout } else { Some(Duration::ZERO) };
        self.readiness.wait(timeout, events)?;
        self.report_done(events);
        Ok(())
    }

    fn idle(&self) {
        thread::yield_now();
    }
}

impl Aio {
    fn begin(
        &mut self,
        (socket, key): (BorrowedFd<'_>, Key),
        into: &Input,
        buffers: &mut Buffers,
    ) -> io::Result<()> {
        let (buffer, room) = into.lend(buffers);
        self.reads.insert(key, Read::begin(socket, buffer, room)?);
        self.running.push(key);
        Ok(())
    }

    /// Reports each read that is done, once.
    fn report_done(&mut self, events: &mut Vec<Event>) {
        let reads = &self.reads;
        self.running.retain(|&key| {
            let done = reads.get(&key).map(Read::is_done);
            if done == Some(true) {
                events.push(Event { key, readable: true, writable: false, closed: false });
            }
            done == Some(false)
        });
    }
}

fn take_outcome(read: Read, into: &mut Input, buffers: &mut Buffers) -> io::Result<Received> {
    let room = read.room();
    let (outcome, buffer) = read.finish();
    into.append(buffer, buffers);
    outcome.map(|count| Received { count, room })
}
