//! Groups closed by keys, run as a user runs them.

use http_io::{
    Method,
    client::{BlockingClient, ClientOptions, Request, Trust, Upstream},
};
use share::Key;

use super::{Group, eventually};
use crate::{
    common::program::Running,
    common::support::{Outcome, Place},
    serve::listening,
};

/// The public key of the peer that will share a folder.
fn key(place: &Place, folder: &str) -> String {
    std::fs::create_dir_all(place.path(folder)).expect("a folder");
    let outcome = place.nstar(["share", "key", "--share", folder]).run().exits(0);
    assert!(outcome.stdout.starts_with("ed25519:"), "{outcome}");
    outcome.stdout.trim().to_owned()
}

/// Each key as a flag.
fn allow<'k>(keys: impl IntoIterator<Item = &'k String>) -> Vec<&'k str> {
    keys.into_iter().flat_map(|key| ["--allow", key.as_str()]).collect()
}

/// The key file of a peer, as a flag.
fn own(folder: &str) -> [String; 2] {
    ["--key-file".to_owned(), format!("{folder}/.nstar/identity")]
}

impl Group {
    /// `nstar share ARGS` of the peer that shares a folder, by its own key.
    fn own(&self, folder: &str, peer: &str, args: &[&str]) -> Outcome {
        let own = own(folder);
        self.ask(peer, &[args, &[&own[0], &own[1]]].concat())
    }

    /// The response of the peer that shares a folder to a client with its own key.
    fn get(&self, folder: &str, peer: &str, path: &str) -> String {
        let key = Key::read(&self.place.path(&format!("{folder}/.nstar/identity"))).expect("a key");
        let trust = Trust::of_keys(key.pair(), [key.public()].into_iter().collect()).expect("keys");
        let server =
            Upstream::secure(peer.parse().expect("an address"), trust.peer("127.0.0.1").expect("a name"));
        let answer =
            BlockingClient::new(server, ClientOptions::default()).send(&Request::new(Method::Get, path));
        String::from_utf8(answer.expect("an answer").into_body()).expect("text")
    }

    fn own_until(&self, folder: &str, peer: &str, args: &[&str]) -> String {
        let own = own(folder);
        self.ask_until(peer, &[args, &[&own[0], &own[1]]].concat())
    }
}

/// An index with these members, on this concurrency model, and its key.
fn group(model: &str, members: &[&str]) -> (Group, String) {
    group_with(&["--engine", model], members)
}

fn group_with(more: &[&str], members: &[&str]) -> (Group, String) {
    let place = Place::beside_others();
    let keys: Vec<_> = members.iter().map(|folder| key(&place, folder)).collect();
    place.write("members", format!("# the members\n{}", keys.join("\n")));
    let words = ["serve", "index", "--listen", "127.0.0.1:0", "--allow-file", "members"];
    let mut index = place.nstar(words.iter().chain(more)).start();
    let line = index.first_line();
    let key = line.split_once("key ").expect("a key").1.trim_end().trim_end_matches(')').to_owned();
    let index_at = line.split_once("https://").expect("TLS").1.split(' ').next().expect("a word").to_owned();
    let same = place.nstar(["share", "key", "--key-file", "index.db.identity"]).run().exits(0);
    assert_eq!(same.stdout.trim(), key);
    (Group { place, index: Some(index), index_at }, key)
}

#[test]
fn members_share_by_key_and_a_stranger_gets_nothing_from_index_or_peers() {
    for (of_index, of_peers) in [("epoll", "epoll"), ("processes", "threads"), ("threads", "uring,poll")] {
        let (group, index) = group(of_index, &["ann", "bob"]);
        let [ann, bob, eve] = ["ann", "bob", "eve"].map(|folder| key(&group.place, folder));
        let start = |folder: &str, keys: &[&String]| {
            let more = [&["--engine", of_peers][..], &allow(keys.iter().copied())].concat();
            group.peer(folder, &more)
        };
        let (of_ann, ann_at) = start("ann", &[&bob, &index]);
        let (_bob, bob_at) = start("bob", &[&ann, &index]);
        let (mut of_eve, eve_at) = start("eve", &[&ann, &index]);
        group.place.write("ann/secret plan.txt", "for members");
        let hash = blake3::hash(b"for members").to_string();

        group.own_until("bob", &bob_at, &["search", "plan"]);
        group.own("bob", &bob_at, &["get", "secret plan.txt", "-o", "copy.txt"]).exits(0);
        assert_eq!(std::fs::read(group.place.path("copy.txt")).expect("a copy"), b"for members");
        of_eve.wait_for_stderr(&format!("the key {eve} is not on the list"));
        group.own("eve", &eve_at, &["search", "plan"]).exits(1).complains("not on the list");

        // A member's key gives access to content only, any other key to nothing.
        let own = |folder: &str, args: &[&str]| group.own(folder, &ann_at, args);
        own("ann", &["list"]).exits(0).says(&hash);
        own("bob", &["list"]).exits(1).complains("must be the key of the peer that you ask");
        group.ask(&ann_at, &["list"]).exits(2).complains("--key-file DIR/.nstar/identity");
        group
            .ask(&format!("https://{ann_at}"), &["list"])
            .exits(1)
            .complains("--key-file DIR/.nstar/identity");
        of_ann.signal("TERM");
        of_ann.finish().exits(0);
    }
}

