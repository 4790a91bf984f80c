//! The children of a parent process, and what each of them holds.

use std::{collections::HashMap, time::Duration};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait},
};

use crate::{clock, signals};

/// The children of a parent process. The record of each is handed back when it has ended.
#[derive(Debug)]
pub(super) struct Children<T> {
    records: HashMap<Pid, T>,
    /// The child that was last told to close an idle connection.
    told: Option<Pid>,
}

impl<T> Children<T> {
    pub(super) fn new() -> Self {
        Self { records: HashMap::new(), told: None }
    }

    pub(super) fn insert(&mut self, child: Pid, record: T) {
        self.records.insert(child, record);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many children live.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// The records of the children that ended since the last call.
    pub(super) fn reap(&mut self) -> Vec<T> {
        let mut ended = Vec::new();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((child, status))) => {
                    log_killed(child, status);
                    ended.extend(self.records.remove(&child));
                }
                Err(Errno::INTR) => {}
                // No child has ended, or there is none.
                Ok(None) | Err(_) => return ended,
            }
        }
    }

    /// Tells every child to stop between requests.
    pub(super) fn end_idle(&self) {
        self.records.keys().for_each(|&child| signals::stop(child));
    }

    /// Tells the children with matching records to close the connection on which they wait for another request.
    pub(super) fn close_kept(&self, matches: impl Fn(&T) -> bool) {
        let told = self.records.iter().filter(|(_, record)| matches(record));
        told.for_each(|(&child, _)| signals::close_kept(child));
    }

    /// Tells some of the children, in turn, to close their connections if they have been idle for long: as many as
    /// `clients` wait, and at least one in ten, because most may be at work.
    pub(super) fn close_idle(&mut self, clients: usize) {
        let number = |child: &Pid| child.as_raw_nonzero();
        let mut children: Vec<Pid> = self.records.keys().copied().collect();
        children.sort_unstable_by_key(number);
        let told = self.told.as_ref().map(number);
        let first = children.iter().position(|child| Some(number(child)) > told).unwrap_or(0);
        children.rotate_left(first);
        children.truncate(clients.max(children.len().div_ceil(10)));
        children.iter().for_each(|&child| signals::close_idle(child));
        self.told = children.last().copied();
    }

    /// Kills every child.
    pub(super) fn kill(&self) {
        for &child in self.records.keys() {
            // It may have ended already.
            let _ = kill_process(child, Signal::KILL);
        }
    }
}

/// Logs that something else killed a child.
fn log_killed(child: Pid, status: WaitStatus) {
    if let Some(signal) = status.terminating_signal() {
        tracing::warn!(process = child.as_raw_nonzero().get(), signal, "a serving process was killed");
    }
}

/// The time until `stop_at`, bounded to what a wait accepts.
pub(super) fn until(stop_at: clock::Micros) -> Duration {
    Duration::from_micros(stop_at.saturating_sub(clock::now())).min(Duration::from_secs(3600))
}
