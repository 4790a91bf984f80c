//! The peers of a simulated network: who they are, whom each knows, and which of them run.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, pending},
};
use libp2p_identity::{Keypair, PeerId};
use libp2p_kad::{K_VALUE, KBucketKey};
use libp2p_swarm::Swarm;
use tokio::sync::watch;
use tokio_util::compat::TokioAsyncReadCompatExt;

use super::wire::{Caller, End, Peers, Wire, at};
use crate::{
    kademlia::{
        Driver, Identity, Joining, Network, PeerNode, Table, addresses::to_multi, behaviour::Behaviour,
    },
    key::Key,
    node::Node,
    placement::Placement,
};

/// Longer than any simulation.
const LIFE: Duration = Duration::from_secs(3600);
/// A peer that never responds.
const SILENT: usize = 1 << 20;
/// Capacity of a pipe in each direction, bytes.
const PIPE_LEN: usize = 64 * 1024;
const SEED: &str = "nstar share: simulation 1";

/// A peer, running or not.
struct Member {
    keys: Keypair,
    place: KBucketKey<PeerId>,
}

/// A running peer.
struct Running {
    node: Arc<PeerNode>,
    caller: Caller,
}

/// All peers. A peer's number is its rank by position, so that the peers of one bucket are neighbours.
pub(super) struct World {
    pub(super) placement: Placement,
    members: Vec<Member>,
    running: Mutex<HashMap<usize, Running>>,
    /// The peer that is acting. All others respond, but connect to nobody until it is their turn. Otherwise looking after their
    /// routing tables would start one peer after the other.
    acting: watch::Sender<Option<usize>>,
    dialled: Mutex<Vec<usize>>,
}

/// A random choice of as many as a bucket holds.
fn some(range: Range<usize>, random: &mut fastrand::Rng) -> Vec<usize> {
    if range.len() <= K_VALUE.get() {
        return range.collect();
    }
    let mut chosen = BTreeSet::new();
    while chosen.len() < K_VALUE.get() {
        chosen.insert(random.usize(range.clone()));
    }
    chosen.into_iter().collect()
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

/// Lets a swarm do everything that it can do at once.
fn drain(swarm: &mut Swarm<Behaviour>) {
    while swarm.next().now_or_never().is_some() {}
}

impl World {
    pub(super) fn new(placement: Placement, peers: usize) -> Arc<Self> {
        let mut members: Vec<_> = (0..peers)
            .map(|number| {
                let seed = blake3::derive_key(SEED, &number.to_le_bytes());
                let keys = Keypair::ed25519_from_bytes(seed).unwrap();
                let place = keys.public().to_peer_id().into();
                Member { keys, place }
            })
            .collect();
        members.sort_by(|one, other| one.place.hashed_bytes().cmp(other.place.hashed_bytes()));
        let (running, dialled) = (Mutex::default(), Mutex::default());
        Arc::new(Self { placement, members, running, acting: watch::Sender::new(None), dialled })
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// The peers that a peer knows: from each bucket as many as it holds, chosen at random (Maymounkov and Mazieres, Kademlia,
    /// 2002, section 2.2), or all others. Always the same for one peer.
    pub(super) fn contacts(&self, peer: usize) -> Vec<usize> {
        if self.placement == Placement::Rendezvous {
            return (0..self.len()).filter(|other| *other != peer).collect();
        }
        let mut random = fastrand::Rng::with_seed(peer as u64);
        let (mut from, mut to) = (0, self.len());
        let mut contacts = Vec::new();
        for bit in 0.. {
            if to - from == 1 {
                break;
            }
            let has_bit = |member: &Member| member.place.hashed_bytes()[bit / 8] << (bit % 8) & 0x80 != 0;
            let middle = from + self.members[from..to].partition_point(|member| !has_bit(member));
            let (own, bucket) =
                if peer < middle { (from..middle, middle..to) } else { (middle..to, from..middle) };
            contacts.extend(some(bucket, &mut random));
            (from, to) = (own.start, own.end);
        }
        contacts
    }

    /// The peers that a peer names when it is asked about a key.
    pub(super) fn names(&self, peer: usize, key: &Key) -> Vec<usize> {
        self.sorted(key, self.contacts(peer), K_VALUE.get())
    }

    /// The peers nearest to a key among all.
    pub(super) fn nearest(&self, key: &Key, count: usize) -> Vec<usize> {
        self.sorted(key, (0..self.len()).collect(), count)
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
        self.acting.send_replace(Some(peer));
        Arc::clone(&self.running.lock().unwrap()[&peer].node)
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
        let identity = Identity::of(self.members[peer].keys.clone());
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
        let node = Arc::new(Node::new(network.clone(), network, LIFE));
        node.set_at(at(peer));
        let driver = Driver::new(swarm, commands, Arc::clone(&node), Joining::default());
        tokio::spawn(driver.run());
        Running { node, caller }
    }
}

impl Peers for World {
    fn id(&self, peer: usize) -> PeerId {
        *self.members[peer].place.preimage()
    }

    /// Connects once it is the turn of `from`.
    fn connect(self: Arc<Self>, from: usize, to: usize) -> BoxFuture<'static, End> {
        async move {
            if to == SILENT {
                return pending().await;
            }
            self.acting.subscribe().wait_for(|acting| *acting == Some(from)).await.unwrap();
            self.dialled.lock().unwrap().push(to);
            let (near, far) = tokio::io::duplex(PIPE_LEN);
            self.caller(to).send((from, far.compat())).unwrap();
            near.compat()
        }
        .boxed()
    }
}