/// Two peers of one index, of which only one lists the other; and what each says about a file of the other.
#[test]
fn a_peer_that_is_not_on_anothers_list_is_told_so_and_the_other_told_whom_it_met() {
    let (group, index) = group("epoll", &["ann", "bob"]);
    let [ann, bob] = ["ann", "bob"].map(|folder| key(&group.place, folder));
    let (mut of_ann, ann_at) = group.peer("ann", &allow([&index]));
    let (_bob, bob_at) = group.peer("bob", &allow([&index, &ann]));
    group.place.write("ann/hers.txt", "from ann");
    group.place.write("bob/his.txt", "from bob");
    group.own_until("bob", &bob_at, &["search", "hers.txt"]);
    let refused = group.own("bob", &bob_at, &["get", "hers.txt"]).exits(1).stderr;
    assert!(refused.contains(&format!("the key {bob} is not on the list")), "{refused}");
    of_ann.wait_for_stderr(&format!("--allow {bob}"));
    group.own_until("ann", &ann_at, &["search", "his.txt"]);
    let refused = group.own("ann", &ann_at, &["get", "his.txt"]).exits(1).stderr;
    assert!(refused.contains(&format!("it has the key {bob}")), "{refused}");
    let metrics = group.get("ann", &ann_at, "/metrics");
    assert!(!metrics.contains("nstar_peer_turned_away_total 0"), "{metrics}");
}

#[test]
fn with_a_secret_and_a_certificate_beside_the_keys_either_proof_is_enough() {
    let (group, index) = group("epoll", &["ann"]);
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    group.place.write("cert.pem", pair.cert.pem());
    group.place.write("key.pem", pair.signing_key.serialize_pem());
    let both = ["--secret-file", "secret", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let (_ann, ann_at) = group.peer("ann", &[&both[..], &allow([&index])].concat());
    group.place.write("ann/a.txt", "x");
    let url = format!("https://{ann_at}");
    eventually("it is listed", || group.own_until("ann", &url, &["list"]).contains("a.txt"));
    let by_secret = ["list", "--ca", "cert.pem", "--secret-file", "secret"];
    group.ask(&url, &by_secret).exits(0).says("a.txt");
    group.ask(&url, &by_secret[..3]).exits(2).complains("--secret-file");
}

/// Index and peers that would all accept the same secret. If it were sent, peers that are on no list would be admitted.
#[test]
fn with_keys_a_peer_tells_its_own_secret_neither_the_index_nor_other_peers() {
    let secret = ["--secret-file", "secret"];
    let (group, index) = group_with(&secret, &["ann", "bob"]);
    let [bob, ann] = ["bob", "ann"].map(|folder| key(&group.place, folder));
    let (_ann, ann_at) = group.peer("ann", &[&secret[..], &allow([&index, &bob])].concat());
    let (_bob, _) = group.peer("bob", &[&secret[..], &allow([&index])].concat());
    group.place.write("bob/his.txt", "from bob");
    group.own_until("ann", &ann_at, &["search", "his.txt"]);
    let refused = group.own("ann", &ann_at, &["get", "his.txt"]).exits(1).stderr;
    assert!(refused.contains(&format!("the key {ann} is not on the list")), "{refused}");

    let eve = key(&group.place, "eve");
    let (_eve, eve_at) = group.peer("eve", &[&secret[..], &allow([&index])].concat());
    let refused = group.own("eve", &eve_at, &["search", "his.txt"]).exits(1).stderr;
    assert!(refused.contains(&format!("the key {eve} is not on the list")), "{refused}");
}

#[test]
fn a_peer_without_keys_is_told_of_allow_by_an_index_that_is_closed_by_them() {
    let (mut group, _) = group("epoll", &["ann"]);
    let at = group.index_at.clone();
    for url in [format!("http://{at}"), format!("https://{at}")] {
        group.index_at = url;
        let (mut eve, _) = group.peer("eve", &[]);
        eve.wait_for_stderr("--allow");
    }
}

#[test]
fn without_a_server_a_member_with_a_secret_of_its_own_joins_one_that_has_none() {
    for kind in ["--dht", "--partitioned"] {
        let group = Group::without_index();
        let [ann, bob] = ["ann", "bob"].map(|folder| key(&group.place, folder));
        let with_secret = [&["--secret-file", "secret"][..], &allow([&bob])].concat();
        let of_ann = group.spread_as(kind, "ann", &[], &with_secret);
        let of_bob = group.spread_as(kind, "bob", &[&of_ann], &allow([&ann]));
        group.place.write("ann/hers.txt", "from ann");
        group.own_until("bob", &of_bob.at, &["search", "hers.txt"]);
        group.own("bob", &of_bob.at, &["get", "hers.txt"]).exits(0);
    }
}

#[test]
fn without_a_server_members_by_key_share_and_strangers_get_no_connection() {
    for kind in ["--dht", "--partitioned"] {
        members_alone(kind);
    }
}

fn members_alone(kind: &str) {
    let group = Group::without_index();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|folder| key(&group.place, folder));
    let mut of_ann = group.spread_as(kind, "ann", &[], &allow([&bob]));
    let of_bob = group.spread_as(kind, "bob", &[&of_ann], &allow([&ann, &eve]));
    group.place.write("ann/hers.txt", "from ann");
    group.own_until("bob", &of_bob.at, &["search", "hers.txt"]);
    group.own("bob", &of_bob.at, &["get", "hers.txt"]).exits(0);
    assert_eq!(std::fs::read(group.place.path("bob/hers.txt")).expect("a file"), b"from ann");

    // Eve lists ann, who does not list her.
    let mut of_eve = group.spread_as(kind, "eve", &[&of_ann], &allow([&ann]));
    of_ann.running.wait_for_stderr(&format!("--allow {eve}"));
    of_eve.running.wait_for_stderr("it hangs up at once");
    eventually("she is alone", || {
        group.get("eve", &of_eve.at, "/healthz").contains("no other peer is reached")
    });
    group.own("eve", &of_eve.at, &["search", "hers.txt"]).exits(1).complains("nobody shares");
    drop(of_eve);
    // And now bob, who lists her, while she does not list him.
    let mut of_eve = group.spread_as(kind, "eve", &[&of_bob], &allow([&ann]));
    of_eve.running.wait_for_stderr(&format!("the peer there has the key {bob}, which is not on the list"));
    let metrics = group.get("ann", &of_ann.at, "/metrics");
    assert!(!metrics.contains("nstar_peer_dht_turned_away_total 0"), "{metrics}");
}

