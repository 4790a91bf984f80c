//! `nstar serve files` against nginx and the barest of servers.

use super::{
    Contestant, KB, Turn, bare_server::BareServer, files, files_on, in_turn, need_nginx, responder, rows,
};
use crate::{
    Effort, Outcome,
    nginx::{self, Site},
    place::{Place, Server, installed},
    table::Row,
};

pub(super) fn small_file(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    place.file("1k", KB)?;
    let mut contestants = vec![contestant("nstar serve files", files(place, "none")?, "/files/1k", None)];
    if installed("nginx") {
        contestants.push(contestant("nginx", nginx::start(place, &Site::default())?, "/1k", Some(1.5)));
    }
    contestants.push(contestant("bare epoll responder", responder(place)?, "/", Some(0.85)));
    let turns = in_turn(place, &contestants, 32, effort)?;
    let rate = |turn: &Turn| turn.requests / turn.cpu_s;
    Ok(rows("file server, 1 KB, 32 users", "req/CPU-s", &contestants, &turns, rate))
}

/// Each against the barest server of the same model, and against the same one that parses.
pub(super) fn by_model(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    place.file("1k", KB)?;
    let bare_server = BareServer::compile(place)?;
    let mut all = Vec::new();
    for (model, name, parser) in [
        ("threads", "bare C, threads", "bare C, threads, parsing"),
        ("select", "bare C, select", "bare C, select, parsing"),
        ("poll", "bare C, poll", "bare C, poll, parsing"),
    ] {
        let (bare, parsing) =
            (bare_server.responder(place, model, KB)?, bare_server.parser(place, model, KB, "/files/1k")?);
        let contestants = [
            contestant("nstar serve files", files_on(place, model)?, "/files/1k", None),
            contestant(name, bare, "/files/1k", Some(0.9)),
            contestant(parser, parsing, "/files/1k", Some(0.9)),
        ];
        let turns = in_turn(place, &contestants, 32, effort)?;
        let work = format!("file server, {model}, 1 KB, 32 users");
        all.extend(rows(&work, "req/CPU-s", &contestants, &turns, |turn| turn.requests / turn.cpu_s));
    }
    Ok(all)
}

pub(super) fn sizes(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    need_nginx()?;
    let mut contestants = [
        contestant("nstar serve files", files(place, "none")?, "", None),
        contestant("nginx", nginx::start(place, &Site::default())?, "", Some(1.0)),
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
        place.file(&name, kilobytes * KB)?;
        contestants[0].path = format!("/files/{name}");
        contestants[1].path = format!("/{name}");
        let turns = in_turn(place, &contestants, 8, effort)?;
        let work = format!("file server, {title}, 8 users");
        all.extend(rows(&work, "B/CPU-s", &contestants, &turns, |turn| turn.bytes / turn.cpu_s));
        all.extend(rows(&work, "B/s", &contestants, &turns, |turn| turn.bytes / turn.elapsed_s));
    }
    Ok(all)
}

/// Small files are to cost no more than on epoll, large ones little more.
pub(super) fn uring(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let mut contestants = [
        contestant("nstar serve files, uring", files_on(place, "uring")?, "", None),
        contestant("itself on epoll", files_on(place, "epoll")?, "", None),
    ];
    let sizes = [("1 KB", 1, 1.0), ("100 KB", 100, 0.95), ("1 MB", 1_000, 0.95), ("10 MB", 10_000, 0.95)];
    let mut all = Vec::new();
    for (title, kilobytes, reach) in sizes {
        let name = format!("file-{kilobytes}k");
        place.file(&name, kilobytes * KB)?;
        contestants.iter_mut().for_each(|contestant| contestant.path = format!("/files/{name}"));
        contestants[1].reach = Some(reach);
        let turns = in_turn(place, &contestants, 8, effort)?;
        let work = format!("file server, uring, {title}, 8 users");
        all.extend(rows(&work, "B/CPU-s", &contestants, &turns, |turn| turn.bytes / turn.cpu_s));
    }
    Ok(all)
}

fn contestant(name: &'static str, server: Server, path: &str, reach: Option<f64>) -> Contestant {
    Contestant { name, servers: vec![server], path: path.into(), header: String::new(), reach }
}
