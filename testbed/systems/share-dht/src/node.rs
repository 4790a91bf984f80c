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

use share::entry::{Query, SearchResult};

use self::{keeping::Told, publishing::Publishing, searching::merged};
use crate::{
    message::{FOUND_MAX, Terms},
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
    /// Why a peer refused last to keep what this one tells.
    refused: Mutex<String>,
}

/// What is kept: of this peer's own files, and for others, and which of them told all that this peer is to keep.
#[derive(Debug)]
struct Kept {
    /// Of this peer's own files, under all of their keys. Nobody else can fill it.
    own: Records,
    records: Records,
    told: Told,
}

impl Kept {
    fn new() -> Self {
        Self {
            own: Records::new(Limits::NONE),
            records: Records::new(Limits::default()),
            told: Told::default(),
        }
    }

    /// At most [`FOUND_MAX`] files that the query fits, this peer's own first.
    fn find(&self, query: &Query, now: Instant) -> Vec<SearchResult> {
        let own = self.own.find(query, now, FOUND_MAX);
        let others = self.records.find(query, now, FOUND_MAX);
        if own.is_empty() { others } else { merged(own.into_iter().chain(others)) }
    }
}

impl<R: Routing, T: Transport> Node<R, T> {
    pub(crate) fn new(routing: R, transport: T, life: Duration) -> Self {
        Self {
            routing,
            transport,
            metrics: Metrics::default(),
            life,
            at: OnceLock::new(),
            kept: Mutex::new(Kept::new()),
            publishing: tokio::sync::Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// Says once where this peer's files can be had.
    pub(crate) fn set_at(&self, at: SocketAddr) {
        self.at.get_or_init(|| at);
    }

    /// How often others are told that this peer lives: thrice in the time for which they believe it.
    pub(crate) fn renew_interval(&self) -> Duration {
        self.life / 3
    }

    /// Forgets who has not renewed.
    pub(crate) fn expire(&self) {
        let now = now();
        let mut kept = self.kept();
        kept.records.expire(now);
        let Kept { records, told, .. } = &mut *kept;
        told.retain(|peer| records.knows(peer));
    }

    /// How many places under keys are kept here.
    pub(crate) fn records(&self) -> usize {
        let kept = self.kept();
        kept.own.len() + kept.records.len()
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