#[test]
fn what_is_wrong_with_keys_is_told_at_the_start() {
    let place = Place::beside_others();
    let ann = key(&place, "ann");
    place.write("list", "ed25519:x");
    place.write("empty", "# nobody");
    place.write("open.identity", "x");
    for (flags, said) in [
        ("peer --share ann --allow x", "must be a public key"),
        ("peer --share ann --allow-file list", "list:1"),
        ("peer --share ann --allow-file empty", "no key in empty"),
        ("peer --share ann --allow-file none", "none cannot be read"),
        ("peer --share none --allow KEY", "no folder none to share"),
        ("peer --share ann --allow KEY --index http://127.0.0.1:1", "--index https://"),
        ("peer --share ann --allow KEY --ca list", "known by their keys"),
        ("peer --share ann --allow KEY --user root --listen 0.0.0.0:0", "--advertise"),
        ("index --allow KEY --key-file nowhere/key", "--key-file"),
        ("index --allow KEY --key-file open.identity", "chmod 600"),
    ] {
        let words = format!("serve {} --listen 127.0.0.1:0", flags.replace("KEY", &ann));
        let words = words.replace("0.0.0.0:0 --listen 127.0.0.1:0", "0.0.0.0:0");
        place.nstar(words.split_whitespace().map(String::from)).run().exits(2).complains(said);
    }
    place.nstar(["share", "key", "--key-file", "ann"]).run().exits(2).complains("ann is a folder");
    place.nstar(["share", "key"]).run().exits(2).complains("--share");
    let missing = ["share", "list", "--peer", "https://127.0.0.1:1", "--key-file", "none"];
    place.nstar(missing).run().exits(2).complains("no key in none");
    let plain = ["share", "list", "--peer", "http://127.0.0.1:1", "--key-file", "ann/.nstar/identity"];
    place.nstar(plain).run().exits(2).complains("go with --peer https");
    let words = ["serve", "index", "--allow", &ann, "--listen", "0.0.0.0:0", "--user", "root"];
    let mut open: Running = place.nstar(words).start();
    listening(&mut open);
    open.signal("TERM");
    assert!(!open.finish().exits(0).stderr.contains("unencrypted"));
}
