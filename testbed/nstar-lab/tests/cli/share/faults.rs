//! Peers, indexes and disks that fail: no wrong byte is ever delivered, and everything unaffected keeps working.

use std::{
    collections::HashSet,
    fs,
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use share::{
    Content,
    client::{Client, RequestError},
    entry::Query,
    peer::DownloadState,
};

use super::{Group, Halfway, eventually, serve_index};
use crate::{
    common::support::{PATIENCE, Running, free_port, is_root_or_skip},
    serve::ask,
};

/// Kills a server, and waits until its port and its folder are free.
fn kill(running: &mut Running) {
    running.signal("KILL");
    eventually("it ends", || !running.is_alive());
}

#[test]
fn a_download_goes_on_while_the_index_is_away_and_searches_are_back_when_it_is() {
    let mut halfway = Halfway::new();
    let (_bob, bob_at, get) = halfway.begin("bob");
    kill(halfway.group.index.as_mut().expect("an index"));
    halfway.proxy.open.store(true, SeqCst);
    get.finish().exits(0);
    assert!(halfway.is_at("bob/large.bin"));
    halfway.group.ask(&bob_at, &["search", "large.bin"]).exits(1).complains("cannot be asked now");

    let (_index, _) = serve_index(&halfway.group.place, &halfway.group.index_at);
    while !halfway.group.ask_until(&bob_at, &["search", "large.bin"]).contains("2 peers") {}
}

#[test]
fn a_download_goes_on_at_its_source_when_that_is_back() {
    let mut halfway = Halfway::new();
    let (_bob, _, get) = halfway.begin("bob");
    kill(&mut halfway.ann);
    halfway.proxy.open.store(true, SeqCst);
    let listen = format!("127.0.0.1:{}", halfway.port);
    let more = ["--listen", &listen, "--advertise", &halfway.proxy.at];
    let (_ann, _) = halfway.group.wrapped_peer(&[], "ann", &more);
    get.finish().exits(0);
    assert!(halfway.is_at("bob/large.bin"));
}

#[test]
fn a_full_disk_is_told_and_what_came_is_gone_on_with_once_there_is_room() {
    if !is_root_or_skip("a_full_disk_is_told_and_what_came_is_gone_on_with_once_there_is_room") {
        return;
    }
    let group = Group::new();
    let (_ann, _) = group.peer("ann", &[]);
    let file: Vec<_> = (0..1_500_000_u32).flat_map(u32::to_le_bytes).collect();
    group.place.write("ann/large.bin", &file);
    fs::create_dir(group.place.path("small")).expect("a folder");
    // A disk that only the peer sees.
    let mount = "mount -t tmpfs -o size=3m none small && exec \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", mount, "sh"];
    let (bob, bob_at) = group.wrapped_peer(&wrapper, "small", &["--listen", "127.0.0.1:0"]);
    group.ask_until(&bob_at, &["search", "large.bin"]);
    group.ask(&bob_at, &["get", "large.bin"]).exits(1).complains("the disk is full");
    group.ask(&bob_at, &["list"]).exits(0);

    let pid = bob.pid().to_string();
    let small = group.place.path("small").display().to_string();
    let grow = ["--mount", "--target", &pid, "mount", "-o", "remount,size=32m", &small];
    assert!(std::process::Command::new("nsenter").args(grow).status().expect("nsenter").success());
    group.ask(&bob_at, &["get", "large.bin", "-o", "copy.bin"]).exits(0);
    assert!(fs::read(group.place.path("copy.bin")).expect("a copy") == file);
}

#[test]
fn a_small_file_is_had_once_what_fills_the_disk_of_a_larger_one_is_removed_as_is_told() {
    if !is_root_or_skip("a_small_file_is_had_once_what_fills_the_disk_of_a_larger_one_is_removed_as_is_told")
    {
        return;
    }
    let group = Group::new();
    let (_ann, _) = group.peer("ann", &[]);
    group.place.write("ann/large.bin", vec![1; 6_000_000]);
    group.place.write("ann/small.bin", vec![2; 700_000]);
    fs::create_dir(group.place.path("full")).expect("a folder");
    let mount = "mount -t tmpfs -o size=3m none full && exec \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", mount, "sh"];
    let (bob, bob_at) = group.wrapped_peer(&wrapper, "full", &["--listen", "127.0.0.1:0"]);
    for name in ["large.bin", "small.bin"] {
        group.ask_until(&bob_at, &["search", name]);
    }
    let large = group.ask(&bob_at, &["get", "large.bin"]).exits(1);
    large.complains("the part already downloaded is kept").complains("full/.nstar/parts");
    let small = group.ask(&bob_at, &["get", "small.bin"]).exits(1);
    small.complains("full/.nstar/parts").complains("may be removed");

    let parts = group.place.path("full/.nstar/parts").display().to_string();
    let remove = format!("rm {parts}/*.data {parts}/*.map");
    let within = ["--mount", "--target", &bob.pid().to_string(), "sh", "-c", &remove].map(str::to_owned);
    assert!(std::process::Command::new("nsenter").args(within).status().expect("nsenter").success());
    group.ask(&bob_at, &["get", "small.bin"]).exits(0);
}

