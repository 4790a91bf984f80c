//! Experiments that vary something, on the real systems.

use std::ffi::OsStr;

use serde_json::Value;

use super::peers::shortened;
use crate::common::{
    program::{lab_program, tool_program},
    support::Place,
};

/// Compares two models on one file, for a second or two each.
pub(super) const TWO_MODELS: &str = r#"
title = "Two models on one file"
time = "5s"
rounds = 2
[axis]
engine = ["threads", "epoll"]
[[data]]
folder = "files"
files = 1
size = "1 KB"
[[process]]
name = "files"
command = [
  "nstar-lab", "serve", "files", "--listen", "127.0.0.1:${port.files}", "--root", "${folder}/files",
  "--accounts", "none", "--engine", "${engine}",
]
ports = ["files"]
[[work]]
name = "1 KB, 8 users"
url = "http://127.0.0.1:${port.files}/files/0.bin"
users = 8
[[published]]
title = "made up"
hardware = "a machine that never was"
year = 1999
unit = "req/s"
figures = [{ variant = "threads", value = 1.0 }, { variant = "epoll", value = 2.0 }]
"#;

fn read(place: &Place, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(place.path(name)).expect(name)).expect(name)
}

#[test]
fn models_are_compared_in_one_table_with_every_run_beside() {
    let place = Place::new();
    place.write("two.toml", TWO_MODELS);
    let outcome = place.nstar(["lab", "two.toml", "-o", "two.json"]).run().exits(0);
    for word in
        ["threads", "epoll", "place", "Published (made up; a machine that never was, 1999)", " runs, "]
    {
        assert!(outcome.stdout.contains(word), "no '{word}'\n{outcome}");
    }
    let study = read(&place, "two.json");
    let entries = study["works"][0]["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 2, "{study}");
    place.nstar(["report", "two.json"]).run().exits(0).says("epoll");
    place.nstar(["report", "two.json", "--format", "csv"]).run().exits(0).says("work,variant,");
    for entry in entries {
        assert!(entry["throughput_per_s"].as_f64() > Some(0.0), "{entry}");
        assert!(entry["place"][0].as_u64() <= entry["place"][1].as_u64(), "{entry}");
        for file in entry["runs"].as_array().expect("runs") {
            let run = read(&place, file.as_str().expect("a name"));
            assert_eq!(run["schema"], "nstar.run/1");
        }
        // More rounds are made while there is time.
        assert!(entry["runs"].as_array().map(Vec::len) >= Some(2), "{entry}");
    }
    let page = std::fs::read_to_string(place.path("two.html")).expect("a report");
    assert!(page.contains("<svg") && page.contains("made up"));
}

#[test]
fn a_model_that_cannot_run_is_named_and_the_others_are_compared() {
    let place = Place::beside_others();
    // `--loops` does not go with a thread per connection.
    let text = TWO_MODELS
        .replace("\"${engine}\"", "\"${engine}\", \"--loops\", \"1\"")
        .replace("rounds = 2", "rounds = 1");
    place.write("two.toml", &text);
    let outcome = place.nstar(["lab", "two.toml", "-o", "two.json"]).run().exits(0);
    assert!(outcome.stderr.contains("LEFT OUT: threads") && outcome.stderr.contains("--loops"), "{outcome}");
    let study = read(&place, "two.json");
    assert_eq!(study["left_out"][0]["what"], "threads", "{study}");
    assert_eq!(study["works"][0]["entries"][0]["variant"], "epoll", "{study}");
}

#[test]
fn a_comparison_that_cannot_be_meant_is_refused_before_anything_runs() {
    let place = Place::beside_others();
    place.write("two.toml", TWO_MODELS);
    place.nstar(["lab", "two.toml", "--engine", "epoll"]).run().exits(2).complains("varies it");
    place.nstar(["lab", "two.toml", "--engine", "epol"]).run().exits(2).complains("epoll");
    place.nstar(["lab", "two.toml", "--gate", "users>=1"]).run().exits(2).complains("--gate");
    place.nstar(["lab", "experiments/no-such.toml"]).run().exits(2).complains("no-such");
    place
        .nstar(["lab", "file-same"])
        .run()
        .exits(2)
        .complains("no experiment 'file-same'")
        .complains("files-same");
}

/// More users than a worker and a queue of two can hold: some are served, the others are refused at once.
#[test]
fn an_overloaded_pool_shows_who_was_served_and_who_was_denied() {
    let place = Place::new();
    let text = TWO_MODELS
        .replace("engine = [\"threads\", \"epoll\"]", "workers = [1, 2]")
        .replace(
            "\"${engine}\"",
            "\"pool\", \"--workers\", \"${workers}\", \"--queue\", \"2\", \"--overload\", \"503\"",
        )
        .replace("rounds = 2", "rounds = 1")
        .replace("users = 8", "users = 64\nconnections = \"per-request\"\noverload = true");
    place.write("pool.toml", &text);
    let outcome = place.nstar(["lab", "pool.toml", "-o", "pool.json"]).run().exits(0);
    assert!(outcome.stdout.contains("denied"), "{outcome}");
    let study = read(&place, "pool.json");
    assert_eq!(study["axis"], "workers");
    for entry in study["works"][0]["entries"].as_array().expect("entries") {
        assert!(entry["completed"].as_u64() > Some(0) && !entry["place"].is_null(), "{entry}");
        let denied = entry["errors"].as_object().expect("errors");
        assert!(denied.values().any(|count| count.as_u64() > Some(0)), "{entry}");
    }
}

/// The published experiment on booking and cancelling, shortened to one round.
fn booking(replaced: &[(&str, &str)]) -> String {
    let users = "[1, 10, 30, 50, 80, 100, 150, 200, 250, 300, 350, 400, 500, 600]";
    let short = [
        ("time = \"6m\"", "time = \"9s\"\nrounds = 1"),
        (users, "8"),
        ("book = 70, cancel = 30", "book = 60, cancel = 40"),
        ("rows = 1000000", "rows = 3000"),
        ("\"20000\"", "\"1000\""),
    ];
    shortened("booking-mix", &[&short, replaced].concat())
}

/// Every database is checked afterwards for what was promised. Databases that are not installed are left out.
#[test]
fn bookings_are_proven_on_every_database() {
    let place = Place::beside_others();
    place.write("booking.toml", booking(&[]));
    let outcome = place.nstar(["lab", "booking.toml", "-o", "booking.json"]).run();
    assert!(matches!(outcome.status.code(), Some(0 | 4)), "{outcome}");
    for word in ["bookings acknowledged", "No room is booked twice.", "of the 14 published points"] {
        assert!(outcome.stdout.contains(word), "no '{word}'\n{outcome}");
    }
    let study = read(&place, "booking.json");
    assert_eq!(study["axis"], "database");
    let entries = study["works"][0]["entries"].as_array().expect("entries");
    let left_out = study["left_out"].as_array().expect("a list");
    assert_eq!(entries.len() + left_out.len(), 3, "{study}");
    assert!(std::env::var_os("CI").is_none() || left_out.is_empty(), "run scripts/setup-tests: {left_out:?}");
    assert!(
        left_out.iter().all(|left| left["why"].as_str().is_some_and(|why| why.contains("apt-get install")))
    );
    for entry in entries {
        assert_eq!(entry["proofs"][0]["holds"], true, "{entry}");
        assert!(entry["errors"].as_object().is_some_and(serde_json::Map::is_empty), "{entry}");
        let run = read(&place, entry["runs"][0].as_str().expect("a name"));
        let shares = run["requests"].as_array().expect("the mix");
        assert_eq!((&shares[0]["name"], &shares[1]["asked_share"]), (&"book".into(), &0.4.into()), "{run}");
        // In a few requests there may be no booking yet to cancel.
        let came = |share: &Value| ["completed", "replaced"].map(|count| share[count].as_u64());
        assert!(shares.iter().all(|share| came(share).iter().any(|count| *count > Some(0))), "{shares:?}");
    }
}

#[test]
fn weights_and_users_that_cannot_be_are_refused() {
    let place = Place::beside_others();
    for (from, to, word) in [
        ("book = 60", "bok = 60", "did you mean `book`?"),
        ("users = 8\n", "users = [8, 4, 2]\n", "an ascending list"),
    ] {
        place.write("booking.toml", booking(&[(from, to)]));
        place.nstar(["lab", "booking.toml"]).run().exits(2).complains(word);
    }
}

/// With a database behind the server, the verdict names the tier that uses the processors most, even one of many processes.
#[test]
fn the_tier_that_is_the_bottleneck_is_named() {
    let place = Place::new();
    let text = booking(&[("users = 8\n", "users = [1, 8, 32]\n"), ("9s", "20s")]);
    place.write("booking.toml", text);
    let outcome = place.nstar(["lab", "booking.toml", "-o", "booking.json"]).run();
    assert!(matches!(outcome.status.code(), Some(0 | 4)), "{outcome}");
    let study = read(&place, "booking.json");
    for entry in study["works"][0]["entries"].as_array().expect("entries") {
        let run = read(&place, entry["runs"][0].as_str().expect("a name"));
        let verdict = &run["verdict"];
        let (kind, holder) = (&verdict["bottleneck"]["kind"], verdict["bottleneck"]["holder"].as_str());
        let variant = entry["variant"].as_str().expect("a database");
        let doubts = verdict["inconclusive"].as_array().expect("reasons");
        if let Some(first) = doubts.first() {
            eprintln!("UNDECIDED on {variant}: this machine was too busy, and the answer said so: {first}");
            continue;
        }
        // With many rooms and random days, no transaction waits for another's row.
        assert!(kind != "lock" || variant == "sqlite", "on {variant}, {holder:?} is no lock: {verdict}");
        if kind != "cpu" {
            eprintln!("NOT TRIED on {variant}: {kind} of {holder:?} stopped it, and no processor");
            continue;
        }
        let steps = run["steps"].as_array().expect("steps");
        let enough = verdict["users_at_saturation"].as_u64();
        let saturated = steps.iter().find(|step| step["users"].as_u64() >= enough).expect("a step");
        let tiers = saturated["resources"].as_array().expect("resources").iter().filter(|resource| {
            resource["kind"] == "cpu" && resource["unit"] == "cores" && resource["holder"] != "host"
        });
        let used: Vec<_> =
            tiers.map(|tier| (tier["holder"].as_str(), tier["used"].as_f64().expect("cores"))).collect();
        let most = used.iter().map(|(_, used)| *used).fold(0.0, f64::max);
        let named = used.iter().find(|(tier, _)| *tier == holder);
        // If both use about the same, either may use more in one step and less overall.
        let about_most = named.is_some_and(|(_, used)| *used >= most * 0.7);
        assert!(about_most, "on {variant} no tier that takes most is named: {verdict}\n{saturated}");
        let demands = run["laws"]["demands"].as_array().expect("demands");
        let server = match variant {
            "mariadb" => "mariadbd (pid",
            "postgres" => "postgres (",
            _ => "nstar-booking (pid",
        };
        let named =
            |demand: &&Value| demand["holder"].as_str().is_some_and(|holder| holder.starts_with(server));
        let of_cpu = demands.iter().filter(named).filter(|demand| demand["kind"] == "cpu").count();
        assert_eq!(of_cpu, 1, "on {variant} the demand on {server}..) is not told once: {demands:?}");
    }
}

#[test]
fn the_tool_and_the_testbed_run_the_same_commands() {
    let place = Place::beside_others();
    let listed = place.nstar(["lab", "--list"]).run().exits(0).says("files-same").stdout;
    let (tool, testbed) = (tool_program(), lab_program());
    for words in [[tool.as_os_str(), OsStr::new("lab")], [testbed.as_os_str(), OsStr::new("run")]] {
        let outcome = place.call(words.into_iter().chain([OsStr::new("--list")])).run().exits(0);
        assert_eq!(outcome.stdout, listed, "{outcome}");
    }
    let words = ["serve", "sink", "--engine", "magic"].map(OsStr::new);
    place.call([tool.as_os_str()].into_iter().chain(words)).run().exits(2).complains("epoll");
    place
        .call([tool.as_os_str(), OsStr::new("share"), OsStr::new("key")])
        .run()
        .exits(2)
        .complains("--share");
}
