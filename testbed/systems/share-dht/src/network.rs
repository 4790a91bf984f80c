//! The seams towards the other peers: who answers for a key, and how they are asked.
//!
//! What is kept and told ([`crate::node`]) knows neither how peers find each other nor how bytes travel. Kademlia over
//! libp2p is one way; tests have another, in memory and in virtual time.

use std::future::Future;

use libp2p_identity::PeerId;

use crate::{
    key::Key,
    message::{Request, Response},
    placement::Asks,
};

/// Who answers for a key.
pub(crate) trait Routing: Send + Sync {
    /// This peer.
    fn me(&self) -> PeerId;

    /// Those that answer for a key, the nearest first, as far as this peer can tell without asking anyone; none where it
    /// cannot. It may be one of them.
    fn known(&self, key: &Key) -> Option<Vec<PeerId>>;

    /// Those that answer for a key; asks others who they are.
    fn look_up(&self, key: &Key) -> impl Future<Output = Vec<PeerId>> + Send;

    /// Whether those that were found to answer for a key do no longer, as another is known by now that should be one of
    /// them.
    fn outdated(&self, key: &Key, found: &[PeerId]) -> bool;

    /// How those that answer for a key are asked.
    fn asks(&self) -> Asks;

    /// All others, where they are so few that each of them answers for every key.
    fn everyone(&self) -> Option<Vec<PeerId>>;
}

/// How peers are asked.
pub(crate) trait Transport: Send + Sync {
    /// Asks one peer, and waits for its answer within a bound of time.
    fn ask(
        &self,
        peer: PeerId,
        request: Request,
    ) -> impl Future<Output = Result<Response, Unanswered>> + Send;
}

/// Why a peer did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unanswered(pub(crate) String);
