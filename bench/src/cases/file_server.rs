//! Our file server against nginx and the barest servers.

use crate::{
    Effort, Result,
    programs::{
        bare_server::BareServer,
        nginx::{self, Site},
        servers::{KB, files, files_on, need_nginx, responder},
    },
    tools::{
        table::Row,
        turns::{Candidate, Turn, in_turn, rows},
        workspace::{ServerProcess, Workspace, installed},
    },
};

pub(super) fn small_file(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    workspace.file("1k", KB)?;
    let mut candidates = vec![candidate("nstar serve files", files(workspace, "none")?, "/files/1k", None)];
    if installed("nginx") {
        candidates.push(candidate("nginx", nginx::start(workspace, &Site::default())?, "/1k", Some(1.5)));
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
        candidate("nginx", nginx::start(workspace, &Site::default())?, "", Some(1.0)),
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

/// `uring` against `epoll`: small files are meant to cost no more, large ones little more.
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
