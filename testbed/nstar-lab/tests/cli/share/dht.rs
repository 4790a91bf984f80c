//! Peers without an index server, run as a user runs them.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use super::{Group, eventually};
use crate::{
    common::support::{PATIENCE, Place, Running, free_port},
    serve::ask,
};

/// A peer with its part of the index, its address, and its address for other peers.
pub(super) struct Peer {
    pub(super) running: Running,
    pub(super) at: String,
    dht: String,
}

impl Group {
    /// A peer that shares a folder and joins these peers in a distributed hash table.
    pub(super) fn spread(&self, folder: &str, join: &[&Peer], more: &[&str]) -> Peer {
        self.spread_as("--dht", folder, join, more)
    }

    /// The same, for `kind`: `--dht` or `--partitioned`.
    pub(super) fn spread_as(&self, kind: &str, folder: &str, join: &[&Peer], more: &[&str]) -> Peer {
        std::fs::create_dir_all(self.place.path(folder)).expect("a folder");
        let mut words = vec!["serve", "peer", "--share", folder, "--listen", "127.0.0.1:0"];
        words.extend([kind, "--dht-listen", "127.0.0.1:0"]);
        words.extend(join.iter().flat_map(|peer| ["--bootstrap", &peer.dht]));
        let mut running = self.place.nstar(words.iter().chain(more)).start();
        let line = running.first_line();
        let word = |after: &str| {
            let rest = line.split_once(after).unwrap_or_else(|| panic!("no {after:?} in {line:?}")).1;
            rest.split([' ', ')']).next().expect("a word").to_owned()
        };
        Peer { at: word("://"), dht: word("among the peers on "), running }
    }
}

