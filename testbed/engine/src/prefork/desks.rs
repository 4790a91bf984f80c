//! What the workers of all processes are doing, in memory that they share with their front.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use crate::{control::Control, shared::Atomics};

/// A worker serves nobody.
const FREE: u64 = 0;
/// It serves a connection.
const SERVING: u64 = 1;
/// It waits for another request of a connection.
const KEPT: u64 = 2;
/// The same, and the front has told it to give way.
const GIVING_WAY: u64 = 3;

/// A cell for each worker, and one that tells whether the front watches for those who wait.
///
/// The front is rung when it should begin to watch: when all workers are taken, and one of them by a kept connection.
/// A worker writes its own cell before it reads the last one; the front the other way round, so one sees the other.
#[derive(Debug)]
pub(super) struct Desks {
    cells: Atomics,
    control: Arc<Control>,
}

impl Desks {
    pub(super) fn new(workers: usize, control: Arc<Control>) -> Self {
        Self { cells: Atomics::new(workers + 1), control }
    }

    /// How many workers there are.
    pub(super) fn count(&self) -> usize {
        self.workers().len()
    }

    /// Whether no worker is free.
    pub(super) fn all_taken(&self) -> bool {
        self.workers().iter().all(|state| state.load(SeqCst) != FREE)
    }

    /// The worker of this slot has ended; whether in the middle of a connection.
    pub(super) fn leave(&self, slot: usize) -> bool {
        self.cells[slot].swap(FREE, SeqCst) != FREE
    }

    /// Whether the front is to watch for those who wait to be accepted; it is rung when that changes to yes.
    pub(super) fn watch(&self) -> bool {
        let watched = self.watched();
        watched.store(0, SeqCst);
        let wanted = self.is_watch_wanted();
        watched.store(u64::from(wanted), SeqCst);
        wanted
    }

    /// Whether a worker has been told to give way and has not done so yet.
    pub(super) fn any_giving_way(&self) -> bool {
        self.any(GIVING_WAY)
    }

    /// Chooses a worker that waits for another request of a connection, to be told to give way.
    pub(super) fn ask_one_kept(&self) -> Option<usize> {
        let ask = |state: &AtomicU64| state.compare_exchange(KEPT, GIVING_WAY, SeqCst, SeqCst).is_ok();
        self.workers().iter().position(ask)
    }

    fn is_watch_wanted(&self) -> bool {
        self.all_taken() && self.any(KEPT) && !self.any_giving_way()
    }

    fn any(&self, wanted: u64) -> bool {
        self.workers().iter().any(|state| state.load(SeqCst) == wanted)
    }

    fn workers(&self) -> &[AtomicU64] {
        self.cells.split_last().map_or(&[], |(_, workers)| workers)
    }

    fn watched(&self) -> &AtomicU64 {
        &self.cells[self.count()]
    }

    fn set(&self, slot: usize, state: u64) {
        let before = self.cells[slot].swap(state, SeqCst);
        let may_matter = state == KEPT || (before == FREE && state == SERVING);
        if may_matter && self.watched().load(SeqCst) == 0 && self.is_watch_wanted() {
            self.control.notify();
        }
    }
}

/// One worker's.
#[derive(Clone, Debug)]
pub(super) struct Desk {
    pub(super) desks: Arc<Desks>,
    pub(super) slot: usize,
}

impl Desk {
    /// Serves nobody.
    pub(super) fn rest(&self) {
        self.desks.set(self.slot, FREE);
    }

    /// Serves a connection.
    pub(super) fn serve(&self) {
        self.desks.set(self.slot, SERVING);
    }

    /// Waits for another request of the connection.
    pub(super) fn keep(&self) {
        self.desks.set(self.slot, KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (Arc<Desks>, Desk, Desk) {
        let desks = Arc::new(Desks::new(2, Arc::new(Control::new(Vec::new()))));
        let desk = |slot| Desk { desks: Arc::clone(&desks), slot };
        (Arc::clone(&desks), desk(0), desk(1))
    }

    #[test]
    fn the_front_watches_while_all_are_taken_and_one_is_kept() {
        let (desks, first, second) = two();
        first.keep();
        assert!(!desks.watch(), "one is free");
        second.serve();
        assert!(desks.all_taken() && desks.watch());
        first.serve();
        assert!(!desks.watch(), "none is kept");
        second.rest();
        assert!(!desks.all_taken());
    }

    #[test]
    fn one_gives_way_at_a_time() {
        let (desks, first, second) = two();
        first.keep();
        second.keep();
        assert_eq!(desks.ask_one_kept(), Some(0));
        assert!(desks.any_giving_way() && !desks.watch());
        first.rest();
        first.serve();
        assert!(!desks.any_giving_way() && desks.watch(), "the second may have to follow");
        assert_eq!(desks.ask_one_kept(), Some(1));
        assert_eq!(desks.ask_one_kept(), None);
    }

    #[test]
    fn a_worker_that_ends_leaves_its_desk() {
        let (desks, first, _) = two();
        assert!(!desks.leave(0));
        first.keep();
        assert!(desks.leave(0), "in the middle of a connection");
        assert!(!desks.leave(0));
    }
}
