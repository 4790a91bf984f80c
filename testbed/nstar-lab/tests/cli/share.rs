//! File sharing, run as a user runs it.

mod dht;
mod faults;
mod halfway;
mod keys;
mod namespaces;
mod reach;
mod rotten;
mod secure;

use std::time::Instant;

use self::halfway::Halfway;
use crate::{
    common::support::{Outcome, PATIENCE, Place, Running},
    serve::{ask, eventually, listening},
};

#[test]
fn an_index_is_served_until_told_to_stop_and_forgets_nothing() {
    let place = Place::beside_others();
    for (request, status) in [
        (
            "POST /register HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 39\r\n\r\n\
             {\"peer\": \"127.0.0.1:9999\", \"files\": []} ",
            "HTTP/1.1 200",
        ),
        (
            "POST /renew HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 26\r\n\r\n\
             {\"peer\": \"127.0.0.1:9999\"}",
            "HTTP/1.1 200",
        ),
    ] {
        let mut running = place.nstar(["serve", "index", "--listen", "127.0.0.1:0"]).start();
        let address = listening(&mut running);
        let answer = ask(&address, request);
        assert!(answer.starts_with(status), "{answer}");
        running.signal("TERM");
        running.finish().exits(0);
    }
}

#[test]
fn an_index_open_to_other_machines_is_refused_without_a_secret() {
    let place = Place::beside_others();
    let words = ["serve", "index", "--listen", "0.0.0.0:0"];
    place.nstar(words).run().exits(2).complains("--secret-file");
    place.nstar(["serve", "index", "--life", "10ms"]).run().exits(2).complains("a second at least");
}

#[test]
fn secrets_among_the_shared_files_are_refused_before_anything_is_made() {
    let place = Place::beside_others();
    place.write("ann/key.pem", "secret");
    std::os::unix::fs::symlink("ann", place.path("link")).expect("a link");
    std::os::unix::fs::symlink("ann/key.pem", place.path("outside")).expect("a link");
    std::os::unix::fs::symlink("visible", place.path("ann/.hidden")).expect("a link");
    std::fs::create_dir(place.path("ann/visible")).expect("a folder");
    let serve = |flags: &str| {
        let words = ["serve", "peer", "--share", "ann", "--listen", "127.0.0.1:0", "--index", "127.0.0.1:1"];
        place.nstar(words.into_iter().chain(flags.split(' ')))
    };
    for (flags, what) in [
        ("--state ann/state", "--state) at ann/state"),
        ("--state ann", "--state) at ann"),
        ("--state ann/.hidden", "--state) at ann/.hidden"),
        ("--state link/yet/to/be/made", "--state) at link/yet"),
        ("--state yet/../ann/state", "--state) at yet"),
        ("--secret-file ann/secret", "--secret-file) at ann/secret"),
        ("--tls-cert cert.pem --tls-key ann/key.pem", "--tls-key) at ann/key.pem"),
        ("--tls-cert cert.pem --tls-key outside", "--tls-key) at outside"),
    ] {
        let outcome = serve(flags).run().exits(2);
        outcome.complains(what).complains("would be shared").complains("keep it outside");
    }
    let made: Vec<_> = ["ann/state", "ann/identity", "ann/secret", "ann/.nstar", "ann/yet", "yet"]
        .into_iter()
        .filter(|path| place.path(path).exists())
        .collect();
    assert!(made.is_empty(), "{made:?}");

    for flags in ["--secret-file secret", "--secret-file ann/.secret --state ann/.own/state"] {
        let mut running = serve(flags).start();
        listening(&mut running);
        running.signal("TERM");
        running.finish().exits(0);
    }
}

/// Peers, and their index server if they have one, each with its own folder. Killed when dropped.
struct Group {
    place: Place,
    index: Option<Running>,
    index_at: String,
}

impl Group {
    fn new() -> Self {
        let place = Place::beside_others();
        let (index, index_at) = serve_index(&place, "127.0.0.1:0");
        Self { place, index: Some(index), index_at }
    }

    fn without_index() -> Self {
        Self { place: Place::beside_others(), index: None, index_at: String::new() }
    }

