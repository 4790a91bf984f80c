//! `nstar serve files` over TLS against nginx over TLS, both with one certificate, driven by our own generator.

use std::fs;

use super::{Contestant, KB, Turn, generator::self_signed, need_nginx, our_load, rows, take_turns};
use crate::{
    Effort, Outcome, cpu,
    nginx::{self, Site},
    place::{CLIENTS, Place},
    table::Row,
};

/// The folder that both serve, within the place.
const SERVED: &str = "served";

/// What one comparison asks for.
struct Work {
    title: &'static str,
    name: &'static str,
    users: u32,
    per_request: bool,
    /// How many times nginx's rate ours is meant to be.
    reach: f64,
}

const WORKS: [Work; 3] = [
    Work { title: "TLS server, 1 KB, 32 users", name: "1k", users: 32, per_request: false, reach: 1.0 },
    Work {
        title: "TLS server, 1 KB, a connection per request",
        name: "1k",
        users: 32,
        per_request: true,
        reach: 1.0,
    },
    Work { title: "TLS server, 1 MB, 8 users", name: "1m", users: 8, per_request: false, reach: 1.0 },
];

pub(super) fn measure(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    need_nginx()?;
    // The key beside the folder that is served: within it, nstar would refuse it.
    fs::create_dir_all(place.path(SERVED))?;
    place.file(&format!("{SERVED}/1k"), KB)?;
    place.file(&format!("{SERVED}/1m"), 1_000 * KB)?;
    let (key, certificate) = self_signed(place)?;
    let root = place.path(SERVED).display().to_string();
    let flags =
        ["files", "--root", &root, "--accounts", "none", "--tls-cert", &certificate, "--tls-key", &key];
    // By itself nginx may leave TLS 1.3 out, and a session resumed by TLS 1.2 spares the key exchange, and with it forward
    // secrecy.
    let keys =
        format!("ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;");
    let site = Site { server: keys, listen: "ssl", ..Site::default() };
    let contestant = |name, server, path: &str, reach| Contestant {
        name,
        servers: vec![server],
        path: path.into(),
        header: String::new(),
        reach,
    };
    let mut contestants = [
        contestant("nstar serve files", place.serve_ours(&flags)?, "/files", None),
        contestant("nginx", nginx::start(place, &site)?, "/served", None),
    ];
    let mut all = Vec::new();
    for work in &WORKS {
        contestants[1].reach = Some(work.reach);
        let turns = take_turns(&contestants, effort, |contestant| turn(contestant, work, place, effort))?;
        all.extend(rows(work.title, "req/CPU-s", &contestants, &turns, |turn| turn.requests / turn.cpu_s));
    }
    Ok(all)
}

/// One turn of our generator; CPU time of the server.
fn turn(contestant: &Contestant, work: &Work, place: &Place, effort: Effort) -> Outcome<Turn> {
    let server = contestant.servers.first().ok_or("no server")?;
    let url = format!("https://{}{}/{}", server.address, contestant.path, work.name);
    let connections = if work.per_request { "per-request" } else { "kept" };
    let (users, seconds) = (work.users, effort.seconds);
    let flags = format!("-k {url} -c {users} -d {seconds}s --connections {connections}");
    let before = cpu::of_tree(server.pid());
    let step = our_load::step(place, &CLIENTS.to_string(), &flags)?;
    let cpu_s = cpu::of_tree(server.pid()) - before;
    let number = |name| our_load::number(&step, name);
    Ok(Turn { requests: number("completed")?, bytes: 0.0, cpu_s, elapsed_s: number("elapsed_s")? })
}
