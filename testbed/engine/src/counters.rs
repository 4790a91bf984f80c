//! What a server counts about its connections.

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    time::Duration,
};

use crate::{clock::Micros, shared::Atomics};

/// The counters of a running server, for its `/metrics`. All workers share them, in whatever process they run, with
/// everybody who holds the [`Arc`](std::sync::Arc).
#[derive(Debug)]
pub struct Counters {
    cells: Atomics,
}

/// The place of each counter.
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
    CertificateExpiry,
    /// The first of the counters by [`Denied`].
    Denied,
}

/// The first of the counters by [`Handshake`].
const HANDSHAKES: usize = Count::Denied as usize + Denied::ALL.len();

/// Why a connection was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The queue was full, and the overload policy is not to wait.
    Full,
    /// It had waited too long when its turn came.
    Late,
    /// Its client had gone when its turn came.
    Gone,
}

impl Denied {
    /// Every reason.
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

/// The outcome of the handshake of a layer between connection and service, such as encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// A full handshake succeeded.
    Full,
    /// An earlier session was resumed.
    Resumed,
    /// The handshake failed, was broken off, or took too long.
    Failed,
    /// The client did not ask for one.
    Unasked,
}

impl Handshake {
    /// Every outcome.
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

/// What may be read.
impl Counters {
    /// Connections accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.get(Count::Accepted)
    }

    /// Connections open now.
    pub fn active(&self) -> usize {
        usize::try_from(self.get(Count::Active)).unwrap_or(usize::MAX)
    }

    /// Connections accepted and closed since the start.
    pub fn closed(&self) -> u64 {
        self.accepted().saturating_sub(self.active() as u64)
    }

    /// How often accepting paused because `max_connections` were open. Clients wait in the listen queue meanwhile.
    pub fn limit_pauses(&self) -> u64 {
        self.get(Count::LimitPauses)
    }

    /// How often accept(2) failed for lack of descriptors or memory, or because of the listening socket.
    pub fn accept_errors(&self) -> u64 {
        self.get(Count::AcceptErrors)
    }

    /// Connections accepted but closed unserved, because no thread, process or service could be made for them.
    pub fn refused(&self) -> u64 {
        self.get(Count::Refused)
    }

    /// Connections whose service panicked.
    pub fn panics(&self) -> u64 {
        self.get(Count::Panics)
    }

    /// Connections waiting for a worker now.
    pub fn queued(&self) -> u64 {
        self.get(Count::Queued)
    }

    /// How many connections have waited for a worker, and how long altogether.
    pub fn queue_waits(&self) -> (u64, Duration) {
        (self.get(Count::QueueWaits), Duration::from_micros(self.get(Count::QueueWaitMicros)))
    }

    /// Connections turned away for this reason.
    pub fn denied(&self, why: Denied) -> u64 {
        self.cells.get(Count::Denied as usize + why as usize).map_or(0, |cell| cell.load(Relaxed))
    }

    /// Handshakes with this outcome.
    pub fn handshakes(&self, outcome: Handshake) -> u64 {
        self.cells.get(HANDSHAKES + outcome as usize).map_or(0, |cell| cell.load(Relaxed))
    }

    /// When the certificate that clients are shown expires, in seconds since 1970. `None` without one.
    pub fn certificate_expiry(&self) -> Option<u64> {
        Some(self.get(Count::CertificateExpiry)).filter(|&seconds| seconds != 0)
    }

    /// Notes when the certificate that clients are shown expires, in seconds since 1970.
    pub fn set_certificate_expiry(&self, seconds: u64) {
        self.cell(Count::CertificateExpiry).store(seconds, Relaxed);
    }

    /// Counts the handshake of a layer between a connection and its service.
    pub fn count_handshake(&self, outcome: Handshake) {
        if let Some(cell) = self.cells.get(HANDSHAKES + outcome as usize) {
            cell.fetch_add(1, Relaxed);
        }
    }

    fn get(&self, count: Count) -> u64 {
        self.cell(count).load(Relaxed)
    }

    fn cell(&self, count: Count) -> &AtomicU64 {
        // There is a cell for each of them.
        &self.cells[count as usize]
    }
}

/// What the engine counts.
impl Counters {
    /// Adds an open connection unless there are `max`. Returns whether it did.
    pub(crate) fn add_active(&self, max: u64) -> bool {
        let more = |active: u64| (active < max).then_some(active + 1);
        self.cell(Count::Active).fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    pub(crate) fn remove_active(&self) {
        let fewer = |active: u64| active.checked_sub(1);
        // The count is above zero unless a process ended in the middle of counting.
        let _ = self.cell(Count::Active).fetch_update(SeqCst, SeqCst, fewer);
    }

    pub(crate) fn count_accepted(&self) {
        self.cell(Count::Accepted).fetch_add(1, Relaxed);
    }

    pub(crate) fn count_limit_pause(&self) {
        self.cell(Count::LimitPauses).fetch_add(1, Relaxed);
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
}
