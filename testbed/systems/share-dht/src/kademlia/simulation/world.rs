//! The peers of a simulated network: who they are, when they are there, whom each knows, and which of them run.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    io,
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, join_all, pending},
};
use libp2p_identity::{Keypair, PeerId};
use libp2p_kad::{K_VALUE, KBucketKey};
use libp2p_swarm::Swarm;
use tokio::{sync::watch, task::AbortHandle};
use tokio_util::compat::TokioAsyncReadCompatExt;

use super::{
    sessions::{Churn, sessions},
    wire::{Caller, End, Peers, Wire, at},
};
use crate::{
    kademlia::{
        Driver, Identity, Joining, Network, PeerNode, Table, addresses::to_multi, behaviour::Behaviour,
    },
    key::Key,
    message::Request,
    network::Transport as _,
    node::Node,
    placement::{Placement, Position},
};

/// A peer that never responds.
const SILENT: usize = 1 << 20;
/// Capacity of a pipe in each direction, bytes.
const PIPE_LEN: usize = 64 * 1024;
const SEED: &str = "nstar share: simulation 1";

/// What network to simulate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) placement: Placement,
    /// Number of peers at any time.
    pub(super) peers: usize,
    /// How long peers believe each other without renewal.
    pub(super) life: Duration,
    /// How peers come and go; `None` if all stay.
    pub(super) churn: Option<Churn>,
}

/// A peer, running or not. Only some are running at a time, so the rest must be small.
struct Member {
    number: usize,
    seat: usize,
    place: Position,
    /// The steps in which it is there.
    session: Range<u32>,
}

/// A running peer, which stops when it is dropped, as if its process were killed: its connections close.
struct Running {
    node: Arc<PeerNode>,
    caller: Caller,
    driving: AbortHandle,
}

/// What is going on.
#[derive(Debug, Clone, Copy, Default)]
struct Moment {
    /// Number of the current step. Peers come and go between steps.
    step: u32,
    /// The peer that is acting. All others respond, but connect to nobody until it is their turn. Otherwise looking after their
    /// routing tables would start one peer after the other.
    acting: Option<usize>,
}

/// All peers that are ever there. A peer's number is its rank by position, so that the peers of one bucket are neighbours. As
/// many as [`Setting::peers`] are there at any time: each has a seat, which another takes when it leaves.
pub(super) struct World {
    pub(super) placement: Placement,
    life: Duration,
    members: Vec<Member>,
    running: Mutex<HashMap<usize, Running>>,
    moment: watch::Sender<Moment>,
    dialled: Mutex<Vec<usize>>,
}

/// The keys of a peer.
fn keys(number: usize) -> Keypair {
    Keypair::ed25519_from_bytes(blake3::derive_key(SEED, &number.to_le_bytes())).unwrap()
}

fn has_bit(hash: &[u8], bit: usize) -> bool {
    hash[bit / 8] << (bit % 8) & 0x80 != 0
}

/// Keeps a swarm's Kademlia from filling its table by itself.
///
/// It would do so half a second after the first peers are added, and has no setting against it. But it does not while it
/// is doing it already, so it is made to wait for a peer that never responds.
fn hold_back(swarm: &mut Swarm<Behaviour>) {
    let silent = PeerId::random();
    swarm.behaviour_mut().kad.add_address(&silent, to_multi(at(SILENT)));
    swarm.behaviour_mut().kad.bootstrap().unwrap();
    drain(swarm);
    swarm.behaviour_mut().kad.remove_peer(&silent);
}

/// Lets all peers do everything that they can do at once: time passes only then.
pub(super) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Lets a swarm do everything that it can do at once.
fn drain(swarm: &mut Swarm<Behaviour>) {
    while swarm.next().now_or_never().is_some() {}
}

impl Member {
    fn new(number: usize, seat: usize, session: Range<u32>) -> Self {
        Self { number, seat, place: keys(number).public().to_peer_id().into(), session }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.driving.abort();
    }
}

impl World {
    pub(super) fn new(setting: &Setting) -> Arc<Self> {
        let mut members: Vec<Member> = Vec::with_capacity(setting.peers);
        for seat in 0..setting.peers {
            for session in sessions(seat, setting.churn) {
                members.push(Member::new(members.len(), seat, session));
            }
        }
        assert!(members.len() < SILENT, "the number of the silent peer is taken");
        members.sort_by(|one, other| one.place.hashed_bytes().cmp(other.place.hashed_bytes()));
        let (running, dialled) = (Mutex::default(), Mutex::default());
        let (placement, life) = (setting.placement, setting.life);
        Arc::new(Self { placement, life, members, running, moment: watch::Sender::default(), dialled })
    }

