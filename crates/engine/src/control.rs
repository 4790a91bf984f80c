//! How a running server is told to stop, from any thread.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, SeqCst},
        },
    },
    time::Duration,
};

use rustix::event::{EventfdFlags, eventfd};

use crate::clock::{self, Micros, NEVER};

/// Wakes a thread that waits in a poller.
#[derive(Debug)]
pub(crate) struct Notifier {
    eventfd: OwnedFd,
}

impl Notifier {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { eventfd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Makes the descriptor readable.
    pub(crate) fn notify(&self) {
        // It can only fail when the counter is full, and then the descriptor is readable already.
        let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again.
    pub(crate) fn clear(&self) {
        // It can only fail when nothing was to be cleared.
        let _ = rustix::io::read(&self.eventfd, &mut [0_u8; 8]);
    }
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

/// The state every worker of a server looks at.
#[derive(Debug)]
pub(crate) struct Control {
    draining: AtomicBool,
    stop_at: AtomicU64,
    notifiers: Vec<Arc<Notifier>>,
}

impl Control {
    pub(crate) fn new(notifiers: Vec<Arc<Notifier>>) -> Self {
        Self { draining: AtomicBool::new(false), stop_at: AtomicU64::new(NEVER), notifiers }
    }

    /// No more connections; those in hand have `grace` to finish. Asked twice, the earlier end holds.
    pub(crate) fn drain(&self, grace: Duration) {
        self.stop_at.fetch_min(clock::after(clock::now(), grace), SeqCst);
        self.draining.store(true, SeqCst);
        self.notify();
    }

    pub(crate) fn draining(&self) -> bool {
        self.draining.load(SeqCst)
    }

    /// When what is still open is to be closed; [`NEVER`] while not draining.
    pub(crate) fn stop_at(&self) -> Micros {
        self.stop_at.load(Acquire)
    }

    /// Wakes every worker to look at the state again.
    pub(crate) fn notify(&self) {
        for notifier in &self.notifiers {
            notifier.notify();
        }
    }
}
