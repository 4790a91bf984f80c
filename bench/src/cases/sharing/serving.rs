//! Serving 1 KB to whoever obtains it, against the file server.

use std::fs;

use share::{Content, client::Client};

use super::{index, until_found};
use crate::{
    Effort, Outcome,
    cases::{Contestant, KB, Turn, files, in_turn, rows},
    place::Place,
    table::Row,
};

/// One peer with one loop, 32 users.
pub(in super::super) fn small(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let file = place.file("1k", KB)?;
    let content = Content::of(&fs::read(file)?);
    fs::create_dir_all(place.path("shared"))?;
    place.file("shared/1k", KB)?;
    let index = index(place)?;
    let (folder, index_at) = (place.path("shared").display().to_string(), index.address.to_string());
    let peer = place.serve_ours(&["peer", "--share", &folder, "--index", &index_at])?;
    until_found(&mut Client::new(peer.address, None)?, content)?;
    let contestant =
        |name, servers, path, reach| Contestant { name, servers, path, header: String::new(), reach };
    let contestants = [
        contestant("nstar serve peer", vec![peer], format!("/content/{content}"), None),
        contestant("nstar serve files", vec![files(place, "none")?], "/files/1k".into(), Some(0.5)),
    ];
    let turns = in_turn(place, &contestants, 32, effort)?;
    let rate = |turn: &Turn| turn.requests / turn.cpu_s;
    Ok(rows("obtain, 1 KB, 32 users", "req/CPU-s", &contestants, &turns, rate))
}
