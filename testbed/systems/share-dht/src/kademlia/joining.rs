//! The peers that this one was told to join, and those that it found: tried until they answer, and again when they are
//! gone.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use libp2p_swarm::ConnectionId;

/// First and longest pause between two tries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// Most peers that were found and not told of.
const FOUND_MAX: usize = 100;

/// Of a peer that ends a connection before it says who it is.
const HUNG_UP: &str =
    "it hangs up at once; where its group lists keys (--allow), that of this peer must be among them";

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
    /// Whether it was found, and nobody said that it must be there.
    found: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// To be tried then.
    Waiting(Instant),
    Trying(ConnectionId),
    /// Connected: it may still turn out that the other end has no part with this one.
    Reached(ConnectionId),
    Joined(ConnectionId),
    /// It is this peer itself.
    Itself,
}

impl Contact {
    const fn new(address: SocketAddr, now: Instant, found: bool) -> Self {
        Self { address, state: State::Waiting(now), pause: PAUSES.0, told: false, found }
    }
}

impl Joining {
    pub(crate) fn new(addresses: &[SocketAddr], now: Instant) -> Self {
        Self(addresses.iter().map(|address| Contact::new(*address, now, false)).collect())
    }

    /// A peer was found there.
    pub(crate) fn add(&mut self, address: SocketAddr, now: Instant) {
        let room = self.0.iter().filter(|contact| contact.found).count() < FOUND_MAX;
        if room && !self.0.iter().any(|contact| contact.address == address) {
            self.0.push(Contact::new(address, now, true));
        }
    }

    /// A peer that was found there is not found again.
    pub(crate) fn drop_found(&mut self, address: SocketAddr) {
        self.0.retain(|contact| !(contact.found && contact.address == address));
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
            contact.state = State::Reached(connection);
        }
    }

    /// The peer at the other end says who it is: it keeps the connection.
    pub(crate) fn greeted(&mut self, connection: ConnectionId) {
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
        let why = match contact.state {
            State::Trying(_) => Some(why()),
            State::Reached(_) => Some(HUNG_UP.to_owned()),
            _ => None,
        };
        if let Some(why) = why.filter(|_| !std::mem::replace(&mut contact.told, true)) {
            tracing::warn!("the peer at {} cannot be joined: {why}; it is tried again", contact.address);
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
        self.0.iter().any(|contact| !contact.found)
            && !self.0.iter().any(|contact| matches!(contact.state, State::Joined(_)))
    }

    fn find(&mut self, connection: ConnectionId) -> Option<&mut Contact> {
        let of = |contact: &&mut Contact| matches!(contact.state, State::Trying(id) | State::Reached(id) | State::Joined(id) if id == connection);
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
            joining.greeted(live);
            joining.failed(dead, now, || "refused".into());
        }
        assert!((10..20).contains(&tries), "{tries}");
        assert!(!joining.is_alone());
        joining.failed(live, start, String::new);
        assert!(joining.is_alone());
    }

    #[test]
    fn a_peer_that_hangs_up_is_not_joined_and_tried_ever_more_rarely() {
        let start = Instant::now();
        let mut joining = Joining::new(&["127.0.0.1:1".parse().unwrap()], start);
        let mut tries = 0;
        for second in 0..120 {
            let now = start + Duration::from_secs(second);
            joining.try_due(now, |_| {
                tries += 1;
                Some(ConnectionId::new_unchecked(tries))
            });
            joining.connected(ConnectionId::new_unchecked(tries));
            assert!(joining.is_alone());
            joining.failed(ConnectionId::new_unchecked(tries), now, || panic!("it was reached"));
        }
        assert!((10..20).contains(&tries), "{tries}");
    }

    #[test]
    fn a_peer_that_was_found_is_tried_until_it_answers_or_is_found_no_more() {
        let start = Instant::now();
        let at: SocketAddr = "192.0.2.1:8086".parse().unwrap();
        let mut joining = Joining::default();
        joining.add(at, start);
        joining.add(at, start);
        let first = ConnectionId::new_unchecked(1);
        let mut dialled = Vec::new();
        joining.try_due(start, |address| {
            dialled.push(address);
            Some(first)
        });
        assert_eq!(dialled, [at]);
        assert!(!joining.is_alone(), "nobody was to be joined");
        joining.failed(first, start, || "not yet".into());
        let later = start + PAUSES.1;
        joining.try_due(later, |address| {
            dialled.push(address);
            None
        });
        assert_eq!(dialled, [at, at]);
        joining.drop_found(at);
        joining.try_due(later + PAUSES.1, |address| panic!("{address} is gone"));
    }
}
