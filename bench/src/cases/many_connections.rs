//! The file server with 10 000 kept connections, all or few of them busy, against itself with 100, on the models for many
//! connections. The barest epoll loop beside them shows what the kernel alone loses. Also the memory of an idle
//! connection.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read},
    net::TcpStream,
    process::{Command, Stdio},
    time::Instant,
};

use crate::{
    programs::servers::{BareServer, KB, files_on},
    tools::{
        effort::{Effort, Result},
        table::{Against, Row},
        turns::Candidate,
        workspace::{CLIENTS, ServerProcess, Workspace},
    },
};

const FEW: u32 = 100;
const MANY: u32 = 10_000;
/// Seconds that opening the connections may take. Nothing counts before all are in use.
const SETTLING_S: u32 = 3;
/// The share of its rate with few connections that a server should keep.
const REACH: f64 = 0.9;
/// User memory of an idle connection, at most.
const IDLE_BYTES_MAX: f64 = 4_096.0;
/// Connections opened before memory is counted: they make a server take memory that it keeps for all.
const FIRST: u32 = 500;

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let effort = Effort { seconds: effort.seconds + SETTLING_S, ..effort };
    workspace.file("1k", KB)?;
    let bare = BareServer::compile(workspace)?.responder(workspace, "epoll", KB)?;
    // It checks nothing, so there is nothing for it to reach.
    let mut all = vec![Connections::new("bare C, epoll", bare, None)];
    for (name, model) in [("file server, epoll", "epoll"), ("file server, uring", "uring")] {
        match files_on(workspace, model) {
            Ok(server) => all.push(Connections::new(name, server, Some(REACH))),
            // A system may deny io_uring.
            Err(error) => eprintln!("bench: left out: {error}"),
        }
    }
    // First, before more connections have left memory behind.
    let idle = all.iter().filter(|subject| subject.at.reach.is_some()).map(Connections::idle);
    let idle = idle.collect::<Result<Vec<_>>>()?;
    for _ in 0..effort.rounds {
        for subject in &mut all {
            subject.look(workspace, effort)?;
        }
    }
    Ok(all.iter().flat_map(Connections::rows).chain(idle).collect())
}

/// Requests per CPU-second of a server and per second, one of each per round.
#[derive(Default)]
struct Rates {
    per_cpu_s: Vec<f64>,
    per_s: Vec<f64>,
}

/// A server, and its rates with few and many connections.
struct Connections {
    at: Candidate,
    few: Rates,
    /// With many connections of which few are busy.
    mostly_idle: Rates,
    many: Rates,
}

impl Connections {
    fn new(name: &'static str, server: ServerProcess, reach: Option<f64>) -> Self {
        let path = "/files/1k".into();
        let at = Candidate { name, servers: vec![server], path, header: String::new(), reach };
        let (few, mostly_idle, many) = Default::default();
        Connections { at, few, mostly_idle, many }
    }

    fn look(&mut self, workspace: &Workspace, effort: Effort) -> Result<()> {
        let few = self.turn(workspace, FEW, effort)?;
        self.few.push(few);
        let many = self.turn(workspace, MANY, effort)?;
        self.many.push(many);
        let idle = self.open(MANY - FEW)?;
        let mostly_idle = self.turn(workspace, FEW, effort)?;
        self.mostly_idle.push(mostly_idle);
        drop(idle);
        Ok(())
    }

    /// Returns the requests per CPU-second of the server and per second, counted once all connections are in use.
    fn turn(&self, workspace: &Workspace, users: u32, effort: Effort) -> Result<[f64; 2]> {
        let server = self.at.servers.first().ok_or("no server")?;
        let mut client = Command::new("taskset")
            .args(["-c", &CLIENTS.to_string()])
            .args(self.at.client(workspace, users, effort)?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut said = String::new();
        BufReader::new(client.stderr.take().ok_or("no standard error")?).read_line(&mut said)?;
        let (begun, cpu_before) = (Instant::now(), server.cpu_s());
        let mut printed = String::new();
        client.stdout.take().ok_or("no standard output")?.read_to_string(&mut printed)?;
        let (elapsed_s, cpu_s) = (begun.elapsed().as_secs_f64(), server.cpu_s() - cpu_before);
        client.wait()?;
        let before = said
            .trim()
            .strip_prefix("all answered ")
            .ok_or_else(|| format!("{users} users were not all answered: {said}"))?;
        let all = printed.split_whitespace().next().ok_or("the bare client gave no counts")?;
        let requests = all.parse::<f64>()? - before.parse::<f64>()?;
        Ok([requests / cpu_s, requests / elapsed_s])
    }

    fn rows(&self) -> [Row; 4] {
        let row = |what: &str, unit, rates: &Vec<f64>, few: &Vec<f64>| Row {
            work: format!("{}, 10 000 connections, {what}", self.at.name),
            unit,
            ours: rates.clone(),
            against: Against::Program {
                name: "itself with 100".into(),
                theirs: few.clone(),
                reach: self.at.reach,
            },
        };
        let Self { few, mostly_idle, many, .. } = self;
        [
            row("100 busy", "req/CPU-s", &mostly_idle.per_cpu_s, &few.per_cpu_s),
            row("100 busy", "req/s", &mostly_idle.per_s, &few.per_s),
            row("all busy", "req/CPU-s", &many.per_cpu_s, &few.per_cpu_s),
            row("all busy", "req/s", &many.per_s, &few.per_s),
        ]
    }

    /// Measures the memory of a connection that was answered once and waits.
    fn idle(&self) -> Result<Row> {
        let server = self.at.servers.first().ok_or("no server")?;
        let used = || user_memory_bytes(server.pid()).ok_or("the server's memory cannot be read");
        let first = self.open(FIRST)?;
        let before = used()?;
        let rest = self.open(MANY - FIRST)?;
        let taken = used()? - before;
        drop((first, rest));
        Ok(Row {
            work: format!("{}, memory of an idle connection", self.at.name),
            unit: "bytes",
            ours: vec![taken / f64::from(MANY - FIRST)],
            against: Against::AtMost(IDLE_BYTES_MAX),
        })
    }

    /// Opens this many connections and asks once on each.
    fn open(&self, count: u32) -> Result<Vec<TcpStream>> {
        let server = self.at.servers.first().ok_or("no server")?;
        let request = bench::request(server.address, &self.at.path, "");
        let answered_once = |_| {
            let (stream, _, body) = bench::ask(server.address, &request)?;
            io::copy(&mut (&stream).take(body), &mut io::sink())?;
            Ok(stream)
        };
        (0..count).map(answered_once).collect()
    }
}

impl Rates {
    fn push(&mut self, [per_cpu_s, per_s]: [f64; 2]) {
        self.per_cpu_s.push(per_cpu_s);
        self.per_s.push(per_s);
    }
}

/// Memory of a process that no file backs, in bytes: RssAnon of proc_pid_status(5).
fn user_memory_bytes(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1_024.0)
}
