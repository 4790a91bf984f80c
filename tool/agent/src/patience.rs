//! How long an answer is waited for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long an answer is waited for: until a time, or until somebody asks to stop.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    begun: Instant,
    most: Duration,
    stop: &'a AtomicBool,
}

impl<'a> Patience<'a> {
    /// Begins now, and lasts for at most this long.
    #[must_use]
    pub fn begin(most: Duration, stop: &'a AtomicBool) -> Self {
        Self { begun: Instant::now(), most, stop }
    }

    pub(crate) fn lasts(&self) -> bool {
        !self.left().is_zero() && !self.is_stopped()
    }

    /// Whether somebody asks to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How long it lasts at most.
    pub(crate) fn most(&self) -> Duration {
        self.most
    }

    pub(crate) fn left(&self) -> Duration {
        self.most.saturating_sub(self.waited())
    }

    /// How long it has lasted.
    pub(crate) fn waited(&self) -> Duration {
        self.begun.elapsed()
    }
}
