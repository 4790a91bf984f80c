//! A socket, and everything of it that the kernel may be using.

use std::{
    cell::Cell,
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    rc::Rc,
};

use rustix::io::{Errno, ioctl_fionbio};

use super::operation::Kind;
use crate::{connection_limit::Permit, loops::Wait};

/// How many buffers may wait for a busy task before receiving for it stops.
const WAITING_MAX: usize = 16;
/// How many bytes, if they are in more than one buffer. What the kernel has put into buffers before it learns of the stop
/// comes on top, once: from then on it gets one buffer at a time, until the task has caught up.
const WAITING_BYTES_MAX: usize = 256 << 10;

/// A socket, and the place of an accepted one among the open connections. The socket is closed before the place is freed.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: OwnedFd,
    nonblocking: Cell<bool>,
    _permit: Option<Permit>,
}

impl Socket {
    /// Wraps a socket whose O_NONBLOCK is `nonblocking`.
    pub(crate) const fn new(descriptor: OwnedFd, nonblocking: bool, permit: Option<Permit>) -> Self {
        Self { descriptor, nonblocking: Cell::new(nonblocking), _permit: permit }
    }

    /// Sets O_NONBLOCK. Operations of the ring wait for a socket only without it, and sendfile(2) never waits only with
    /// it. Operations under way continue as they began.
    pub(crate) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        if self.nonblocking.replace(nonblocking) != nonblocking {
            ioctl_fionbio(&self.descriptor, nonblocking)?;
        }
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// What the kernel is doing on one socket. Buffers are safe here, because a source is removed only when nothing is in
/// flight.
pub(crate) struct Source {
    pub(crate) socket: Rc<Socket>,
    pub(crate) wait: Wait<Kind>,
    pub(crate) received: Received,
    pub(crate) sending: Sending,
    /// Its connection is gone, and it only waits for the kernel.
    pub(crate) abandoned: bool,
    /// Its task waits for a request, as far as it waits for input.
    pub(crate) between_requests: bool,
    in_flight: u8,
}

impl Source {
    pub(crate) const fn new(socket: Rc<Socket>) -> Self {
        Self {
            socket,
            wait: Wait::new(),
            received: Received::new(),
            sending: Sending { bytes: Vec::new(), sent: 0, outcome: Ok(()) },
            abandoned: false,
            between_requests: false,
            in_flight: 0,
        }
    }

    pub(crate) const fn is_in_flight(&self, kind: Kind) -> bool {
        self.in_flight & bit(kind) != 0
    }

    /// Whether its task waits for a request of which nothing has come.
    pub(crate) fn is_idle(&self) -> bool {
        self.between_requests && self.wait.is_for(Kind::Receive) && !self.received.is_ready()
    }

    /// Whether the kernel uses nothing of it.
    pub(crate) const fn is_at_rest(&self) -> bool {
        self.in_flight == 0
    }

    /// Records that an operation begins. Returns false if one of the kind is already under way.
    pub(crate) const fn begin(&mut self, kind: Kind) -> bool {
        let new = !self.is_in_flight(kind);
        self.in_flight |= bit(kind);
        new
    }

    /// Records that an operation has ended.
    pub(crate) const fn end(&mut self, kind: Kind) {
        self.in_flight &= !bit(kind);
    }

