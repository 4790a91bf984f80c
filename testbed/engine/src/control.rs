//! How a running server is told to stop, from any thread.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::Ordering::{Acquire, SeqCst},
    },
    time::Duration,
};

use rustix::event::{EventfdFlags, eventfd};

use crate::{
    clock::{self, Micros, NEVER},
    idle::LOOK_EVERY,
    shared::Atomics,
};

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
        // This fails only when the counter is full, and then the descriptor is readable already.
        let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again.
    pub(crate) fn clear(&self) {
        // This fails only when the descriptor was not readable.
        let _ = rustix::io::read(&self.eventfd, &mut [0_u8; 8]);
    }
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

/// The state of a server that all of its workers watch, in whatever process they run.
#[derive(Debug)]
pub(crate) struct Control {
    cells: Atomics,
    notifiers: Vec<Arc<Notifier>>,
}

const DRAINING: usize = 0;
const STOP_AT: usize = 1;
/// Set while somebody waits for a connection to close.
const PLACE_AWAITED: usize = 2;
/// How many clients wait for room that their own loop could not make, and until when others may make it.
const ROOM_WANTED: usize = 3;
const ROOM_WANTED_UNTIL: usize = 4;
const FAILED: usize = 5;

impl Control {
    pub(crate) fn new(notifiers: Vec<Arc<Notifier>>) -> Self {
        let control = Self { cells: Atomics::new(6), notifiers };
        control.cells[STOP_AT].store(NEVER, SeqCst);
        control
    }

    /// Stops accepting and gives open connections `grace` to finish. Of several calls, the earliest end holds.
    pub(crate) fn drain(&self, grace: Duration) {
        self.cells[STOP_AT].fetch_min(clock::after(clock::now(), grace), SeqCst);
        self.cells[DRAINING].store(1, SeqCst);
        self.notify();
    }

    pub(crate) fn draining(&self) -> bool {
        self.cells[DRAINING].load(SeqCst) != 0
    }

    /// Notes that a part of the server has ended unasked.
    pub(crate) fn fail(&self) {
        self.cells[FAILED].store(1, SeqCst);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.cells[FAILED].load(SeqCst) != 0
    }

    /// When remaining connections are closed; [`NEVER`] while not draining.
    pub(crate) fn stop_at(&self) -> Micros {
        self.cells[STOP_AT].load(Acquire)
    }

    /// Wakes every worker so that it looks at the state again.
    pub(crate) fn notify(&self) {
        for notifier in &self.notifiers {
            notifier.notify();
        }
    }

    /// Asks all loops to end idle connections for `clients` that wait.
    pub(crate) fn want_room(&self, clients: usize) {
        self.cells[ROOM_WANTED_UNTIL].store(clock::after(clock::now(), LOOK_EVERY), SeqCst);
        self.cells[ROOM_WANTED].store(clients as u64, SeqCst);
        self.notify();
    }

    /// For how many clients of other loops room is wanted.
    pub(crate) fn room_wanted(&self) -> usize {
        let wanted = self.cells[ROOM_WANTED].load(Acquire);
        if wanted == 0 || clock::now() > self.cells[ROOM_WANTED_UNTIL].load(SeqCst) {
            return 0;
        }
        usize::try_from(wanted).unwrap_or(usize::MAX)
    }

    /// Notes that connections have ended for clients of other loops.
    pub(crate) fn made_room(&self, connections: usize) {
        let fewer = |wanted: u64| Some(wanted.saturating_sub(connections as u64));
        // Always some.
        let _ = self.cells[ROOM_WANTED].fetch_update(SeqCst, SeqCst, fewer);
    }

    /// Asks for a notification when a connection closes.
    pub(crate) fn await_place(&self) {
        self.cells[PLACE_AWAITED].store(1, SeqCst);
    }

    /// Notifies whoever waits for a connection to close.
    pub(crate) fn place_is_free(&self) {
        let awaited = &self.cells[PLACE_AWAITED];
        if awaited.load(SeqCst) != 0 && awaited.swap(0, SeqCst) != 0 {
            self.notify();
        }
    }
}
