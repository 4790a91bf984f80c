//! The index of file sharing: registering, in batches of 1 000 files whose hashes are known; and searching among 1 and 8 peers,
//! with an index server and without, against a round trip and against each other.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use share::{Content, client::Client};

use super::{IndexKind, PeerGroup, dht_flags, index, peer, until_found, until_shown};
use crate::tools::{
    cpu,
    effort::{Effort, Result},
    table::{Against, Row, median},
    workspace::{CLIENTS, ServerProcess, Workspace},
};

/// Peers in a group, including the one that registers.
const PEERS: usize = 8;
/// Round trips of each kind in one turn.
const TRIPS: usize = 2_000;

/// A search at one of 8 peers that keep the index themselves, against another request on the same connection.
pub(in super::super) fn response_time(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let group = stocked(workspace, IndexKind::Dht, PEERS)?;
    let asked = group.peers.first().ok_or("no peer")?;
    let paths = [search_by(0, PEERS), "/healthz".to_owned()];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        let [search, trip] = medians(asked, &paths)?;
        ours.push(1.0 / search);
        theirs.push(1.0 / trip);
    }
    let work = format!("1 / (median time of a search), {PEERS} peers without a server, 1 user");
    // A search may take twice the time.
    let against = Against::Program { name: "GET /healthz of the same peer".into(), theirs, reach: Some(0.5) };
    Ok(vec![Row { work, unit: "1/s", ours, against }])
}

/// Searches per CPU-second of all peers and their index server, with one user per peer.
pub(in super::super) fn throughput(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let arms =
        [(IndexKind::Dht, PEERS), (IndexKind::Dht, 1), (IndexKind::Central, PEERS), (IndexKind::Central, 1)];
    let crowds =
        arms.into_iter().map(|(way, peers)| stocked(workspace, way, peers)).collect::<Result<Vec<_>>>()?;
    let mut rates = arms.map(|_| Vec::new());
    for _ in 0..effort.rounds {
        for (group, rates) in crowds.iter().zip(&mut rates) {
            rates.push(searches_per_cpu_s(workspace, group, effort)?);
        }
    }
    let [dht, dht_alone, central, central_alone] = rates;
    let row = |who: &str, ours: &Vec<f64>, name: &str, theirs: Vec<f64>, reach| Row {
        work: format!("searches, {PEERS} peers {who}, {PEERS} users"),
        unit: "req/CPU-s",
        ours: ours.clone(),
        against: Against::Program { name: name.into(), theirs, reach },
    };
    Ok(vec![
        row("without a server", &dht, "with a server", central.clone(), Some(1.0)),
        row("without a server", &dht, "1 peer, 1 user", dht_alone, Some(0.9)),
        row("with a server", &central, "1 peer, 1 user", central_alone, None),
    ])
}

/// Starts peers that share one file each, and waits until each finds the file that it will be asked for.
fn stocked(workspace: &Workspace, way: IndexKind, peers: usize) -> Result<PeerGroup> {
    let folders: Vec<String> = (0..peers).map(|number| format!("{way:?}-{peers}-{number}")).collect();
    for (number, folder) in folders.iter().enumerate() {
        fs::create_dir_all(workspace.path(folder))?;
        fs::write(workspace.path(&format!("{folder}/{number}.bin")), content(number))?;
    }
    let group = PeerGroup::start(workspace, way, &folders)?;
    for (number, peer) in group.peers.iter().enumerate() {
        let wanted = Content::of(content((number + 1) % peers).as_bytes());
        until_found(&mut Client::new(peer.address, None)?, wanted)?;
    }
    Ok(group)
}

fn content(of: usize) -> String {
    format!("what {of} has")
}

/// The request to a peer: a search for the file of the next one.
fn search_by(number: usize, peers: usize) -> String {
    format!("/search?name={}.bin", (number + 1) % peers)
}

fn searches_per_cpu_s(workspace: &Workspace, group: &PeerGroup, effort: Effort) -> Result<f64> {
    let before = group.cpu_s();
    let searched: f64 = thread::scope(|scope| {
        let users: Vec<_> = group
            .peers
            .iter()
            .enumerate()
            .map(|(number, peer)| {
                let path = search_by(number, group.peers.len());
                scope.spawn(move || user(workspace, peer, path, effort).map_err(|error| error.to_string()))
            })
            .collect();
        users.into_iter().map(|user| user.join().map_err(|_| "a user ended")?).sum::<Result<f64, String>>()
    })?;
    Ok(searched / (group.cpu_s() - before))
}

