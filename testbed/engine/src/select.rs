//! `select`: select(2) over its sets of 1 024 bits.
//!
//! The limit is on the number a descriptor has, not on how many are watched: each file, listening socket and
//! connection of the process takes one, on whichever loop. A socket numbered 1 024 or above is refused: a peer's
//! connection is closed unserved and counted, a connection to another tier fails, and a server whose listening
//! sockets are numbered so does not start. Each turn copies the sets to the kernel, which looks at every bit up to
//! the highest: the cost of a turn grows with the number of connections that are open, not of those that are ready.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    time::Duration,
};

use rustix::{
    event::{FdSetElement, FdSetIter, Timespec, fd_set_bound, fd_set_insert, fd_set_remove, select},
    io::Errno,
};

use crate::{
    loops::Key,
    readiness::{Event, Interest, Poller},
};

/// How many descriptors a set has room for.
const DESCRIPTORS: usize = libc::FD_SETSIZE;

type Set = [FdSetElement; DESCRIPTORS / (8 * size_of::<FdSetElement>())];

pub(crate) struct Select {
    readable: Set,
    writable: Set,
    /// Those of `readable` that stay there after an event.
    standing: Set,
    /// Of each descriptor that is in a set.
    keys: Vec<Key>,
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
        let fd = self.name(socket, key)?;
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
        let fd = self.name(descriptor, key)?;
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
        // SAFETY: what is in a set is open: a socket is forgotten before it is closed, and a listening socket or a
        // notifier outlives the loop or is forgotten. `bound` is within the sets.
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
    /// Notes whose descriptor it is.
    fn name(&mut self, descriptor: BorrowedFd<'_>, key: Key) -> io::Result<RawFd> {
        self.keys[index_of(descriptor)?] = key;
        Ok(descriptor.as_raw_fd())
    }

    /// Tells of the descriptors that are ready, and takes out those that were watched for one event.
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

    /// A connection that broke is told as ready: select(2) has no other word for it.
    fn event(&self, fd: RawFd, interest: Interest) -> Event {
        let key = self.keys[fd.unsigned_abs() as usize];
        let readable = interest == Interest::Read;
        Event { key, readable, writable: !readable, closed: false }
    }
}

/// A descriptor that is in no set.
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