/// Waits for a peer to report this state of its health.
fn health(peer: &Peer, holds: impl Fn(&str) -> bool) {
    let patience = Instant::now() + PATIENCE;
    loop {
        let said = ask(&peer.at, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        if holds(&said) {
            return;
        }
        assert!(Instant::now() < patience, "{said}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The identity is in the folder, so both have the same. Neither may take the other for itself.
#[test]
fn a_peer_on_a_copied_folder_is_told_that_another_has_its_key() {
    let group = Group::without_index();
    let ann = group.spread("ann", &[], &[]);
    std::fs::create_dir_all(group.place.path("bob/.nstar")).expect("a folder");
    let [key, copy] = ["ann", "bob"].map(|folder| group.place.path(&format!("{folder}/.nstar/identity")));
    std::fs::copy(key, copy).expect("a key, with who may read it");
    let mut bob = group.spread("bob", &[&ann], &[]);
    bob.running.wait_for_stderr(&format!("the peer at {} cannot be joined: it has the same key", ann.dht));
}

#[test]
fn three_peers_without_a_server_share_a_file_and_go_on_when_the_first_dies() {
    three_share_a_file_and_go_on_when_the_first_dies("--dht");
}

#[test]
fn three_peers_that_know_all_others_share_a_file_and_go_on_when_the_first_dies() {
    three_share_a_file_and_go_on_when_the_first_dies("--partitioned");
}

fn three_share_a_file_and_go_on_when_the_first_dies(kind: &str) {
    let group = Group::without_index();
    let ann = group.spread_as(kind, "ann", &[], &[]);
    let bob = group.spread_as(kind, "bob", &[&ann], &[]);
    let eve = group.spread_as(kind, "eve", &[&bob], &[]);
    let file: Vec<_> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    group.place.write("ann/Annual Report.pdf", &file);
    let hash = blake3::hash(&file).to_string();

    for peer in [&bob, &eve, &ann] {
        assert!(group.ask_until(&peer.at, &["search", "report"]).contains(&hash));
        assert!(group.ask_until(&peer.at, &["search", "Annual Report.pdf"]).contains(&hash));
    }
    group.ask(&bob.at, &["get", "Annual Report.pdf", "-o", "copy.pdf"]).exits(0);
    assert_eq!(std::fs::read(group.place.path("copy.pdf")).expect("a copy"), file);
    while !group.ask_until(&eve.at, &["search", "report"]).contains("2 peers") {}

    ann.running.signal("KILL");
    group.ask(&eve.at, &["get", &hash]).exits(0);
    assert_eq!(std::fs::read(group.place.path("eve/Annual Report.pdf")).expect("a file"), file);
    group.ask(&eve.at, &["remove", "Annual Report.pdf"]).exits(0);
    while group.ask_until(&bob.at, &["search", "report"]).contains("3 peers") {}
}

/// More peers than hold a key, so that searches have to ask others.
#[test]
fn six_peers_that_know_all_others_find_all_files_by_asking_one_and_forget_who_died() {
    let group = Group::without_index();
    let first = group.spread_as("--partitioned", "peer0", &[], &["--life", "2s"]);
    let mut peers = vec![first];
    for number in 1..6 {
        let folder = format!("peer{number}");
        peers.push(group.spread_as("--partitioned", &folder, &[&peers[0]], &["--life", "2s"]));
    }
    for number in 0..6 {
        group.place.write(&format!("peer{number}/common {number}.txt"), number.to_string());
    }
    for peer in &peers {
        for number in 0..6 {
            group.ask_until(&peer.at, &["search", &format!("common {number}.txt")]);
        }
    }
    let counted =
        |peer: &Peer| ask(&peer.at, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    // Who renews late on a busy machine is forgotten for a moment.
    eventually("all others are known", || counted(&peers[3]).contains("dht_peers 5"));
    let of_one = counted(&peers[3]);
    assert!(of_one.contains("dht_lookups_total 0"), "{of_one}");
    // One of them may happen to keep all that it was asked for.
    let of_all: String = peers.iter().map(counted).collect();
    assert!(of_all.contains("dht_searches_total{answered=\"asked\"}"), "{of_all}");

    let dead = peers.remove(5);
    dead.running.signal("KILL");
    let patience = Instant::now() + PATIENCE;
    for peer in &peers {
        group.ask_until(&peer.at, &["search", "common 2.txt"]);
        while group.ask(&peer.at, &["search", "common 5.txt"]).status.success() {
            assert!(Instant::now() < patience, "it is still found");
        }
    }
}

#[test]
fn peers_of_the_two_kinds_of_index_turn_each_other_away_and_say_why() {
    let group = Group::without_index();
    let ann = group.spread("ann", &[], &[]);
    let bob = group.spread_as("--partitioned", "bob", &[&ann], &[]);
    health(&ann, |said| said.contains("started with --partitioned, and this one with --dht"));
    health(&bob, |said| said.contains("started with --dht, and this one with --partitioned"));
    group.place.write("ann/only ann.txt", "x");
    group.ask_until(&ann.at, &["search", "only ann.txt"]);
    group.ask(&bob.at, &["search", "only ann.txt"]).exits(1).complains("nobody shares");
}

#[test]
fn a_peer_that_died_is_found_no_longer_than_it_said() {
    let group = Group::without_index();
    let ann = group.spread("ann", &[], &["--life", "2s"]);
    let bob = group.spread("bob", &[&ann], &[]);
    group.place.write("ann/short.txt", "x");
    group.ask_until(&bob.at, &["search", "short.txt"]);
    ann.running.signal("KILL");
    let patience = Instant::now() + PATIENCE;
    while group.ask(&bob.at, &["search", "short.txt"]).status.success() {
        assert!(Instant::now() < patience, "it is still found");
    }
}

#[test]
fn peers_of_another_group_are_not_let_in() {
    let group = Group::without_index();
    let ann = group.spread("ann", &[], &["--secret-file", "one"]);
    group.place.write("ann/secret.txt", "x");
    let stranger = group.spread("stranger", &[&ann], &["--secret-file", "other"]);
    let open = group.spread("open", &[&ann], &[]);
    let member = group.spread("member", &[&ann], &["--secret-file", "one"]);
    group.ask_until(&member.at, &["search", "secret.txt", "--secret-file", "one"]);
    for other in [&stranger, &open] {
        health(other, |said| said.contains("no other peer is reached"));
    }
    group.ask(&open.at, &["search", "secret.txt"]).exits(1).complains("nobody shares");
}

/// Each announcement of files tries again, and would fill the log.
#[test]
fn why_others_refuse_what_a_peer_tells_is_said_once() {
    let group = Group::without_index();
    let ann = group.spread("ann", &[], &[]);
    group.place.write("bob/a.txt", "x");
    let bob = group.spread("bob", &[&ann], &["--advertise", "192.0.2.9:8085", "--life", "1s"]);
    let told = || {
        let metrics = ask(&bob.at, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let line = metrics.lines().find(|line| line.contains("kind=\"keep\"")).map(str::to_owned);
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    eventually("it is tried again and again", || told() >= 5);
    bob.running.signal("TERM");
    let said = bob.running.finish().exits(0).stderr;
    assert_eq!(said.matches("refuses to keep").count(), 1, "{said}");
}

#[test]
fn dead_peers_to_join_are_told_of_and_one_that_lives_suffices() {
    let group = Group::without_index();
    // Bound but never listened on, so that nothing else can use it.
    let dead = Peer {
        at: String::new(),
        dht: format!("127.0.0.1:{}", free_port()),
        running: group.place.nstar(["--version"]).start(),
    };
    let ann = group.spread("ann", &[&dead], &[]);
    health(&ann, |said| said.contains("200 OK") && said.contains(&dead.dht));
    group.place.write("ann/alone.txt", "x");
    group.ask_until(&ann.at, &["search", "alone.txt"]);
    let bob = group.spread("bob", &[&dead, &ann], &[]);
    group.ask_until(&bob.at, &["search", "alone.txt"]);
    health(&ann, |said| !said.contains("no other peer"));
    dead.running.finish().exits(0);
}

#[test]
fn a_part_of_the_index_that_is_started_wrongly_is_told() {
    let place = Place::beside_others();
    place.write("shared/a.txt", "a");
    let start = |args: &[&str]| {
        let words = ["serve", "peer", "--share", "shared", "--listen", "127.0.0.1:0"];
        place.nstar(words.iter().chain(args)).run()
    };
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    start(&["--dht", "--dht-listen", &taken]).exits(2).complains("--dht-listen");
    start(&["--dht", "--dht-listen", "0.0.0.0:0"]).exits(2).complains("--secret-file");
    start(&["--dht", "--bootstrap", "nowhere.invalid:1"]).exits(2).complains("--bootstrap");
    start(&["--dht", "--bootstrap", "127.0.0.1"]).exits(2).complains("--bootstrap");
    start(&["--dht", "--bootstrap", "127.0.0.1:0"]).exits(2).complains("port 0");
    for nonsense in ["nonsense", "https://192.0.2.7:8086", ":8086", "::1:8086", "192.0.2.7:http"] {
        start(&["--dht", "--bootstrap", nonsense]).exits(2).complains("such as 192.0.2.7:8086");
    }
    for alone in [["--bootstrap", "127.0.0.1:1"], ["--dht-listen", "127.0.0.1:0"], ["--life", "1m"]] {
        start(&alone).exits(2).complains("--dht|--partitioned");
    }
    start(&["--dht", "--partitioned"]).exits(2).complains("--partitioned");
    start(&["--partitioned", "--index", "http://127.0.0.1:1"]).exits(2).complains("--index");
    start(&["--partitioned", "--dht-listen", "0.0.0.0:0"]).exits(2).complains("--secret-file");
    start(&["--dht", "--index", "http://127.0.0.1:1"]).exits(2).complains("--index");
    start(&["--dht", "--life", "10ms"]).exits(2).complains("a second at least");
    let own = format!("127.0.0.1:{}", free_port());
    start(&["--dht", "--dht-listen", &own, "--bootstrap", &own])
        .exits(2)
        .complains("this peer's own address");
}
