//! What a server counts about its connections, and the limit on how many it holds.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Duration,
};

use crate::{clock::Micros, control::Control, shared::Atomics};

/// Counts of a running server, for its `/metrics`. Shared by every worker, in whatever process, and whoever holds the
/// [`Arc`].
#[derive(Debug)]
pub struct Counters {
    cells: Atomics,
}

/// Where each count lies.
#[derive(Clone, Copy, Debug)]
enum Count {
    Accepted,
    Active,
    LimitPauses,
    AcceptErrors,
    Refused,
    Panics,
    Queued,
    QueueWaits,
    QueueWaitMicros,
    /// The first of as many as there are kinds of [`Denied`].
    Denied,
}

/// The first of as many as there are kinds of [`Handshake`].
const HANDSHAKES: usize = Count::Denied as usize + Denied::ALL.len();

/// Why a connection was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The queue was full, and the policy says not to wait.
    Full,
    /// It waited longer than it may.
    Late,
    /// Its client had gone when its turn came.
    Gone,
}

impl Denied {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Full, Self::Late, Self::Gone];

    /// The name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Late => "late",
            Self::Gone => "gone",
        }
    }
}

/// What came of the handshake of a layer between the connection and its service, such as encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// It was done, from the beginning.
    Full,
    /// It was done, on the strength of an earlier one.
    Resumed,
    /// It failed, was broken off, or took too long.
    Failed,
    /// The client spoke without one.
    Unasked,
}

impl Handshake {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Full, Self::Resumed, Self::Failed, Self::Unasked];

    /// The name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Resumed => "resumed",
            Self::Failed => "failed",
            Self::Unasked => "unencrypted",
        }
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self { cells: Atomics::new(HANDSHAKES + Handshake::ALL.len()) }
    }
}

impl Counters {
    /// Connections accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.get(Count::Accepted)
    }

    /// Connections open now.
    pub fn active(&self) -> usize {
        usize::try_from(self.get(Count::Active)).unwrap_or(usize::MAX)
    }

    /// Connections accepted and closed since.
    pub fn closed(&self) -> u64 {
        self.accepted().saturating_sub(self.active() as u64)
    }

    /// How often accepting stopped because `max_connections` were open. The peers wait in the listen queue meanwhile.
    pub fn limit_pauses(&self) -> u64 {
        self.get(Count::LimitPauses)
    }

    /// How often accept(2) failed for want of descriptors or memory, or for a fault of the listening socket.
    pub fn accept_errors(&self) -> u64 {
        self.get(Count::AcceptErrors)
    }

    /// Connections accepted but closed unserved: no thread or process could be had for them, or no service made.
    pub fn refused(&self) -> u64 {
        self.get(Count::Refused)
    }

    /// Connections whose service panicked.
    pub fn panics(&self) -> u64 {
        self.get(Count::Panics)
    }

    /// Connections that wait for a worker now.
    pub fn queued(&self) -> u64 {
        self.get(Count::Queued)
    }

    /// Connections that have waited for a worker, and how long in all.
    pub fn queue_waits(&self) -> (u64, Duration) {
        (self.get(Count::QueueWaits), Duration::from_micros(self.get(Count::QueueWaitMicros)))
    }

    /// Connections turned away for this reason.
    pub fn denied(&self, why: Denied) -> u64 {
        self.cells.get(Count::Denied as usize + why as usize).map_or(0, |cell| cell.load(Relaxed))
    }

    /// Handshakes that came to this.
    pub fn handshakes(&self, outcome: Handshake) -> u64 {
        self.cells.get(HANDSHAKES + outcome as usize).map_or(0, |cell| cell.load(Relaxed))
    }

    /// Counts the handshake of a layer between a connection and its service.
    pub fn count_handshake(&self, outcome: Handshake) {
        if let Some(cell) = self.cells.get(HANDSHAKES + outcome as usize) {
            cell.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn count_accept_error(&self) {
        self.cell(Count::AcceptErrors).fetch_add(1, Relaxed);
    }

    pub(crate) fn count_refused(&self) {
        self.cell(Count::Refused).fetch_add(1, Relaxed);
    }

    pub(crate) fn count_panic(&self) {
        self.cell(Count::Panics).fetch_add(1, Relaxed);
    }

    pub(crate) fn count_denied(&self, why: Denied) {
        if let Some(cell) = self.cells.get(Count::Denied as usize + why as usize) {
            cell.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn set_queued(&self, connections: usize) {
        self.cell(Count::Queued).store(connections as u64, Relaxed);
    }

    pub(crate) fn count_queue_wait(&self, waited: Micros) {
        self.cell(Count::QueueWaits).fetch_add(1, Relaxed);
        self.cell(Count::QueueWaitMicros).fetch_add(waited, Relaxed);
    }

    fn get(&self, count: Count) -> u64 {
        self.cell(count).load(Relaxed)
    }

    fn cell(&self, count: Count) -> &AtomicU64 {
        // There is a cell for each of them.
        &self.cells[count as usize]
    }
}

/// Lets in so many connections and no more. Works across the processes forked after it was made.
#[derive(Debug)]
pub(crate) struct Gate {
    max: u64,
    counters: Arc<Counters>,
    control: Arc<Control>,
}

impl Gate {
    pub(crate) fn new(max: usize, counters: Arc<Counters>, control: Arc<Control>) -> Self {
        Self { max: max.max(1) as u64, counters, control }
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// A place for one more connection. Without one, the caller's notifier is rung when a place may be free.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Permit> {
        self.try_enter().or_else(|| {
            self.control.await_place();
            let permit = self.try_enter();
            if permit.is_none() {
                self.counters.cell(Count::LimitPauses).fetch_add(1, Relaxed);
            }
            permit
        })
    }

    /// A place is free again: that of a permit, or of a process that ended with one.
    pub(crate) fn give_back(&self) {
        let fewer = |active: u64| active.checked_sub(1);
        // It is above zero unless a process ended in the middle of counting.
        let _ = self.counters.cell(Count::Active).fetch_update(SeqCst, SeqCst, fewer);
        self.control.place_is_free();
    }

    fn try_enter(self: &Arc<Self>) -> Option<Permit> {
        let more = |active: u64| (active < self.max).then_some(active + 1);
        self.counters.cell(Count::Active).fetch_update(SeqCst, SeqCst, more).ok()?;
        Some(Permit { gate: Some(Arc::clone(self)) })
    }
}

/// One connection's place among the open ones; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    /// None where another process gives the place back.
    gate: Option<Arc<Gate>>,
}

impl Permit {
    /// The place is now taken by an accepted connection.
    pub(crate) fn count_accepted(&self) {
        if let Some(gate) = &self.gate {
            gate.counters.cell(Count::Accepted).fetch_add(1, Relaxed);
        }
    }

    /// A place that another process holds, and gives back.
    pub(crate) const fn held_elsewhere() -> Self {
        Self { gate: None }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(gate) = &self.gate {
            gate.give_back();
        }
    }
}
