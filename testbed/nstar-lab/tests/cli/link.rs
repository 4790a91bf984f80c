//! A server behind a shaped link, as `nstar lab` sets it up. Needs root.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::common::support::{Place, is_root_or_skip};

/// One file of 100 KB over 100 Mb/s: about 120 per second.
const LINK: &str = r#"
title = "A link of 100 Mb/s"
time = "18s"
rounds = 1
[axis]
workers = [1, 4, 10]
[[data]]
folder = "files"
files = 1
size = "100 KB"
[[process]]
name = "files"
command = [
  "nstar-lab", "serve", "files", "--listen", "${address.files}:${port.files}", "--user", "root", "--root", "${folder}/files",
  "--accounts", "none", "--open-to-all", "--engine", "pool", "--workers", "${workers}",
]
ports = ["files"]
link_mbit = 100
[[work]]
name = "100 Mb/s"
url = "http://${address.files}:${port.files}/files/0.bin"
users = [1, 20]
connections = "per-request"
"#;

/// The interfaces of this host that an experiment created.
fn links() -> Vec<String> {
    let all = std::fs::read_dir("/sys/class/net").expect("interfaces");
    let names = all.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("nst") && name.ends_with('a')).collect()
}

/// Waits until the interfaces of an experiment exist or are gone, which takes the kernel a moment.
fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: {:?}", links());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_shaped_link_is_judged_network_for_every_number_of_workers() {
    if !is_root_or_skip("a_shaped_link_is_judged_network_for_every_number_of_workers") {
        return;
    }
    let place = Place::new();
    place.write("link.toml", LINK);
    let outcome = place.nstar(["lab", "link.toml", "-o", "link.json"]).run().exits(0);
    let text = std::fs::read_to_string(place.path("link.json")).expect("a study");
    let study: Value = serde_json::from_str(&text).expect("a study");
    let entries = study["works"][0]["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 3, "{outcome}");
    for entry in entries {
        let limit = &entry["bottleneck"][0];
        let holder = limit["holder"].as_str().expect("a holder");
        // One name for all variants: where each trial had its own, they did not seem to share a bottleneck.
        let named = limit["kind"] == "network" && holder == "eth0 (server's namespace)";
        // On a machine too busy for the generator the verdict may be uncertain, but must not name another cause.
        let open = !entry["doubts"].as_array().expect("doubts").is_empty();
        assert!(
            named
                || (open
                    && ["unknown", "generator", "none"].contains(&limit["kind"].as_str().expect("a kind"))),
            "{entry}"
        );
        // 100 Mb/s carry 121 of these files per second, with all headers.
        assert!(entry["throughput_per_s"].as_f64() < Some(125.0), "{entry}");
    }
    wait_for("the link is gone", || links().is_empty());
}

/// A server that is slower than its link: the link must not be blamed.
#[test]
fn a_link_with_room_is_not_blamed() {
    if !is_root_or_skip("a_link_with_room_is_not_blamed") {
        return;
    }
    let place = Place::new();
    // Files of 1 KB leave most of 1 Gb/s free: the processor saturates.
    let slow = LINK.replace("workers = [1, 4, 10]", "workers = [4, 5]").replace("18s", "12s");
    let slow = slow.replace("100 KB", "1 KB").replace("link_mbit = 100", "link_mbit = 1000");
    place.write("link.toml", &slow);
    let outcome = place.nstar(["lab", "link.toml", "-o", "link.json"]).run();
    let text = std::fs::read_to_string(place.path("link.json")).expect("a study");
    let study: Value = serde_json::from_str(&text).expect("a study");
    let kind = &study["works"][0]["entries"][0]["bottleneck"][0]["kind"];
    assert_ne!(kind, "network", "{outcome}");
}

#[test]
fn nothing_of_a_link_stays_behind_after_ctrl_c() {
    if !is_root_or_skip("nothing_of_a_link_stays_behind_after_ctrl_c") {
        return;
    }
    for signals in [&["INT"][..], &["INT", "INT"], &["KILL"]] {
        let place = Place::new();
        place.write("link.toml", LINK);
        let mut running = place.nstar(["lab", "link.toml", "-o", "link.json"]).start();
        running.wait_for_stderr("1 users");
        assert_eq!(links().len(), 1, "the link is there while it is measured");
        signals.iter().for_each(|name| running.signal(name));
        running.finish();
        wait_for("the link is gone", || links().is_empty());
    }
}
