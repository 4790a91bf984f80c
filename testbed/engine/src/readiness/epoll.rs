//! `epoll`: edge-triggered epoll(7), with one registration in a socket's life.

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

/// The most events taken by one wait.
const BATCH: usize = 256;

/// The model `epoll`, and its poller.
pub(crate) struct Epoll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Implementation for Epoll {
    const DESCRIPTION: Description = Description { has_loops: true, ..Description::named("epoll") };

    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
        event_loop::start::<Self, F>(options, factory)
    }
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
        // This fails only if the descriptor was not watched.
        let _ = epoll::delete(&self.epoll, descriptor);
    }

    fn forget_closing(&mut self, _: BorrowedFd<'_>, _: Key) {
        // Closing the last descriptor of a socket removes it: epoll(7).
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
