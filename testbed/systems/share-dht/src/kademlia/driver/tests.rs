use std::path::Path;

use futures::StreamExt;
use libp2p_identify as identify;
use tokio::runtime::Builder;

use super::*;
use crate::{
    kademlia::{Admission, Identity, Network, Table},
    metrics::Metrics,
    network::Transport,
    node::Node,
};

fn anyone() -> Admission {
    Admission { members: None, metrics: Metrics::default() }
}

/// A driver of a peer that nobody has joined yet.
async fn driver(state: &Path) -> (Driver, Arc<PeerNode>, SocketAddr) {
    driver_of(Placement::Nearest, state).await
}

async fn driver_of(placement: Placement, state: &Path) -> (Driver, Arc<PeerNode>, SocketAddr) {
    let identity = Identity::open(state, None).unwrap();
    let (network, commands) = Network::new(Table::new(identity.peer(), placement));
    let node = Arc::new(Node::new(network.clone(), network, Duration::from_secs(120)));
    let mut driver = Driver::new(
        identity.swarm(placement, false, anyone()).unwrap(),
        commands,
        Arc::clone(&node),
        Joining::default(),
    );
    let at = driver.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    (driver, node, at)
}

#[test]
fn a_peer_is_the_same_after_a_restart_and_another_is_another() {
    let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let peer = |folder: &tempfile::TempDir| Identity::open(folder.path(), None).unwrap().peer();
    assert_eq!(peer(&one), peer(&one));
    assert_ne!(peer(&one), peer(&other));
}

#[test]
fn a_peer_of_another_version_is_told_of_and_turned_away() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let (driver, node, at) = driver(here.path()).await;
        tokio::spawn(driver.run());
        node.routing.join().await;

        let identity = Identity::open(there.path(), None).unwrap();
        let speaks = identify::Config::new("/nstar/share/0".into(), identity.keys.public());
        let mut incompatible = identity.swarm(Placement::Nearest, false, anyone()).unwrap();
        incompatible.behaviour_mut().identify = identify::Behaviour::new(speaks);
        incompatible.dial(to_multi(at)).unwrap();
        let turned_away = async {
            while !matches!(incompatible.next().await, Some(SwarmEvent::ConnectionClosed { .. })) {}
        };
        tokio::time::timeout(Duration::from_secs(60), turned_away).await.unwrap();
        let why = node.routing.table.incompatible(Instant::now()).unwrap();
        assert!(why.contains("/nstar/share/0") && why.contains("another version"), "{why}");
        assert_eq!(node.routing.table.len(), 0);
    });
}

/// Waits until a peer reports an incompatible one, and returns the reason.
async fn reported_incompatible(node: &PeerNode) -> String {
    loop {
        match node.routing.table.incompatible(Instant::now()) {
            Some(why) => return why,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[test]
fn peers_of_the_two_kinds_of_index_turn_each_other_away_and_say_why() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let (near, node_near, at) = driver_of(Placement::Nearest, here.path()).await;
        let (mut weighs, node_weighs, _) = driver_of(Placement::Rendezvous, there.path()).await;
        weighs.swarm.dial(to_multi(at)).unwrap();
        tokio::spawn(near.run());
        tokio::spawn(weighs.run());
        node_near.routing.join().await;
        node_weighs.routing.join().await;
        for (node, here, there) in
            [(node_near, "--dht", "--partitioned"), (node_weighs, "--partitioned", "--dht")]
        {
            let why = tokio::time::timeout(Duration::from_secs(60), reported_incompatible(&node)).await;
            let why = why.unwrap_or_else(|_| panic!("{here} was told nothing"));
            assert!(why.contains(&format!("started with {there}, and this one with {here}")), "{why}");
            assert_eq!(node.routing.table.len(), 0);
        }
    });
}

#[test]
fn a_port_in_use_is_not_shared() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let (_listening, _, at) = driver(here.path()).await;
        let (mut other, ..) = driver(there.path()).await;
        let refused = other.listen(at).await.unwrap_err().to_string();
        assert!(refused.contains(&at.to_string()) && refused.contains("in use"), "{refused}");
    });
}

/// Why a peer of a group, created in this folder, cannot reach an address.
async fn unreached(state: &Path, at: SocketAddr) -> String {
    let identity = Identity::open(state, Some(&state.join("group"))).unwrap();
    let mut swarm = identity.swarm(Placement::Nearest, false, anyone()).unwrap();
    swarm.dial(to_multi(at)).unwrap();
    loop {
        if let SwarmEvent::OutgoingConnectionError { error, .. } = swarm.select_next_some().await {
            return explain(&error);
        }
    }
}

#[test]
fn a_dead_peer_is_told_from_one_of_another_group() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        // Bound without listening: no other test gets the port, and connections are refused.
        let bound = tokio::net::TcpSocket::new_v4().unwrap();
        bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let refused = unreached(there.path(), bound.local_addr().unwrap()).await;
        assert!(refused.contains("refused"), "{refused}");

        let (driver, _, at) = driver(here.path()).await;
        tokio::spawn(driver.run());
        let another = unreached(there.path(), at).await;
        assert!(another.contains("of another secret"), "{another}");
    });
}

/// A peer that joins another and freezes once it is known there: its connections stay, but nobody responds.
fn stand_still(state: &Path, join: SocketAddr, met: Arc<PeerNode>) -> PeerId {
    let identity = Identity::open(state, None).unwrap();
    let peer = identity.peer();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut swarm = identity.swarm(Placement::Nearest, false, anyone()).unwrap();
            swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
            while !matches!(swarm.next().await, Some(SwarmEvent::NewListenAddr { .. })) {}
            swarm.dial(to_multi(join)).unwrap();
            while met.routing.table.len() == 0 {
                let _ = tokio::time::timeout(Duration::from_millis(10), swarm.next()).await;
            }
            loop {
                std::thread::park();
            }
        });
    });
    peer
}

#[test]
fn a_peer_that_answers_no_longer_is_forgotten_though_its_connection_stays() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let forgotten = async {
        let (driver, node, at) = driver(here.path()).await;
        tokio::spawn(driver.run());
        let silent = stand_still(there.path(), at, Arc::clone(&node));
        while node.routing.table.len() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(node.transport.ask(silent, Request::Leave).await.is_err());
        while node.routing.table.len() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), forgotten).await.unwrap() });
}
