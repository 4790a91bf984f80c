//! Peers in one process and in virtual time: every message arrives at once, or never.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, RwLock, Weak},
};

use libp2p_identity::PeerId;
use share::Content;

use super::*;
use crate::{
    kademlia::Table,
    key::{Key, KeySet},
    message::{FILES_MAX, FOUND_MAX, Placed, Request, Response},
    metrics::Answered,
    network::Unanswered,
    testing::{address, all_keys, entry, peer},
};
use share::seam::{Entry, Query};

const LIFE: Duration = Duration::from_secs(120);
const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

type Peer = Node<Memory, Memory>;

/// The peers that live, and how they reach each other.
#[derive(Debug, Default)]
struct World(RwLock<HashMap<PeerId, Weak<Peer>>>);

/// The world as one peer sees it.
#[derive(Debug, Clone)]
struct Memory {
    table: Arc<Table>,
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
        let all = self.world.0.read().unwrap().keys().copied().collect();
        self.table.nearest(key, all)
    }

    fn everyone(&self) -> Option<Vec<PeerId>> {
        self.table.everyone()
    }
}

impl Transport for Memory {
    async fn ask(&self, to: PeerId, request: Request) -> Result<Response, Unanswered> {
        let other = self.world.0.read().unwrap().get(&to).and_then(Weak::upgrade);
        let other = other.ok_or_else(|| Unanswered("it is dead".into()))?;
        Ok(other.answer(self.me(), HERE, &request))
    }
}

/// Peers in a world.
struct Peers {
    world: Arc<World>,
    all: Vec<Arc<Peer>>,
}

impl Peers {
    async fn new(count: u8) -> Self {
        let mut peers = Self { world: Arc::default(), all: Vec::new() };
        for number in 0..count {
            peers.come(number);
        }
        peers.meet().await;
        peers
    }

    /// One more, which nobody knows yet.
    fn come(&mut self, number: u8) {
        let network = Memory { table: Arc::new(Table::new(peer(number))), world: Arc::clone(&self.world) };
        let node = Arc::new(Node::new(network.clone(), network, LIFE));
        node.set_at(address(number));
        self.world.0.write().unwrap().insert(peer(number), Arc::downgrade(&node));
        self.all.push(node);
    }

    /// One dies, as if its machine had lost its power.
    fn die(&mut self, number: usize) -> PeerId {
        let dead = self.all.remove(number).routing.me();
        self.world.0.write().unwrap().remove(&dead);
        dead
    }

    /// All come to know who there is, and tell them what they have.
    async fn meet(&self) {
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

    async fn renew(&self) {
        for node in &self.all {
            node.renew().await;
        }
    }

    /// Who has it, as each of the peers says.
    async fn find(&self, query: &Query) -> Vec<usize> {
        let mut found = Vec::new();
        for node in &self.all {
            let files = node.search(query).await;
            found.push(files.iter().map(|file| file.peers.len()).sum());
        }
        found
    }
}

fn virtually(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(test);
}

fn words(text: &str) -> Query {
    Query::words(text).unwrap()
}

fn files(of: usize, count: usize) -> Vec<Entry> {
    (0..count).map(|number| entry(&format!("file {number} of {of}.txt"), &format!("{of} {number}"))).collect()
}

#[test]
fn few_peers_find_everything_without_asking() {
    virtually(async {
        let peers = Peers::new(8).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 20)).await;
        }
        assert_eq!(peers.find(&words("txt")).await, [160; 8]);
        assert_eq!(peers.find(&words("3 of 5")).await, [2; 8], "3 of 5, and 5 of 3");
        assert_eq!(peers.find(&Query::Content(Content::of(b"7 19"))).await, [1; 8]);
        assert_eq!(peers.find(&Query::Name("file 1 of 2.txt".parse().unwrap())).await, [1; 8]);
        assert_eq!(peers.find(&words("nothing")).await, [0; 8]);
        let here: u64 = peers.all.iter().map(|node| node.metrics.searches(Answered::Here)).sum();
        assert_eq!(here, 40);
        let messages: u64 = peers.all.iter().map(|node| node.metrics.sent_of("find")).sum();
        assert_eq!(messages, 0);
    });
}

