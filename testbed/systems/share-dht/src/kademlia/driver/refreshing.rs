//! Keeps the routing table up to date while peers come and go.

use std::time::{Duration, Instant};

use libp2p_identity::PeerId;
use libp2p_kad::QueryId;

use super::Driver;
use crate::kademlia::walk::Walk;

/// How often the routing table is refreshed, if it need not contain all peers.
const REFRESH_EVERY: Duration = Duration::from_secs(60);

/// The progress of refreshing.
#[derive(Debug)]
pub(super) struct Refreshing {
    since: Instant,
    walk: Walk,
    /// The walk's current lookup.
    step: Option<QueryId>,
}

impl Refreshing {
    pub(super) fn new(me: PeerId, now: Instant) -> Self {
        Self { since: now, walk: Walk::new(&me.into(), now), step: None }
    }
}

impl Driver {
    /// Looks for other peers, if that is due.
    pub(super) fn refresh(&mut self) {
        match self.placement().members_max() {
            None => self.fill_buckets(Instant::now()),
            Some(_) => self.walk(Instant::now()),
        }
    }

    /// Looks for peers at all distances.
    fn fill_buckets(&mut self, now: Instant) {
        let nobody = self.node.routing.table.len() == 0;
        if !nobody && now.saturating_duration_since(self.refreshing.since) >= REFRESH_EVERY {
            self.refreshing.since = now;
            // Fails only if there is no peer to ask.
            let _ = self.swarm.behaviour_mut().kad.bootstrap();
        }
    }

    /// Looks for all peers, a few at a time.
    fn walk(&mut self, now: Instant) {
        if self.refreshing.step.is_some() {
            return;
        }
        if let Some(near) = self.refreshing.walk.next(now, self.node.routing.table.len()) {
            let step = self.swarm.behaviour_mut().kad.get_closest_peers(near.to_vec());
            self.refreshing.step = Some(step);
        }
    }

    /// Handles the end of a lookup of the walk.
    pub(super) fn walked(&mut self, lookup: QueryId, messages: u32) {
        self.node.metrics.refreshed(messages);
        if self.refreshing.step == Some(lookup) {
            self.refreshing.step = None;
            self.refresh();
        }
    }
}
