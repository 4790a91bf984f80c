//! What the systems acknowledged survives power cuts and kill -9. `make power-cuts` and `make kill-campaign` try many more.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crash_tests::{
    Campaign, Crash, Kind, Outcome,
    disk::{self, Disk, Tree},
};
use test_support::http::ask;

const CUTS: u64 = 10;
const KILLS: u64 = 20;
/// As many as one server and its data may have. A loss that is found ends them; the first or second cut shows one.
const UNSYNCED_CUTS: u64 = 25;
/// Ways in which one power cut may end that are tried.
const WAYS: u64 = 40;
const PATIENCE: Duration = Duration::from_secs(60);

/// Crashes each system so many times, and looks at what came of each.
fn try_all(crash: Crash, crashes: u64, look: impl Fn(&str, &Outcome)) {
    for system in Kind::ALL {
        let program = Path::new(env!("CARGO_BIN_EXE_nstar-lab")).to_owned();
        let seed = fastrand::u64(..1_000_000_000);
        let campaign = Campaign { program, system, config: None, crash, crashes, seed };
        let outcome = campaign.run(|_| ()).unwrap();
        look(&format!("{}, from seed {seed} on", system.name()), &outcome);
    }
}

fn nothing_is_lost(crash: Crash, crashes: u64) {
    try_all(crash, crashes, |which, outcome| {
        assert!(outcome.faults.is_empty(), "{which}:\n{}", outcome.faults.join("\n"));
        assert_eq!(outcome.crashes, crashes, "{which}: {outcome:?}");
        assert!(outcome.acknowledged > 0, "{which}: nothing was acknowledged that could be lost");
    });
}

fn has_disks() -> bool {
    let possible = disk::is_possible();
    if !possible {
        eprintln!("SKIPPED: no disk can be mounted here; run as root, where /dev/fuse is");
    }
    possible
}

#[test]
fn what_was_acknowledged_survives_power_cuts() {
    if has_disks() {
        nothing_is_lost(Crash::PowerCut, CUTS);
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    nothing_is_lost(Crash::Kill, KILLS);
}

/// So that a campaign in which nothing is lost says something of the servers.
#[test]
fn on_a_disk_that_syncs_nothing_every_system_is_seen_to_lose_something() {
    if has_disks() {
        try_all(Crash::PowerCutUnsynced, UNSYNCED_CUTS, |which, outcome| {
            assert!(!outcome.faults.is_empty(), "{which}: no loss is found: {outcome:?}");
        });
    }
}

/// A peer that shares a folder, killed when dropped.
struct Peer {
    child: Child,
    at: SocketAddr,
}

impl Peer {
    fn share(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nstar-lab"))
            .args(["serve", "peer", "--listen", "127.0.0.1:0", "--index", "127.0.0.1:1", "--share"])
            .arg(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = |line: String| {
            line.split_whitespace().find_map(|word| word.split_once("://")?.1.parse::<SocketAddr>().ok())
        };
        let at = said.find_map(address).unwrap();
        Self { child, at }
    }

    fn shares(&self, name: &str) -> bool {
        ask(self.at, "GET /files", "", b"").unwrap().body.contains(name)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_file_that_was_taken_out_of_sharing_stays_out_after_a_power_cut() {
    if !has_disks() {
        return;
    }
    let (at, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let disk = Disk::mount(at.path(), Tree::default()).unwrap();
    let folder = disk.path().join("shared");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("private.txt"), "private").unwrap();
    File::open(disk.path()).unwrap().sync_all().unwrap();

    let peer = Peer::share(&folder);
    let end = Instant::now() + PATIENCE;
    while !peer.shares("private.txt") {
        assert!(Instant::now() < end, "the file is never shared");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(ask(peer.at, "DELETE /files/private.txt", "", b"").unwrap().status, 204);
    disk.cut_after(0);
    drop(peer);

    let tree = disk.unmount().unwrap();
    for way in 0..WAYS {
        let left = left.path().join(way.to_string());
        tree.clone().cut(&mut fastrand::Rng::with_seed(way)).copy_to(&left).unwrap();
        let journal = fs::read_to_string(left.join("shared/.nstar/memory")).unwrap_or_default();
        let is_kept = journal.lines().any(|line| line == r#"{"removed":{"path":"private.txt"}}"#);
        assert!(is_kept, "way {way} leaves only {journal:?}");
    }
}
