//! What the generator and its threads tell each other, a few times per step.

use std::sync::{Mutex, PoisonError};

use super::pacing::Allowance;
use crate::plan::Think;
use crate::ticks::recorder::Slice;
use crate::ticks::totals::RequestTotal;

/// A command to a thread.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// Run this load from now on.
    Run(Assignment),
    /// End the thread.
    Stop,
}

/// A load, to be shared by all threads.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    /// Number of users, all threads together.
    pub(crate) users: u32,
    /// The think time of a closed loop; `None`: as before.
    pub(crate) think: Option<Think>,
    /// The rate of an open loop, requests per second; `None`: as before.
    pub(crate) rate_per_s: Option<f64>,
    pub(crate) allowance: Allowance,
    /// Number of the assignment, which [`Notice::Finished`] repeats.
    pub(crate) number: u64,
}

/// Commands that a thread has not applied yet.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    commands: Mutex<Vec<Command>>,
}

impl Mailbox {
    pub(crate) fn put(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
    }

    pub(super) fn take(&self) -> Vec<Command> {
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A message from a thread.
pub(crate) enum FromThread {
    /// A slice has ended.
    Slice { thread: usize, slice: Box<Slice> },
    /// Something that happens once per assignment.
    Notice(Notice),
}

/// A rare message from a thread.
pub(crate) enum Notice {
    /// An assignment took effect in this slice, at this time.
    Applied { slice: u64, at_ns: u64 },
    /// The thread's part of an assignment is done; its last request ended at this time.
    Finished { assignment: u64, at_ns: u64 },
    /// The thread ends; these are its totals per kind of request.
    Ended { totals: Vec<RequestTotal> },
}
