//! Answers what other peers ask.

use std::{
    collections::HashSet,
    net::IpAddr,
    time::{Duration, Instant},
};

use libp2p_identity::PeerId;

use super::{Node, now};
use crate::{
    message::{FILES_MAX, Request, Response, Terms, check_address},
    network::{Routing, Transport},
    records::Lease,
};

/// Longest that a peer is believed without being heard of, whatever it wishes.
const LIFE_MAX: Duration = Duration::from_secs(3600);

/// Who told all that this peer is to keep.
#[derive(Debug, Default)]
pub(super) struct Told(HashSet<PeerId>);

impl Told {
    pub(super) fn all(&self, peers: &[PeerId]) -> bool {
        peers.iter().all(|peer| self.0.contains(peer))
    }

    pub(super) fn retain(&mut self, still: impl Fn(&PeerId) -> bool) {
        self.0.retain(still);
    }
}

impl<R: Routing, T: Transport> Node<R, T> {
    /// Answers a peer that was seen at an address.
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
        let lease = |terms: &Terms| {
            check_address(terms.at, seen).map_err(|error| error.to_string())?;
            let life = Duration::from_secs(terms.life_s.into()).min(LIFE_MAX);
            Ok::<_, String>(Lease::new(terms.at, now, life))
        };
        let mut kept = self.kept();
        let kept = &mut *kept;
        match request {
            Request::Keep { files, .. } if files.len() > FILES_MAX => {
                Err(format!("{FILES_MAX} files at most may be told of at once"))
            }
            Request::Keep { lease: terms, files, anew, all } => {
                let lease = lease(terms)?;
                if *anew {
                    kept.records.leave(peer);
                    kept.told.0.remove(&peer);
                }
                let files = files.iter().map(|placed| (&placed.file, placed.keys));
                let outcome = kept.records.keep(peer, lease, files);
                if *all && kept.records.knows(&peer) {
                    kept.told.0.insert(peer);
                }
                Ok(Response::Kept { files: outcome.files, refused: outcome.refused })
            }
            Request::Renew { lease: terms } => {
                Ok(Response::Kept { files: kept.records.renew(peer, lease(terms)?), refused: 0 })
            }
            Request::Forget { files } => {
                kept.records.forget(peer, files);
                Ok(Response::Kept { files: kept.records.files(peer), refused: 0 })
            }
            Request::Leave => {
                kept.records.leave(peer);
                kept.told.0.remove(&peer);
                Ok(Response::Kept { files: 0, refused: 0 })
            }
            Request::Find { query } => Ok(Response::Found { found: kept.find(query, now) }),
        }
    }
}
