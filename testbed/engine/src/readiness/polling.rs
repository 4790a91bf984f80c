//! `polling`: the loop does not ask which sockets are ready, but tries every awaited one again and again.
//!
//! While a task waits for a socket the loop never sleeps: a processor is busy whether requests come or not, and a turn
//! costs one call for each connection that waits. After a turn in which nothing moved, the loop lets other threads run.
//! New connections and wake-ups are checked once a turn by poll(2), without waiting; only a loop that has no socket to
//! try waits there.

use std::{io, os::fd::BorrowedFd, thread, time::Duration};

use super::{
    event_loop,
    poll::Poll,
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

/// The model `polling`, and its poller.
pub(crate) struct Polling {
    /// The transfers to try in the next turn.
    waiting: Vec<Event>,
    standing: Poll,
}

impl Implementation for Polling {
    const DESCRIPTION: Description = Description {
        has_loops: true,
        caution: Some(
            "each loop keeps a processor busy while a connection is open, whether requests come or not",
        ),
        ..Description::named("polling")
    };

    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
        event_loop::start::<Self, F>(options, factory)
    }
}

impl Poller for Polling {
    fn new() -> io::Result<Self> {
        Ok(Self { waiting: Vec::new(), standing: Poll::new()? })
    }

    fn watch(&mut self, _: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        let readable = interest == Interest::Read;
        self.waiting.push(Event { key, readable, writable: !readable, closed: false });
        Ok(())
    }

    fn rearm(&mut self, socket: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        self.watch(socket, key, interest)
    }

    fn watch_readable(&mut self, descriptor: BorrowedFd<'_>, key: Key) -> io::Result<()> {
        self.standing.watch_readable(descriptor, key)
    }

    fn forget(&mut self, descriptor: BorrowedFd<'_>, key: Key) {
        self.standing.forget(descriptor, key);
    }

    fn forget_closing(&mut self, _: BorrowedFd<'_>, _: Key) {
        // An event of a socket that is gone finds no task.
    }

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        let timeout = if self.waiting.is_empty() { timeout } else { Some(Duration::ZERO) };
        self.standing.wait(timeout, events)?;
        events.append(&mut self.waiting);
        Ok(())
    }

    fn idle(&self) {
        thread::yield_now();
    }
}
