//! Connects to the peers given with `--bootstrap` and to those found by multicast: tries each until it answers, and again
//! when the connection is lost.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use libp2p_swarm::ConnectionId;

/// First and longest pause between two tries.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// Most peers found by multicast.
const FOUND_MAX: usize = 100;

/// What to say about a peer that closes a connection before it identifies itself.
const HUNG_UP: &str =
    "it hangs up at once; where its group lists keys (--allow), that of this peer must be among them";

/// The peers to connect to.
#[derive(Debug, Default)]
pub(crate) struct Joining(Vec<Candidate>);

#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    state: State,
    pause: Duration,
    /// Whether it was logged that it cannot be reached.
    logged: bool,
    /// Whether it was found by multicast, so that nobody expects it to be there.
    found: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// To be tried at this time.
    Waiting(Instant),
    Trying(ConnectionId),
    /// Connected, but the other end may still turn out to be incompatible.
    Reached(ConnectionId),
    Joined(ConnectionId),
    /// It is this peer itself.
    Itself,
}

impl Candidate {
    const fn new(address: SocketAddr, now: Instant, found: bool) -> Self {
        Self { address, state: State::Waiting(now), pause: BACK_OFF.0, logged: false, found }
    }
}

impl Joining {
    pub(crate) fn new(addresses: &[SocketAddr], now: Instant) -> Self {
        Self(addresses.iter().map(|address| Candidate::new(*address, now, false)).collect())
    }

    /// Adds a peer that was found by multicast.
    pub(crate) fn add(&mut self, address: SocketAddr, now: Instant) {
        let room = self.0.iter().filter(|candidate| candidate.found).count() < FOUND_MAX;
        if room && !self.0.iter().any(|candidate| candidate.address == address) {
            self.0.push(Candidate::new(address, now, true));
        }
    }

    /// Removes a peer that multicast no longer finds.
    pub(crate) fn drop_found(&mut self, address: SocketAddr) {
        self.0.retain(|candidate| !(candidate.found && candidate.address == address));
    }

    /// Dials the peers whose time has come.
    pub(crate) fn try_due(&mut self, now: Instant, mut dial: impl FnMut(SocketAddr) -> Option<ConnectionId>) {
        for candidate in &mut self.0 {
            if !matches!(candidate.state, State::Waiting(at) if at <= now) {
                continue;
            }
            candidate.state = match dial(candidate.address) {
                Some(connection) => State::Trying(connection),
                None => State::Waiting(now + BACK_OFF.1),
            };
        }
    }

    /// A connection was made.
    pub(crate) fn connected(&mut self, connection: ConnectionId) {
        if let Some(candidate) = self.find(connection) {
            candidate.state = State::Reached(connection);
        }
    }

    /// The peer has identified itself, and so keeps the connection.
    pub(crate) fn greeted(&mut self, connection: ConnectionId) {
        if let Some(candidate) = self.find(connection) {
            if std::mem::take(&mut candidate.logged) {
                tracing::warn!("the peer at {} answers now", candidate.address);
            }
            (candidate.state, candidate.pause) = (State::Joined(connection), BACK_OFF.0);
        }
    }

    /// A connection was lost, or could not be made.
    pub(crate) fn failed(&mut self, connection: ConnectionId, now: Instant, why: impl FnOnce() -> String) {
        let Some(candidate) = self.find(connection) else { return };
        let why = match candidate.state {
            State::Trying(_) => Some(why()),
            State::Reached(_) => Some(HUNG_UP.to_owned()),
            _ => None,
        };
        if let Some(why) = why.filter(|_| !std::mem::replace(&mut candidate.logged, true)) {
            tracing::warn!("the peer at {} cannot be joined: {why}; it is tried again", candidate.address);
        }
        candidate.state = State::Waiting(now + candidate.pause);
        candidate.pause = (candidate.pause * 2).min(BACK_OFF.1);
    }

    /// The connection led to this peer itself.
    pub(crate) fn is_itself(&mut self, connection: ConnectionId) {
        if let Some(candidate) = self.find(connection) {
            tracing::warn!("{} is this peer itself; --bootstrap names another's", candidate.address);
            candidate.state = State::Itself;
        }
    }

    /// Whether bootstrap peers were given and none of them is connected.
    pub(crate) fn is_alone(&self) -> bool {
        self.0.iter().any(|candidate| !candidate.found)
            && !self.0.iter().any(|candidate| matches!(candidate.state, State::Joined(_)))
    }

    fn find(&mut self, connection: ConnectionId) -> Option<&mut Candidate> {
        let of = |candidate: &&mut Candidate| matches!(candidate.state, State::Trying(id) | State::Reached(id) | State::Joined(id) if id == connection);
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
        let later = start + BACK_OFF.1;
        joining.try_due(later, |address| {
            dialled.push(address);
            None
        });
        assert_eq!(dialled, [at, at]);
        joining.drop_found(at);
        joining.try_due(later + BACK_OFF.1, |address| panic!("{address} is gone"));
    }
}
