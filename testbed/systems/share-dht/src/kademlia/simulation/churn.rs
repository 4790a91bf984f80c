//! What becomes of searches while peers come and go.
//!
//! Some seats share a file each, and whoever takes such a seat shares the same file: it registers it when it comes, and
//! renews it as the product does. Who leaves is killed: it says nothing, its connections close, and it refuses new ones.
//! So a search may miss a file, because those that it asks hold nothing yet, or find it at a peer that is gone.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use libp2p_kad::K_VALUE;
use share::entry::{Entry, Query};
use tokio::time::Instant;

use super::{
    alone, asked, hops, queries,
    sessions::Churn,
    wire::at,
    world::{Setting, World, settle},
};
use crate::{key::Key, network::Routing as _, placement::Placement, testing::entry};

/// The time between two steps. Peers come and go in between.
const STEP: Duration = Duration::from_secs(5);
/// The product's default for `--life`.
const LIFE: Duration = Duration::from_secs(120);
/// Steps in which all that is held of peers that are gone expires, and holders are looked up again.
const QUIET: u32 = 50;
const _: () = assert!(QUIET as u64 * STEP.as_secs() > 2 * LIFE.as_secs());

/// A file that one peer after the other shares.
struct Shared {
    seat: usize,
    file: Entry,
    owner: usize,
}

/// What searches found, and what they cost.
#[derive(Debug, Default)]
struct Tally {
    searches: usize,
    hops: usize,
    messages: u64,
    /// Searches that did not find the file at the peer that has it.
    missed: usize,
    /// Searches that found it at a peer that was gone.
    stale: usize,
    /// The longest time for which such a peer had been gone.
    staleness_max: Duration,
}

/// A network while it runs.
struct Course {
    world: Arc<World>,
    step: u32,
    begun: Instant,
    files: Vec<Shared>,
    /// Peers that shared a file and are gone, and since when.
    gone: HashMap<SocketAddr, Instant>,
    random: fastrand::Rng,
}

impl Course {
    async fn begin(peers: usize, files: usize, churn: Option<Churn>) -> Self {
        let setting = Setting { placement: Placement::Nearest, peers, life: LIFE, churn };
        let world = World::new(&setting);
        let shared = |number: usize| {
            let seat = number * peers / files;
            let file = entry(&format!("song{number}"), &format!("bytes of {number}"));
            Shared { seat, file, owner: world.on_seat(seat) }
        };
        let files: Vec<_> = (0..files).map(shared).collect();
        for shared in &files {
            register(&world, shared).await;
        }
        let random = fastrand::Rng::with_seed(peers as u64);
        Self { world, step: 0, begun: Instant::now(), files, gone: HashMap::new(), random }
    }

    /// Goes on to the next step, and lets everybody do what is due.
    async fn advance(&mut self) {
        self.step += 1;
        tokio::time::sleep_until(self.begun + STEP * self.step).await;
        let came = self.world.advance().await;
        self.welcome(&came).await;
        self.succeed().await;
        self.world.expire();
        for (number, shared) in self.files.iter().enumerate() {
            let node = self.world.act(shared.owner);
            let every = node.renew_interval().as_secs() / STEP.as_secs();
            if (u64::from(self.step) + number as u64).is_multiple_of(every) {
                node.renew().await;
            } else {
                // As the product does whenever its routing table changes.
                node.rearrange().await;
            }
            self.world.rest().await;
        }
    }

    /// Lets those that came near a key of a file make themselves known there. Nobody who runs would notice the others.
    async fn welcome(&self, came: &HashSet<usize>) {
        let keys = self.files.iter().flat_map(|shared| queries(&shared.file));
        for key in keys.filter_map(|query| Key::of_query(&query)) {
            let near = self.world.nearest(&key, K_VALUE.get());
            for newcomer in near.into_iter().filter(|peer| came.contains(peer)) {
                let node = self.world.act(newcomer);
                node.routing.look_up(&key).await;
                // Those that it met learn who it is.
                settle().await;
                self.world.rest().await;
            }
        }
    }

    /// Gives the files of those that are gone to their successors.
    async fn succeed(&mut self) {
        for shared in self.files.iter_mut().filter(|shared| !self.world.is_there(shared.owner)) {
            self.gone.insert(at(shared.owner), Instant::now());
            shared.owner = self.world.on_seat(shared.seat);
            register(&self.world, shared).await;
        }
    }

    /// A peer that is there and shares nothing.
    fn searcher(&mut self) -> usize {
        loop {
            let peer = self.random.usize(0..self.world.len());
            if self.world.is_there(peer) && self.files.iter().all(|shared| shared.owner != peer) {
                return peer;
            }
        }
    }

