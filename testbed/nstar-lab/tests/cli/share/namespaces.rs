//! Eight peers, each in its own network namespace. Needs root.

use std::{
    cell::RefCell,
    collections::HashMap,
    os::unix::fs::MetadataExt,
    process::{Command, Stdio},
    time::Instant,
};

use super::eventually;
use crate::{
    common::support::{Nstar, PATIENCE, Place, Running, is_root_or_skip},
    serve::listening,
};

/// The number of peers, and the ports that each uses at its own address.
const PEERS: usize = 8;
const PORT: u16 = 8085;
const DHT_PORT: u16 = 8086;

/// Waits until the namespace has its address, then becomes the program.
const WAIT: &str =
    "until ip addr show dev eth0 2>/dev/null | grep -q 198.18; do sleep 0.02; done; exec \"$@\"";

/// Two bridges in a namespace, joined by a link that may be cut. The host's namespace is untouched, and everything ends
/// with its processes.
struct Network {
    place: Place,
    hub: Running,
    /// The processes that keep the peers' namespaces alive.
    peers: RefCell<HashMap<usize, u32>>,
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
        let place = Place::beside_others();
        // The index listens in the hub itself.
        let (at, wait) = (format!("{}:{PORT}", address(100)), WAIT.replace("eth0", "west"));
        let words = ["serve", "index", "--secret-file", "secret", "--listen", &at, "--user", "root"];
        let hub = separated(place.wrapped(["unshare", "--net", "sh", "-c", &wait, "sh"], words).start());
        let mut network = Self { place, hub, peers: RefCell::default() };
        // Slow enough between the two for a large file to be in transfer when the link is cut.
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

    /// Starts a peer in its own namespace; the first half of them are on the west side.
    fn peer(&self, number: usize, index: &[String]) -> Running {
        let (folder, listen) = (format!("peer{number}"), format!("{}:{PORT}", address(number)));
        let words = ["serve", "peer", "--share", &folder, "--secret-file", "secret", "--listen", &listen];
        let words = words.into_iter().chain(["--user", "root"]).chain(index.iter().map(String::as_str));
        let wrapper = ["unshare", "--net", "sh", "-c", WAIT, "sh"];
        let mut peer = separated(self.place.wrapped(wrapper, words).start());
        let side = if number < PEERS / 2 { "west" } else { "east" };
        let pid = peer.pid();
        self.in_hub(&format!(
            "ip link add peer{number} type veth peer name eth0 netns {pid}; \
             ip link set peer{number} master {side} up"
        ));
        run(&format!(
            "nsenter --net --target {pid} sh -ec 'ip link set lo up; ip link set eth0 up; ip route add 224.0.0.0/4 dev eth0; \
             ip addr add {}/24 dev eth0'",
            address(number)
        ));
        listening(&mut peer);
        self.peers.borrow_mut().insert(number, pid);
        peer
    }

    /// Runs `nstar share ARGS` in the namespace of a peer.
    fn ask(&self, number: usize, args: &[&str]) -> Nstar {
        let (pid, peer) = (self.peers.borrow()[&number].to_string(), format!("{}:{PORT}", address(number)));
        let rest = ["--secret-file", "secret", "--peer", &peer];
        let words = ["share"].iter().chain(args).chain(&rest);
        self.place.wrapped(["nsenter", "--net", "--target", &pid], words)
    }

    /// Repeats it until it succeeds.
    fn ask_until(&self, number: usize, args: &[&str]) {
        let patience = Instant::now() + PATIENCE;
        loop {
            let outcome = self.ask(number, args).run();
            if outcome.status.success() {
                return;
            }
            assert!(Instant::now() < patience, "peer {number}: {args:?}: {outcome}");
        }
    }

    /// Whether a peer finds a file of this name.
    fn finds(&self, number: usize, name: &str) -> bool {
        self.ask(number, &["search", name]).run().status.success()
    }
}

/// With the index in the hub, which is on the west side.
fn central(_: usize) -> Vec<String> {
    vec!["--index".into(), format!("{}:{PORT}", address(100))]
}

/// With a part of the index on each peer. The peers find each other by multicast.
fn spread(number: usize) -> Vec<String> {
    among_peers("--dht", number)
}

/// The same with peers that all know each other.
fn partitioned(number: usize) -> Vec<String> {
    among_peers("--partitioned", number)
}

fn among_peers(kind: &str, number: usize) -> Vec<String> {
    let own = format!("{}:{DHT_PORT}", address(number));
    [kind, "--dht-listen", &own, "--life", "3s"].map(String::from).to_vec()
}

