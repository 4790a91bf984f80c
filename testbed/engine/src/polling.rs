//! `polling`: nobody is asked which sockets are ready; every socket somebody waits for is tried, again and again.
//!
//! While anyone waits for a socket the loop never sleeps: a processor is busy whether requests come or not,
//! and a turn costs one call for each connection that waits. After a turn in which nothing moved, the loop lets other
//! threads run. Listening and wake-ups are asked for once a turn by poll(2), without waiting; only a loop that has
//! no socket to try waits there.

use std::{io, os::fd::BorrowedFd, thread, time::Duration};

use crate::{
    loops::Key,
    poll::Poll,
    readiness::{Event, Interest, Poller},
};

pub(crate) struct Polling {
    /// What is to be tried in the next turn.
    waiting: Vec<Event>,
    standing: Poll,
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
        // An event of a socket that is gone finds nobody.
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
