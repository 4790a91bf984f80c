//! What each worker process is doing, in memory that they share with the parent.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use crate::{control::Control, shared::Atomics};

/// The worker serves nobody.
const IDLE: u64 = 0;
/// It serves a connection.
const BUSY: u64 = 1;
/// It waits for another request on a kept connection.
const KEPT: u64 = 2;
/// The same, and the parent has told it to close the connection.
const CLOSING: u64 = 3;

/// The state of each worker, and whether the parent watches for waiting clients.
///
/// The parent is notified when it should begin to watch: when no worker may take another connection. A worker writes its own
/// state before it reads whether the parent watches. The parent does it the other way round, so one of the two sees the
/// other.
#[derive(Debug)]
pub(super) struct Scoreboard {
    /// One per worker, and one for the parent.
    cells: Atomics,
    /// How many workers are left idle when the limit on connections is reached.
    spare: usize,
    control: Arc<Control>,
}

impl Scoreboard {
    /// A scoreboard for so many workers, of which `taken` at most serve connections.
    pub(super) fn new(workers: usize, taken: usize, control: Arc<Control>) -> Self {
        Self { cells: Atomics::new(workers + 1), spare: workers.saturating_sub(taken), control }
    }

    /// The states of the workers.
    pub(super) fn workers(&self) -> &[AtomicU64] {
        self.cells.split_last().map_or(&[], |(_, workers)| workers)
    }

    /// Whether no worker may take another connection.
    pub(super) fn all_taken(&self) -> bool {
        let mut idle = self.workers().iter().filter(|state| state.load(SeqCst) == IDLE);
        idle.nth(self.spare).is_none()
    }

    /// Marks the worker of this slot as ended. Returns whether it was in the middle of a connection.
    pub(super) fn clear(&self, slot: usize) -> bool {
        self.cells[slot].swap(IDLE, SeqCst) != IDLE
    }

    /// Whether the parent should watch for waiting clients. It is notified when that becomes true later.
    pub(super) fn watch(&self) -> bool {
        let watched = self.watched();
        watched.store(0, SeqCst);
        let wanted = self.is_watch_wanted();
        watched.store(u64::from(wanted), SeqCst);
        wanted
    }

    /// Whether a worker that was told to close its kept connection has not done so yet.
    pub(super) fn any_closing(&self) -> bool {
        self.any(CLOSING)
    }

    /// Chooses a worker that waits for another request on a kept connection, to be told to close it.
    pub(super) fn close_one_kept(&self) -> Option<usize> {
        let choose = |state: &AtomicU64| state.compare_exchange(KEPT, CLOSING, SeqCst, SeqCst).is_ok();
        self.workers().iter().position(choose)
    }

    fn is_watch_wanted(&self) -> bool {
        self.all_taken() && !self.any_closing()
    }

    fn any(&self, wanted: u64) -> bool {
        self.workers().iter().any(|state| state.load(SeqCst) == wanted)
    }

    fn watched(&self) -> &AtomicU64 {
        &self.cells[self.workers().len()]
    }

    fn set(&self, slot: usize, state: u64) {
        let before = self.cells[slot].swap(state, SeqCst);
        let may_matter = state == KEPT || (before == IDLE && state == BUSY);
        if may_matter && self.watched().load(SeqCst) == 0 && self.is_watch_wanted() {
            self.control.notify();
        }
    }
}

/// One worker's place on the scoreboard.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) scoreboard: Arc<Scoreboard>,
    pub(super) number: usize,
}

impl Slot {
    pub(super) fn set_idle(&self) {
        self.scoreboard.set(self.number, IDLE);
    }

    pub(super) fn set_busy(&self) {
        self.scoreboard.set(self.number, BUSY);
    }

    pub(super) fn set_kept(&self) {
        self.scoreboard.set(self.number, KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (Arc<Scoreboard>, Slot, Slot) {
        two_of_which_serve(2)
    }

    fn two_of_which_serve(taken: usize) -> (Arc<Scoreboard>, Slot, Slot) {
        let scoreboard = Arc::new(Scoreboard::new(2, taken, Arc::new(Control::new(Vec::new()))));
        let slot = |number| Slot { scoreboard: Arc::clone(&scoreboard), number };
        (Arc::clone(&scoreboard), slot(0), slot(1))
    }

    #[test]
    fn all_are_taken_when_as_many_serve_as_there_may_be_connections() {
        let (scoreboard, first, _) = two_of_which_serve(1);
        assert!(!scoreboard.all_taken());
        first.set_busy();
        assert!(scoreboard.all_taken() && scoreboard.watch());
    }

    #[test]
    fn the_parent_watches_while_all_are_taken() {
        let (scoreboard, first, second) = two();
        first.set_kept();
        assert!(!scoreboard.watch(), "one is idle");
        second.set_busy();
        assert!(scoreboard.all_taken() && scoreboard.watch());
        first.set_busy();
        assert!(scoreboard.watch(), "one may not have sent its first request");
        second.set_idle();
        assert!(!scoreboard.all_taken());
    }

    #[test]
    fn one_kept_connection_is_closed_at_a_time() {
        let (scoreboard, first, second) = two();
        first.set_kept();
        second.set_kept();
        assert_eq!(scoreboard.close_one_kept(), Some(0));
        assert!(scoreboard.any_closing() && !scoreboard.watch());
        first.set_idle();
        first.set_busy();
        assert!(!scoreboard.any_closing() && scoreboard.watch(), "the second may have to follow");
        assert_eq!(scoreboard.close_one_kept(), Some(1));
        assert_eq!(scoreboard.close_one_kept(), None);
    }

    #[test]
    fn a_worker_that_ends_is_cleared() {
        let (scoreboard, first, _) = two();
        assert!(!scoreboard.clear(0));
        first.set_kept();
        assert!(scoreboard.clear(0), "in the middle of a connection");
        assert!(!scoreboard.clear(0));
    }
}
