//! Whose turn it is on a loop, and how long it lasts.

use std::cell::{Cell, RefCell};

use super::arena::Key;

/// Transfers a task may make before the others get their turn.
const BUDGET: u32 = 64;

/// The task being polled, what it may still do, and those that gave way.
#[derive(Debug)]
pub(crate) struct Turn {
    current: Cell<Key>,
    budget: Cell<u32>,
    yielded: RefCell<Vec<Key>>,
}

impl Turn {
    pub(crate) fn new() -> Self {
        Self { current: Cell::new(Key::reserved(0)), budget: Cell::new(0), yielded: RefCell::default() }
    }

    /// From now on, waits are those of `task`.
    pub(crate) fn enter(&self, task: Key) {
        self.current.set(task);
        self.budget.set(BUDGET);
    }

    /// The task being polled.
    pub(crate) fn current(&self) -> Key {
        self.current.get()
    }

    /// Counts a transfer of the current task; false when it is to give way first.
    pub(crate) fn spend(&self) -> bool {
        match self.budget.get().checked_sub(1) {
            Some(left) => {
                self.budget.set(left);
                true
            }
            None => {
                self.yielded.borrow_mut().push(self.current.get());
                false
            }
        }
    }

    pub(crate) fn has_yielded(&self) -> bool {
        !self.yielded.borrow().is_empty()
    }

    /// Tasks that gave way to the others, into `tasks`.
    pub(crate) fn take_yielded(&self, tasks: &mut Vec<Key>) {
        std::mem::swap(tasks, &mut self.yielded.borrow_mut());
    }
}
