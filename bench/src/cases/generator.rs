//! `nstar load` against other load generators and the barest of clients; and with 10 000 users against itself with 100:
//! throughput, and memory of its own.

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    programs::{
        generators::{
            AB, BARE, Finished, Generator, HEY, K6, Load, NSTAR, OHA, WRK, bare_uring_client, nstar_words,
        },
        servers::{self, KB, Site, need_nginx, responder},
    },
    tools::{
        effort::{Effort, Result},
        table::{Against, Row},
        workspace::{CLIENTS, Workspace},
    },
};

/// A generator, and the ratio that ours should reach against it.
pub(super) type Peer = (Generator, Option<f64>);

pub(super) fn small_bodies(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let server = responder(workspace)?;
    let load = Load::new(workspace, format!("http://{}/", server.address), 32, effort)?;
    let peers = all_peers(workspace, Some(0.9));
    compare(workspace, ("generator, 1 KB, 32 users", "req/CPU-s"), &load, effort, &peers)
}

/// Every generator, and the barest clients, of which ours should reach `bare` against the one on epoll.
pub(super) fn all_peers(workspace: &Workspace, bare: Option<f64>) -> Vec<Peer> {
    let mut peers = vec![(BARE, bare)];
    match bare_uring_client(workspace) {
        Ok(client) => peers.push((client, None)),
        // A system may deny io_uring.
        Err(error) => eprintln!("bench: left out: {error}"),
    }
    peers.extend([(WRK, Some(1.2)), (AB, None), (OHA, None), (HEY, None), (K6, None)]);
    peers
}

pub(super) fn large_bodies(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let bytes = 100_000 * KB;
    let file = workspace.file("100m", bytes)?.display().to_string();
    let sender = workspace.ours("bare-sender");
    let server = workspace.serve(|address| Ok(vec![sender, address.to_string(), file]))?;
    let load =
        Load { body_bytes: bytes, ..Load::new(workspace, format!("http://{}/", server.address), 4, effort)? };
    let peers = [(BARE, None), (WRK, Some(3.0)), (OHA, None)];
    let rows = compare(workspace, ("generator, 100 MB, 4 users", "B/CPU-s"), &load, effort, &peers)?;
    Ok(rows.into_iter().map(|row| scaled(row, bytes as f64)).collect())
}

/// Turns rates of bodies into rates of bytes.
fn scaled(mut row: Row, by: f64) -> Row {
    row.ours.iter_mut().for_each(|rate| *rate *= by);
    if let Against::Program { theirs, .. } = &mut row.against {
        theirs.iter_mut().for_each(|rate| *rate *= by);
    }
    row
}

pub(super) fn one_connection_per_request(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    need_nginx()?;
    workspace.file("1k", KB)?;
    let server = servers::nginx(workspace, &Site::default())?;
    let load =
        Load::new(workspace, format!("http://{}/1k", server.address), 32, effort)?.reconnecting(workspace)?;
    let peers = [(WRK, Some(1.0)), (AB, Some(1.0)), (OHA, Some(1.0)), (HEY, Some(1.0))];
    compare(workspace, ("generator, 1 KB, a connection per request", "req/CPU-s"), &load, effort, &peers)
}

pub(super) fn tls(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    need_nginx()?;
    workspace.file("1k", KB)?;
    let (key, certificate) = self_signed(workspace)?;
    let keys = format!("ssl_certificate {certificate}; ssl_certificate_key {key};");
    let server = servers::nginx(workspace, &Site { server: keys, listen: "ssl", ..Site::default() })?;
    let load = Load::new(workspace, format!("https://{}/1k", server.address), 32, effort)?;
    let peers = [(WRK, Some(1.2)), (OHA, Some(1.2)), (HEY, None)];
    compare(workspace, ("generator, TLS, 1 KB, 32 users", "req/CPU-s"), &load, effort, &peers)
}

/// Makes a key and a self-signed certificate. Returns their paths.
pub(super) fn self_signed(workspace: &Workspace) -> Result<(String, String)> {
    let [key, certificate] =
        ["key.pem", "certificate.pem"].map(|name| workspace.path(name).display().to_string());
    let made = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=localhost", "-days", "2", "-keyout", &key, "-out", &certificate])
        .output()?;
    if made.status.success() { Ok((key, certificate)) } else { Err("openssl made no certificate".into()) }
}

