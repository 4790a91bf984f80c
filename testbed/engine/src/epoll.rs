//! `epoll`: edge-triggered epoll(7), one registration in a socket's life.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
    },
    io::Errno,
};

use crate::{
    loops::Key,
    readiness::{Event, Interest, Poller},
};

/// Most events taken by one wait.
const BATCH: usize = 256;

pub(crate) struct Epoll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poller for Epoll {
    fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: Vec::with_capacity(BATCH) })
    }

    fn watch(&mut self, socket: BorrowedFd<'_>, key: Key, _: Interest) -> io::Result<()> {
        self.add(socket, key, EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET)
    }

    fn rearm(&mut self, _: BorrowedFd<'_>, _: Key, _: Interest) -> io::Result<()> {
        Ok(())
    }

    fn watch_readable(&mut self, descriptor: BorrowedFd<'_>, key: Key) -> io::Result<()> {
        self.add(descriptor, key, EventFlags::IN)
    }

    fn forget(&mut self, descriptor: BorrowedFd<'_>, _: Key) {
        // It can only fail when the descriptor was not watched.
        let _ = epoll::delete(&self.epoll, descriptor);
    }

    fn forget_closing(&mut self, _: BorrowedFd<'_>, _: Key) {
        // Closing the last descriptor of a socket takes it out: epoll(7).
    }

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        let timeout = timeout.and_then(|span| Timespec::try_from(span).ok());
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        events.extend(self.events.iter().map(translate));
        Ok(())
    }
}

impl Epoll {
    fn add(&self, descriptor: BorrowedFd<'_>, key: Key, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, EventData::new_u64(key.to_bits()), flags)?)
    }
}

fn translate(event: &epoll::Event) -> Event {
    let flags = event.flags;
    let closed = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
    Event {
        key: Key::from_bits(event.data.u64()),
        readable: closed || flags.contains(EventFlags::IN),
        writable: flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR),
        closed,
    }
}