/// The number of peers in the tests of churn, how many of them have the wanted file at first, and how often one is killed.
const PEERS: usize = 8;
const HOLDERS: usize = 3;
const KILLS: usize = 14;
/// The life of a peer's records in the test of churn without a server. It is 30 times shorter than the default: a churn of
/// 30 % per minute, which is 60 % in the default life, then takes two seconds.
const LIFE: Duration = Duration::from_secs(4);
const CHURN_IN_LIFE: f64 = 0.6;

/// Eight peers, each of which can be killed and restarted with its folder and address.
struct Crowd {
    group: Group,
    ports: Vec<u16>,
    /// The address of each peer's part of the index; empty with an index server.
    spread: Option<Vec<u16>>,
    /// The file that all want, and a file of each peer.
    common: Vec<u8>,
    own: Vec<Vec<u8>>,
    kills: AtomicUsize,
}

impl Crowd {
    fn with_a_server() -> Self {
        Self::new(Group::new(), None)
    }

    fn without_a_server() -> Self {
        Self::new(Group::without_index(), Some((0..PEERS).map(|_| free_port()).collect()))
    }

    fn new(group: Group, spread: Option<Vec<u16>>) -> Self {
        let common: Vec<_> = (0..1_000_000_u32).flat_map(|number| (number * 3).to_le_bytes()).collect();
        let own: Vec<_> = (0..PEERS).map(|number| vec![number as u8; 1000 + 20_000 * number]).collect();
        for (number, own) in own.iter().enumerate() {
            group.place.write(&format!("peer{number}/own {number}.bin"), own);
        }
        for number in 0..HOLDERS {
            group.place.write(&format!("peer{number}/common.dat"), &common);
        }
        let ports = (0..PEERS).map(|_| free_port()).collect();
        Self { group, ports, spread, common, own, kills: AtomicUsize::new(0) }
    }

    fn start(&self, number: usize) -> Running {
        let at = |port: u16| format!("127.0.0.1:{port}");
        let mut words = vec!["--listen".into(), at(self.ports[number])];
        if let Some(ports) = &self.spread {
            words.extend(["--dht", "--life", &format!("{}s", LIFE.as_secs())].map(String::from));
            words.extend(["--dht-listen".into(), at(ports[number])]);
            let first = (0..2).filter(|other| *other != number);
            words.extend(first.flat_map(|other| ["--bootstrap".into(), at(ports[other])]));
        }
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        self.group.wrapped_peer(&[], &format!("peer{number}"), &words).0
    }

    /// The time between two kills: none with an index server, whose records survive the peers.
    fn pause(&self) -> Duration {
        self.spread.as_ref().map_or(Duration::ZERO, |_| LIFE.div_f64(CHURN_IN_LIFE * PEERS as f64))
    }

    fn client(&self, number: usize) -> Client {
        Client::new(SocketAddr::from(([127, 0, 0, 1], self.ports[number])), None).expect("a client")
    }

    /// Kills and restarts all peers but the first, one after the other.
    fn churn(&self, mut peers: Vec<Running>) -> Vec<Running> {
        for victim in (1..PEERS).cycle().take(KILLS) {
            thread::sleep(self.pause());
            kill(&mut peers[victim]);
            peers[victim] = self.start(victim);
            self.kills.fetch_add(1, SeqCst);
        }
        peers
    }

    /// Has a peer download some content, however often the peer is killed meanwhile.
    fn obtain(&self, number: usize, content: Content) {
        let patience = Instant::now() + PATIENCE;
        let mut client = self.client(number);
        loop {
            match obtain(&mut client, content) {
                Ok(DownloadState::Done) => return,
                outcome => assert!(Instant::now() < patience, "peer {number}: {outcome:?}"),
            }
        }
    }

