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
        !self.left().is_zero() && !self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn left(&self) -> Duration {
        self.most.saturating_sub(self.waited())
    }

    /// How long it has lasted.
    pub(crate) fn waited(&self) -> Duration {
        self.begun.elapsed()
    }
}
