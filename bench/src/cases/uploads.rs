//! Our upload sink by model, against the barest sink of the same model, in C.

use crate::{
    programs::servers::BareServer,
    tools::{
        effort::{Effort, Result},
        table::Row,
        turns::{Candidate, Turn, rows, take_turns},
        workspace::{ServerProcess, Workspace},
    },
};

const USERS: u32 = 8;
const BODY_BYTES: usize = 1_000_000;

/// Our model, the model of the baseline that it is compared with, and the baseline's name in the table.
const PAIRS: [(&str, &str, &str); 5] = [
    ("threads", "threads", "bare C, threads"),
    ("select", "select", "bare C, select"),
    ("poll", "poll", "bare C, poll"),
    ("epoll", "epoll", "bare C, epoll"),
    ("uring", "epoll", "bare C, epoll"),
];
/// The share of the baseline's rate that ours should reach.
const REACH: f64 = 0.9;

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let bare_server = BareServer::compile(workspace)?;
    let mut all = Vec::new();
    for (model, theirs, name) in PAIRS {
        let ours = match workspace.serve_ours_on(model, &["sink"]) {
            Ok(server) => server,
            Err(error) => {
                // A system may deny io_uring.
                eprintln!("bench: left out: {error}");
                continue;
            }
        };
        let bare = bare_server.sink(workspace, theirs)?;
        let candidates = [candidate("nstar serve sink", ours, None), candidate(name, bare, Some(REACH))];
        let turns = take_turns(&candidates, effort, |candidate| upload(workspace, candidate, effort))?;
        let work = format!("sink, {model}, 1 MB, {USERS} users");
        all.extend(rows(&work, "B/CPU-s", &candidates, &turns, |turn| turn.bytes / turn.cpu_s));
    }
    Ok(all)
}

fn upload(workspace: &Workspace, to: &Candidate, effort: Effort) -> Result<Turn> {
    let address = to.servers.first().ok_or("no server")?.address;
    let words = [BODY_BYTES.to_string(), USERS.to_string(), effort.seconds.to_string()];
    to.driven_by(
        &[vec![workspace.ours("bare-uploader"), address.to_string()], words.to_vec()].concat(),
        effort,
    )
}

fn candidate(name: &'static str, server: ServerProcess, reach: Option<f64>) -> Candidate {
    Candidate { name, servers: vec![server], path: String::new(), header: String::new(), reach }
}
