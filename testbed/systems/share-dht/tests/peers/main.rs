//! Parts of the index in one process, over real sockets on ports of their own.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    net::SocketAddr,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use share::{
    Content,
    entry::{Entry, Query},
    interfaces::Index,
};
use share_dht::{Dht, DhtError, Options, Placement};
use tempfile::TempDir;

/// A generous bound: reached only by what would never happen.
fn wait_until(holds: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(300);
    while !holds() {
        assert!(Instant::now() < patience, "it never came to be");
        thread::sleep(Duration::from_millis(20));
    }
}

fn entry(name: &str) -> Entry {
    Entry { name: name.parse().unwrap(), content: Content::of(name.as_bytes()), size: name.len() as u64 }
}

fn options(join: &[SocketAddr]) -> Options {
    let mut options = Options::new("127.0.0.1:0".parse().unwrap());
    options.bootstrap = join.to_vec();
    options
}

/// A peer whose files can be had at a port that stands for it.
struct Peer {
    dht: Arc<Dht>,
    at: SocketAddr,
    _state: TempDir,
}

impl Peer {
    fn start(placement: Placement, number: u16, join: &[SocketAddr]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut options = options(join);
        options.placement = placement;
        let dht = Arc::new(Dht::open(&options, state.path()).unwrap());
        let at = SocketAddr::from(([127, 0, 0, 1], 10_000 + number));
        dht.start(at);
        Self { dht, at, _state: state }
    }

    /// Peers that all join the first.
    fn some(placement: Placement, count: u16) -> Vec<Self> {
        let mut peers = vec![Self::start(placement, 0, &[])];
        let first = peers[0].dht.listen();
        peers.extend((1..count).map(|number| Self::start(placement, number, &[first])));
        peers
    }

    /// A figure of its `/metrics`.
    fn counts(&self, name: &str) -> u64 {
        let text = self.dht.metrics_text().unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    fn finds(&self, query: &Query) -> Vec<SocketAddr> {
        let found = self.dht.search(query).unwrap();
        let mut peers: Vec<_> = found.into_iter().flat_map(|found| found.peers).collect();
        peers.sort_unstable();
        peers
    }
}

#[test]
fn more_peers_than_a_bucket_holds_find_what_any_of_them_has() {
    let peers = Peer::some(Placement::Nearest, 23);
    for (number, peer) in peers.iter().enumerate() {
        peer.dht.register(&[entry(&format!("file {number}.txt"))]).unwrap();
        peer.dht.renew().unwrap();
    }
    for (number, owner) in peers.iter().enumerate().step_by(8) {
        let file = entry(&format!("file {number}.txt"));
        let queries = [
            Query::Name(file.name.clone()),
            Query::Content(file.content),
            Query::words(&format!("file {number}")).unwrap(),
        ];
        let asker = &peers[(number + 11) % peers.len()];
        for query in queries {
            wait_until(|| {
                // Whoever has it looks again now and then who is to know of it.
                owner.dht.renew().unwrap();
                asker.finds(&query) == [owner.at]
            });
        }
    }
}

#[test]
fn where_all_are_to_know_all_more_than_a_bucket_of_kademlia_do_and_ask_one() {
    let peers = Peer::some(Placement::Rendezvous, 45);
    for peer in &peers {
        wait_until(|| peer.counts("dht_peers") == 44);
    }
    peers[3].dht.register(&[entry("annual report.pdf")]).unwrap();
    let query = Query::words("report").unwrap();
    for peer in &peers {
        wait_until(|| peer.finds(&query) == [peers[3].at]);
        assert_eq!(peer.counts("dht_lookups_total"), 0);
    }
}

#[test]
fn who_leaves_is_forgotten_at_once_and_who_comes_back_is_found_again() {
    let peers = Peer::some(Placement::Nearest, 4);
    let file = entry("here.txt");
    let query = Query::Name(file.name.clone());
    let everyone = |found: &[SocketAddr]| peers.iter().all(|peer| peer.finds(&query) == found);
    peers[1].dht.register(std::slice::from_ref(&file)).unwrap();
    peers[2].dht.register(std::slice::from_ref(&file)).unwrap();
    wait_until(|| everyone(&[peers[1].at, peers[2].at]));
    peers[1].dht.leave().unwrap();
    wait_until(|| everyone(&[peers[2].at]));
    peers[1].dht.register(std::slice::from_ref(&file)).unwrap();
    peers[2].dht.deregister(std::slice::from_ref(&file)).unwrap();
    wait_until(|| everyone(&[peers[1].at]));
}

#[test]
fn a_peer_does_not_join_itself() {
    let state = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut options = options(&[free]);
    options.listen = free;
    assert!(matches!(Dht::open(&options, state.path()), Err(DhtError::Itself(own)) if own == free));
    assert!(Dht::open(&options, Path::new("/nowhere/at/all")).is_err());
}
