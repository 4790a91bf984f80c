//! Eight peers, each in a network namespace of its own. Needs root.

use std::{
    os::unix::fs::MetadataExt,
    process::{Command, Stdio},
};

use super::eventually;
use crate::{
    serve::listening,
    support::{Nstar, Place, Running, is_root_or_skip},
};

/// Peers, and the port each of them has at its own address.
const PEERS: usize = 8;
const PORT: u16 = 8085;

/// Waits until the namespace has its address, then becomes the program.
const WAIT: &str =
    "until ip addr show dev eth0 2>/dev/null | grep -q 198.18; do sleep 0.02; done; exec \"$@\"";

/// Two bridges in a namespace of their own, joined by a link that may be cut. Nothing of it is in the host's namespace,
/// and it goes with its processes.
struct Network {
    place: Place,
    hub: Running,
}

fn run(command: &str) {
    let output = Command::new("sh").args(["-ec", command]).stdin(Stdio::null()).output().expect("a shell");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// 198.18.0.0/15 is for benchmarks (RFC 2544).
fn address(number: usize) -> String {
    format!("198.18.0.{}", number + 1)
}

/// Waits until a process is in a network namespace of its own.
fn separated(process: Running) -> Running {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let pid = process.pid().to_string();
    eventually("a namespace", || namespace(&pid).is_some_and(|its| Some(its) != namespace("self")));
    process
}

impl Network {
    fn new() -> Self {
        let place = Place::new();
        // The index listens in the hub itself.
        let (at, wait) = (format!("{}:{PORT}", address(100)), WAIT.replace("eth0", "west"));
        let words = ["serve", "index", "--secret-file", "secret", "--listen", &at];
        let hub = separated(place.wrapped(["unshare", "--net", "sh", "-c", &wait, "sh"], words).start());
        let mut network = Self { place, hub };
        // So slow between the two that a large file is still on its way when the link is cut.
        network.in_hub(&format!(
            "ip link add west type bridge; ip link add east type bridge; \
             ip link add middle type veth peer name centre; \
             ip link set middle master west; ip link set centre master east; \
             tc qdisc add dev middle root tbf rate 2mbit burst 32kb latency 200ms; \
             for link in lo west east middle centre; do ip link set $link up; done; \
             ip addr add {}/24 dev west",
            address(100)
        ));
        listening(&mut network.hub);
        network
    }

    fn in_hub(&self, command: &str) {
        run(&format!("nsenter --net --target {} sh -ec '{command}'", self.hub.pid()));
    }

    /// A peer in a namespace of its own, the first half of them on the west side.
    fn peer(&self, number: usize) -> Running {
        self.peer_with(number, &["--index", &format!("{}:{PORT}", address(100))])
    }

    /// The same, with another index.
    fn peer_with(&self, number: usize, index: &[&str]) -> Running {
        let (folder, listen) = (format!("peer{number}"), format!("{}:{PORT}", address(number)));
        let words = ["serve", "peer", "--share", &folder, "--secret-file", "secret", "--listen", &listen];
        let words = words.iter().chain(index);
        let wrapper = ["unshare", "--net", "sh", "-c", WAIT, "sh"];
        let mut peer = separated(self.place.wrapped(wrapper, words).start());
        let side = if number < PEERS / 2 { "west" } else { "east" };
        let pid = peer.pid();
        self.in_hub(&format!(
            "ip link add peer{number} type veth peer name eth0 netns {pid}; \
             ip link set peer{number} master {side} up"
        ));
        run(&format!(
            "nsenter --net --target {pid} sh -ec 'ip link set eth0 up; ip route add 224.0.0.0/4 dev eth0; \
             ip addr add {}/24 dev eth0'",
            address(number)
        ));
        listening(&mut peer);
        peer
    }

    /// `nstar share ARGS`, asked of a peer from within the hub.
    fn ask(&self, number: usize, args: &[&str]) -> Nstar {
        let (hub, peer) = (self.hub.pid().to_string(), format!("{}:{PORT}", address(number)));
        let rest = ["--secret-file", "secret", "--peer", &peer];
        let words = ["share"].iter().chain(args).chain(&rest);
        self.place.wrapped(["nsenter", "--net", "--target", &hub], words)
    }

    /// The same, until it succeeds.
    fn ask_until(&self, number: usize, args: &[&str]) {
        eventually("it is answered", || self.ask(number, args).run().status.success());
    }
}

#[test]
fn eight_peers_in_eight_namespaces_share_and_a_partition_heals() {
    if !is_root_or_skip("eight_peers_in_eight_namespaces_share_and_a_partition_heals") {
        return;
    }
    let network = Network::new();
    let large: Vec<_> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    network.place.write("peer0/large.bin", &large);
    for number in 0..PEERS {
        network.place.write(&format!("peer{number}/own {number}.txt"), format!("of {number}"));
    }
    let peers: Vec<_> = (0..PEERS).map(|number| network.peer(number)).collect();
    for number in 0..PEERS {
        let (name, taker) = (format!("own {number}.txt"), (number + PEERS / 2) % PEERS);
        network.ask_until(taker, &["get", &name]);
        let taken = network.place.path(&format!("peer{taker}/{name}"));
        assert_eq!(std::fs::read_to_string(taken).expect("a file"), format!("of {number}"));
    }

    network.ask_until(7, &["search", "large.bin"]);
    let get = network.ask(7, &["get", "large.bin"]).start();
    let part = network.place.path(&format!("peer7/.nstar/parts/{}.data", blake3::hash(&large)));
    eventually("some of it comes", || std::fs::metadata(&part).is_ok_and(|part| part.blocks() > 0));
    network.in_hub("ip link set middle down");
    network.ask(1, &["get", "large.bin"]).run().exits(0).says("large.bin");
    assert!(!network.place.path("peer7/large.bin").exists(), "nothing comes from the other side");
    network.in_hub("tc qdisc del dev middle root; ip link set middle up");
    // A machine that stood still for long may have made it give up: then asking again goes on.
    let first = get.finish();
    assert!(first.status.success() || first.stderr.contains("what came is kept"), "{first}");
    network.ask_until(7, &["get", "large.bin"]);
    for side in ["peer1", "peer7"] {
        assert!(std::fs::read(network.place.path(&format!("{side}/large.bin"))).expect("a file") == large);
    }
    network.ask_until(5, &["search", "own 1.txt"]);
    drop(peers);
}

#[test]
fn peers_of_one_network_find_each_other_by_multicast() {
    if !is_root_or_skip("peers_of_one_network_find_each_other_by_multicast") {
        return;
    }
    let network = Network::new();
    network.place.write("peer0/far away.txt", "found");
    network.place.write(&format!("peer{}/own.txt", PEERS - 1), "own");
    let peer =
        |number| network.peer_with(number, &["--dht", "--dht-listen", &format!("{}:8086", address(number))]);
    // One on each side, and nobody is told of the other.
    let peers = [0, PEERS - 1].map(peer);
    network.ask_until(PEERS - 1, &["get", "far away.txt"]);
    let taken = network.place.path(&format!("peer{}/far away.txt", PEERS - 1));
    assert_eq!(std::fs::read_to_string(taken).expect("a file"), "found");
    drop(peers);
}
