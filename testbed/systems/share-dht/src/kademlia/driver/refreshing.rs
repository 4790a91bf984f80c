//! Keeps the routing table following those who come and go.

use std::time::{Duration, Instant};

use libp2p_identity::PeerId;
use libp2p_kad::QueryId;

use super::Driver;
use crate::kademlia::walk::Walk;

/// How often the routing table is filled anew, where it need not hold all peers.
const REFRESH_EVERY: Duration = Duration::from_secs(60);

/// How far it is with that.
#[derive(Debug)]
pub(super) struct Refreshing {
    since: Instant,
    walk: Walk,
    /// The walk's lookup that is under way.
    step: Option<QueryId>,
}

impl Refreshing {
    pub(super) fn new(me: PeerId, now: Instant) -> Self {
        Self { since: now, walk: Walk::new(&me.into(), now), step: None }
    }
}

impl Driver {
    /// Looks for other peers, where it is time to.
    pub(super) fn refresh(&mut self) {
        match self.placement().members_max() {
            None => self.fill_buckets(Instant::now()),
            Some(_) => self.walk(Instant::now()),
        }
    }

    /// Looks for peers near to this one and far from it.
    fn fill_buckets(&mut self, now: Instant) {
        let nobody = self.node.routing.table.len() == 0;
        if !nobody && now.saturating_duration_since(self.refreshing.since) >= REFRESH_EVERY {
            self.refreshing.since = now;
            // It fails only where there is nobody to ask.
            let _ = self.swarm.behaviour_mut().kad.bootstrap();
        }
    }

    /// Looks for all peers there are, some at a time.
    fn walk(&mut self, now: Instant) {
        if self.refreshing.step.is_some() {
            return;
        }
        if let Some(near) = self.refreshing.walk.next(now, self.node.routing.table.len()) {
            let step = self.swarm.behaviour_mut().kad.get_closest_peers(near.to_vec());
            self.refreshing.step = Some(step);
        }
    }

    /// A lookup of the walk has ended.
    pub(super) fn walked(&mut self, lookup: QueryId, messages: u32) {
        self.node.metrics.refreshed(messages);
        if self.refreshing.step == Some(lookup) {
            self.refreshing.step = None;
            self.refresh();
        }
    }
}
