//! What one peer does for the index: keeps what others tell it, tells others what it has, and searches.

mod keeping;
mod publishing;
mod searching;
#[cfg(test)]
mod tests;

use std::{
    net::SocketAddr,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use self::{keeping::Told, publishing::Publishing};
use crate::{
    message::Terms,
    metrics::Metrics,
    network::{Routing, Transport},
    records::{Limits, Records},
};

/// One peer's part of the index, over whatever network.
#[derive(Debug)]
pub(crate) struct Node<R, T> {
    pub(crate) routing: R,
    pub(crate) transport: T,
    pub(crate) metrics: Metrics,
    /// How long others are to believe this peer without hearing from it.
    life: Duration,
    /// Where this peer's files can be had.
    at: OnceLock<SocketAddr>,
    kept: Mutex<Kept>,
    publishing: tokio::sync::Mutex<Publishing>,
}

/// What is kept for others, and which of them told all that this peer is to keep.
#[derive(Debug)]
struct Kept {
    records: Records,
    told: Told,
}

impl<R: Routing, T: Transport> Node<R, T> {
    pub(crate) fn new(routing: R, transport: T, life: Duration) -> Self {
        let kept = Kept { records: Records::new(Limits::default()), told: Told::default() };
        Self {
            routing,
            transport,
            metrics: Metrics::default(),
            life,
            at: OnceLock::new(),
            kept: Mutex::new(kept),
            publishing: tokio::sync::Mutex::default(),
        }
    }

    /// Says once where this peer's files can be had.
    pub(crate) fn set_at(&self, at: SocketAddr) {
        self.at.get_or_init(|| at);
    }

    /// How often others are told that this peer lives: thrice in the time for which they believe it.
    pub(crate) fn renew_every(&self) -> Duration {
        self.life / 3
    }

    /// Forgets who has not renewed.
    pub(crate) fn expire(&self) {
        let now = now();
        let mut kept = self.kept();
        kept.records.expire(now);
        let Kept { records, told } = &mut *kept;
        told.retain(|peer| records.knows(peer));
    }

    /// How many places under keys are kept here.
    pub(crate) fn records(&self) -> usize {
        self.kept().records.len()
    }

    /// What is told of this peer.
    fn terms(&self) -> Option<Terms> {
        let life_s = u32::try_from(self.life.as_secs()).unwrap_or(u32::MAX).max(1);
        self.at.get().map(|at| Terms { at: *at, life_s })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while it is held.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By tokio's clock, which tests turn by hand.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
