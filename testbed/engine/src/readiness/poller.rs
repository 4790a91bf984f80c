//! The interface to the system call that tells which sockets are ready.

use std::{io, os::fd::BorrowedFd, task::Poll, time::Duration};

use rustix::net::RecvFlags;

use crate::{
    buffer::{Buffers, Input},
    loops::Key,
    net,
};

/// What a task waits for on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
}

/// What the system reports about a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) key: Key,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer closed its side or the connection broke, so reading will never wait again.
    pub(crate) closed: bool,
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// The number of bytes; 0 at the end of input.
    pub(crate) count: usize,
    /// The most bytes that it could have brought.
    pub(crate) room: usize,
}

/// A back-end of the readiness family.
///
/// A socket is watched for one event at a time: by [`watch`](Self::watch) when a task first has to wait, by
/// [`rearm`](Self::rearm) each later time. The latest interest holds. A back-end may report more than was asked for (an
/// edge-triggered one reports everything and has nothing to re-arm) and may report events that are not true, but it
/// misses none.
pub(crate) trait Poller: Sized + 'static {
    fn new() -> io::Result<Self>;

    /// Checks that the back-end can watch `descriptor`. The error says why not; `select` has one beyond its 1 024.
    fn can_watch(descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let _ = descriptor;
        Ok(())
    }

    /// Watches a new socket until an event of `interest`.
    fn watch(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()>;

    /// Watches a known socket again.
    fn rearm(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()>;

    /// Receives from a socket without waiting.
    ///
    /// Pending means that a read is under way: an event of the socket tells when to call again for its outcome.
    fn receive(
        &mut self,
        (socket, _): (BorrowedFd<'_>, Key),
        into: &mut Input,
        buffers: &mut Buffers,
    ) -> Poll<io::Result<Received>> {
        into.acquire(buffers);
        let (buffer, room) = into.room();
        let received = net::receive(socket, (buffer, room), RecvFlags::empty());
        Poll::Ready(received.map(|count| Received { count, room }))
    }

    /// Reports whenever `descriptor` is readable, until it is [forgotten](Self::forget).
    fn watch_readable(&mut self, descriptor: BorrowedFd<'_>, key: Key) -> io::Result<()>;

    /// Stops watching a descriptor.
    fn forget(&mut self, descriptor: BorrowedFd<'_>, key: Key);

    /// Stops watching a socket that is about to be closed.
    fn forget_closing(&mut self, socket: BorrowedFd<'_>, key: Key);

    /// Waits for events, at most for `timeout`, and adds them to `events`.
    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()>;

    /// Called after a turn of the loop in which nothing moved. A back-end whose waits do not sleep yields here.
    fn idle(&self) {}
}
