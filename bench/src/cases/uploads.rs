//! `nstar serve sink` by model, against the barest sink of the same model, in C.

use super::{Contestant, Turn, bare_server::BareServer, rows, take_turns};
use crate::{
    Effort, Outcome,
    place::{Place, Server},
    table::Row,
};

const USERS: u32 = 8;
const BODY_BYTES: usize = 1_000_000;

/// One of our models, the yardstick's that it is held against, and that one's name in the table.
const PAIRS: [(&str, &str, &str); 5] = [
    ("threads", "threads", "bare C, threads"),
    ("select", "select", "bare C, select"),
    ("poll", "poll", "bare C, poll"),
    ("epoll", "epoll", "bare C, epoll"),
    ("uring", "epoll", "bare C, epoll"),
];
/// How much of the yardstick's rate ours is meant to reach.
const REACH: f64 = 0.9;

pub(super) fn measure(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let bare_server = BareServer::compile(place)?;
    let mut all = Vec::new();
    for (model, theirs, name) in PAIRS {
        let ours = match place.serve_ours_on(model, &["sink"]) {
            Ok(server) => server,
            Err(error) => {
                // A system may deny io_uring.
                eprintln!("bench: left out: {error}");
                continue;
            }
        };
        let bare = bare_server.sink(place, theirs)?;
        let contestants = [contestant("nstar serve sink", ours, None), contestant(name, bare, Some(REACH))];
        let turns = take_turns(&contestants, effort, |contestant| upload(place, contestant, effort))?;
        let work = format!("sink, {model}, 1 MB, {USERS} users");
        all.extend(rows(&work, "B/CPU-s", &contestants, &turns, |turn| turn.bytes / turn.cpu_s));
    }
    Ok(all)
}

fn upload(place: &Place, to: &Contestant, effort: Effort) -> Outcome<Turn> {
    let address = to.servers.first().ok_or("no server")?.address;
    let words = [BODY_BYTES.to_string(), USERS.to_string(), effort.seconds.to_string()];
    to.driven_by(&[vec![place.ours("bare-uploader"), address.to_string()], words.to_vec()].concat(), effort)
}

fn contestant(name: &'static str, server: Server, reach: Option<f64>) -> Contestant {
    Contestant { name, servers: vec![server], path: String::new(), header: String::new(), reach }
}