#[test]
fn among_many_peers_a_search_asks_three() {
    virtually(async {
        let peers = Peers::new(60).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 3)).await;
        }
        assert_eq!(peers.find(&Query::Name("file 1 of 33.txt".parse().unwrap())).await, [1; 60]);
        assert_eq!(peers.find(&words("59")).await, [3; 60]);
        assert_eq!(peers.find(&words("file")).await, [180; 60]);
        let messages: u64 = peers.all.iter().map(|node| node.metrics.sent_of("find")).sum();
        assert!(messages <= 3 * 180, "{messages}");
        let placed: usize = peers.all.iter().map(|node| node.records()).sum();
        // Seven or eight keys of each file (the numbers may be the same word), at eight peers and at its own.
        assert!((180 * 6 * 8..=180 * 8 * 9).contains(&placed), "{placed}");
    });
}

#[test]
fn who_comes_is_told_and_until_then_asks() {
    virtually(async {
        let mut peers = Peers::new(3).await;
        peers.all[0].register(&files(0, 5)).await;
        peers.come(3);
        let newcomer = Arc::clone(&peers.all[3]);
        newcomer.routing.table.set((0..3).map(|number| peer(number).into()).collect());
        assert_eq!(newcomer.search_here(&words("file")), None, "nobody told it anything yet");
        assert_eq!(newcomer.search(&words("file")).await.len(), 5);
        peers.meet().await;
        assert_eq!(newcomer.search_here(&words("file")).map(|found| found.len()), Some(5));
    });
}

#[test]
fn who_dies_disappears_and_who_renews_does_not() {
    virtually(async {
        let mut peers = Peers::new(4).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 1)).await;
        }
        peers.die(3);
        for _ in 0..4 {
            tokio::time::advance(LIFE / 3).await;
            peers.renew().await;
            peers.all.iter().for_each(|node| node.expire());
        }
        assert_eq!(peers.find(&words("file")).await, [3; 3]);
        assert!(peers.all.iter().all(|node| !node.kept().records.knows(&peer(3))));
    });
}

#[test]
fn what_is_deregistered_and_who_leaves_is_not_found() {
    virtually(async {
        let peers = Peers::new(5).await;
        let own = files(0, 3);
        peers.all[0].register(&own).await;
        peers.all[1].register(&own[..1]).await;
        peers.all[0].deregister(&own[1..]).await;
        assert_eq!(peers.find(&words("file")).await, [2; 5]);
        peers.all[0].leave().await;
        peers.all[0].rearrange().await;
        assert_eq!(peers.find(&words("file")).await, [1; 5]);
    });
}

#[test]
fn who_forgot_is_told_again_when_it_is_renewed() {
    virtually(async {
        let mut peers = Peers::new(3).await;
        peers.all[0].register(&files(0, 2_500)).await;
        peers.die(2);
        peers.come(2);
        peers.meet().await;
        // The others knew it already, and believe that it still keeps what they told.
        peers.renew().await;
        assert_eq!(peers.all[2].search_here(&words("file")).map(|found| found.len()), Some(1000));
        assert_eq!(peers.all[2].kept().records.files(peer(0)), 2_500);
    });
}

#[test]
fn the_dead_among_those_asked_are_replaced() {
    virtually(async {
        let mut peers = Peers::new(60).await;
        peers.all[7].register(&files(7, 1)).await;
        let query = words("txt");
        let holders = peers.all[7].routing.look_up(&Key::of_query(&query).unwrap()).await;
        for dead in holders.iter().filter(|holder| **holder != peer(7)).take(5) {
            let at = peers.all.iter().position(|node| node.routing.me() == *dead).unwrap();
            peers.die(at);
        }
        assert!(peers.find(&query).await.iter().all(|found| *found == 1));
    });
}

#[test]
fn what_no_honest_peer_says_is_refused() {
    virtually(async {
        let peers = Peers::new(2).await;
        let file = entry("a.txt", "x");
        let placed = Placed { keys: all_keys(&file), file };
        let keep = |at: &str, files| {
            let lease = Terms { at: at.parse().unwrap(), life_s: u32::MAX };
            peers.all[0].answer(peer(9), HERE, &Request::Keep { lease, files, anew: false, all: true })
        };
        assert!(matches!(keep("192.0.2.1:80", vec![placed.clone()]), Response::Refused { .. }));
        assert!(matches!(keep("127.0.0.1:0", vec![placed.clone()]), Response::Refused { .. }));
        assert!(matches!(
            keep("127.0.0.1:80", vec![placed.clone(); FILES_MAX + 1]),
            Response::Refused { .. }
        ));
        assert_eq!(peers.all[0].search(&words("a")).await, []);
        assert_eq!(keep("127.0.0.1:80", vec![placed]), Response::Kept { files: 1, refused: 0 });
        let leave = peers.all[0].answer(peer(8), HERE, &Request::Leave);
        assert_eq!(leave, Response::Kept { files: 0, refused: 0 }, "nobody takes back what another told");
        assert_eq!(peers.all[0].search(&words("a")).await.len(), 1);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(peers.all[0].search(&words("a")).await, [], "no peer is believed for ever");
    });
}

