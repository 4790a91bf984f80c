//! Peers in one process and in virtual time. A message arrives at once, or never.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::{Arc, RwLock, Weak},
    time::Duration,
};

use libp2p_identity::PeerId;
use share::entry::{Entry, Query};

use crate::{
    kademlia::Table,
    key::Key,
    message::{Request, Response},
    network::{Routing, Transport, Unanswered},
    node::Node,
    placement::{Placement, QueryStrategy},
    testing::{address, entry, peer},
};

/// How long a peer waits for a response.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
pub(super) const LIFE: Duration = Duration::from_secs(120);
pub(super) const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

pub(super) type Peer = Node<Memory, Memory>;

/// The live peers, and how they reach each other.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) living: RwLock<HashMap<PeerId, Weak<Peer>>>,
    /// Peers that seem to be there, but do not respond.
    silent: RwLock<HashSet<PeerId>>,
    /// Peers whose lookups miss the nearest ones.
    misled: RwLock<HashSet<PeerId>>,
}

/// The world as one peer sees it.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    pub(super) table: Arc<Table>,
    world: Arc<World>,
}

impl Routing for Memory {
    fn me(&self) -> PeerId {
        self.table.me()
    }

    fn known(&self, key: &Key) -> Option<Vec<PeerId>> {
        self.table.known(key)
    }

    async fn look_up(&self, key: &Key) -> Vec<PeerId> {
        let mut all: Vec<_> = self.world.living.read().unwrap().keys().copied().collect();
        if self.world.misled.read().unwrap().contains(&self.me()) {
            let nearest = self.table.holders(key, all.clone());
            all.retain(|peer| !nearest.contains(peer));
        }
        self.table.holders(key, all)
    }

    fn outdated(&self, key: &Key, found: &[PeerId]) -> bool {
        self.table.outdated(key, found)
    }

    fn query_strategy(&self) -> QueryStrategy {
        self.table.query_strategy()
    }

    fn everyone(&self) -> Option<Vec<PeerId>> {
        self.table.everyone()
    }
}

impl Transport for Memory {
    async fn ask(&self, to: PeerId, request: Request) -> Result<Response, Unanswered> {
        let silent = self.world.silent.read().unwrap().contains(&to);
        if silent {
            tokio::time::sleep(ANSWER_WITHIN).await;
            return Err(Unanswered("it took too long".into()));
        }
        let other = self.world.living.read().unwrap().get(&to).and_then(Weak::upgrade);
        let other = other.ok_or_else(|| Unanswered("it is dead".into()))?;
        Ok(other.answer(self.me(), HERE, &request))
    }
}

/// Peers in a world.
pub(super) struct Peers {
    placement: Placement,
    pub(super) world: Arc<World>,
    pub(super) all: Vec<Arc<Peer>>,
}

impl Peers {
    pub(super) async fn new(placement: Placement, count: u8) -> Self {
        let mut peers = Self { placement, world: Arc::default(), all: Vec::new() };
        for number in 0..count {
            peers.come(number);
        }
        peers.meet().await;
        peers
    }

    /// Adds a peer that nobody knows yet.
    pub(super) fn come(&mut self, number: u8) {
        let table = Arc::new(Table::new(peer(number), self.placement));
        let network = Memory { table, world: Arc::clone(&self.world) };
        let node = Arc::new(Node::new(network.clone(), network, LIFE));
        node.set_at(address(number));
        self.world.living.write().unwrap().insert(peer(number), Arc::downgrade(&node));
        self.all.push(node);
    }

    /// Removes a peer, as if its machine had lost power.
    pub(super) fn die(&mut self, number: usize) -> PeerId {
        let dead = self.all.remove(number).routing.me();
        self.world.living.write().unwrap().remove(&dead);
        dead
    }

    /// Makes a peer stop responding, though it seems to be there.
    pub(super) fn fall_silent(&self, who: PeerId) {
        self.world.silent.write().unwrap().insert(who);
    }

    /// Makes a peer's lookups miss the nearest peers, or stops that.
    pub(super) fn mislead(&self, who: PeerId, misled: bool) {
        let mut all = self.world.misled.write().unwrap();
        if misled {
            all.insert(who)
        } else {
            all.remove(&who)
        };
    }

    /// Makes all peers know each other, and announce their files.
    pub(super) async fn meet(&self) {
        let there: Vec<_> = self.all.iter().map(|node| node.routing.me()).collect();
        for node in &self.all {
            let me = node.routing.me();
            let others = there.iter().filter(|other| **other != me);
            node.routing.table.set(others.map(|other| (*other).into()).collect());
        }
        for node in &self.all {
            node.rearrange().await;
        }
    }

    pub(super) async fn renew(&self) {
        for node in &self.all {
            node.renew().await;
        }
    }

    /// How many peers have the files that match, as each peer sees it.
    pub(super) async fn find(&self, query: &Query) -> Vec<usize> {
        let mut found = Vec::new();
        for node in &self.all {
            let files = node.search(query).await;
            found.push(files.iter().map(|file| file.peers.len()).sum());
        }
        found
    }
}

pub(super) fn virtually(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(test);
}

pub(super) fn words(text: &str) -> Query {
    Query::words(text).unwrap()
}

pub(super) fn files(of: usize, count: usize) -> Vec<Entry> {
    (0..count).map(|number| entry(&format!("file {number} of {of}.txt"), &format!("{of} {number}"))).collect()
}
