//! Other peers as they come and go: who they are, where they listen, and whether they speak the same.

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

/// Most addresses that are believed of one peer.
const ADDRESSES_MAX: usize = 4;
/// How long a peer that speaks something else may take to hear what this one speaks.
const STRANGERS_HEAR_WITHIN: Duration = Duration::from_secs(1);
/// Most peers of other versions that are remembered.
pub(super) const STRANGE_MAX: usize = 1_000;

/// What is known of the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Where it is.
    pub(super) at: IpAddr,
    /// Since when it is known to speak something else.
    pub(super) strange: Option<Instant>,
}

impl Seen {
    pub(super) fn at(at: IpAddr) -> Self {
        Self { at, strange: None }
    }
}

impl Driver {
    /// A peer says what it speaks and where it listens.
    pub(super) fn identified(&mut self, event: identify::Event) {
        let identify::Event::Received { peer_id, info, connection_id } = event else { return };
        self.joining.greeted(connection_id);
        self.node.routing.table.set_alone(self.joining.is_alone());
        let Some(seen) = self.seen.get_mut(&connection_id) else { return };
        if info.protocol_version != self.node.routing.table.placement().protocol() {
            seen.strange = Some(Instant::now());
            self.is_strange(peer_id, &info.protocol_version);
            return;
        }
        let own = info.listen_addrs.into_iter().filter(|address| is_at(address, seen.at));
        for address in own.take(ADDRESSES_MAX) {
            self.swarm.behaviour_mut().kad.add_address(&peer_id, address);
        }
        self.strange.remove(&peer_id);
        self.note_table();
    }

    /// Lets strangers go, once they had time to hear what this peer speaks: people are to learn at both ends why nothing
    /// comes of it.
    pub(super) fn let_strangers_go(&mut self, now: Instant) {
        let heard = |since: Instant| now.saturating_duration_since(since) >= STRANGERS_HEAR_WITHIN;
        for (connection, _) in self.seen.iter().filter(|(_, seen)| seen.strange.is_some_and(heard)) {
            self.swarm.close_connection(*connection);
        }
    }

    /// Peers were found by multicast, or not again. They are told of once only, so that one that does not answer yet is
    /// tried again as those are that this one was told to join.
    pub(super) fn discovered(&mut self, event: mdns::Event) {
        match event {
            mdns::Event::Discovered(found) => {
                for (peer, address) in found {
                    let known = self.swarm.is_connected(&peer) || self.strange.contains(&peer);
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

    /// The last connection with a peer has ended: where it cannot be reached again it is forgotten.
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

    /// A peer did not answer. Where a network is cut its connection would stay for many minutes, and it would be asked, and
    /// waited for, again and again: so it is connected to anew, or forgotten.
    pub(super) fn doubt(&mut self, peer: PeerId) {
        // It may have gone by itself.
        let _ = self.swarm.disconnect_peer_id(peer);
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        if self.swarm.behaviour_mut().kad.remove_peer(&peer).is_some() {
            self.note_table();
        }
    }

    /// Says once that a peer speaks something else, and has nothing more to do with it.
    pub(super) fn is_strange(&mut self, peer: PeerId, speaks: &str) {
        let why = self.placement().explain(speaks);
        if self.strange.len() >= STRANGE_MAX {
            self.strange.clear();
        }
        if self.strange.insert(peer) {
            tracing::warn!("the peer {} is turned away: {why}", name(&peer));
        }
        self.node.routing.table.set_strange(why, Instant::now());
        self.forget(peer);
    }
}

/// Whether an address is one of the machine that it is said from.
fn is_at(address: &Multiaddr, seen: IpAddr) -> bool {
    let ip = of_multi(address).map(|address| address.ip().to_canonical());
    ip.is_some_and(|ip| ip == seen.to_canonical() || ip.is_loopback() && seen.to_canonical().is_loopback())
}
