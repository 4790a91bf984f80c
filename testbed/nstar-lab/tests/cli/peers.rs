//! Experiments on peers, shortened.

use std::fs;

use serde_json::Value;

use crate::common::support::{Nstar, Place};

/// A published experiment with some of its lines replaced.
pub(super) fn shortened(name: &str, replaced: &[(&str, &str)]) -> String {
    let path = format!("{}/../../experiments/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).expect(&path);
    let scenarios = format!("{}/../../scenarios/", env!("CARGO_MANIFEST_DIR"));
    let text = text.replace("../scenarios/", &scenarios);
    replaced.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{name} has no '{from}'");
        text.replace(from, to)
    })
}

/// `nstar lab` of this experiment, with its own folder for temporary files.
fn lab(place: &Place, text: &str, words: &[&str]) -> Nstar {
    fs::create_dir_all(place.path("tmp")).expect("a folder");
    place.write("mine.toml", text);
    let folder = format!("TMPDIR={}", place.path("tmp").display());
    place.wrapped(["env", &folder], ["lab", "mine.toml", "-o", "mine.json"].iter().chain(words))
}

/// Runs an experiment and checks that it leaves nothing behind. Returns its comparison.
fn study(place: &Place, text: &str, words: &[&str]) -> Value {
    let outcome = lab(place, text, words).run();
    // On a busy machine there may be no order.
    assert!(matches!(outcome.status.code(), Some(0 | 4)), "{outcome}");
    assert!(outcome.stdout.contains("Little's law") && outcome.stdout.contains("Published (S4"), "{outcome}");
    assert_nothing_is_left(place);
    let page = fs::read_to_string(place.path("mine.html")).expect("a report");
    assert!(page.contains("CPU per request") && page.contains("Published: S4"));
    serde_json::from_str(&fs::read_to_string(place.path("mine.json")).expect("a study")).expect("a study")
}

/// Checks that no file and no server is left.
fn assert_nothing_is_left(place: &Place) {
    let folder = place.path("tmp");
    let left: Vec<_> = fs::read_dir(&folder).expect("the folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    let folder = folder.to_string_lossy().into_owned();
    let commands = fs::read_dir("/proc").expect("/proc").flatten();
    let commands = commands.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    let left: Vec<_> = commands.filter(|words| words.contains(&folder)).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn entries(work: &Value) -> &Vec<Value> {
    work["entries"].as_array().expect("entries")
}

/// Every operation was done by every number of peers, and no request failed.
fn assert_all_done(study: &Value, variants: &[&str]) {
    assert_eq!(study["left_out"], Value::Array(Vec::new()), "{study}");
    for work in study["works"].as_array().expect("works") {
        let names: Vec<_> = entries(work).iter().filter_map(|entry| entry["variant"].as_str()).collect();
        assert_eq!(names, variants, "{work}");
        for entry in entries(work) {
            assert!(entry["completed"].as_u64() > Some(0), "{entry}");
            assert!(entry["errors"].as_object().is_some_and(serde_json::Map::is_empty), "{entry}");
            assert!(entry["cpu_us_per_request"].as_f64() > Some(0.0), "{entry}");
        }
    }
}

#[test]
fn peers_register_search_and_obtain_and_each_operation_is_told_apart() {
    let place = Place::beside_others();
    let short = [("[1, 2, 4, 8]", "[1, 3]"), ("rounds = 3", "rounds = 1"), ("4m", "8s")];
    let study = study(&place, &shortened("p2p-nodes", &short), &[]);
    assert_eq!(study["axis"], "peers");
    let works = study["works"].as_array().expect("works");
    let names: Vec<_> = works.iter().filter_map(|work| work["name"].as_str()).collect();
    assert_eq!(names, ["register 50 files", "search", "obtain 1 KB"]);
    assert_all_done(&study, &["1", "3"]);
    for work in works {
        let users: Vec<_> = entries(work).iter().filter_map(|entry| entry["users"].as_u64()).collect();
        assert_eq!(users, [1, 3], "one user of each peer");
        assert!(work["laws"][0].as_str().is_some_and(|law| law.starts_with("Little's law")), "{work}");
    }
}

#[test]
fn all_kinds_of_index_are_compared_on_the_same_work() {
    let place = Place::beside_others();
    let short = [
        ("peers = [1, 8]", "peers = [1, 3]"),
        ("central, 8", "central, 3"),
        ("dht, 8", "dht, 3"),
        ("rounds = 3", "rounds = 1"),
        ("8m", "21s"),
    ];
    let study = study(&place, &shortened("p2p-central-or-distributed", &short), &[]);
    assert_eq!(study["axis"], "index, peers");
    let kinds = ["central, 1", "central, 3", "dht, 1", "dht, 3", "partitioned, 1", "partitioned, 3"];
    assert_all_done(&study, &kinds);
}

#[test]
fn peers_obtain_files_of_each_size() {
    let place = Place::beside_others();
    let small = [("\"10 MB\"", "\"2 MB\""), ("\"100 MB\"", "\"3 MB\"")];
    let short = [("peers = [8]", "peers = [2]"), ("90s", "8s"), small[0], small[1]];
    let study = study(&place, &shortened("p2p-file-size", &short), &["--share-cores"]);
    assert_all_done(&study, &["2"]);
    let works = study["works"].as_array().expect("works");
    assert_eq!(works.len(), 6);
    for (work, size) in works.iter().zip([1e3, 1e4, 1e5, 1e6, 2e6, 3e6]) {
        let entry = &entries(work)[0];
        let of = |key: &str| entry[key].as_f64().unwrap_or_default();
        assert!(of("received_bytes_per_s") > 0.5 * size * of("throughput_per_s"), "{}", work["name"]);
    }
}

#[test]
fn an_experiment_on_peers_that_cannot_be_is_refused_before_anything_starts() {
    let place = Place::beside_others();
    let refused = |from: &str, to: &str, word: &str| {
        let text = shortened("p2p-nodes", &[(from, to)]);
        let outcome = lab(&place, &text, &[]).run().exits(2).complains(word);
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
        assert!(!place.path("mine.json").exists() && !place.path("mine.runs").exists());
        assert_nothing_is_left(&place);
    };
    refused("[1, 2, 4, 8]", "[0]", "from 1 to 64");
    refused("[1, 2, 4, 8]", "[1000]", "from 1 to 64");
    refused("\"1 KB\"", "\"2 TB\"", "few enough for");
    refused("\nindex = \"central\"\n", "\nindx = \"central\"\n", "did you mean `indx`?");
    place.write("mine.toml", shortened("p2p-nodes", &[]));
    let few = place.wrapped(["prlimit", "--nofile=80"], ["lab", "mine.toml", "-o", "mine.json"]);
    few.run().exits(2).complains("programs and their users need").complains("ulimit -n");
    assert!(!place.path("mine.runs").exists());
}

/// An interrupted experiment removes its files and stops its servers.
#[test]
fn an_interrupted_experiment_leaves_nothing_behind() {
    let place = Place::beside_others();
    let mut running = lab(&place, &shortened("p2p-nodes", &[("4m", "30m")]), &[]).start();
    running.wait_for_stderr("starting index, peer");
    // The peers may be starting, being asked or under load: nothing is left in any case.
    running.signal("INT");
    running.finish().exits(130);
    assert_nothing_is_left(&place);
}
