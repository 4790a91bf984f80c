//! Several experiments in one folder, with an index.

use std::fs;

use super::{lab::TWO_MODELS, peers::shortened};
use crate::common::support::Place;

/// Two models on one file, for a few seconds, with something claimed.
fn models() -> String {
    let claims = r#"
[[claim]]
text = "Nobody is turned away."
denied = true
[[claim]]
text = "Loops are faster than threads."
order = ["epoll", "threads"]
"#;
    TWO_MODELS.replace("time = \"5s\"\nrounds = 2", "time = \"1s\"") + claims
}

/// A program that does not start.
const BROKEN: &str = r#"
title = "A program that is not there"
[[process]]
name = "nothing"
command = ["no-such-program"]
[[work]]
url = "http://127.0.0.1:9/"
users = 1
"#;

#[test]
fn several_experiments_make_one_folder_with_an_index() {
    let place = Place::new();
    place.write("models.toml", models());
    place.write("broken.toml", BROKEN);
    place.write("files-same.toml", shortened("files-same", &[("[1, 256]", "[1, 4]")]));
    let words = ["lab", "models.toml", "broken.toml", "files-same.toml", "-d", "600ms", "-o", "all"];
    let outcome = place.nstar(words).run();
    // One failed, and the worst decides.
    assert_eq!(outcome.status.code(), Some(1), "{outcome}");
    let outcome =
        outcome.complains("3 experiments, about ").complains("broken: ").complains("no-such-program");
    let outcome = outcome.complains("exit status 1 because of broken: ");
    outcome.says("all/index.html").says("models: Two models on one file").says("Claims: ");
    let index = fs::read_to_string(place.path("all/index.html")).expect("an index");
    for word in [
        "Two models on one file",
        "a machine that never was, 1999",
        "<code>nstar-lab models.toml</code>",
        "no-such-program",
        "href=\"models&#x2f;report.html\"",
        "href=\"files-same&#x2f;run-experiment.html\"",
        "Nobody is turned away.",
        "not met",
    ] {
        assert!(index.contains(word), "no '{word}' in the index\n{index}");
    }
    for file in
        ["models/run.json", "models/report.html", "files-same/run.json", "files-same/run-experiment.html"]
    {
        assert!(place.path("all").join(file).is_file(), "{file}");
    }
    let text = fs::read_to_string(place.path("all/files-same/run-experiment.json")).expect("a file");
    let held: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(held["claims"][0]["requires"]["kind"], "bottleneck", "{held}");
    assert!(held["claims"][0]["outcome"].as_str().is_some_and(|words| words.ends_with('.')), "{held}");
    // What is complete is not measured again, a single measurement included.
    let run = fs::read(place.path("all/files-same/run.json")).expect("a file");
    let again = place.nstar(words.into_iter().chain(["--resume"])).run();
    again.complains("going on: 1 trial is there already").says("files-same: ");
    assert!(fs::read(place.path("all/files-same/run.json")).expect("a file") == run);
}

#[test]
fn an_interrupted_series_keeps_an_index_of_what_was_measured_and_goes_on() {
    let place = Place::beside_others();
    place.write("models.toml", models());
    place.write("more.toml", models().replace("\"1s\"", "\"8s\""));
    place.write("last.toml", models());
    let words = ["lab", "models.toml", "more.toml", "last.toml", "-d", "600ms", "-o", "all"];
    let mut running = place.nstar(words).start();
    running.wait_for_stderr("-- 2. more");
    running.signal("INT");
    running.finish().exits(130).says("all/index.html");
    let index = fs::read_to_string(place.path("all/index.html")).expect("an index");
    for word in [
        "Stopped before the end",
        "href=\"models&#x2f;report.html\"",
        "Not measured: the run was stopped before it began.",
    ] {
        assert!(index.contains(word), "no '{word}' in the index\n{index}");
    }
    let first = || fs::read(place.path("all/models/run.runs/1-kb-8-users-epoll-1.json")).expect("a trial");
    let made = first();
    let again = place.nstar(words.into_iter().chain(["--resume"])).run();
    again.complains("trials are there already").says("last: ");
    assert!(first() == made, "what was complete was measured again");
    let index = fs::read_to_string(place.path("all/index.html")).expect("an index");
    assert!(!index.contains("Stopped before the end"), "{index}");
    for name in ["models", "more", "last"] {
        assert!(
            index.contains(&format!("href=\"{name}&#x2f;report.html\"")),
            "no {name} in the index\n{index}"
        );
    }
}

#[test]
fn what_goes_with_one_experiment_is_refused_for_several() {
    let place = Place::beside_others();
    place.nstar(["lab", "all", "--engine", "epoll"]).run().exits(2).complains("--engine");
    place.nstar(["lab", "all", "--gate", "users>=1"]).run().exits(2).complains("--gate");
    place.nstar(["lab", "files-same", "--full"]).run().exits(2).complains("--full");
    place.nstar(["lab", "files-same", "files-same"]).run().exits(2).complains("twice");
    place.nstar(["lab", "files-same", "file-different"]).run().exits(2).complains("files-different");
    assert!(!place.path("run").exists(), "nothing was run");
    let nothing = place.nstar(["lab", "files-same", "accounts-new", "--resume"]).run();
    nothing.exits(2).complains("there is nothing to go on with");
}

#[test]
fn a_claim_that_cannot_be_checked_is_refused() {
    let place = Place::beside_others();
    for (from, to, word) in [
        ("denied = true", "", "`bottleneck`"),
        ("denied = true", "denied = true\nproven = true", "`bottleneck`"),
        ("denied = true", "bottleneck = \"dsk\"", "did you mean `disk`?"),
        ("[\"epoll\", \"threads\"]\n", "[\"epol\", \"threads\"]\n", "did you mean `epoll`?"),
        ("year = 1999", "year = 1999\nbottleneck = \"dsk\"", "disk"),
        ("year = 1999", "year = 1999\nvariant = \"epol\"", "did you mean `epoll`?"),
    ] {
        place.write("models.toml", models().replace(from, to));
        place.nstar(["lab", "models.toml"]).run().exits(2).complains(word);
    }
}
