//! The file server with 10 000 kept connections against itself with 100, on the models made for many; the barest epoll
//! loop beside them shows what the kernel loses. And the memory of a connection that is idle.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read},
    net::TcpStream,
    process::{Command, Stdio},
    time::Instant,
};

use super::{Contestant, KB, bare_server::BareServer, files_on};
use crate::{
    Effort, Outcome,
    place::{CLIENTS, Place, Server},
    table::{Against, Row},
};

const FEW: u32 = 100;
const MANY: u32 = 10_000;
/// Seconds that many connections take to be made, at most; what is done before all are in use is not counted.
const SETTLING_S: u32 = 3;
/// How much of its rate at few connections a server is to keep.
const REACH: f64 = 0.9;
/// User memory of an idle connection, at most.
const IDLE_BYTES_MAX: f64 = 4_096.0;
/// Memory that the first so many connections make a server take for good is not the others'.
const FIRST: u32 = 500;

pub(super) fn measure(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let effort = Effort { seconds: effort.seconds + SETTLING_S, ..effort };
    place.file("1k", KB)?;
    let bare = BareServer::compile(place)?.responder(place, "epoll", KB)?;
    // Whoever checks nothing is held to nothing.
    let mut all = vec![Subject::new("bare C, epoll", bare, None)];
    for (name, model) in [("file server, epoll", "epoll"), ("file server, uring", "uring")] {
        match files_on(place, model) {
            Ok(server) => all.push(Subject::new(name, server, Some(REACH))),
            // A system may deny io_uring.
            Err(error) => eprintln!("bench: left out: {error}"),
        }
    }
    for _ in 0..effort.rounds {
        for subject in &mut all {
            subject.look(place, effort)?;
        }
    }
    let mut rows = all.iter().flat_map(Subject::rows).collect::<Vec<_>>();
    for subject in all.iter().filter(|subject| subject.at.reach.is_some()) {
        rows.push(subject.idle()?);
    }
    Ok(rows)
}

/// A server, and what was seen of it with many and with few connections, one per round.
struct Subject {
    at: Contestant,
    per_cpu_s: [Vec<f64>; 2],
    per_s: [Vec<f64>; 2],
}

impl Subject {
    fn new(name: &'static str, server: Server, reach: Option<f64>) -> Self {
        let at = Contestant {
            name,
            servers: vec![server],
            path: "/files/1k".into(),
            header: String::new(),
            reach,
        };
        Subject { at, per_cpu_s: Default::default(), per_s: Default::default() }
    }

    fn look(&mut self, place: &Place, effort: Effort) -> Outcome<()> {
        for (index, users) in [MANY, FEW].into_iter().enumerate() {
            let [per_cpu_s, per_s] = self.turn(place, users, effort)?;
            self.per_cpu_s[index].push(per_cpu_s);
            self.per_s[index].push(per_s);
        }
        Ok(())
    }

    /// Requests per CPU-second of the server and per second, from when all connections are made and in use.
    fn turn(&self, place: &Place, users: u32, effort: Effort) -> Outcome<[f64; 2]> {
        let server = self.at.servers.first().ok_or("no server")?;
        let mut client = Command::new("taskset")
            .args(["-c", &CLIENTS.to_string()])
            .args(self.at.client(place, users, effort)?)
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

    fn rows(&self) -> [Row; 2] {
        let row = |unit, [many, few]: &[Vec<f64>; 2]| Row {
            work: format!("{}, 10 000 connections, 1 KB", self.at.name),
            unit,
            ours: many.clone(),
            against: Against::Program {
                name: "itself with 100".into(),
                theirs: few.clone(),
                reach: self.at.reach,
            },
        };
        [row("req/CPU-s", &self.per_cpu_s), row("req/s", &self.per_s)]
    }

    /// Memory of a connection that was answered once and waits.
    fn idle(&self) -> Outcome<Row> {
        let server = self.at.servers.first().ok_or("no server")?;
        let mut open = Vec::new();
        let mut memory = [0.0; 2];
        for (count, bytes) in [FIRST, MANY].into_iter().zip(&mut memory) {
            while open.len() < count as usize {
                open.push(self.answered_once(server)?);
            }
            *bytes = user_memory_bytes(server.pid()).ok_or("the server's memory cannot be read")?;
        }
        Ok(Row {
            work: format!("{}, memory of an idle connection", self.at.name),
            unit: "bytes",
            ours: vec![(memory[1] - memory[0]) / f64::from(MANY - FIRST)],
            against: Against::AtMost(IDLE_BYTES_MAX),
        })
    }

    fn answered_once(&self, server: &Server) -> Outcome<TcpStream> {
        let request = bench::request(server.address, &self.at.path, "");
        let (stream, _, body) = bench::ask(server.address, &request)?;
        io::copy(&mut (&stream).take(body), &mut io::sink())?;
        Ok(stream)
    }
}

/// Memory of a process that no file backs: RssAnon of proc_pid_status(5).
fn user_memory_bytes(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1_024.0)
}
