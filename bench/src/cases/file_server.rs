//! Our file server against nginx and the barest servers, in the clear; and against nginx over TLS, with the same certificate,
//! driven by our own generator.

use std::fs;

use super::generator::self_signed;
use crate::{
    programs::{
        generators,
        servers::{self, BareServer, KB, Site, files, files_on, need_nginx, responder},
    },
    tools::{
        cpu,
        effort::{Effort, Result},
        table::Row,
        turns::{Candidate, Turn, in_turn, rows, take_turns},
        workspace::{CLIENTS, ServerProcess, Workspace, installed},
    },
};

pub(super) fn small_file(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    workspace.file("1k", KB)?;
    let mut candidates = vec![candidate("nstar serve files", files(workspace, "none")?, "/files/1k", None)];
    if installed("nginx") {
        candidates.push(candidate("nginx", servers::nginx(workspace, &Site::default())?, "/1k", Some(1.5)));
    }
    candidates.push(candidate("bare epoll responder", responder(workspace)?, "/", Some(0.85)));
    let turns = in_turn(workspace, &candidates, 32, effort)?;
    let rate = |turn: &Turn| turn.requests / turn.cpu_s;
    Ok(rows("file server, 1 KB, 32 users", "req/CPU-s", &candidates, &turns, rate))
}

/// Each model against the barest server of the same model, and against one that parses as well.
pub(super) fn by_model(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    workspace.file("1k", KB)?;
    let bare_server = BareServer::compile(workspace)?;
    let mut all = Vec::new();
    for (model, name, parser) in [
        ("threads", "bare C, threads", "bare C, threads, parsing"),
        ("select", "bare C, select", "bare C, select, parsing"),
        ("poll", "bare C, poll", "bare C, poll, parsing"),
    ] {
        let (bare, parsing) = (
            bare_server.responder(workspace, model, KB)?,
            bare_server.parser(workspace, model, KB, "/files/1k")?,
        );
        let candidates = [
            candidate("nstar serve files", files_on(workspace, model)?, "/files/1k", None),
            candidate(name, bare, "/files/1k", Some(0.9)),
            candidate(parser, parsing, "/files/1k", Some(0.9)),
        ];
        let turns = in_turn(workspace, &candidates, 32, effort)?;
        let work = format!("file server, {model}, 1 KB, 32 users");
        all.extend(rows(&work, "req/CPU-s", &candidates, &turns, |turn| turn.requests / turn.cpu_s));
    }
    Ok(all)
}

pub(super) fn sizes(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    need_nginx()?;
    let mut candidates = [
        candidate("nstar serve files", files(workspace, "none")?, "", None),
        candidate("nginx", servers::nginx(workspace, &Site::default())?, "", Some(1.0)),
    ];
    let sizes = [
        ("10 KB", 10),
        ("100 KB", 100),
        ("1 MB", 1_000),
        ("10 MB", 10_000),
        ("100 MB", 100_000),
        ("500 MB", 500_000),
    ];
    let mut all = Vec::new();
    for (title, kilobytes) in sizes {
        let name = format!("file-{kilobytes}k");
        workspace.file(&name, kilobytes * KB)?;
        candidates[0].path = format!("/files/{name}");
        candidates[1].path = format!("/{name}");
        let turns = in_turn(workspace, &candidates, 8, effort)?;
        let work = format!("file server, {title}, 8 users");
        all.extend(rows(&work, "B/CPU-s", &candidates, &turns, |turn| turn.bytes / turn.cpu_s));
        all.extend(rows(&work, "B/s", &candidates, &turns, |turn| turn.bytes / turn.elapsed_s));
    }
    Ok(all)
}

