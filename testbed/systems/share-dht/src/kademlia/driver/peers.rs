//! Other peers as they come and go: who they are, where they listen, and whether they are compatible.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use libp2p_core::Multiaddr;
use libp2p_identify as identify;
use libp2p_identity::PeerId;
use libp2p_mdns as mdns;

use super::{Driver, of_multi};
use crate::kademlia::admission::name;

/// Most addresses to accept of one peer.
const ADDRESSES_MAX: usize = 4;
/// How long to keep the connection with an incompatible peer, so that it learns this peer's protocol.
const INCOMPATIBLE_CLOSED_AFTER: Duration = Duration::from_secs(1);
/// Most incompatible peers to remember.
pub(super) const INCOMPATIBLE_MAX: usize = 1_000;

/// The remote end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct RemoteEnd {
    /// Its address.
    pub(super) at: IpAddr,
    /// Since when it is known to be incompatible.
    pub(super) incompatible: Option<Instant>,
}

impl RemoteEnd {
    pub(super) fn at(at: IpAddr) -> Self {
        Self { at, incompatible: None }
    }
}

impl Driver {
    /// Handles a peer's identification: its protocol and its addresses.
    pub(super) fn identified(&mut self, event: identify::Event) {
        let identify::Event::Received { peer_id, info, connection_id } = event else { return };
        self.joining.greeted(connection_id);
        self.node.routing.table.set_alone(self.joining.is_alone());
        let Some(seen) = self.seen.get_mut(&connection_id) else { return };
        if info.protocol_version != self.node.routing.table.placement().protocol() {
            seen.incompatible = Some(Instant::now());
            self.reject_incompatible(peer_id, &info.protocol_version);
            return;
        }
        let own = info.listen_addrs.into_iter().filter(|address| is_at(address, seen.at));
        for address in own.take(ADDRESSES_MAX) {
            self.swarm.behaviour_mut().kad.add_address(&peer_id, address);
        }
        self.incompatible.remove(&peer_id);
        self.note_table();
    }

    /// Closes connections with incompatible peers, after a pause in which they identify this one: both ends should tell their
    /// users why there is no connection.
    pub(super) fn close_incompatible(&mut self, now: Instant) {
        let heard = |since: Instant| now.saturating_duration_since(since) >= INCOMPATIBLE_CLOSED_AFTER;
        for (connection, _) in self.seen.iter().filter(|(_, seen)| seen.incompatible.is_some_and(heard)) {
            self.swarm.close_connection(*connection);
        }
    }

    /// Handles peers that multicast found or lost. Each is reported only once, so a peer that does not answer yet is tried again
    /// like the bootstrap peers.
    pub(super) fn discovered(&mut self, event: mdns::Event) {
        match event {
            mdns::Event::Discovered(found) => {
                for (peer, address) in found {
                    let known = self.swarm.is_connected(&peer) || self.incompatible.contains(&peer);
                    if let Some(address) = of_multi(&address).filter(|_| !known) {
                        self.joining.add(address, Instant::now());
                    }
                }
                self.try_joining();
            }
            mdns::Event::Expired(gone) => {
                gone.iter()
                    .filter_map(|(_, address)| of_multi(address))
                    .for_each(|at| self.joining.drop_found(at));
            }
        }
    }

    /// Handles the end of the last connection with a peer: it is forgotten unless it can be dialled again.
    pub(super) fn lost(&mut self, peer: PeerId) {
        let known = self
            .swarm
            .behaviour_mut()
            .kad
            .kbucket(peer)
            .is_some_and(|bucket| bucket.iter().any(|entry| entry.node.key.preimage() == &peer));
        if known && self.swarm.dial(peer).is_err() {
            self.forget(peer);
        }
    }

    /// Reconnects to a peer that did not respond, or forgets it. If the network is cut, its connection would otherwise remain for
    /// minutes, and the peer would be asked and waited for again and again.
    pub(super) fn reconnect(&mut self, peer: PeerId) {
        // The connection may be gone already.
        let _ = self.swarm.disconnect_peer_id(peer);
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        if self.swarm.behaviour_mut().kad.remove_peer(&peer).is_some() {
            self.note_table();
        }
    }

    /// Logs once that a peer is incompatible, and forgets it.
    pub(super) fn reject_incompatible(&mut self, peer: PeerId, speaks: &str) {
        let why = self.placement().explain(speaks);
        if self.incompatible.len() >= INCOMPATIBLE_MAX {
            self.incompatible.clear();
        }
        if self.incompatible.insert(peer) {
            tracing::warn!("the peer {} is turned away: {why}", name(&peer));
        }
        self.node.routing.table.set_incompatible(why, Instant::now());
        self.forget(peer);
    }
}

/// Whether an address is on the machine that announces it.
fn is_at(address: &Multiaddr, seen: IpAddr) -> bool {
    let ip = of_multi(address).map(|address| address.ip().to_canonical());
    ip.is_some_and(|ip| ip == seen.to_canonical() || ip.is_loopback() && seen.to_canonical().is_loopback())
}
