//! `poll`: poll(2) over an array of the awaited sockets.
//!
//! A socket is in the array only while a task waits for it: an event removes it, the next wait puts it back. Each turn
//! copies the array to the kernel, which checks every entry. So the cost of a turn grows with the number of connections
//! that wait, not with the number that are ready.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    time::Duration,
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

/// The model `poll`, and its poller.
pub(crate) struct Poll {
    /// The array for the kernel.
    descriptors: Vec<libc::pollfd>,
    /// What belongs to each descriptor, in the same order.
    entries: Vec<Entry>,
    /// The place of each descriptor in the two, indexed by its number.
    places: Vec<Option<u32>>,
}

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    /// Stays in the array after an event.
    standing: bool,
}

impl Implementation for Poll {
    const DESCRIPTION: Description = Description { has_loops: true, ..Description::named("poll") };

    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
        event_loop::start::<Self, F>(options, factory)
    }
}

impl Poller for Poll {
    fn new() -> io::Result<Self> {
        Ok(Self { descriptors: Vec::new(), entries: Vec::new(), places: Vec::new() })
    }

    fn watch(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        self.put(socket, Entry { key, standing: false }, events_of(interest));
        Ok(())
    }

    fn rearm(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        self.watch(socket, key, interest)
    }

    fn watch_readable(&mut self, descriptor: BorrowedFd<'_>, key: Key) -> io::Result<()> {
        self.put(descriptor, Entry { key, standing: true }, libc::POLLIN);
        Ok(())
    }

    fn forget(&mut self, descriptor: BorrowedFd<'_>, _: Key) {
        if let Some(place) = self.place(descriptor.as_raw_fd()) {
            self.remove(place);
        }
    }

    fn forget_closing(&mut self, socket: BorrowedFd<'_>, key: Key) {
        self.forget(socket, key);
    }

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        let ready = self.poll(timeout)?;
        self.collect(ready, events);
        Ok(())
    }
}

impl Poll {
    /// Adds a descriptor, or changes what is waited for on it.
    fn put(&mut self, descriptor: BorrowedFd<'_>, entry: Entry, events: i16) {
        let fd = descriptor.as_raw_fd();
        let pollfd = libc::pollfd { fd, events, revents: 0 };
        match self.place(fd) {
            Some(place) => {
                self.descriptors[place] = pollfd;
                self.entries[place] = entry;
            }
            None => {
                self.set_place(fd, Some(self.entries.len()));
                self.descriptors.push(pollfd);
                self.entries.push(entry);
            }
        }
    }

    /// Removes an entry; the last one moves to its place.
    fn remove(&mut self, place: usize) {
        let gone = self.descriptors.swap_remove(place);
        self.entries.swap_remove(place);
        if let Some(moved) = self.descriptors.get(place) {
            self.set_place(moved.fd, Some(place));
        }
        self.set_place(gone.fd, None);
    }

    fn place(&self, fd: RawFd) -> Option<usize> {
        self.places.get(index_of(fd)).copied().flatten().map(|place| place as usize)
    }

    fn set_place(&mut self, fd: RawFd, place: Option<usize>) {
        let index = index_of(fd);
        if index >= self.places.len() {
            self.places.resize(index + 1, None);
        }
        // There are fewer descriptors than 2^32.
        self.places[index] = place.map(|place| place as u32);
    }

    /// Waits. Returns how many descriptors are ready.
    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let timeout = timeout.map_or(-1, milliseconds);
        let count = self.descriptors.len() as libc::nfds_t;
        // SAFETY: the pointer and the count belong to one array, which nothing else touches during the call.
        let ready = unsafe { libc::poll(self.descriptors.as_mut_ptr(), count, timeout) };
        if let Ok(ready) = usize::try_from(ready) {
            return Ok(ready);
        }
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) }
    }

    /// Reports the `left` descriptors that are ready, and removes those that were watched for one event.
    fn collect(&mut self, mut left: usize, events: &mut Vec<Event>) {
        let mut place = 0;
        while left > 0 && place < self.entries.len() {
            let (descriptor, entry) = (&mut self.descriptors[place], self.entries[place]);
            let found = std::mem::take(&mut descriptor.revents);
            if found == 0 {
                place += 1;
                continue;
            }
            left -= 1;
            events.push(translate(entry.key, found));
            if entry.standing {
                place += 1;
            } else {
                self.remove(place);
            }
        }
    }
}

/// The index of a descriptor, which is never negative.
fn index_of(fd: RawFd) -> usize {
    fd.unsigned_abs() as usize
}

/// Milliseconds, rounded up so that a wait does not end before its time.
fn milliseconds(span: Duration) -> i32 {
    i32::try_from(span.as_micros().div_ceil(1_000)).unwrap_or(i32::MAX)
}

fn events_of(interest: Interest) -> i16 {
    match interest {
        Interest::Read => libc::POLLIN,
        Interest::Write => libc::POLLOUT,
    }
}

fn translate(key: Key, found: i16) -> Event {
    let closed = found & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0;
    Event {
        key,
        readable: closed || found & libc::POLLIN != 0,
        writable: closed || found & libc::POLLOUT != 0,
        closed,
    }
}
