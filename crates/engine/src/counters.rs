//! What a server counts about its connections, and the limit on how many it holds.

use std::sync::{
    Arc,
    atomic::{
        AtomicBool, AtomicU64, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
};

use crate::control::Control;

/// Counts of a running server, for its `/metrics`. Shared by every worker and whoever holds the [`Arc`].
#[derive(Debug, Default)]
pub struct Counters {
    accepted: AtomicU64,
    active: AtomicUsize,
    limit_pauses: AtomicU64,
    accept_errors: AtomicU64,
    refused: AtomicU64,
    panics: AtomicU64,
}

impl Counters {
    /// Connections accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Connections open now.
    pub fn active(&self) -> usize {
        self.active.load(Relaxed)
    }

    /// Connections accepted and closed since.
    pub fn closed(&self) -> u64 {
        self.accepted().saturating_sub(self.active() as u64)
    }

    /// How often accepting stopped because `max_connections` were open. The peers wait in the listen queue meanwhile.
    pub fn limit_pauses(&self) -> u64 {
        self.limit_pauses.load(Relaxed)
    }

    /// How often accept(2) failed for want of descriptors or memory, or for a fault of the listening socket.
    pub fn accept_errors(&self) -> u64 {
        self.accept_errors.load(Relaxed)
    }

    /// Connections accepted but closed unserved: no thread could be had for them, or no service made.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Connections whose service panicked.
    pub fn panics(&self) -> u64 {
        self.panics.load(Relaxed)
    }

    pub(crate) fn count_accept_error(&self) {
        self.accept_errors.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_panic(&self) {
        self.panics.fetch_add(1, Relaxed);
    }
}

/// Lets in so many connections and no more.
#[derive(Debug)]
pub(crate) struct Gate {
    max: usize,
    counters: Arc<Counters>,
    control: Arc<Control>,
    /// A worker waits for a connection to close.
    awaited: AtomicBool,
}

impl Gate {
    pub(crate) fn new(max: usize, counters: Arc<Counters>, control: Arc<Control>) -> Self {
        Self { max: max.max(1), counters, control, awaited: AtomicBool::new(false) }
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// A place for one more connection. Without one, the caller's notifier is rung when a place may be free.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Permit> {
        self.try_enter().or_else(|| {
            self.awaited.store(true, SeqCst);
            let permit = self.try_enter();
            if permit.is_none() {
                self.counters.limit_pauses.fetch_add(1, Relaxed);
            }
            permit
        })
    }

    fn try_enter(self: &Arc<Self>) -> Option<Permit> {
        let more = |active: usize| (active < self.max).then_some(active + 1);
        self.counters.active.fetch_update(SeqCst, SeqCst, more).ok()?;
        Some(Permit { gate: Arc::clone(self) })
    }
}

/// One connection's place among the open ones; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
}

impl Permit {
    /// The place is now taken by an accepted connection.
    pub(crate) fn count_accepted(&self) {
        self.gate.counters.accepted.fetch_add(1, Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.counters.active.fetch_sub(1, SeqCst);
        if self.gate.awaited.load(SeqCst) && self.gate.awaited.swap(false, SeqCst) {
            self.gate.control.notify();
        }
    }
}
