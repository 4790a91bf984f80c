//! File sharing: peers that register, serve and obtain, against the file server, curl from nginx, and themselves.

use std::{
    fs,
    io::{self, Read},
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use share::{
    Content,
    client::Client,
    peer::{Progress, State},
    seam::Query,
};

use super::{Contestant, KB, Turn, files, in_turn, need_nginx, rows};
use crate::{
    Effort, Outcome,
    cpu::run_on,
    nginx::{self, Site},
    place::{Place, SHARED, Server},
    table::{Against, Row},
};

/// Files that are registered in one turn.
const REGISTERED: usize = 20_000;
/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a peer on a folder of the place, on all processors.
fn peer(place: &Place, folder: &str, index: SocketAddr) -> Outcome<Server> {
    fs::create_dir_all(place.path(folder))?;
    let folder = place.path(folder).display().to_string();
    place.serve_ours_shared(&["peer", "--share", &folder, "--index", &index.to_string()])
}

fn index(place: &Place, number: usize) -> Outcome<Server> {
    let database = place.path(&format!("index{number}.db")).display().to_string();
    place.serve_ours_shared(&["index", "--database", &database])
}

/// Registering: a peer that knows the hashes of its files tells the index of them all, in batches of 1 000.
pub(super) fn register(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let text = |number: usize| format!("file {number}");
    fs::create_dir_all(place.path("many"))?;
    for number in 0..REGISTERED {
        fs::write(place.path(&format!("many/file {number:05}.bin")), text(number))?;
    }
    let last = Content::of(text(REGISTERED - 1).as_bytes());
    let first = index(place, 0)?;
    drop(until_found(peer(place, "many", first.address)?, last)?);
    let mut ours = Vec::new();
    for round in 1..=effort.rounds {
        let index = index(place, round)?;
        let begun = Instant::now();
        let peer = until_registered(peer(place, "many", index.address)?, &index)?;
        ours.push(REGISTERED as f64 / begun.elapsed().as_secs_f64());
        drop(peer);
    }
    let work = format!("{REGISTERED} files registered by one peer, its start included");
    Ok(vec![Row { work, unit: "files/s", ours, against: Against::AtLeast(10_000.0) }])
}

fn until_found(peer: Server, content: Content) -> Outcome<Server> {
    let mut client = Client::new(peer.address, None)?;
    wait_until(|| client.search(&Query::Content(content)).is_ok_and(|found| !found.is_empty()))?;
    Ok(peer)
}

/// The index counts what it has taken in.
fn until_registered(peer: Server, index: &Server) -> Outcome<Server> {
    let wanted = format!("nstar_index_files_registered_total {REGISTERED}");
    wait_until(|| metrics(index.address).is_ok_and(|shown| shown.contains(&wanted)))?;
    Ok(peer)
}

fn metrics(of: SocketAddr) -> io::Result<String> {
    let (stream, _, length) = bench::ask(of, &bench::request(of, "/metrics", ""))?;
    io::read_to_string(stream.take(length))
}

fn wait_until(mut holds: impl FnMut() -> bool) -> Outcome<()> {
    let patience = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > patience {
            return Err("a peer or an index did not come to what was waited for".into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Serving 1 KB to whoever obtains it, against the file server.
pub(super) fn small(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let file = place.file("1k", KB)?;
    let content = Content::of(&fs::read(file)?);
    fs::create_dir_all(place.path("shared"))?;
    place.file("shared/1k", KB)?;
    let index = index(place, 0)?;
    let (folder, index_at) = (place.path("shared").display().to_string(), index.address.to_string());
    let peer = place.serve_ours(&["peer", "--share", &folder, "--index", &index_at])?;
    let peer = until_found(peer, content)?;
    let contestant =
        |name, servers, path, reach| Contestant { name, servers, path, header: String::new(), reach };
    let contestants = [
        contestant("nstar serve peer", vec![peer], format!("/content/{content}"), None),
        contestant("nstar serve files", vec![files(place, "none")?], "/files/1k".into(), Some(0.5)),
    ];
    let turns = in_turn(place, &contestants, 32, effort)?;
    let rate = |turn: &Turn| turn.requests / turn.cpu_s;
    Ok(rows("obtain, 1 KB, 32 users", "req/CPU-s", &contestants, &turns, rate))
}

/// Obtaining files one after the other, checked and kept, against curl from nginx. What disks do to either is left out
/// where the place is on none: `TMPDIR=/dev/shm`.
pub(super) fn large(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    need_nginx()?;
    let nginx = nginx::start(place, &Site::default())?;
    let index = index(place, 0)?;
    let (source, receiver) = (peer(place, "source", index.address)?, peer(place, "receiver", index.address)?);
    let mut all = Vec::new();
    for (work, bytes, count) in
        [("1 MB", 1_000 * KB, 40), ("10 MB", 10_000 * KB, 10), ("100 MB", 100_000 * KB, 2)]
    {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..effort.rounds {
            let names: Vec<_> = (0..count).map(|number| format!("{bytes}-{round}-{number}.bin")).collect();
            let contents = names
                .iter()
                .enumerate()
                .map(|(number, name)| write(place, name, bytes, (round * count + number) as u64))
                .collect::<Outcome<Vec<_>>>()?;
            let total = (bytes * count) as f64;
            ours.push(total / obtain(&receiver, &contents)?);
            theirs.push(total / curl(place, &nginx, &names)?);
            for name in &names {
                fs::remove_file(place.path(&format!("source/{name}")))?;
                fs::remove_file(place.path(&format!("receiver/{name}")))?;
            }
        }
        let against = Against::Program { name: "curl from nginx".into(), theirs, reach: Some(0.8) };
        all.push(Row { work: format!("obtain, {work}, one source"), unit: "B/s", ours, against });
    }
    drop(source);
    Ok(all)
}

/// A file of the source that is like no other.
fn write(place: &Place, name: &str, bytes: usize, seed: u64) -> Outcome<Content> {
    let block: Vec<u8> =
        (seed..).flat_map(|number| (number ^ (seed << 40)).to_le_bytes()).take(bytes).collect();
    fs::write(place.path(&format!("source/{name}")), &block)?;
    Ok(Content::of(&block))
}

/// Seconds that a receiver takes for them, one after the other, once the index knows them all.
fn obtain(receiver: &Server, contents: &[Content]) -> Outcome<f64> {
    let mut client = Client::new(receiver.address, None)?;
    for content in contents {
        wait_until(|| client.search(&Query::Content(*content)).is_ok_and(|found| !found.is_empty()))?;
    }
    let begun = Instant::now();
    for content in contents {
        let mut progress: Progress = client.obtain(*content, None)?;
        while progress.state == State::Running {
            progress = client.progress(*content, PATIENCE)?;
        }
        if progress.state != State::Done {
            return Err(format!("a file was not obtained: {:?}", progress.error).into());
        }
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Seconds that curl takes for them over one connection.
fn curl(place: &Place, nginx: &Server, names: &[String]) -> Outcome<f64> {
    let to = place.path("curled").display().to_string();
    let urls = names
        .iter()
        .flat_map(|name| ["-o".into(), to.clone(), format!("http://{}/source/{name}", nginx.address)]);
    let words: Vec<String> = ["curl", "-sSf"].map(String::from).into_iter().chain(urls).collect();
    let begun = Instant::now();
    run_on(SHARED, &words, &[0])?;
    Ok(begun.elapsed().as_secs_f64())
}
