//! The interfaces to other peers: which of them hold a key, and how to send them requests.
//!
//! [`crate::node`] knows neither how peers find each other nor how messages travel. In production that is Kademlia over
//! libp2p; in tests it is memory and virtual time.

use std::future::Future;

use libp2p_identity::PeerId;

use crate::{
    key::Key,
    message::{Request, Response},
    placement::QueryStrategy,
};

/// Finds the peers that hold a key.
pub(crate) trait Routing: Send + Sync {
    /// This peer.
    fn me(&self) -> PeerId;

    /// The holders of a key, the first to ask first, if this peer can tell without asking others. It may be one of them.
    fn known(&self, key: &Key) -> Option<Vec<PeerId>>;

    /// Looks up the holders of a key by asking other peers.
    fn look_up(&self, key: &Key) -> impl Future<Output = Vec<PeerId>> + Send;

    /// Whether a peer is known by now that should be among the holders of a key, and is not in `found`.
    fn outdated(&self, key: &Key, found: &[PeerId]) -> bool;

    /// How to ask the holders of a key.
    fn query_strategy(&self) -> QueryStrategy;

    /// All other peers, if they are so few that each holds every key.
    fn everyone(&self) -> Option<Vec<PeerId>>;
}

/// Sends requests to peers.
pub(crate) trait Transport: Send + Sync {
    /// Sends a request, and waits for the response for a limited time.
    fn ask(
        &self,
        peer: PeerId,
        request: Request,
    ) -> impl Future<Output = Result<Response, Unanswered>> + Send;
}

/// Why a peer did not respond.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unanswered(pub(crate) String);