/// Eight peers have each other's files. The link is cut during the transfer of a large one from west to east, which
/// completes once the link is back.
fn share_through_a_partition(network: &Network, index: fn(usize) -> Vec<String>, meanwhile: fn(&Network)) {
    let large: Vec<_> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    network.place.write("peer0/large.bin", &large);
    for number in 0..PEERS {
        network.place.write(&format!("peer{number}/own {number}.txt"), format!("of {number}"));
        network.place.write(&format!("peer{number}/kept {number}.txt"), format!("kept by {number}"));
    }
    let peers: Vec<_> = (0..PEERS).map(|number| network.peer(number, &index(number))).collect();
    for number in 0..PEERS {
        let (name, taker) = (format!("own {number}.txt"), (number + PEERS / 2) % PEERS);
        network.ask_until(taker, &["get", &name]);
        let taken = network.place.path(&format!("peer{taker}/{name}"));
        assert_eq!(std::fs::read_to_string(taken).expect("a file"), format!("of {number}"));
    }

    network.ask_until(7, &["search", "large.bin"]);
    let get = network.ask(7, &["get", "large.bin"]).start();
    let part =
        network.place.path(&format!("peer7/.nstar/parts/{}-{}.data", blake3::hash(&large), large.len()));
    eventually("some of it comes", || std::fs::metadata(&part).is_ok_and(|part| part.blocks() > 0));
    network.in_hub("ip link set middle down");
    // All holders of its record may be on the other side. It is then found once they are left out.
    network.ask_until(1, &["get", "large.bin"]);
    meanwhile(network);
    assert!(!network.place.path("peer7/large.bin").exists(), "nothing comes from the other side");
    network.in_hub("tc qdisc del dev middle root; ip link set middle up");
    // If the machine stalled for long, the peer may have given up. Asking again then resumes the download.
    let first = get.finish();
    assert!(
        first.status.success() || first.stderr.contains("the part already downloaded is kept"),
        "{first}"
    );
    network.ask_until(7, &["get", "large.bin"]);
    for side in ["peer1", "peer7"] {
        assert!(std::fs::read(network.place.path(&format!("{side}/large.bin"))).expect("a file") == large);
    }
    for (number, name) in [(5, "kept 1.txt"), (1, "kept 5.txt")] {
        network.ask_until(number, &["search", name]);
    }
    drop(peers);
}

#[test]
fn eight_peers_in_eight_namespaces_share_and_a_partition_heals() {
    if is_root_or_skip("eight_peers_in_eight_namespaces_share_and_a_partition_heals") {
        share_through_a_partition(&Network::new(), central, |_| {});
    }
}

#[test]
fn without_a_server_both_sides_of_a_partition_go_on_and_find_each_other_again() {
    if !is_root_or_skip("without_a_server_both_sides_of_a_partition_go_on_and_find_each_other_again") {
        return;
    }
    share_through_a_partition(&Network::new(), spread, both_sides_go_on);
}

#[test]
fn where_all_know_all_both_sides_of_a_partition_go_on_and_find_each_other_again() {
    if is_root_or_skip("where_all_know_all_both_sides_of_a_partition_go_on_and_find_each_other_again") {
        share_through_a_partition(&Network::new(), partitioned, both_sides_go_on);
    }
}

/// Each side finds its own files, and no longer those of the other.
fn both_sides_go_on(network: &Network) {
    for (number, here, there) in [(1, "kept 2.txt", "kept 6.txt"), (5, "kept 6.txt", "kept 2.txt")] {
        network.ask_until(number, &["get", here]);
        eventually("the other side is forgotten", || !network.finds(number, there));
    }
}

#[test]
fn peers_of_one_network_find_each_other_by_multicast() {
    if !is_root_or_skip("peers_of_one_network_find_each_other_by_multicast") {
        return;
    }
    let network = Network::new();
    network.place.write("peer0/far away.txt", "found");
    network.place.write(&format!("peer{}/own.txt", PEERS - 1), "own");
    // One on each side; neither is given the address of the other.
    let peers = [0, PEERS - 1].map(|number| network.peer(number, &spread(number)));
    network.ask_until(PEERS - 1, &["get", "far away.txt"]);
    let taken = network.place.path(&format!("peer{}/far away.txt", PEERS - 1));
    assert_eq!(std::fs::read_to_string(taken).expect("a file"), "found");
    drop(peers);
}
