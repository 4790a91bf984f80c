//! Our file server over TLS against nginx over TLS, with the same certificate, driven by our own generator.

use std::fs;

use super::generator::self_signed;
use crate::{
    Effort, Result,
    programs::{
        nginx::{self, Site},
        nstar_load,
        servers::{KB, need_nginx},
    },
    tools::{
        cpu,
        table::Row,
        turns::{Candidate, Turn, rows, take_turns},
        workspace::{CLIENTS, Workspace},
    },
};

/// The folder in the workspace that both serve.
const SERVED: &str = "served";

/// What one comparison requests.
struct TlsLoad {
    title: &'static str,
    name: &'static str,
    users: u32,
    per_request: bool,
    /// The ratio that ours is meant to reach.
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

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
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
        candidate("nginx", nginx::start(workspace, &site)?, "/served", None),
    ];
    let mut all = Vec::new();
    for work in &LOADS {
        candidates[1].reach = Some(work.reach);
        let turns = take_turns(&candidates, effort, |candidate| turn(candidate, work, workspace, effort))?;
        all.extend(rows(work.title, "req/CPU-s", &candidates, &turns, |turn| turn.requests / turn.cpu_s));
    }
    Ok(all)
}

/// One turn of our generator. CPU time is the server's.
fn turn(candidate: &Candidate, work: &TlsLoad, workspace: &Workspace, effort: Effort) -> Result<Turn> {
    let server = candidate.servers.first().ok_or("no server")?;
    let url = format!("https://{}{}/{}", server.address, candidate.path, work.name);
    let connections = if work.per_request { "per-request" } else { "kept" };
    let (users, seconds) = (work.users, effort.seconds);
    let flags = format!("-k {url} -c {users} -d {seconds}s --connections {connections}");
    let before = cpu::of_tree(server.pid());
    let step = nstar_load::step(workspace, &CLIENTS.to_string(), &flags)?;
    let cpu_s = cpu::of_tree(server.pid()) - before;
    let number = |name| nstar_load::number(&step, name);
    Ok(Turn { requests: number("completed")?, bytes: 0.0, cpu_s, elapsed_s: number("elapsed_s")? })
}
