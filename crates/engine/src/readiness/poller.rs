//! What a loop asks of the system: which sockets are ready.

use std::{io, os::fd::BorrowedFd, time::Duration};

use crate::loops::Key;

/// What a task waits for on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
}

/// What the system says of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) key: Key,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer closed its side, or the connection broke: reading will not wait again.
    pub(crate) closed: bool,
}

/// A back-end of the readiness family.
///
/// Sockets are watched for one event at a time: [`watch`](Self::watch) when first a task must wait,
/// [`rearm`](Self::rearm) each later time. A back-end may tell more than was asked (an edge-triggered one
/// tells everything and has nothing to re-arm), but never less.
pub(crate) trait Poller: Sized + 'static {
    fn new() -> io::Result<Self>;

    /// Watches a new socket, until an event of `interest` or more.
    ///
    /// # Errors
    /// When the back-end cannot take the socket, as `select` beyond its 1 024 descriptors.
    fn watch(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()>;

    /// Watches a known socket once more.
    fn rearm(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()>;

    /// Tells whenever `descriptor` is readable, until it is [forgotten](Self::forget).
    fn watch_readable(&mut self, descriptor: BorrowedFd<'_>, key: Key) -> io::Result<()>;

    /// Watches no longer.
    fn forget(&mut self, descriptor: BorrowedFd<'_>, key: Key);

    /// Watches a socket that is about to be closed no longer.
    fn forget_closing(&mut self, socket: BorrowedFd<'_>, key: Key);

    /// Waits for events, no longer than `timeout`, and adds them to `events`.
    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()>;
}
