//! Measures how the cost of a search grows with the number of peers, and what becomes of searches while peers come and go:
//! networks of up to 100 000 peers in one process.
//!
//! The peers run the real code: libp2p's swarm, its Kademlia and its streams, the driver and the node. Only what is beneath
//! is simulated: connections are pipes in memory ([`wire`]), and routing tables are filled with what the peers would have
//! learnt ([`world`]). A peer starts when it is connected to, and stops at the end of a search unless it holds records, so
//! that most cost nearly nothing.

mod churn;
mod sessions;
mod wire;
mod world;

use std::{collections::HashMap, sync::Arc, time::Duration};

use libp2p_kad::K_VALUE;
use share::entry::{Entry, Query};
use tokio::runtime::Builder;

use self::world::{Setting, World};
use crate::{
    kademlia::PeerNode,
    key::Key,
    placement::{MEMBERS_MAX, Placement},
    testing::entry,
};

/// Longer than any search in a network in which all peers stay.
const LIFE: Duration = Duration::from_secs(3600);
const PUBLISHERS: usize = 12;
/// Each publisher's file is searched for by name, by content and by word.
const SEARCHES: usize = 3 * PUBLISHERS;
/// How much faster than the logarithm an average of so few searches may grow by chance.
const SLACK: f64 = 1.25;

/// The average cost of a search in a network.
#[derive(Debug)]
struct Cost {
    placement: Placement,
    peers: usize,
    /// Number of other peers that a searching peer knows.
    known: f64,
    /// Length of the chain of peers, each named by the one before, from the searching peer to the holders.
    hops: f64,
    /// Requests to other peers: who is nearer, and who has the file.
    messages: f64,
}

impl Cost {
    /// The logarithm of the number of peers.
    fn log(&self) -> f64 {
        (self.peers as f64).log2()
    }
}

/// What to search for, and who has it.
struct Wanted {
    query: Query,
    file: Entry,
    owner: usize,
}

/// The three queries that find a file: by name, by content and by word.
fn queries(file: &Entry) -> [Query; 3] {
    let word = Query::words(&file.name.to_string()).unwrap();
    [Query::Name(file.name.clone()), Query::Content(file.content), word]
}

/// Registers a file at some peers, each with a one-word name.
async fn register(world: &Arc<World>) -> Vec<Wanted> {
    let step = world.len() / PUBLISHERS;
    let mut wanted = Vec::new();
    for owner in (0..PUBLISHERS).map(|number| number * step) {
        let file = entry(&format!("song{owner}"), &format!("bytes of {owner}"));
        let node = world.act(owner);
        node.register(std::slice::from_ref(&file)).await;
        world.rest().await;
        wanted.extend(queries(&file).map(|query| Wanted { query, file: file.clone(), owner }));
    }
    wanted
}

/// Number of requests that a peer has sent for its searches.
fn asked(node: &PeerNode) -> u64 {
    node.metrics.lookup_messages() + node.metrics.sent_of("find")
}

/// Searches from one peer. Returns the hops and the number of requests.
async fn search(world: &Arc<World>, searcher: usize, wanted: &Wanted) -> (usize, u64) {
    let node = world.act(searcher);
    let before = asked(&node);
    let found = node.search(&wanted.query).await;
    assert_eq!(found.len(), 1, "{searcher} searches for {:?}", wanted.query);
    assert_eq!((&found[0].entry, &found[0].peers[..]), (&wanted.file, &[wire::at(wanted.owner)][..]));
    let key = Key::of_query(&wanted.query).unwrap();
    let cost = (hops(world, searcher, &key, &world.dialled()), asked(&node) - before);
    world.rest().await;
    cost
}