    /// Starts a peer that shares a folder. Returns its address too.
    fn peer(&self, folder: &str, more: &[&str]) -> (Running, String) {
        let more = [&["--listen", "127.0.0.1:0"], more].concat();
        self.wrapped_peer(&[], folder, &more)
    }

    /// Starts `WRAPPER .. nstar serve peer`. Returns its address too.
    fn wrapped_peer(&self, wrapper: &[&str], folder: &str, more: &[&str]) -> (Running, String) {
        std::fs::create_dir_all(self.place.path(folder)).expect("a folder");
        let central = ["--index", &self.index_at].into_iter().filter(|_| self.index.is_some());
        let words = ["serve", "peer", "--share", folder].into_iter().chain(central);
        let mut running = self.place.wrapped(wrapper, words.chain(more.iter().copied())).start();
        let address = listening(&mut running);
        (running, address)
    }

    /// Runs `nstar share ARGS` against a peer.
    fn ask(&self, peer: &str, args: &[&str]) -> Outcome {
        self.place.nstar(["share"].iter().chain(args).chain(&["--peer", peer])).run()
    }

    /// Repeats it until it succeeds.
    fn ask_until(&self, peer: &str, args: &[&str]) -> String {
        let patience = Instant::now() + PATIENCE;
        loop {
            let outcome = self.ask(peer, args);
            if outcome.status.success() {
                return outcome.stdout;
            }
            assert!(Instant::now() < patience, "{args:?}: {}", outcome.stderr);
        }
    }
}

fn serve_index(place: &Place, listen: &str) -> (Running, String) {
    let mut index = place.nstar(["serve", "index", "--listen", listen]).start();
    let at = listening(&mut index);
    (index, at)
}

#[test]
fn a_file_is_searched_got_listed_and_removed() {
    let group = Group::new();
    let (ann, ann_at) = group.peer("ann", &[]);
    let (_bob, bob_at) = group.peer("bob", &[]);
    let (_eve, eve_at) = group.peer("eve", &[]);
    let file: Vec<_> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    group.place.write("ann/Annual Report.pdf", &file);
    let hash = blake3::hash(&file).to_string();

    assert!(group.ask_until(&bob_at, &["search", "report"]).contains(&hash));
    group.ask(&bob_at, &["get", "Annual Report.pdf", "-o", "copy.pdf"]).exits(0).says("1200000 bytes");
    assert_eq!(std::fs::read(group.place.path("copy.pdf")).expect("a copy"), file);
    group
        .ask(&bob_at, &["get", "Annual Report.pdf", "-o", "copy.pdf"])
        .exits(2)
        .complains("there is a file already");
    for (output, why) in [("bob", "this is a folder"), ("none/copy.pdf", "no such folder")] {
        group.ask(&bob_at, &["get", "Annual Report.pdf", "-o", output]).exits(2).complains(why);
    }

    while !group.ask_until(&eve_at, &["search", "report"]).contains("2 peers") {}
    ann.signal("KILL");
    group.ask(&eve_at, &["get", &hash]).exits(0).says("Annual Report.pdf");
    assert_eq!(std::fs::read(group.place.path("eve/Annual Report.pdf")).expect("a file"), file);
    group.ask(&eve_at, &["list"]).exits(0).says(&hash).says("'Annual Report.pdf'");
    group.ask(&eve_at, &["remove", "Annual Report.pdf"]).exits(0);
    assert!(!group.ask(&eve_at, &["list"]).exits(0).stdout.contains(&hash));
    group.ask(&eve_at, &["remove", "Annual Report.pdf"]).exits(1).complains("no file of this name");
    group.ask(&eve_at, &["get", "../../etc/passwd"]).exits(2).complains("neither a hash nor a name");
    group.ask(&ann_at, &["list"]).exits(1).complains("nstar serve peer");
    drop(group.index);
}

