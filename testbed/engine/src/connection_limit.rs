//! The limit on how many connections a server holds at once.

use std::sync::Arc;

use crate::{control::Control, counters::Counters};

/// Admits a limited number of connections at a time, also across the processes forked after it was made.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    max: u64,
    counters: Arc<Counters>,
    control: Arc<Control>,
}

impl ConnectionLimit {
    pub(crate) fn new(max: usize, counters: Arc<Counters>, control: Arc<Control>) -> Self {
        Self { max: max.max(1) as u64, counters, control }
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Takes a place for one more connection. If there is none, the caller's notifier is signalled when one may be
    /// free.
    pub(crate) fn acquire(self: &Arc<Self>) -> Option<Permit> {
        self.try_acquire().or_else(|| {
            self.control.await_place();
            let permit = self.try_acquire();
            if permit.is_none() {
                self.counters.count_limit_pause();
            }
            permit
        })
    }

    /// Frees a place: that of a permit, or of a process that ended while it held one.
    pub(crate) fn release(&self) {
        self.counters.remove_active();
        self.control.place_is_free();
    }

    fn try_acquire(self: &Arc<Self>) -> Option<Permit> {
        self.counters.add_active(self.max).then(|| Permit { limit: Some(Arc::clone(self)) })
    }
}

/// One connection's place among the open ones. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Permit {
    /// `None` where another process frees the place.
    limit: Option<Arc<ConnectionLimit>>,
}

impl Permit {
    /// Counts the accepted connection that takes the place.
    pub(crate) fn count_accepted(&self) {
        if let Some(limit) = &self.limit {
            limit.counters.count_accepted();
        }
    }

    /// A permit for a place that another process holds and will free.
    pub(crate) const fn held_elsewhere() -> Self {
        Self { limit: None }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(limit) = &self.limit {
            limit.release();
        }
    }
}
