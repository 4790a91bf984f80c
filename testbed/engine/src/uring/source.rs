//! A socket, and everything the kernel may hold of it.

use std::{
    cell::Cell,
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    rc::Rc,
};

use rustix::io::{Errno, ioctl_fionbio};

use super::ring::Kind;
use crate::{counters::Permit, loops::Wait};

/// Buffers that may wait for a task that is busy elsewhere, before no more are received for it.
const WAITING_MAX: usize = 16;

/// A socket, with its place among the open connections if it was accepted. Closed before that is given back.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: OwnedFd,
    nonblocking: Cell<bool>,
    _permit: Option<Permit>,
}

impl Socket {
    /// A socket whose O_NONBLOCK is as said.
    pub(crate) const fn new(descriptor: OwnedFd, nonblocking: bool, permit: Option<Permit>) -> Self {
        Self { descriptor, nonblocking: Cell::new(nonblocking), _permit: permit }
    }

    /// Sets O_NONBLOCK. Operations of the ring wait for a socket only without it, and sendfile(2) never does only
    /// with it; operations that are under way go on as they began.
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

/// What the kernel was given to do on one socket and has not finished. Buffers are safe here: it is removed
/// only when nothing is in flight.
pub(crate) struct Source {
    pub(crate) socket: Rc<Socket>,
    pub(crate) wait: Wait<Kind>,
    pub(crate) received: Received,
    pub(crate) sending: Sending,
    /// Its connection is gone: it only waits for the kernel.
    pub(crate) abandoned: bool,
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
            in_flight: 0,
        }
    }

    pub(crate) const fn is_in_flight(&self, kind: Kind) -> bool {
        self.in_flight & bit(kind) != 0
    }

    /// Whether the kernel holds nothing.
    pub(crate) const fn is_at_rest(&self) -> bool {
        self.in_flight == 0
    }

    /// Notes that an operation begins; false when it is under way already.
    pub(crate) const fn begin(&mut self, kind: Kind) -> bool {
        let new = !self.is_in_flight(kind);
        self.in_flight |= bit(kind);
        new
    }

    /// Notes that an operation has ended.
    pub(crate) const fn end(&mut self, kind: Kind) {
        self.in_flight &= !bit(kind);
    }

    /// Takes note of what a receive brought; whether the receive, going on, is to be stopped.
    pub(crate) fn note_received(&mut self, result: Result<u32, Errno>, bytes: Vec<u8>) -> bool {
        match result {
            Ok(0) => self.received.end = Some(Ok(())),
            Ok(_) => self.received.arrived.push_back(bytes),
            // Out of buffers for a moment, cancelled, or met by O_NONBLOCK: the next one brings more.
            Err(Errno::NOBUFS | Errno::CANCELED | Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => self.received.end = Some(Err(errno)),
        }
        self.received.is_full() && self.is_in_flight(Kind::Receive)
    }

    /// Takes note of what a send came to; whether it is done, with all bytes or an error.
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

/// Bytes that came in and that the connection has not taken yet.
pub(crate) struct Received {
    arrived: VecDeque<Vec<u8>>,
    /// How the input ended, once what arrived before is taken.
    end: Option<Result<(), Errno>>,
    /// The shelf that the receive under way takes its buffers from.
    pub(crate) shelf: u16,
    /// What one receive may bring, where the service has said so.
    pub(crate) at_most: Option<usize>,
    /// Buffers come full: larger ones are worth their memory.
    pub(crate) streaming: bool,
    /// The last receive found no buffer; the next one's turn will come.
    pub(crate) starved: bool,
}

impl Received {
    const fn new() -> Self {
        Self {
            arrived: VecDeque::new(),
            end: None,
            shelf: 0,
            at_most: None,
            streaming: false,
            starved: false,
        }
    }

    /// Whether the connection need not wait.
    pub(crate) fn is_ready(&self) -> bool {
        !self.arrived.is_empty() || self.end.is_some()
    }

    /// The next bytes, none of them at the end of input; or nothing yet.
    pub(crate) fn take(&mut self) -> Option<io::Result<Vec<u8>>> {
        let Some(mut bytes) = self.arrived.pop_front() else {
            return self.end.as_mut().map(|end| {
                // A connection breaks once, and is at its end from then on.
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
