//! `aio`: POSIX aio_read(3), asked by aio_error(3) whether it is done.
//!
//! The C library does this with threads: a read goes into a queue, a helper thread takes it, makes two system calls
//! for it (pread(2), which no socket takes, then read(2)) and notes the outcome. What follows from glibc's way:
//!
//! - It runs one request of a descriptor at a time, so a connection has one read under way at most.
//! - It has 20 helper threads for the whole process (aio_init(3) could change that before the first read). A read that
//!   blocked on an idle connection would hold one of them until a request came: 20 idle connections would stop all others.
//!   Sockets are therefore non-blocking, a read comes back empty-handed where nothing had come, and
//!   the loop asks poll(2) which sockets are worth another: one read at a time goes on for each
//!   connection that has something to say, none for the idle ones.
//! - aio_error takes one lock of the process for each question. The loop asks for every read under way, once a turn,
//!   and gives way to the helpers when none is done.
//! - A connection that is closed while its read is under way takes the read back, or waits until it is done, before its
//!   buffer and its descriptor can be used for anything else.
//!
//! So a request costs the hand-over to another thread and back on top of what `poll` costs: 12 to 16 system calls where
//! `poll` needs 2 to 3, about a third of its requests per processor. A helper woken for a read that another has taken
//! meanwhile ends, so that under load every few requests start a thread. A loop that waits for reads spins. Sends,
//! files and connecting are those of the readiness family, whose loop this is.

mod read;

use std::{collections::BTreeMap, io, os::fd::BorrowedFd, task, thread, time::Duration};

use self::read::Read;
use crate::{
    buffer::{Buffers, Input},
    loops::Key,
    poll::Poll,
    readiness::{Event, Interest, Poller, Received},
};

pub(crate) struct Aio {
    readiness: Poll,
    /// Reads whose outcome nobody has taken yet.
    reads: BTreeMap<Key, Read>,
    /// Those not yet seen to be done.
    running: Vec<Key>,
}

impl Poller for Aio {
    fn new() -> io::Result<Self> {
        Ok(Self { readiness: Poll::new()?, reads: BTreeMap::new(), running: Vec::new() })
    }

    fn watch(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        if interest == Interest::Read && self.reads.contains_key(&key) {
            return Ok(()); // The end of that read is what is waited for.
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
        // Dropped, a read is over: nothing of it reaches the descriptor's next owner.
        self.reads.remove(&key);
        self.readiness.forget_closing(socket, key);
    }

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        let timeout = if self.running.is_empty() { timeout } else { Some(Duration::ZERO) };
        self.readiness.wait(timeout, events)?;
        self.tell_done(events);
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

    /// Tells of each read that is done, once.
    fn tell_done(&mut self, events: &mut Vec<Event>) {
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
