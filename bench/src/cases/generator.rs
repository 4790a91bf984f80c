//! `nstar load` against other load generators and the barest of clients.

use std::process::Command;

use crate::{
    Effort, Result,
    programs::{
        generators::{AB, BARE, Generator, HEY, K6, Load, NSTAR, OHA, WRK},
        nginx::{self, Site},
        servers::{KB, need_nginx, responder},
    },
    tools::{
        table::{Against, Row},
        workspace::Workspace,
    },
};

/// A generator, and the ratio that ours is meant to reach against it.
type Peer = (Generator, Option<f64>);

pub(super) fn small_bodies(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let server = responder(workspace)?;
    let load = Load::new(workspace, format!("http://{}/", server.address), 32, effort)?;
    let peers = [(BARE, Some(0.9)), (WRK, Some(1.2)), (AB, None), (OHA, None), (HEY, None), (K6, None)];
    compare(workspace, ("generator, 1 KB, 32 users", "req/CPU-s"), &load, effort, &peers)
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
    let server = nginx::start(workspace, &Site::default())?;
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
    let server = nginx::start(workspace, &Site { server: keys, listen: "ssl", ..Site::default() })?;
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

/// Runs nstar and its peers in turn against one server.
fn compare(
    workspace: &Workspace,
    (work_name, unit): (&str, &'static str),
    load: &Load,
    effort: Effort,
    peers: &[Peer],
) -> Result<Vec<Row>> {
    let mut ours = Vec::new();
    let mut theirs: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
    for _ in 0..effort.rounds {
        ours.push(NSTAR.bodies_per_cpu_s(workspace, load)?);
        for ((peer, _), rates) in peers.iter().zip(&mut theirs).filter(|((peer, _), _)| peer.is_installed()) {
            rates.push(peer.bodies_per_cpu_s(workspace, load)?);
        }
    }
    let row = |((peer, reach), theirs): (&Peer, Vec<f64>)| {
        let name = peer.name.to_owned();
        let against = if theirs.is_empty() {
            Against::Missing(name)
        } else {
            Against::Program { name, theirs, reach: *reach }
        };
        Row { work: work_name.to_owned(), unit, ours: ours.clone(), against }
    };
    Ok(peers.iter().zip(theirs).map(row).collect())
}
