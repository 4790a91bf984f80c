//! Registering: a peer that knows the hashes of its files registers them all, in batches of 1 000.

use std::{fs, time::Instant};

use share::{Content, client::Client};

use super::{IndexKind, PeerGroup, dht_flags, index, peer, until_found, until_shown};
use crate::{
    Effort, Result,
    tools::{
        table::{Against, Row},
        workspace::{ServerProcess, Workspace},
    },
};

/// Files registered in one turn with an index server.
const FILES: usize = 20_000;
/// Files registered in one turn among peers, which keep at most 10 000 files under one word.
const FILES_AMONG_PEERS: usize = 8_000;
/// Its name, its hash, and the three words of its name.
const KEYS_OF_A_FILE: usize = 5;
/// Peers that keep the index, including the one that registers.
const PEERS: usize = 8;

/// Registers with an index server.
pub(in super::super) fn central(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let folder = known_files(workspace, FILES)?;
    let mut ours = Vec::new();
    for _ in 0..effort.rounds {
        let index = index(workspace)?;
        let begun = Instant::now();
        let peer = peer(workspace, &folder, &["--index".into(), index.address.to_string()])?;
        until_shown(&index, &format!("nstar_index_files_registered_total {FILES}"))?;
        ours.push(FILES as f64 / begun.elapsed().as_secs_f64());
        drop(peer);
    }
    let work = format!("{FILES} files registered by one peer, its start included");
    Ok(vec![Row { work, unit: "files/s", ours, against: Against::AtLeast(10_000.0) }])
}

/// Registers among peers: each of the others keeps the whole index.
pub(in super::super) fn among_peers(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let folder = known_files(workspace, FILES_AMONG_PEERS)?;
    let others: Vec<String> = (1..PEERS).map(|number| format!("keeper{number}")).collect();
    let mut ours = Vec::new();
    for _ in 0..effort.rounds {
        let (mut known, mut keepers) = (None, Vec::new());
        for other in &others {
            keepers.push(peer(workspace, other, &dht_flags(&mut known)?)?);
        }
        let flags = dht_flags(&mut known)?;
        let begun = Instant::now();
        let peer = peer(workspace, &folder, &flags)?;
        let wanted = format!("dht_records {}\n", FILES_AMONG_PEERS * KEYS_OF_A_FILE);
        keepers.iter().try_for_each(|keeper: &ServerProcess| until_shown(keeper, &wanted))?;
        ours.push(FILES_AMONG_PEERS as f64 / begun.elapsed().as_secs_f64());
        drop(peer);
    }
    let work = format!("{FILES_AMONG_PEERS} files registered with {PEERS} peers, its start included");
    Ok(vec![Row { work, unit: "files/s", ours, against: Against::AtLeast(2_000.0) }])
}

/// Makes a folder of so many files whose hashes a peer has already computed.
fn known_files(workspace: &Workspace, count: usize) -> Result<String> {
    let folder = format!("many{count}");
    let text = |number: usize| format!("file {number}");
    fs::create_dir_all(workspace.path(&folder))?;
    for number in 0..count {
        fs::write(workspace.path(&format!("{folder}/file {number:05}.bin")), text(number))?;
    }
    let crowd = PeerGroup::start(workspace, IndexKind::Central, std::slice::from_ref(&folder))?;
    let last = Content::of(text(count.saturating_sub(1)).as_bytes());
    for peer in &crowd.peers {
        until_found(&mut Client::new(peer.address, None)?, last)?;
    }
    Ok(folder)
}
