//! Registering: a peer that knows the hashes of its files tells the index of them all, in batches of 1 000.

use std::{fs, time::Instant};

use share::{Content, client::Client};

use super::{Crowd, Way, dht_flags, index, peer, until_found, until_shown};
use crate::{
    Effort, Outcome,
    place::{Place, Server},
    table::{Against, Row},
};

/// Files that are registered in one turn with a server.
const FILES: usize = 20_000;
/// The same where peers keep the index: they keep no more than 10 000 files under one word.
const FILES_AMONG_PEERS: usize = 8_000;
/// Under its name, its hash, and the three words of its name.
const KEYS_OF_A_FILE: usize = 5;
/// Peers that keep the index, with the one that registers.
const PEERS: usize = 8;

/// With a server.
pub(in super::super) fn central(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let folder = known_files(place, FILES)?;
    let mut ours = Vec::new();
    for _ in 0..effort.rounds {
        let index = index(place)?;
        let begun = Instant::now();
        let peer = peer(place, &folder, &["--index".into(), index.address.to_string()])?;
        until_shown(&index, &format!("nstar_index_files_registered_total {FILES}"))?;
        ours.push(FILES as f64 / begun.elapsed().as_secs_f64());
        drop(peer);
    }
    let work = format!("{FILES} files registered by one peer, its start included");
    Ok(vec![Row { work, unit: "files/s", ours, against: Against::AtLeast(10_000.0) }])
}

/// Without a server: each of the others keeps all of it.
pub(in super::super) fn among_peers(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let folder = known_files(place, FILES_AMONG_PEERS)?;
    let others: Vec<String> = (1..PEERS).map(|number| format!("keeper{number}")).collect();
    let mut ours = Vec::new();
    for _ in 0..effort.rounds {
        let (mut known, mut keepers) = (None, Vec::new());
        for other in &others {
            keepers.push(peer(place, other, &dht_flags(&mut known)?)?);
        }
        let flags = dht_flags(&mut known)?;
        let begun = Instant::now();
        let peer = peer(place, &folder, &flags)?;
        let wanted = format!("dht_records {}\n", FILES_AMONG_PEERS * KEYS_OF_A_FILE);
        keepers.iter().try_for_each(|keeper: &Server| until_shown(keeper, &wanted))?;
        ours.push(FILES_AMONG_PEERS as f64 / begun.elapsed().as_secs_f64());
        drop(peer);
    }
    let work = format!("{FILES_AMONG_PEERS} files registered with {PEERS} peers, its start included");
    Ok(vec![Row { work, unit: "files/s", ours, against: Against::AtLeast(2_000.0) }])
}

/// A folder of so many files whose hashes a peer has computed already.
fn known_files(place: &Place, count: usize) -> Outcome<String> {
    let folder = format!("many{count}");
    let text = |number: usize| format!("file {number}");
    fs::create_dir_all(place.path(&folder))?;
    for number in 0..count {
        fs::write(place.path(&format!("{folder}/file {number:05}.bin")), text(number))?;
    }
    let crowd = Crowd::start(place, Way::Central, std::slice::from_ref(&folder))?;
    let last = Content::of(text(count.saturating_sub(1)).as_bytes());
    for peer in &crowd.peers {
        until_found(&mut Client::new(peer.address, None)?, last)?;
    }
    Ok(folder)
}
