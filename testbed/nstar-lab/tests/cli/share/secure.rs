//! Peers and their index over TLS, run as a user runs them.

use super::{Group, eventually};
use crate::{
    common::program::Running,
    common::support::Place,
    serve::{ask, listening},
};

const TLS: [&str; 4] = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
const CA: [&str; 2] = ["--ca", "cert.pem"];

/// A group whose index speaks TLS on this concurrency model, with a certificate for this machine.
fn group(model: &str) -> Group {
    let place = Place::beside_others();
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    place.write("cert.pem", pair.cert.pem());
    place.write("key.pem", pair.signing_key.serialize_pem());
    let words = ["serve", "index", "--listen", "127.0.0.1:0", "--engine", model];
    let mut index = place.nstar(words.iter().chain(&TLS)).start();
    let index_at = listening(&mut index);
    Group { place, index: Some(index), index_at }
}

/// A peer that speaks TLS, and its URL.
fn secure(group: &Group, folder: &str, more: &[&str]) -> (Running, String) {
    let (running, at) = group.peer(folder, &[&TLS[..], &CA, more].concat());
    (running, format!("https://{at}"))
}

#[test]
fn peers_and_their_index_speak_tls_under_every_kind_of_model() {
    for (of_index, of_peers) in [("epoll", "threads"), ("processes", "uring,epoll"), ("prefork", "poll")] {
        let group = group(of_index);
        let (_ann, ann) = secure(&group, "ann", &["--engine", of_peers]);
        let (_bob, bob) = secure(&group, "bob", &["--engine", of_peers]);
        let file: Vec<_> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        group.place.write("ann/report.pdf", &file);
        group.ask_until(&bob, &[&["search", "report"][..], &CA].concat());
        group.ask(&bob, &[&["get", "report.pdf", "-o", "copy.pdf"][..], &CA].concat()).exits(0);
        assert_eq!(std::fs::read(group.place.path("copy.pdf")).expect("a copy"), file, "{of_peers}");
        group.ask(&ann, &["list"]).exits(1).complains("--ca FILE");
        let plain = ann.replace("https", "http");
        group.ask(&plain, &["list"]).exits(2).complains(&format!("give --peer {ann}"));
        group.ask(&plain, &[&["list"][..], &CA].concat()).exits(2).complains("--peer https");
    }
}

/// The message of a peer about a file that it cannot download.
fn refusal(group: &Group, peer: &str, args: &[&str], name: &str) -> String {
    group.ask_until(peer, &[&["search", name][..], args].concat());
    group.ask(peer, &[&["get", name][..], args].concat()).exits(1).stderr
}

#[test]
fn a_peer_without_tls_and_one_with_it_say_of_each_other_what_is_missing() {
    let mut group = group("epoll");
    let (_ann, ann) = secure(&group, "ann", &[]);
    group.index_at = format!("https://{}", group.index_at);
    let (_bob, bob) = group.peer("bob", &CA);
    group.place.write("ann/hers.txt", "from ann");
    group.place.write("bob/his.txt", "from bob");
    let of_ann = refusal(&group, &bob, &[], "hers.txt");
    assert!(of_ann.contains("it speaks TLS, as this peer does not"), "{of_ann}");
    let of_bob = refusal(&group, &ann, &CA, "his.txt");
    assert!(of_bob.contains("it does not speak TLS, as this peer does"), "{of_bob}");
    group
        .ask(&format!("https://{bob}"), &[&["list"][..], &CA].concat())
        .exits(1)
        .complains("does not speak TLS");
}

#[test]
fn an_index_over_tls_that_is_asked_without_or_is_not_trusted_is_told_of() {
    let mut group = group("epoll");
    let at = group.index_at.clone();
    group.index_at = format!("http://{at}");
    let (mut ann, _) = group.peer("ann", &[]);
    ann.wait_for_stderr(&format!("give --index https://{at}"));
    group.index_at = at;
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    group.place.write("other.pem", other.cert.pem());
    let (mut bob, bob_at) = group.peer("bob", &[&TLS[..], &["--ca", "other.pem"]].concat());
    bob.wait_for_stderr("is not trusted here");
    eventually("it serves meanwhile", || {
        ask(&bob_at, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").contains("HTTPS only")
    });
}

#[test]
fn a_secret_that_would_cross_a_network_in_the_open_is_told() {
    let place = Place::beside_others();
    for (listen, told) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let words =
            format!("serve index --secret-file secret --listen {listen} --user root --until-stdin-closes");
        let outcome = place.nstar(words.split(' ').map(String::from)).run().exits(0);
        assert_eq!(outcome.stderr.contains("cross the network unencrypted"), told, "{outcome}");
    }
}