    /// Searches through this peer for the file of each peer, until all are found.
    fn find_all(&self, number: usize) {
        let mut client = self.client(number);
        eventually("everything is found", || {
            (0..PEERS).all(|other| {
                let name = format!("own {other}.bin").parse().expect("a name");
                client.search(&Query::Name(name)).is_ok_and(|found| !found.is_empty())
            })
        });
    }
}

/// Waits for the download to end or the peer to die. Returns the state of the download.
fn obtain(client: &mut Client, content: Content) -> Result<DownloadState, RequestError> {
    let mut progress = client.obtain(content, None)?;
    while progress.state == DownloadState::Running {
        progress = client.progress(content, PATIENCE)?;
    }
    Ok(progress.state)
}

/// The contents in a shared folder.
fn contents(folder: &Path) -> HashSet<Content> {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.is_file()).map(|path| Content::of(&fs::read(path).expect("a file"))).collect()
}

/// Peers are killed and restarted while all of them download and search. Every byte is right, and in the end each peer has
/// everything.
fn churn_under_load(crowd: &Crowd) -> Vec<Running> {
    let peers: Vec<_> = (0..PEERS).map(|number| crowd.start(number)).collect();
    crowd.find_all(0);
    let common = Content::of(&crowd.common);
    let peers = thread::scope(|scope| {
        let churning = scope.spawn(|| crowd.churn(peers));
        for number in HOLDERS..PEERS {
            scope.spawn(move || {
                crowd.obtain(number, common);
                for own in &crowd.own {
                    crowd.obtain(number, Content::of(own));
                }
            });
        }
        scope.spawn(|| {
            while crowd.kills.load(SeqCst) < KILLS {
                crowd.find_all(0);
            }
        });
        churning.join().expect("all were started again")
    });
    let right: HashSet<_> = crowd.own.iter().chain([&crowd.common]).map(|bytes| Content::of(bytes)).collect();
    for number in 0..PEERS {
        let has = contents(&crowd.group.place.path(&format!("peer{number}")));
        assert!(has.is_subset(&right), "peer {number} has what nobody shared");
        assert!(number < HOLDERS || has == right, "peer {number} has not all it was to get");
        crowd.find_all(number);
    }
    peers
}

#[test]
fn peers_killed_and_restarted_under_load_deliver_nothing_wrong_and_everything_in_the_end() {
    churn_under_load(&Crowd::with_a_server());
}

#[test]
fn a_third_of_the_peers_replaced_a_minute_do_no_harm_without_a_server_and_the_dead_are_forgotten() {
    let crowd = Crowd::without_a_server();
    let mut peers = churn_under_load(&crowd);
    let dead = SocketAddr::from(([127, 0, 0, 1], crowd.ports[PEERS - 1]));
    let common = Query::Content(Content::of(&crowd.common));
    kill(&mut peers[PEERS - 1]);
    for number in 0..PEERS - 1 {
        let mut client = crowd.client(number);
        eventually("the dead peer is forgotten, and it alone", || {
            let found = client.search(&common).expect("an answer");
            found.iter().all(|file| !file.peers.contains(&dead) && file.peers.len() == PEERS - 1)
        });
    }
}

#[test]
fn a_shared_folder_that_was_replaced_is_told_of_and_shared_again_when_it_is_back() {
    let group = Group::new();
    let (_ann, ann_at) = group.peer("ann", &[]);
    let health = || ask(&ann_at, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    let shares = |name: &str| group.ask_until(&ann_at, &["list"]).contains(name);
    group.place.write("ann/first.txt", "1");
    eventually("it is shared", || shares("first.txt"));
    fs::rename(group.place.path("ann"), group.place.path("away")).expect("a rename");
    group.place.write("ann/again.txt", "2");
    eventually("it is told", || health().contains("so nothing is shared; put the folder back"));
    assert!(!shares("txt"));

    fs::rename(group.place.path("ann"), group.place.path("other")).expect("a rename");
    fs::rename(group.place.path("away"), group.place.path("ann")).expect("a rename");
    eventually("it is back", || shares("first.txt") && !health().contains("so nothing is shared"));
    assert!(!shares("again.txt"));
}
