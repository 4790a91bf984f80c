//! `nstar load` against other load generators and the barest of clients.

use std::process::Command;

use super::{KB, need_nginx, responder};
use crate::{
    Effort, Outcome,
    contenders::{AB, BARE, Contender, HEY, K6, NSTAR, OHA, WRK, Work},
    nginx::{self, Site},
    place::Place,
    table::{Against, Row},
};

/// A contender, and how many times its rate ours is meant to be.
type Peer = (Contender, Option<f64>);

pub(super) fn small_bodies(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let server = responder(place)?;
    let work = Work::new(place, format!("http://{}/", server.address), 32, effort)?;
    let peers = [(BARE, Some(0.9)), (WRK, Some(1.2)), (AB, None), (OHA, None), (HEY, None), (K6, None)];
    compare(place, ("generator, 1 KB, 32 users", "req/CPU-s"), &work, effort, &peers)
}

pub(super) fn large_bodies(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let bytes = 100_000 * KB;
    let file = place.file("100m", bytes)?.display().to_string();
    let sender = place.ours("bare-sender");
    let server = place.serve(|address| Ok(vec![sender, address.to_string(), file]))?;
    let work =
        Work { body_bytes: bytes, ..Work::new(place, format!("http://{}/", server.address), 4, effort)? };
    let peers = [(BARE, None), (WRK, Some(3.0)), (OHA, None)];
    let rows = compare(place, ("generator, 100 MB, 4 users", "B/CPU-s"), &work, effort, &peers)?;
    Ok(rows.into_iter().map(|row| scaled(row, bytes as f64)).collect())
}

/// Bodies to bytes.
fn scaled(mut row: Row, by: f64) -> Row {
    row.ours.iter_mut().for_each(|rate| *rate *= by);
    if let Against::Program { theirs, .. } = &mut row.against {
        theirs.iter_mut().for_each(|rate| *rate *= by);
    }
    row
}

pub(super) fn one_connection_per_request(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    need_nginx()?;
    place.file("1k", KB)?;
    let server = nginx::start(place, &Site::default())?;
    let work = Work::new(place, format!("http://{}/1k", server.address), 32, effort)?.reconnecting(place)?;
    let peers = [(WRK, Some(1.0)), (AB, Some(1.0)), (OHA, Some(1.0)), (HEY, Some(1.0))];
    compare(place, ("generator, 1 KB, a connection per request", "req/CPU-s"), &work, effort, &peers)
}

pub(super) fn tls(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    need_nginx()?;
    place.file("1k", KB)?;
    let (key, certificate) = self_signed(place)?;
    let keys = format!("ssl_certificate {certificate}; ssl_certificate_key {key};");
    let server = nginx::start(place, &Site { server: keys, listen: "ssl", ..Site::default() })?;
    let work = Work::new(place, format!("https://{}/1k", server.address), 32, effort)?;
    let peers = [(WRK, Some(1.2)), (OHA, Some(1.2)), (HEY, None)];
    compare(place, ("generator, TLS, 1 KB, 32 users", "req/CPU-s"), &work, effort, &peers)
}

/// Paths of a key and a certificate of its own making.
pub(super) fn self_signed(place: &Place) -> Outcome<(String, String)> {
    let [key, certificate] =
        ["key.pem", "certificate.pem"].map(|name| place.path(name).display().to_string());
    let made = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=localhost", "-days", "2", "-keyout", &key, "-out", &certificate])
        .output()?;
    if made.status.success() { Ok((key, certificate)) } else { Err("openssl made no certificate".into()) }
}

/// The generators in turn against one server: nstar against each peer.
fn compare(
    place: &Place,
    (work_name, unit): (&str, &'static str),
    work: &Work,
    effort: Effort,
    peers: &[Peer],
) -> Outcome<Vec<Row>> {
    let mut ours = Vec::new();
    let mut theirs: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
    for _ in 0..effort.rounds {
        ours.push(NSTAR.bodies_per_cpu_s(place, work)?);
        for ((peer, _), rates) in peers.iter().zip(&mut theirs).filter(|((peer, _), _)| peer.is_installed()) {
            rates.push(peer.bodies_per_cpu_s(place, work)?);
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