/// `uring` against `epoll`: small files should cost no more, large ones little more.
pub(super) fn uring(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let mut candidates = [
        candidate("nstar serve files, uring", files_on(workspace, "uring")?, "", None),
        candidate("itself on epoll", files_on(workspace, "epoll")?, "", None),
    ];
    let sizes = [("1 KB", 1, 1.0), ("100 KB", 100, 0.95), ("1 MB", 1_000, 0.95), ("10 MB", 10_000, 0.95)];
    let mut all = Vec::new();
    for (title, kilobytes, reach) in sizes {
        let name = format!("file-{kilobytes}k");
        workspace.file(&name, kilobytes * KB)?;
        candidates.iter_mut().for_each(|candidate| candidate.path = format!("/files/{name}"));
        candidates[1].reach = Some(reach);
        let turns = in_turn(workspace, &candidates, 8, effort)?;
        let work = format!("file server, uring, {title}, 8 users");
        all.extend(rows(&work, "B/CPU-s", &candidates, &turns, |turn| turn.bytes / turn.cpu_s));
    }
    Ok(all)
}

fn candidate(name: &'static str, server: ServerProcess, path: &str, reach: Option<f64>) -> Candidate {
    Candidate { name, servers: vec![server], path: path.into(), header: String::new(), reach }
}

/// The folder in the workspace that both serve.
const SERVED: &str = "served";

/// What one comparison requests.
struct TlsLoad {
    title: &'static str,
    name: &'static str,
    users: u32,
    per_request: bool,
    /// The ratio that ours should reach.
    reach: f64,
}

const LOADS: [TlsLoad; 3] = [
    TlsLoad { title: "TLS server, 1 KB, 32 users", name: "1k", users: 32, per_request: false, reach: 1.0 },
    TlsLoad {
        title: "TLS server, 1 KB, a connection per request",
        name: "1k",
        users: 32,
        per_request: true,
        reach: 1.0,
    },
    TlsLoad { title: "TLS server, 1 MB, 8 users", name: "1m", users: 8, per_request: false, reach: 1.0 },
];

pub(super) fn tls(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    need_nginx()?;
    // The key lies outside of the served folder: nstar refuses a key inside it.
    fs::create_dir_all(workspace.path(SERVED))?;
    workspace.file(&format!("{SERVED}/1k"), KB)?;
    workspace.file(&format!("{SERVED}/1m"), 1_000 * KB)?;
    let (key, certificate) = self_signed(workspace)?;
    let root = workspace.path(SERVED).display().to_string();
    let flags =
        ["files", "--root", &root, "--accounts", "none", "--tls-cert", &certificate, "--tls-key", &key];
    // nginx may default to TLS 1.2, which resumes sessions without a key exchange and so without forward secrecy.
    let keys =
        format!("ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;");
    let site = Site { server: keys, listen: "ssl", ..Site::default() };
    let candidate = |name, server, path: &str, reach| Candidate {
        name,
        servers: vec![server],
        path: path.into(),
        header: String::new(),
        reach,
    };
    let mut candidates = [
        candidate("nstar serve files", workspace.serve_ours(&flags)?, "/files", None),
        candidate("nginx", servers::nginx(workspace, &site)?, "/served", None),
    ];
    let mut all = Vec::new();
    for work in &LOADS {
        candidates[1].reach = Some(work.reach);
        let turns =
            take_turns(&candidates, effort, |candidate| tls_turn(candidate, work, workspace, effort))?;
        all.extend(rows(work.title, "req/CPU-s", &candidates, &turns, |turn| turn.requests / turn.cpu_s));
    }
    Ok(all)
}

/// One turn of our generator. CPU time is the server's.
fn tls_turn(candidate: &Candidate, work: &TlsLoad, workspace: &Workspace, effort: Effort) -> Result<Turn> {
    let server = candidate.servers.first().ok_or("no server")?;
    let url = format!("https://{}{}/{}", server.address, candidate.path, work.name);
    let connections = if work.per_request { "per-request" } else { "kept" };
    let (users, seconds) = (work.users, effort.seconds);
    let flags = format!("-k {url} -c {users} -d {seconds}s --connections {connections}");
    let before = cpu::of_tree(server.pid());
    let step = generators::load_step(workspace, &CLIENTS.to_string(), &flags)?;
    let cpu_s = cpu::of_tree(server.pid()) - before;
    let number = |name| generators::number(&step, name);
    Ok(Turn { requests: number("completed")?, bytes: 0.0, cpu_s, elapsed_s: number("elapsed_s")? })
}