    /// Searches for any file in any way, from anywhere.
    async fn search_any(&mut self, tally: &mut Tally) {
        let number = self.random.usize(0..self.files.len());
        let query = self.random.choice(queries(&self.files[number].file)).unwrap();
        self.search(number, &query, tally).await;
    }

    /// Searches for each file in each way.
    async fn search_all(&mut self) -> Tally {
        let mut tally = Tally::default();
        for number in 0..self.files.len() {
            for query in queries(&self.files[number].file) {
                self.search(number, &query, &mut tally).await;
            }
        }
        tally
    }

    async fn search(&mut self, number: usize, query: &Query, tally: &mut Tally) {
        let (searcher, begun) = (self.searcher(), Instant::now());
        let owner = at(self.files[number].owner);
        let node = self.world.act(searcher);
        let before = asked(&node);
        let found = node.search(query).await;
        let key = Key::of_query(query).unwrap();
        tally.searches += 1;
        tally.hops += hops(&self.world, searcher, &key, &self.world.dialled());
        tally.messages += asked(&node) - before;
        self.world.rest().await;
        let found: HashSet<_> = found.into_iter().flat_map(|found| found.peers).collect();
        tally.missed += usize::from(!found.contains(&owner));
        let stale = found.iter().filter(|at| **at != owner).map(|at| begun - self.gone[at]);
        let longest = stale.max();
        tally.stale += usize::from(longest.is_some());
        tally.staleness_max = tally.staleness_max.max(longest.unwrap_or_default());
    }
}

/// Registers a file at the peer that has it now.
async fn register(world: &Arc<World>, shared: &Shared) {
    world.act(shared.owner).register(std::slice::from_ref(&shared.file)).await;
    world.rest().await;
}

/// How peers come and go during `steps` if each stays for `session` steps on average, or all stay.
fn churn(session: Option<u32>, steps: u32) -> Option<Churn> {
    session.map(|session| Churn { session, until: steps })
}

/// Searches once in each of these steps.
async fn search_in_each_step(course: &mut Course, steps: u32) -> Tally {
    let mut tally = Tally::default();
    for _ in 0..steps {
        course.advance().await;
        course.search_any(&mut tally).await;
    }
    tally
}

/// Searches while peers come and go, and again for everything some time after the last one has. Returns what was found meanwhile
/// and in the end.
async fn observe(session: Option<u32>, steps: u32) -> [Tally; 2] {
    let mut course = Course::begin(200, 4, churn(session, steps)).await;
    let meanwhile = search_in_each_step(&mut course, steps).await;
    for _ in 0..QUIET {
        course.advance().await;
    }
    [meanwhile, course.search_all().await]
}

/// Prints a tally as a line of the table.
fn print_line(peers: usize, session: &str, tally: &Tally) {
    let searches = tally.searches as f64;
    let percent = |count: usize| 100.0 * count as f64 / searches;
    println!(
        "{peers:>8} {session:>8} {:>8} {:>8.2} {:>8.1} {:>8.1} {:>8.1} {:>10.0}",
        tally.searches,
        tally.hops as f64 / searches,
        tally.messages as f64 / searches,
        percent(tally.missed),
        percent(tally.stale),
        tally.staleness_max.as_secs_f64()
    );
}

/// Prints what becomes of searches in networks of these sizes during ten minutes.
pub(super) fn print_at_scale<const SIZES: usize>(sizes: [usize; SIZES]) {
    println!(
        "{:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>10}",
        "peers", "session", "searches", "hops", "messages", "missed %", "stale %", "at most s"
    );
    for peers in sizes {
        for (name, session) in [("no end", None), ("1 h", Some(720)), ("10 min", Some(120))] {
            let tally = alone(async {
                let mut course = Course::begin(peers, 12, churn(session, 120)).await;
                search_in_each_step(&mut course, 120).await
            });
            print_line(peers, name, &tally);
        }
    }
}

#[test]
fn where_all_stay_every_search_finds_what_there_is_and_nothing_else() {
    let [meanwhile, end] = alone(observe(None, 30));
    assert_eq!((meanwhile.searches, end.searches), (30, 12));
    for tally in [meanwhile, end] {
        assert_eq!((tally.missed, tally.stale), (0, 0), "{tally:?}");
    }
}

#[test]
fn who_is_gone_is_found_no_longer_than_until_its_lease_ends_and_what_came_is_found() {
    let [meanwhile, end] = alone(observe(Some(40), 40));
    assert_eq!((meanwhile.searches, end.searches), (40, 12));
    // It renewed its lease before it went.
    assert!(meanwhile.stale > 0 && meanwhile.staleness_max < LIFE, "{meanwhile:?}");
    // Whoever has the file has told those that are asked of it, as far as they are still there.
    assert!(meanwhile.missed * 4 <= meanwhile.searches, "{meanwhile:?}");
    assert_eq!((end.missed, end.stale), (0, 0), "{end:?}");
}