/// Runs nstar and its peers in turn against one server, and compares what each completes for its CPU time.
fn compare(
    workspace: &Workspace,
    work: (&str, &'static str),
    load: &Load,
    effort: Effort,
    peers: &[Peer],
) -> Result<Vec<Row>> {
    Ok(take_turns(workspace, load, effort, peers)?.rows(peers, work, Finished::bodies_per_cpu_s))
}

/// The runs of nstar, and of each peer; none of a peer that is not installed.
pub(super) struct Turns {
    pub(super) ours: Vec<Finished>,
    pub(super) theirs: Vec<Vec<Finished>>,
}

/// Runs nstar and its peers in turn against one server, round after round.
pub(super) fn take_turns(
    workspace: &Workspace,
    load: &Load,
    effort: Effort,
    peers: &[Peer],
) -> Result<Turns> {
    let mut turns = Turns { ours: Vec::new(), theirs: peers.iter().map(|_| Vec::new()).collect() };
    for _ in 0..effort.rounds {
        turns.ours.push(NSTAR.run(workspace, load)?);
        let theirs = peers.iter().zip(&mut turns.theirs);
        for ((peer, _), runs) in theirs.filter(|((peer, _), _)| peer.is_installed()) {
            runs.push(peer.run(workspace, load)?);
        }
    }
    Ok(turns)
}

impl Turns {
    /// A row for each peer.
    pub(super) fn rows(
        &self,
        peers: &[Peer],
        (work, unit): (&str, &'static str),
        rate: impl Fn(&Finished) -> f64,
    ) -> Vec<Row> {
        let rates = |runs: &[Finished]| runs.iter().map(&rate).collect::<Vec<f64>>();
        let ours = rates(&self.ours);
        let row = |((peer, reach), runs): (&Peer, &Vec<Finished>)| {
            let name = peer.name.to_owned();
            let against = if runs.is_empty() {
                Against::Missing(name)
            } else {
                Against::Program { name, theirs: rates(runs), reach: *reach }
            };
            Row { work: work.to_owned(), unit, ours: ours.clone(), against }
        };
        peers.iter().zip(&self.theirs).map(row).collect()
    }
}

const FEW: u32 = 100;
const MANY: u32 = 10_000;
/// Seconds of a round at least: opening thousands of connections must be a small part of it.
const SECONDS_MIN: u32 = 3;

pub(super) fn many_users(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let effort = Effort { seconds: effort.seconds.max(SECONDS_MIN), ..effort };
    let server = responder(workspace)?;
    let url = format!("http://{}/", server.address);
    let few = Load::new(workspace, url, FEW, effort)?;
    let many = Load { users: MANY, ..few.clone() };
    let mut throughput = [Vec::new(), Vec::new()];
    let mut per_cpu_s = [Vec::new(), Vec::new()];
    let mut bare = [Vec::new(), Vec::new()];
    let mut per_user = Vec::new();
    for _ in 0..effort.rounds {
        let mut memory = [0.0; 2];
        for (index, load) in [&many, &few].into_iter().enumerate() {
            let seen = run_watched(workspace, load)?;
            throughput[index].push(seen.per_s);
            memory[index] = seen.memory_bytes;
            per_cpu_s[index].push(NSTAR.bodies_per_cpu_s(workspace, load)?);
            bare[index].push(BARE.bodies_per_cpu_s(workspace, load)?);
        }
        per_user.push((memory[0] - memory[1]) / f64::from(MANY - FEW));
    }
    let row = |what: &str, unit, [many, few]: [Vec<f64>; 2], reach| Row {
        work: format!("{what}, 10 000 users, 1 KB"),
        unit,
        ours: many,
        against: Against::Program { name: "itself at 100 users".into(), theirs: few, reach },
    };
    Ok(vec![
        row("generator", "req/s", throughput, Some(0.9)),
        row("generator", "req/CPU-s", per_cpu_s, None),
        row("bare epoll client", "req/CPU-s", bare, None),
        Row {
            work: "generator, memory of a user".into(),
            unit: "bytes",
            ours: per_user,
            against: Against::AtMost(8_192.0),
        },
    ])
}

/// What one run came to.
struct Measured {
    per_s: f64,
    memory_bytes: f64,
}

/// Runs nstar for a time and watches its memory.
fn run_watched(workspace: &Workspace, load: &Load) -> Result<Measured> {
    let output = workspace.path("run.json");
    let words = nstar_words(workspace, load, &format!("-d {}s -o {}", load.seconds, output.display()));
    let mut child = Command::new("taskset")
        .args(["-c", &CLIENTS.to_string()])
        .args(&words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let memory_bytes = most_memory(&mut child)?;
    let run: serde_json::Value = serde_json::from_str(&fs::read_to_string(output)?)?;
    let per_s = run["steps"][0]["throughput_per_s"].as_f64().ok_or("nstar measured nothing")?;
    Ok(Measured { per_s, memory_bytes })
}

/// Waits for a child to end. Returns the most memory it ever held, in bytes.
fn most_memory(child: &mut Child) -> Result<f64> {
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut most = 0.0;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err("nstar did not end".into());
        }
        most = high_water_bytes(child.id()).unwrap_or(most);
        thread::sleep(Duration::from_millis(50));
    }
    Ok(most)
}

/// VmHWM of proc_pid_status(5).
fn high_water_bytes(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1_024.0)
}