#[test]
fn strangers_who_fill_a_peer_do_not_push_out_what_it_has_itself() {
    virtually(async {
        let peers = Peers::new(2).await;
        let keep = |number: u8, file: Entry, keys| {
            let lease = Terms { at: address(number), life_s: 120 };
            let files = vec![Placed { file, keys }];
            peers.all[0].answer(peer(number), HERE, &Request::Keep { lease, files, anew: false, all: true })
        };
        let word = KeySet::default().with(2);
        let places = Limits::default().places;
        for number in 0..places {
            keep(2 + (number % 8) as u8, entry(&format!("flood x{number}"), "x"), word);
        }
        let more = entry("flood once more", "x");
        assert!(matches!(keep(2, more, word), Response::Kept { refused: 1, .. }), "it is full");
        let own = entry("flood of my own", "own");
        peers.all[0].register(std::slice::from_ref(&own)).await;
        for node in &peers.all {
            let found = node.search(&words("flood")).await;
            assert!(found.iter().any(|found| found.entry == own), "not among {}", found.len());
        }
    });
}

#[test]
fn what_went_while_a_peer_was_down_is_found_no_longer_once_it_is_back() {
    virtually(async {
        let mut peers = Peers::new(3).await;
        peers.all[2].register(&files(2, 2)).await;
        peers.die(2);
        peers.come(2);
        peers.all[2].register(&files(2, 1)).await;
        peers.meet().await;
        assert_eq!(peers.find(&words("file")).await, [1; 3]);
        peers.die(2);
        peers.come(2);
        peers.meet().await;
        peers.renew().await;
        assert_eq!(peers.find(&words("file")).await, [0; 3], "it has nothing now, and says so");
    });
}

#[test]
fn what_goes_while_a_holder_is_not_reached_is_forgotten_when_it_is_again() {
    virtually(async {
        let peers = Peers::new(3).await;
        let own = files(0, 2_500);
        peers.all[0].register(&own).await;
        let unreached = peers.world.0.write().unwrap().remove(&peer(2)).unwrap();
        peers.all[0].deregister(&own[..1]).await;
        peers.world.0.write().unwrap().insert(peer(2), unreached);
        peers.renew().await;
        let gone = Query::Content(own[0].content);
        assert_eq!(peers.find(&gone).await, [0; 3]);
        assert_eq!(peers.all[2].kept().records.files(peer(0)), 2_499);
        assert!(peers.all[2].search_here(&gone).is_some(), "it was told all again");
    });
}

#[test]
fn what_a_holder_makes_up_leads_nowhere_and_hides_nothing() {
    let own = entry("own file.txt", "own");
    let nowhere = ["0.0.0.0:80", "224.0.0.1:80", "127.0.0.1:0"].map(|at| at.parse().unwrap());
    let made_up = (0..FOUND_MAX).map(|number| entry(&format!("a file {number}"), "x"));
    let lies: Vec<_> = made_up.map(|entry| (entry, nowhere.to_vec(), address(1))).collect();
    let found = |file: &Entry, peers| share::seam::Found { entry: file.clone(), peers };
    let known = found(&own, vec![address(0)]);
    let all = lies.iter().map(|(file, _, at)| found(file, vec![*at]));
    let merged = searching::merged([known.clone()].into_iter().chain(all));
    assert!(merged.len() == FOUND_MAX && merged.contains(&known));

    let answer = lies.iter().map(|(file, nowhere, _)| found(file, nowhere.clone())).collect();
    assert_eq!(searching::believable(&words("file"), answer), []);
    let mixed = found(&own, [&nowhere[..], &[address(1)]].concat());
    assert_eq!(searching::believable(&words("file"), vec![mixed]), [found(&own, vec![address(1)])]);
}
