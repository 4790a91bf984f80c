//! `select`: select(2) over its sets of 1 024 bits.
//!
//! The limit applies to a descriptor's number, not to how many are watched: each file, listening socket and connection
//! of the process takes a number, on whatever loop. A socket with number 1 024 or above is refused: a client's
//! connection is closed unserved and counted, a connection to another tier fails, and a server whose listening sockets
//! have such numbers does not start. Each turn copies the sets to the kernel, which checks every bit up to the highest.
//! So the cost of a turn grows with the number of open connections, not with the number that are ready.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    time::Duration,
};

use rustix::{
    event::{FdSetElement, FdSetIter, Timespec, fd_set_bound, fd_set_insert, fd_set_remove, select},
    io::Errno,
};

use super::{
    event_loop,
    poller::{Event, Interest, Poller},
};
use crate::{
    error::EngineError,
    implementation::{Description, Implementation},
    loops::Key,
    options::Options,
    server::Server,
    service::Factory,
};

/// How many descriptors fit into a set.
const DESCRIPTORS: usize = libc::FD_SETSIZE;

type Set = [FdSetElement; DESCRIPTORS / (8 * size_of::<FdSetElement>())];

/// The model `select`, and its poller.
pub(crate) struct Select {
    readable: Set,
    writable: Set,
    /// The descriptors that stay in `readable` after an event.
    standing: Set,
    /// The key of each descriptor that is in a set.
    keys: Vec<Key>,
}

impl Implementation for Select {
    const DESCRIPTION: Description = Description {
        has_loops: true,
        caution: Some("connections whose descriptor would be 1024 or above are refused"),
        ..Description::named("select")
    };

    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
        event_loop::start::<Self, F>(options, factory)
    }
}

impl Poller for Select {
    fn new() -> io::Result<Self> {
        let (readable, writable, standing) = Default::default();
        Ok(Self { readable, writable, standing, keys: vec![Key::reserved(0); DESCRIPTORS] })
    }

    fn can_watch(descriptor: BorrowedFd<'_>) -> io::Result<()> {
        index_of(descriptor).map(drop)
    }

    fn watch(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        let fd = self.set_key(socket, key)?;
        let (wanted, other) = match interest {
            Interest::Read => (&mut self.readable, &mut self.writable),
            Interest::Write => (&mut self.writable, &mut self.readable),
        };
        fd_set_insert(wanted, fd);
        fd_set_remove(other, fd);
        Ok(())
    }

    fn rearm(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        self.watch(socket, key, interest)
    }

    fn watch_readable(&mut self, descriptor: BorrowedFd<'_>, key: Key) -> io::Result<()> {
        let fd = self.set_key(descriptor, key)?;
        fd_set_insert(&mut self.readable, fd);
        fd_set_insert(&mut self.standing, fd);
        Ok(())
    }

    fn forget(&mut self, descriptor: BorrowedFd<'_>, _: Key) {
        if index_of(descriptor).is_ok() {
            for set in [&mut self.readable, &mut self.writable, &mut self.standing] {
                fd_set_remove(set, descriptor.as_raw_fd());
            }
        }
    }

    fn forget_closing(&mut self, socket: BorrowedFd<'_>, key: Key) {
        self.forget(socket, key);
    }

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        let timeout = timeout.and_then(|span| Timespec::try_from(span).ok());
        let (mut readable, mut writable) = (self.readable, self.writable);
        let bound = fd_set_bound(&readable).max(fd_set_bound(&writable));
        // SAFETY: every descriptor in a set is open, because a socket is forgotten before it is closed, and a listening
        // socket or a notifier outlives the loop or is forgotten. `bound` is within the sets.
        let waited =
            unsafe { select(bound, Some(&mut readable), Some(&mut writable), None, timeout.as_ref()) };
        match waited {
            Ok(_) => self.collect(&readable, &writable, events),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }
}

impl Select {
    /// Records the key of a descriptor.
    fn set_key(&mut self, descriptor: BorrowedFd<'_>, key: Key) -> io::Result<RawFd> {
        self.keys[index_of(descriptor)?] = key;
        Ok(descriptor.as_raw_fd())
    }

    /// Reports the descriptors that are ready, and removes those that were watched for one event.
    fn collect(&mut self, readable: &Set, writable: &Set, events: &mut Vec<Event>) {
        for fd in FdSetIter::new(readable) {
            events.push(self.event(fd, Interest::Read));
            fd_set_remove(&mut self.readable, fd);
        }
        for fd in FdSetIter::new(writable) {
            events.push(self.event(fd, Interest::Write));
            fd_set_remove(&mut self.writable, fd);
        }
        for fd in FdSetIter::new(&self.standing) {
            fd_set_insert(&mut self.readable, fd);
        }
    }

    /// A broken connection counts as ready: select(2) does not tell more.
    fn event(&self, fd: RawFd, interest: Interest) -> Event {
        let key = self.keys[fd.unsigned_abs() as usize];
        let readable = interest == Interest::Read;
        Event { key, readable, writable: !readable, closed: false }
    }
}

/// A descriptor that fits in no set.
#[derive(Debug, thiserror::Error)]
#[error("select(2) takes descriptors below {DESCRIPTORS} only, and this socket has number {number}")]
struct BeyondSet {
    number: RawFd,
}

fn index_of(descriptor: BorrowedFd<'_>) -> io::Result<usize> {
    let number = descriptor.as_raw_fd();
    let index = usize::try_from(number).ok().filter(|&index| index < DESCRIPTORS);
    index.ok_or_else(|| io::Error::other(BeyondSet { number }))
}
