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
            Ok(_) => self.received.arrived.push_back(bytes),
            // Out of buffers for a moment, cancelled, or affected by O_NONBLOCK: the next one brings more.
            Err(Errno::NOBUFS | Errno::CANCELED | Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => self.received.end = Some(Err(errno)),
        }
        self.received.is_full() && self.is_in_flight(Kind::Receive)
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
        Some(Ok(bytes))
    }

    fn is_full(&self) -> bool {
        self.arrived.len() >= WAITING_MAX
    }
}
