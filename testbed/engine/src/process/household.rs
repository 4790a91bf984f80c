//! The children of a front, and what each of them holds.

use std::{collections::HashMap, time::Duration};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait},
};

use super::signals;
use crate::clock;

/// The children of a front. Each is known by what it holds, which is handed back when it has ended.
#[derive(Debug)]
pub(crate) struct Household<T> {
    children: HashMap<Pid, T>,
}

impl<T> Household<T> {
    pub(crate) fn new() -> Self {
        Self { children: HashMap::new() }
    }

    pub(crate) fn insert(&mut self, child: Pid, holds: T) {
        self.children.insert(child, holds);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// What those hold that have ended since this was last asked.
    pub(crate) fn reap(&mut self) -> Vec<T> {
        let mut ended = Vec::new();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((child, status))) => {
                    tell(child, status);
                    ended.extend(self.children.remove(&child));
                }
                Err(Errno::INTR) => {}
                // None has ended, or there is none.
                Ok(None) | Err(_) => return ended,
            }
        }
    }

    /// Tells every child to end between requests.
    pub(crate) fn end_idle(&self) {
        self.children.keys().for_each(|&child| signals::tell(child));
    }

    /// Tells those children of whom this holds to end the connection that they wait on for another request.
    pub(crate) fn give_way(&self, which: impl Fn(&T) -> bool) {
        let told = self.children.iter().filter(|(_, holds)| which(holds));
        told.for_each(|(&child, _)| signals::tell_to_give_way(child));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.children.len()
    }

    /// Ends every child at once.
    pub(crate) fn kill(&self) {
        for &child in self.children.keys() {
            // It may have ended already.
            let _ = kill_process(child, Signal::KILL);
        }
    }
}

/// Says that a child was ended by somebody else.
fn tell(child: Pid, status: WaitStatus) {
    if let Some(signal) = status.terminating_signal() {
        tracing::warn!(process = child.as_raw_nonzero().get(), signal, "a serving process was killed");
    }
}

/// The time until `stop_at`, for a wait.
pub(crate) fn until(stop_at: clock::Micros) -> Duration {
    Duration::from_micros(stop_at.saturating_sub(clock::now())).min(Duration::from_secs(3600))
}