/// Runs one user. Returns how many responses it got.
fn user(workspace: &Workspace, peer: &ServerProcess, path: String, effort: Effort) -> Result<f64> {
    let words = [workspace.ours("bare-client"), peer.address.to_string(), path, "1".into()];
    let words = [&words[..], &[effort.seconds.to_string()]].concat();
    let finished = cpu::run_on(CLIENTS, &words, &[0])?;
    let requests = finished.stdout.split_whitespace().next().ok_or("the bare client gave no counts")?;
    Ok(requests.parse()?)
}

/// Makes two requests in turn on one connection. Returns the median time of each, in seconds.
fn medians(peer: &ServerProcess, paths: &[String; 2]) -> Result<[f64; 2]> {
    let mut stream = TcpStream::connect(peer.address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut turns = Vec::new();
    for path in paths {
        let request = bench::request(peer.address, path, "");
        let length = usize::try_from(bench::response_length(peer.address, &request)?)?;
        turns.push((request, vec![0; length], Vec::with_capacity(TRIPS)));
    }
    for _ in 0..TRIPS {
        for (request, response, times) in &mut turns {
            let begun = Instant::now();
            stream.write_all(request)?;
            stream.read_exact(response)?;
            times.push(begun.elapsed().as_secs_f64());
        }
    }
    let times: Vec<f64> = turns.iter().map(|(_, _, times)| median(times)).collect();
    times.try_into().map_err(|_| "two requests".into())
}

/// Files registered in one turn with an index server.
const FILES: usize = 20_000;
/// Files registered in one turn among peers, which keep at most 10 000 files under one word.
const FILES_AMONG_PEERS: usize = 8_000;
/// Its name, its hash, and the three words of its name.
const KEYS_OF_A_FILE: usize = 5;

/// Registers with an index server.
pub(in super::super) fn central(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let folder = known_files(workspace, FILES)?;
    let mut ours = Vec::new();
    for _ in 0..effort.rounds {
        let index = index(workspace)?;
        let begun = Instant::now();
        let peer = peer(workspace, &folder, &["--index".into(), index.address.to_string()])?;
        until_shown(&index, &format!("nstar_index_files_registered_total {FILES}"))?;
        ours.push(FILES as f64 / begun.elapsed().as_secs_f64());
        drop(peer);
    }
    let work = format!("{FILES} files registered by one peer, its start included");
    Ok(vec![Row { work, unit: "files/s", ours, against: Against::AtLeast(10_000.0) }])
}

/// Registers among peers: each of the others keeps the whole index.
pub(in super::super) fn among_peers(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let folder = known_files(workspace, FILES_AMONG_PEERS)?;
    let others: Vec<String> = (1..PEERS).map(|number| format!("keeper{number}")).collect();
    let mut ours = Vec::new();
    for _ in 0..effort.rounds {
        let (mut known, mut keepers) = (None, Vec::new());
        for other in &others {
            keepers.push(peer(workspace, other, &dht_flags(&mut known)?)?);
        }
        let flags = dht_flags(&mut known)?;
        let begun = Instant::now();
        let peer = peer(workspace, &folder, &flags)?;
        let wanted = format!("dht_records {}\n", FILES_AMONG_PEERS * KEYS_OF_A_FILE);
        keepers.iter().try_for_each(|keeper: &ServerProcess| until_shown(keeper, &wanted))?;
        ours.push(FILES_AMONG_PEERS as f64 / begun.elapsed().as_secs_f64());
        drop(peer);
    }
    let work = format!("{FILES_AMONG_PEERS} files registered with {PEERS} peers, its start included");
    Ok(vec![Row { work, unit: "files/s", ours, against: Against::AtLeast(2_000.0) }])
}

/// Makes a folder of this many files whose hashes a peer has already computed.
fn known_files(workspace: &Workspace, count: usize) -> Result<String> {
    let folder = format!("many{count}");
    let text = |number: usize| format!("file {number}");
    fs::create_dir_all(workspace.path(&folder))?;
    for number in 0..count {
        fs::write(workspace.path(&format!("{folder}/file {number:05}.bin")), text(number))?;
    }
    let group = PeerGroup::start(workspace, IndexKind::Central, std::slice::from_ref(&folder))?;
    let last = Content::of(text(count.saturating_sub(1)).as_bytes());
    for peer in &group.peers {
        until_found(&mut Client::new(peer.address, None)?, last)?;
    }
    Ok(folder)
}