/// The longest distance to a holder of a key: a peer is one hop further than the nearest of the peers reached before it that
/// name it when they are asked about the key.
fn hops(world: &World, searcher: usize, key: &Key, dialled: &[usize]) -> usize {
    if world.placement == Placement::Rendezvous {
        // The holders are known.
        return dialled.len().min(1);
    }
    let mut ways = HashMap::from([(searcher, 0)]);
    for peer in [searcher].iter().chain(dialled) {
        let Some(hops) = ways.get(peer).copied() else { continue };
        for named in world.names(*peer, key) {
            let known = ways.entry(named).or_insert(hops + 1);
            *known = (hops + 1).min(*known);
        }
    }
    world
        .nearest(key, world.placement.replicas())
        .iter()
        .filter_map(|holder| ways.get(holder))
        .copied()
        .max()
        .unwrap_or(0)
}

/// Registers files in a network, and searches for them.
async fn simulate_searches(placement: Placement, peers: usize) -> Cost {
    let world = World::new(&Setting { placement, peers, life: LIFE, churn: None });
    let wanted = register(&world).await;
    let (mut known, mut hops, mut messages) = (0, 0, 0);
    for (number, wanted) in wanted.iter().enumerate() {
        // Publishers do not search.
        let searcher = (number * peers / SEARCHES + 1) % peers;
        let search = search(&world, searcher, wanted).await;
        known += world.contacts(searcher).len();
        hops += search.0;
        messages += search.1;
    }
    let average = |sum: f64| sum / SEARCHES as f64;
    let (known, hops, messages) = (average(known as f64), average(hops as f64), average(messages as f64));
    Cost { placement, peers, known, hops, messages }
}

/// Runs in a separate runtime, so that everything is gone afterwards.
fn alone<T>(simulation: impl Future<Output = T>) -> T {
    // Time stands still while anything runs. Otherwise a slow machine would ask more holders than necessary.
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(simulation)
}

/// Measures the cost of a search, and prints it.
fn simulate(placement: Placement, peers: usize) -> Cost {
    let cost = alone(simulate_searches(placement, peers));
    let Cost { known, hops, messages, .. } = &cost;
    println!("{:>12} {peers:>8} {known:>8.0} {hops:>8.2} {messages:>8.1}", format!("{:?}", cost.placement));
    cost
}

/// Measures networks of these sizes, each larger than the one before.
fn expect_logarithmic_cost<const SIZES: usize>(sizes: [usize; SIZES]) {
    println!("{:>12} {:>8} {:>8} {:>8} {:>8}", "placement", "peers", "known", "hops", "messages");
    let costs = sizes.map(|peers| simulate(Placement::Nearest, peers));
    for cost in &costs {
        // Each hop leads to one of as many peers as a bucket holds, and so that much nearer (Maymounkov and Mazieres, 2002).
        let bound = 1.0 + cost.log() / (K_VALUE.get() as f64).log2();
        assert!(cost.hops >= 1.0 && cost.hops <= bound, "{} hops among {} peers", cost.hops, cost.peers);
    }
    for pair in costs.windows(2) {
        let [fewer, more] = pair else { unreachable!() };
        assert!(more.hops / more.log() <= SLACK * fewer.hops / fewer.log(), "{costs:?}");
        assert!(more.messages / more.log() <= SLACK * fewer.messages / fewer.log(), "{costs:?}");
    }
}

#[test]
fn the_cost_of_a_search_grows_as_the_logarithm_of_the_number_of_peers() {
    expect_logarithmic_cost([100, 1_000, 10_000]);
}

#[test]
#[ignore = "takes minutes, and is for a release build"]
fn at_scale() {
    expect_logarithmic_cost([1_000, 10_000, 100_000]);
    churn::print_at_scale([1_000, 10_000, 100_000]);
}

#[test]
fn where_each_peer_knows_all_others_a_search_is_one_message_at_most_however_many_they_are() {
    for peers in [100, MEMBERS_MAX] {
        let cost = simulate(Placement::Rendezvous, peers);
        assert_eq!(cost.known, (peers - 1) as f64);
        assert!(cost.hops > 0.5 && cost.hops <= 1.0, "{cost:?}");
        assert!(cost.messages >= cost.hops && cost.messages <= 1.0, "{cost:?}");
    }
}