/// Runs the three scenarios as their first lines say.
#[test]
fn registering_searching_and_obtaining_make_loads() {
    let group = Group::new();
    let (_ann, ann_at) = group.peer("ann", &[]);
    let (_bob, bob_at) = group.peer("bob", &[]);
    group.place.write("ann/zeros.bin", vec![0; 1000]);
    for number in 0..10 {
        group.place.write(&format!("ann/{number}.bin"), [number; 1000]);
    }
    while group.ask_until(&bob_at, &["search", "bin"]).lines().count() < 11 {}
    let zeros = blake3::hash(&[0; 1000]).to_string();
    let scenario = |name: &str| format!("{}/../../scenarios/share-{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(scenario("obtain")).expect("a scenario");
    assert!(text.contains(&zeros), "the hash of 1 000 zeros is {zeros}");
    let load = |name: &str, peer: &str| {
        let (scenario, base) = (scenario(name), format!("http://{peer}"));
        let words = ["load", &scenario, "--base", &base, "-c", "3", "-n", "10", "-o", "run.json"];
        group.place.nstar(words).run().has_not_panicked();
        let run = std::fs::read_to_string(group.place.path("run.json")).expect("a run");
        let run: serde_json::Value = serde_json::from_str(&run).expect("a run");
        let step = &run["steps"][0];
        // Of the measured part, which leaves out the beginning on a slow machine.
        let completed = step["completed"].as_u64().expect("a count");
        assert!((1..=30).contains(&completed), "{step}");
        (completed, step["errors"].clone())
    };
    let none = serde_json::json!({});
    assert_eq!(load("register", &ann_at).1, none);
    assert_eq!(load("search", &bob_at).1, none);
    assert_eq!(load("obtain", &ann_at).1, none);
    group.ask(&ann_at, &["remove", "3.bin"]).exits(0);
    while group.ask(&bob_at, &["search", "3.bin"]).status.success() {}
    let (found, errors) = load("search", &bob_at);
    assert!(found <= 27, "{found}: {errors}");
    assert!(errors.as_object().expect("errors").keys().all(|kind| kind == "nothing_to_keep"), "{errors}");
}

#[test]
fn different_files_of_one_name_are_both_shown_and_got_by_hash() {
    let group = Group::new();
    let (_ann, _) = group.peer("ann", &[]);
    let (_bob, bob_at) = group.peer("bob", &[]);
    group.place.write("ann/one/notes.txt", "first");
    group.place.write("ann/two/notes.txt", "second");
    let second = blake3::hash(b"second").to_string();
    while group.ask_until(&bob_at, &["search", "notes.txt"]).lines().count() < 2 {}
    group.ask(&bob_at, &["get", "notes.txt"]).exits(2).complains(&second);
    group.ask(&bob_at, &["get", &second, "-o", "second.txt"]).exits(0);
    assert_eq!(std::fs::read(group.place.path("second.txt")).expect("a file"), b"second");
}

#[test]
fn a_name_that_looks_like_a_hash_and_one_with_its_folder_are_told_what_to_give() {
    let group = Group::new();
    let (_ann, ann_at) = group.peer("ann", &[]);
    let (_bob, bob_at) = group.peer("bob", &[]);
    let (name, hash) = ("ab".repeat(32), blake3::hash(b"named like a hash").to_string());
    group.place.write(&format!("ann/{name}"), "named like a hash");
    group.place.write("ann/sub/in.txt", "deep");
    group.ask_until(&bob_at, &["search", &name]);
    group.ask_until(&bob_at, &["search", "in.txt"]);
    group.ask(&bob_at, &["get", &name]).exits(1).complains("it was read as a hash").complains(&hash);
    group.ask(&bob_at, &["get", &hash, "-o", "got"]).exits(0);
    group.ask(&ann_at, &["remove", "sub/in.txt"]).exits(2).complains("give in.txt");
    group.ask(&ann_at, &["remove", "in.txt"]).exits(0);
}

#[test]
fn several_files_are_got_at_once_and_those_that_nobody_has_are_named() {
    let group = Group::new();
    let (_ann, _) = group.peer("ann", &[]);
    let (_bob, bob_at) = group.peer("bob", &[]);
    let (one, two) = ("one".repeat(10_000), "two".repeat(100_000));
    group.place.write("ann/one.txt", &one);
    group.place.write("ann/two.txt", &two);
    while group.ask_until(&bob_at, &["search", "txt"]).lines().count() < 2 {}
    group.ask(&bob_at, &["get", "one.txt", "../two.txt"]).exits(2).complains("neither a hash nor a name");
    assert!(!group.place.path("bob/one.txt").exists(), "a mistake is told before anything is got");
    let nothing = blake3::hash(b"what nobody has").to_string();
    let outcome = group.ask(&bob_at, &["get", "one.txt", "none.txt", &nothing, "two.txt"]);
    outcome
        .exits(1)
        .says("one.txt is in")
        .says("two.txt is in")
        .complains("2 of 4 files")
        .complains("nobody shares a file named none.txt")
        .complains(&nothing);
    group.ask(&bob_at, &["get", &nothing]).exits(1).complains("nobody has it now");
    for (name, text) in [("bob/one.txt", &one), ("bob/two.txt", &two)] {
        assert_eq!(std::fs::read_to_string(group.place.path(name)).expect("a file"), *text);
    }
    group.ask(&bob_at, &["get", "one.txt", "two.txt", "-o", "x"]).exits(2).complains("-o names one file");
}

#[test]
fn what_a_peer_is_started_wrongly_with_is_told() {
    let place = Place::beside_others();
    place.write("shared/a.txt", "a");
    let start =
        |args: &[&str]| place.nstar(["serve", "peer", "--listen", "127.0.0.1:0"].iter().chain(args)).run();
    start(&["--share", "none"]).exits(2).complains("no folder none to share");
    start(&["--share", "shared/a.txt"]).exits(2).complains("not a folder");
    start(&["--share", "shared", "--engine", "prefork"]).exits(2).complains("cannot run as prefork");
    start(&["--share", "shared", "--index", "ftp://x"]).exits(2).complains("https://HOST:PORT");
    start(&["--share", "shared", "--ca", "shared/a.txt"]).exits(2).complains("--ca goes with");
    start(&["--share", "shared", "--index", "http://no.such.host.invalid:1"]).exits(2).complains("--index");
    let words = ["serve", "peer", "--share", "shared", "--listen", "0.0.0.0:0"];
    place.nstar(words).run().exits(2).complains("--secret-file");
    let words = words.into_iter().chain(["--secret-file", "secret", "--user", "root"]);
    place.nstar(words).run().exits(2).complains("--advertise");
}

#[test]
fn a_file_got_into_the_peers_own_shared_folder_is_said_to_be_there() {
    let group = Group::new();
    group.place.write("ann/report.txt", "the report");
    let (_ann, ann_at) = group.peer("ann", &[]);
    let (_bob, bob_at) = group.peer("bob", &[]);
    group.ask_until(&ann_at, &["search", "report.txt"]);

    let get = ["get", "report.txt", "-o", "bob/report.txt"];
    group.ask(&bob_at, &get).exits(0).says("bob/report.txt is in the peer's shared folder, 10 bytes");
    group.ask(&bob_at, &get).exits(0).says("bob/report.txt is this file already");
    let files: Vec<_> = std::fs::read_dir(group.place.path("bob"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name != ".nstar")
        .collect();
    assert_eq!(files, ["report.txt"], "neither a copy nor a part is left");
}

#[test]
fn a_name_that_another_file_has_is_refused_before_the_peer_is_asked_for_the_file() {
    let group = Group::new();
    group.place.write("ann/report.txt", "the report");
    group.place.write("bob/report.txt", "another");
    let (_ann, _) = group.peer("ann", &[]);
    let (_bob, bob_at) = group.peer("bob", &[]);
    let hash = blake3::hash(b"the report").to_hex();
    while !group.ask_until(&bob_at, &["search", "report.txt"]).contains(hash.as_str()) {}
    let refused = group.ask(&bob_at, &["get", &hash, "-o", "bob/report.txt"]).exits(2);
    refused.complains("there is a file already");
    assert!(!group.place.path("bob/report (2).txt").exists());
}
