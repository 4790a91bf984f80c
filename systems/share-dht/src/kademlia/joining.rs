//! The peers that this one was told to join: tried until they answer, and again when they are gone.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use libp2p_swarm::ConnectionId;

/// First and longest pause between two tries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Joining(Vec<Contact>);

#[derive(Debug)]
struct Contact {
    address: SocketAddr,
    state: State,
    pause: Duration,
    /// Whether it was told that it cannot be reached.
    told: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// To be tried then.
    Waiting(Instant),
    Trying(ConnectionId),
    Joined(ConnectionId),
    /// It is this peer itself.
    Itself,
}

impl Joining {
    pub(crate) fn new(addresses: &[SocketAddr], now: Instant) -> Self {
        let contact = |address: &SocketAddr| Contact {
            address: *address,
            state: State::Waiting(now),
            pause: PAUSES.0,
            told: false,
        };
        Self(addresses.iter().map(contact).collect())
    }

    /// Tries those whose time has come.
    pub(crate) fn try_due(&mut self, now: Instant, mut dial: impl FnMut(SocketAddr) -> Option<ConnectionId>) {
        for contact in &mut self.0 {
            if !matches!(contact.state, State::Waiting(at) if at <= now) {
                continue;
            }
            contact.state = match dial(contact.address) {
                Some(connection) => State::Trying(connection),
                None => State::Waiting(now + PAUSES.1),
            };
        }
    }

    /// A connection is there.
    pub(crate) fn connected(&mut self, connection: ConnectionId) {
        if let Some(contact) = self.find(connection) {
            if std::mem::take(&mut contact.told) {
                tracing::warn!("the peer at {} answers now", contact.address);
            }
            (contact.state, contact.pause) = (State::Joined(connection), PAUSES.0);
        }
    }

    /// A connection is gone, or could not be had.
    pub(crate) fn failed(&mut self, connection: ConnectionId, now: Instant, why: impl FnOnce() -> String) {
        let Some(contact) = self.find(connection) else { return };
        if contact.state == State::Trying(connection) && !std::mem::replace(&mut contact.told, true) {
            tracing::warn!("the peer at {} cannot be joined: {}; it is tried again", contact.address, why());
        }
        contact.state = State::Waiting(now + contact.pause);
        contact.pause = (contact.pause * 2).min(PAUSES.1);
    }

    /// It was this peer itself.
    pub(crate) fn is_itself(&mut self, connection: ConnectionId) {
        if let Some(contact) = self.find(connection) {
            tracing::warn!("{} is this peer itself; --bootstrap names another's", contact.address);
            contact.state = State::Itself;
        }
    }

    /// Whether some were to be joined and none is.
    pub(crate) fn is_alone(&self) -> bool {
        !self.0.is_empty() && !self.0.iter().any(|contact| matches!(contact.state, State::Joined(_)))
    }

    fn find(&mut self, connection: ConnectionId) -> Option<&mut Contact> {
        let of = |contact: &&mut Contact| matches!(contact.state, State::Trying(id) | State::Joined(id) if id == connection);
        self.0.iter_mut().find(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_peer_is_tried_ever_more_rarely_and_a_live_one_is_not_tried_again() {
        let start = Instant::now();
        let [dead, live] = [1, 2].map(ConnectionId::new_unchecked);
        let addresses = ["127.0.0.1:1", "127.0.0.1:2"].map(|text| text.parse().unwrap());
        let mut joining = Joining::new(&addresses, start);
        let mut tries = 0;
        for second in 0..120 {
            let now = start + Duration::from_secs(second);
            joining.try_due(now, |address| {
                tries += usize::from(address == addresses[0]);
                Some(if address == addresses[0] { dead } else { live })
            });
            joining.connected(live);
            joining.failed(dead, now, || "refused".into());
        }
        assert!((10..20).contains(&tries), "{tries}");
        assert!(!joining.is_alone());
        joining.failed(live, start, String::new);
        assert!(joining.is_alone());
    }
}
