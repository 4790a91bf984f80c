//! One peer's part of the index: stores what others publish, publishes its own files, and searches.

mod publishing;
mod searching;
#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use libp2p_identity::PeerId;
use share::entry::{Query, SearchResult};

use self::{publishing::Publishing, searching::merged};
use crate::{
    message::{FILES_MAX, FOUND_MAX, LeaseTerms, Request, Response, check_address},
    metrics::Metrics,
    network::{Routing, Transport},
    records::{Lease, Limits, Records},
};

/// Longest lease, whatever a publisher asks for.
const LIFE_MAX: Duration = Duration::from_secs(3600);

/// One peer's part of the index, on any network.
#[derive(Debug)]
pub(crate) struct Node<R, T> {
    pub(crate) routing: R,
    pub(crate) transport: T,
    pub(crate) metrics: Metrics,
    /// How long other peers believe this one without hearing from it.
    life: Duration,
    /// Where this peer's files can be fetched.
    at: OnceLock<SocketAddr>,
    kept: Mutex<LocalRecords>,
    publishing: tokio::sync::Mutex<Publishing>,
    /// Why a peer last refused to store what this one publishes.
    refused: Mutex<String>,
}

/// The records stored here.
#[derive(Debug)]
struct LocalRecords {
    /// All keys of this peer's own files, without limits.
    own: Records,
    records: Records,
    complete: CompletePublishers,
}

/// The publishers that have announced everything that this peer is to store for them.
#[derive(Debug, Default)]
struct CompletePublishers(HashSet<PeerId>);

impl CompletePublishers {
    fn contains_all(&self, peers: &[PeerId]) -> bool {
        peers.iter().all(|peer| self.0.contains(peer))
    }

    fn retain(&mut self, still: impl Fn(&PeerId) -> bool) {
        self.0.retain(still);
    }
}

impl LocalRecords {
    fn new() -> Self {
        Self {
            own: Records::new(Limits::NONE),
            records: Records::new(Limits::default()),
            complete: CompletePublishers::default(),
        }
    }

    /// The answer to a publisher about what is stored for it.
    fn stored(&self, publisher: PeerId, refused: usize) -> Response {
        let (files, revision) = (self.records.files(publisher), self.records.revision(publisher));
        Response::Kept { files, refused, revision }
    }

    /// Up to [`FOUND_MAX`] files that match, this peer's own first.
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
            kept: Mutex::new(LocalRecords::new()),
            publishing: tokio::sync::Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// Sets where this peer's files can be fetched. Only the first call counts.
    pub(crate) fn set_at(&self, at: SocketAddr) {
        self.at.get_or_init(|| at);
    }

    /// Answers a peer that connects from `seen`.
    pub(crate) fn answer(&self, peer: PeerId, seen: IpAddr, request: &Request) -> Response {
        self.metrics.received(request);
        let now = now();
        match self.try_answer(peer, seen, request, now) {
            Ok(response) => response,
            Err(reason) => {
                tracing::debug!(%peer, reason, "a peer is refused");
                Response::Refused { reason }
            }
        }
    }

    fn try_answer(
        &self,
        peer: PeerId,
        seen: IpAddr,
        request: &Request,
        now: Instant,
    ) -> Result<Response, String> {
        let lease = |terms: &LeaseTerms| {
            check_address(terms.at, seen).map_err(|error| error.to_string())?;
            let life = Duration::from_secs(terms.life_s.into()).min(LIFE_MAX);
            Ok::<_, String>(Lease::new(terms.at, now, life))
        };
        let mut kept = self.kept();
        let kept = &mut *kept;
        match request {
            Request::Keep { files, .. } if files.len() > FILES_MAX => {
                Err(format!("at most {FILES_MAX} files may be announced at once"))
            }
            Request::Keep { lease: terms, files, anew, all } => {
                let lease = lease(terms)?;
                if *anew {
                    kept.records.leave(peer);
                    kept.complete.0.remove(&peer);
                }
                let files = files.iter().map(|placed| (&placed.file, placed.keys));
                let outcome = kept.records.keep(peer, lease, files);
                if *all && kept.records.knows(&peer) {
                    kept.complete.0.insert(peer);
                }
                Ok(kept.stored(peer, outcome.refused))
            }
            Request::Renew { lease: terms } => {
                kept.records.renew(peer, lease(terms)?);
                Ok(kept.stored(peer, 0))
            }
            Request::Forget { files } => {
                kept.records.forget(peer, files);
                Ok(kept.stored(peer, 0))
            }
            Request::Leave => {
                kept.records.leave(peer);
                kept.complete.0.remove(&peer);
                Ok(kept.stored(peer, 0))
            }
            Request::Find { query } => Ok(Response::Found { found: kept.find(query, now) }),
        }
    }

    /// How often to renew: three times within the time that other peers believe this one.
    pub(crate) fn renew_interval(&self) -> Duration {
        self.life / 3
    }

    /// Removes publishers that did not renew.
    pub(crate) fn expire(&self) {
        let now = now();
        let mut kept = self.kept();
        kept.records.expire(now);
        let LocalRecords { records, complete, .. } = &mut *kept;
        complete.retain(|peer| records.knows(peer));
    }

    /// Number of records stored here, each of one file under one key.
    pub(crate) fn records(&self) -> usize {
        let kept = self.kept();
        kept.own.len() + kept.records.len()
    }

    /// The terms under which this peer publishes.
    fn terms(&self) -> Option<LeaseTerms> {
        let life_s = u32::try_from(self.life.as_secs()).unwrap_or(u32::MAX).max(1);
        self.at.get().map(|at| LeaseTerms { at: *at, life_s })
    }

    fn kept(&self) -> MutexGuard<'_, LocalRecords> {
        // No code panics while holding the lock.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time of tokio's clock, which tests control.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