    /// Records the outcome of a receive. Returns whether a receive that is still under way must be stopped.
    pub(crate) fn note_received(&mut self, result: Result<u32, Errno>, bytes: Vec<u8>) -> bool {
        match result {
            Ok(0) => self.received.end = Some(Ok(())),
            Ok(_) => self.received.push(bytes),
            // Out of buffers for a moment, cancelled, or affected by O_NONBLOCK: the next one brings more.
            Err(Errno::NOBUFS | Errno::CANCELED | Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => self.received.end = Some(Err(errno)),
        }
        let full = self.received.is_full();
        self.received.behind |= full;
        full && self.is_in_flight(Kind::Receive)
    }

    /// Records the outcome of a send. Returns whether it is finished, with all bytes sent or an error.
    pub(crate) fn note_sent(&mut self, result: Result<u32, Errno>) -> bool {
        match result {
            Ok(0) => self.sending.outcome = Err(Errno::PIPE),
            Ok(count) => {
                self.sending.sent += count as usize;
                return self.sending.rest().is_empty() || self.abandoned;
            }
            Err(Errno::INTR | Errno::AGAIN) => return self.abandoned,
            Err(errno) => self.sending.outcome = Err(errno),
        }
        true
    }
}

const fn bit(kind: Kind) -> u8 {
    1 << kind as u8
}

/// Bytes on their way out.
pub(crate) struct Sending {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent: usize,
    pub(crate) outcome: Result<(), Errno>,
}

impl Sending {
    /// What is still to be sent.
    pub(crate) fn rest(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }
}

/// Received bytes that the connection has not taken yet.
pub(crate) struct Received {
    arrived: VecDeque<Vec<u8>>,
    /// How many bytes those are.
    bytes: usize,
    /// Input comes faster than the task takes it, so it is received one buffer at a time.
    pub(crate) behind: bool,
    /// How the input ended, to be reported after what has arrived.
    end: Option<Result<(), Errno>>,
    /// The number of the buffer ring from which the receive under way takes its buffers.
    pub(crate) group: u16,
    /// The most bytes that one receive may bring, if the service has set it.
    pub(crate) at_most: Option<usize>,
    /// Buffers come back full, so larger ones are worth their memory.
    pub(crate) streaming: bool,
    /// The last receive found no buffer; another is tried when its turn comes.
    pub(crate) starved: bool,
}

impl Received {
    const fn new() -> Self {
        Self {
            arrived: VecDeque::new(),
            bytes: 0,
            behind: false,
            end: None,
            group: 0,
            at_most: None,
            streaming: false,
            starved: false,
        }
    }

    /// Whether the connection need not wait.
    pub(crate) fn is_ready(&self) -> bool {
        !self.arrived.is_empty() || self.end.is_some()
    }

    /// The next bytes, or an empty buffer at the end of input, or `None` if nothing has come yet.
    pub(crate) fn take(&mut self) -> Option<io::Result<Vec<u8>>> {
        let Some(mut bytes) = self.arrived.pop_front() else {
            return self.end.as_mut().map(|end| {
                // An error is reported once; from then on the connection is at its end.
                std::mem::replace(end, Ok(()))?;
                Ok(Vec::new())
            });
        };
        if let Some(at_most) = self.at_most.filter(|&at_most| at_most < bytes.len()) {
            self.arrived.push_front(bytes.split_off(at_most));
        }
        self.bytes -= bytes.len();
        Some(Ok(bytes))
    }

    fn push(&mut self, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.arrived.push_back(bytes);
    }

    fn is_full(&self) -> bool {
        let count = self.arrived.len();
        count >= WAITING_MAX || count > 1 && self.bytes >= WAITING_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
        Source::new(Rc::new(Socket::new(socket.into(), false, None)))
    }

    /// Brings buffers of this size until receiving must stop. Returns how many bytes came.
    fn received_unread(source: &mut Source, size: usize) -> usize {
        source.begin(Kind::Receive);
        (1..1_000).find(|_| source.note_received(Ok(size as u32), vec![0; size])).unwrap() * size
    }

    /// A megabyte came for each connection whose task was busy.
    #[test]
    fn little_is_received_that_nobody_reads() {
        assert_eq!(received_unread(&mut source(), 64 << 10), 256 << 10);
        assert_eq!(received_unread(&mut source(), 1 << 10), 16 << 10);
        assert_eq!(
            received_unread(&mut source(), 4 << 20),
            8 << 20,
            "one may always wait while another is filled"
        );
    }

    #[test]
    fn bytes_count_until_they_are_taken() {
        let mut source = source();
        received_unread(&mut source, 64 << 10);
        assert!(source.received.behind);
        source.received.at_most = Some(1_000);
        while source.received.is_ready() {
            source.received.take().unwrap().unwrap();
        }
        assert_eq!(source.received.bytes, 0);
        assert_eq!(received_unread(&mut source, 64 << 10), 256 << 10);
    }
}
