//! Who runs beside whom. Loads side by side measure each other, and most of these tests wait more than they compute: what
//! does not mind others shares the machine, so that the whole is done in half of the time.
#![allow(dead_code, reason = "each suite uses a part of it")]

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The company that a test bears.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    /// None: it relies on what it measures.
    None,
    /// A few others whose servers sleep where real ones compute, and leave the processors idle.
    Sleepers,
    /// Whatever else is measured.
    Any,
}

impl Company {
    /// Fewer than there are threads for tests: some of these wait for the machine.
    const fn at_once(self) -> usize {
        match self {
            Self::None => 1,
            Self::Sleepers => 3,
            Self::Any => 4,
        }
    }
}

/// The tests that run now, which are of one kind.
static RUNNING: Mutex<(Company, usize)> = Mutex::new((Company::Any, 0));
static LEFT: Condvar = Condvar::new();

/// A part of the machine, held while a test runs.
pub(crate) struct Machine(());

impl Machine {
    /// Waits until nothing runs that a test in this company cannot run beside.
    pub(crate) fn shared_with(company: Company) -> Self {
        let full = |&mut (now, count): &mut (Company, usize)| {
            count > 0 && (now != company || count >= company.at_once())
        };
        let mut running = LEFT.wait_while(running(), full).unwrap_or_else(PoisonError::into_inner);
        *running = (company, running.1 + 1);
        Self(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        running().1 -= 1;
        LEFT.notify_all();
    }
}

fn running() -> MutexGuard<'static, (Company, usize)> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
