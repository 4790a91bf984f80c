//! Experiments that vary something, on the real systems.

use std::ffi::OsStr;

use serde_json::Value;

use crate::common::{
    program::{lab_program, tool_program},
    support::Place,
};

/// Compares two models on one file, for a second or two each.
const TWO_MODELS: &str = r#"
title = "Two models on one file"
page_cache = "warm"
drive = "open-files"
time = "8s"
rounds = 2
[axis]
engines = ["threads", "epoll"]
[[work]]
name = "1 KB, 8 users"
scenario = "get-open-file"
files = 1
file_size = "1 KB"
users = 8
[[published]]
title = "made up"
hardware = "none"
unit = "req/s"
figures = [{ variant = "threads", value = 1.0 }]
"#;

fn read(place: &Place, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(place.path(name)).expect(name)).expect(name)
}

#[test]
fn models_are_compared_in_one_table_with_every_run_beside() {
    let place = Place::new();
    place.write("two.toml", TWO_MODELS);
    let outcome = place.nstar(["lab", "two.toml", "-o", "two.json"]).run().exits(0);
    for word in ["threads", "epoll", "place", "Published (made up; none)", "4 runs"] {
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
        assert_eq!(entry["runs"].as_array().map(Vec::len), Some(2));
    }
    let page = std::fs::read_to_string(place.path("two.html")).expect("a report");
    assert!(page.contains("<svg") && page.contains("made up"));
}

#[test]
fn a_model_that_cannot_run_is_named_and_the_others_are_compared() {
    let place = Place::new();
    // `--loops` does not go with a thread per connection.
    let text = TWO_MODELS.replace("rounds = 2", "flags = [\"--loops\", \"1\"]").replace("8s", "4s");
    place.write("two.toml", &text);
    let outcome = place.nstar(["lab", "two.toml", "-o", "two.json"]).run().exits(0);
    assert!(outcome.stderr.contains("LEFT OUT: threads") && outcome.stderr.contains("--loops"), "{outcome}");
    let study = read(&place, "two.json");
    assert_eq!(study["left_out"][0]["what"], "threads", "{study}");
    assert_eq!(study["works"][0]["entries"][0]["variant"], "epoll", "{study}");
}

#[test]
fn a_study_that_cannot_be_meant_is_refused_before_anything_runs() {
    let place = Place::new();
    place.write("wrong.toml", TWO_MODELS.replace("\"epoll\"", "\"epol\""));
    place.nstar(["lab", "wrong.toml"]).run().exits(2).complains("epol").complains("threads");
    place.write("two.toml", TWO_MODELS);
    place.nstar(["lab", "two.toml", "--engine", "epoll"]).run().exits(2).complains("[axis]");
    place.nstar(["lab", "two.toml", "--gate", "users>=1"]).run().exits(2).complains("--gate");
    place
        .nstar(["lab", "two.toml", "--gate", "users>=1"])
        .run()
        .complains("--engine MODEL, then nstar sweep");
    place.write("booking.toml", BOOKING);
    let gated = place.nstar(["lab", "booking.toml", "--gate", "users>=1"]).run().exits(2);
    assert!(gated.stderr.contains("--database URL") && !gated.stderr.contains("--engine"), "{gated}");
    place.nstar(["lab", "experiments/no-such.toml"]).run().exits(2).complains("no-such");
}

/// More users than a worker and a queue of two can hold: some are served, the others are refused at once.
#[test]
fn an_overloaded_pool_shows_who_was_served_and_who_was_denied() {
    let place = Place::new();
    let text = TWO_MODELS
        .replace("engines = [\"threads\", \"epoll\"]", "engine = \"pool\"\nworkers = [1, 2]")
        .replace("rounds = 2", "flags = [\"--queue\", \"2\", \"--overload\", \"503\"]")
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

const BOOKING: &str = r#"
title = "Booking"
page_cache = "warm"
drive = "booking"
time = "9s"
axis = { databases = ["sqlite", "mariadb", "postgres"] }
[[work]]
name = "book and cancel"
scenario = "book-cancel"
weights = { book = 60, cancel = 40 }
users = 8
[[published]]
title = "made up"
hardware = "none"
unit = "req/s and ms"
work = "book and cancel"
points = [{ users = 10, per_s = 1.0, ms = 1.0 }]
"#;

/// Every database is checked afterwards for what was promised. Databases that are not installed are left out.
#[test]
fn bookings_are_proven_on_every_database() {
    let place = Place::new();
    place.write("booking.toml", BOOKING);
    let outcome = place.nstar(["lab", "booking.toml", "-o", "booking.json"]).run();
    assert!(matches!(outcome.status.code(), Some(0 | 4)), "{outcome}");
    for word in ["bookings acknowledged", "No room is booked twice.", "breaks at 1 of the 1 published points"]
    {
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
        assert!(shares.iter().all(|share| share["completed"].as_u64() > Some(0)), "{shares:?}");
    }
}

#[test]
fn databases_and_weights_that_there_are_not_are_refused() {
    let place = Place::new();
    for (from, to, word) in [
        ("\"sqlite\"", "\"oracle\"", "sqlite, mariadb or postgres"),
        ("book = 60", "bok = 60", "did you mean `book`?"),
        ("drive = \"booking\"", "drive = \"sink\"", "go with `drive"),
        ("users = 8", "users = [8, 4, 2]", "an ascending list"),
    ] {
        place.write("booking.toml", BOOKING.replace(from, to));
        place.nstar(["lab", "booking.toml"]).run().exits(2).complains(word);
    }
}

/// With a database behind the server, the verdict names the tier that uses the processors most, even one of many processes.
#[test]
fn the_tier_that_is_the_bottleneck_is_named() {
    let place = Place::new();
    let text = BOOKING.replace("users = 8", "users = [1, 8, 32]").replace("9s", "24s");
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
    let place = Place::new();
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