    /// Number of peers that are ever there.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    fn step(&self) -> u32 {
        self.moment.borrow().step
    }

    /// Whether a peer is there now.
    pub(super) fn is_there(&self, peer: usize) -> bool {
        self.members[peer].session.contains(&self.step())
    }

    /// The peer that has a seat now.
    pub(super) fn on_seat(&self, seat: usize) -> usize {
        self.living(0..self.len()).find(|peer| self.members[*peer].seat == seat).unwrap()
    }

    /// The peers of a range that are there now.
    fn living(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let step = self.step();
        range.filter(move |peer| self.members[*peer].session.contains(&step))
    }

    /// The first peer of a range that has a bit set, where the positions in the range share all bits before it.
    fn middle(&self, range: &Range<usize>, bit: usize) -> usize {
        let clear = |member: &Member| !has_bit(member.place.hashed_bytes(), bit);
        range.start + self.members[range.clone()].partition_point(clear)
    }

    /// A random choice of as many as a bucket holds.
    fn some(&self, range: Range<usize>, random: &mut fastrand::Rng) -> Vec<usize> {
        let few: Vec<_> = self.living(range.clone()).take(K_VALUE.get() + 1).collect();
        if few.len() <= K_VALUE.get() {
            return few;
        }
        let mut chosen = BTreeSet::new();
        while chosen.len() < K_VALUE.get() {
            let peer = random.usize(range.clone());
            if self.is_there(peer) {
                chosen.insert(peer);
            }
        }
        chosen.into_iter().collect()
    }

    /// The peers that a peer knows when it starts: from each bucket as many as it holds, chosen at random among those there
    /// (Maymounkov and Mazieres, Kademlia, 2002, section 2.2), or all others. Always the same for one peer in one step.
    ///
    /// Nobody who is gone is among them: a peer keeps connections to all that it knows, connects again to one that ends, and
    /// forgets a peer that refuses that.
    pub(super) fn contacts(&self, peer: usize) -> Vec<usize> {
        if self.placement == Placement::Rendezvous {
            return self.living(0..self.len()).filter(|other| *other != peer).collect();
        }
        let mut random = fastrand::Rng::with_seed(peer as u64);
        let mut own = 0..self.len();
        let mut contacts = Vec::new();
        for bit in 0.. {
            if own.len() == 1 {
                break;
            }
            let middle = self.middle(&own, bit);
            let (near, bucket) = if peer < middle {
                (own.start..middle, middle..own.end)
            } else {
                (middle..own.end, own.start..middle)
            };
            contacts.extend(self.some(bucket, &mut random));
            own = near;
        }
        contacts
    }

    /// The peers that a running peer names when it is asked about a key.
    pub(super) fn names(&self, peer: usize, key: &Key) -> Vec<usize> {
        let running = self.running.lock().unwrap();
        let Some(Running { node, .. }) = running.get(&peer) else { return Vec::new() };
        let known = node.routing.table.others().iter().filter_map(|place| self.rank(place)).collect();
        self.sorted(key, known, K_VALUE.get())
    }

    /// The number of the peer at a position.
    fn rank(&self, place: &Position) -> Option<usize> {
        let order = |member: &Member| member.place.hashed_bytes().cmp(place.hashed_bytes());
        self.members.binary_search_by(order).ok()
    }

    /// The peers nearest to a key among all that are there. Whoever shares more bits with the key is nearer.
    pub(super) fn nearest(&self, key: &Key, count: usize) -> Vec<usize> {
        let place = KBucketKey::new(key.as_bytes().to_vec());
        let mut range = 0..self.len();
        for bit in 0..u8::BITS as usize * place.hashed_bytes().len() {
            let middle = self.middle(&range, bit);
            let half =
                if has_bit(place.hashed_bytes(), bit) { middle..range.end } else { range.start..middle };
            if self.living(half.clone()).take(count).count() < count {
                break;
            }
            range = half;
        }
        self.sorted(key, self.living(range).collect(), count)
    }

    fn sorted(&self, key: &Key, mut peers: Vec<usize>, count: usize) -> Vec<usize> {
        let key = KBucketKey::new(key.as_bytes().to_vec());
        peers.sort_by_cached_key(|peer| key.distance(&self.members[*peer].place));
        peers.truncate(count);
        peers
    }

    /// Makes a peer the acting one.
    pub(super) fn act(self: &Arc<Self>, peer: usize) -> Arc<PeerNode> {
        self.caller(peer);
        self.dialled.lock().unwrap().clear();
        self.moment.send_modify(|moment| moment.acting = Some(peer));
        Arc::clone(&self.running.lock().unwrap()[&peer].node)
    }

    /// Ends the turn of the acting peer, and stops all that hold no records: a megabyte each, most of it room that libp2p
    /// reserves in buckets. When one is connected to again, it starts with what it would know then.
    pub(super) async fn rest(&self) {
        self.moment.send_modify(|moment| moment.acting = None);
        self.running.lock().unwrap().retain(|_, running| running.node.records() > 0);
        settle().await;
    }

    /// Goes on to the next step. Who leaves is killed, so whoever knows it is refused and forgets it. Returns who has come.
    pub(super) async fn advance(&self) -> HashSet<usize> {
        self.moment.send_modify(|moment| moment.step += 1);
        let step = self.step();
        let gone = self.members.iter().filter(|member| member.session.end == step);
        let gone: HashSet<PeerId> = gone.map(|member| *member.place.preimage()).collect();
        self.running.lock().unwrap().retain(|peer, _| self.is_there(*peer));
        let reconnect = self.who_know(&gone).into_iter().map(|(node, peer)| async move {
            // It is refused.
            let _ = node.transport.ask(peer, Request::Leave).await;
        });
        join_all(reconnect).await;
        settle().await;
        (0..self.len()).filter(|peer| self.members[*peer].session.start == step).collect()
    }

    /// The running peers that know any of these, with the one that each knows.
    fn who_know(&self, these: &HashSet<PeerId>) -> Vec<(Arc<PeerNode>, PeerId)> {
        let mut all = Vec::new();
        for Running { node, .. } in self.running.lock().unwrap().values() {
            let others = node.routing.table.others();
            let known = others.iter().map(|place| *place.preimage()).filter(|peer| these.contains(peer));
            all.extend(known.map(|peer| (Arc::clone(node), peer)));
        }
        all
    }

    /// Makes all running peers forget the publishers that did not renew.
    pub(super) fn expire(&self) {
        self.running.lock().unwrap().values().for_each(|running| running.node.expire());
    }

    /// The peers that the acting one has connected to, in order.
    pub(super) fn dialled(&self) -> Vec<usize> {
        self.dialled.lock().unwrap().clone()
    }

    /// How to connect to a peer, which is started if it is not running.
    fn caller(self: &Arc<Self>, peer: usize) -> Caller {
        let mut running = self.running.lock().unwrap();
        running.entry(peer).or_insert_with(|| self.start(peer)).caller.clone()
    }

    fn start(self: &Arc<Self>, peer: usize) -> Running {
        let identity = Identity::of(keys(self.members[peer].number));
        let (wire, caller) = Wire::new(peer, Arc::clone(self) as Arc<dyn Peers>);
        let mut swarm =
            identity.swarm_over(libp2p_core::Transport::boxed(wire), self.placement, false).unwrap();
        swarm.listen_on(to_multi(at(peer))).unwrap();
        hold_back(&mut swarm);
        let contacts = self.contacts(peer);
        for contact in &contacts {
            swarm.behaviour_mut().kad.add_address(&self.id(*contact), to_multi(at(*contact)));
        }
        drain(&mut swarm);
        let table = Table::new(self.id(peer), self.placement);
        table.set(contacts.iter().map(|contact| self.members[*contact].place).collect());
        let (network, commands) = Network::new(table);
        let node = Arc::new(Node::new(network.clone(), network, self.life));
        node.set_at(at(peer));
        let driver = Driver::new(swarm, commands, Arc::clone(&node), Joining::default());
        Running { node, caller, driving: tokio::spawn(driver.run()).abort_handle() }
    }
}

impl Peers for World {
    fn id(&self, peer: usize) -> PeerId {
        *self.members[peer].place.preimage()
    }

    /// Connects once it is the turn of `from`. A peer that is gone refuses at once.
    fn connect(self: Arc<Self>, from: usize, to: usize) -> BoxFuture<'static, io::Result<End>> {
        async move {
            if to == SILENT {
                return pending().await;
            }
            let session = self.members[to].session.clone();
            let ready = |moment: &Moment| moment.acting == Some(from) || !session.contains(&moment.step);
            self.moment.subscribe().wait_for(ready).await.unwrap();
            if !self.is_there(to) {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            }
            self.dialled.lock().unwrap().push(to);
            let (near, far) = tokio::io::duplex(PIPE_LEN);
            self.caller(to).send((from, far.compat())).unwrap();
            Ok(near.compat())
        }
        .boxed()
    }
}
