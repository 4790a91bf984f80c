//! Peers of file sharing.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use blake3::hazmat::{ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root};
use serde_json::{Value as Json, json};
use test_support::http::ask;

use super::{Client, System, words};
use crate::{ledger::Ledger, server::Server};

/// Files that another peer has, to be obtained: those of the numbers below this.
const FILES: u64 = 240;
/// Numbers of the files that other programs put into the shared folder, from this one on.
const OWN: u64 = 1_000_000;
/// One in so many files is long: it is obtained in pieces, from which a later request goes on.
const LONG_EVERY: u64 = 12;
/// Lengths of long files, and differences of lengths, bytes. A peer hashes in groups of 16 KiB.
const LONG: usize = 1_100_000;
const SPREAD: usize = 60_000;
const GROUP_LEN: usize = 16 * 1024;
/// What stands for a file that is shared, and for one that was taken out of sharing.
const SHARED: &str = "shared";
const UNSHARED: &str = "no longer shared";
/// How many files to ask the peer for after a crash.
const ASKED: usize = 6;
/// How long peers may take until they have hashed what they share, and how often to look.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// A peer. A key is the number of a client and that of a file, whose name it is; its value whether the file is shared.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// How many files clients have begun to obtain, and how many they put into the folder.
    begun: AtomicU64,
    put: AtomicU64,
    data: OnceLock<PathBuf>,
    others: OnceLock<Others>,
}

/// What goes on beside the peer, whatever happens to that.
#[derive(Debug)]
struct Others {
    /// The peer that has the files to obtain, and the index.
    _source: Server,
    _index: Server,
    index_at: SocketAddr,
}

/// The bytes of a file.
fn bytes(number: u64) -> Vec<u8> {
    let is_long = number < OWN && number.is_multiple_of(LONG_EVERY);
    let least = if is_long { LONG } else { 1 };
    let mut bytes = vec![0; fastrand::Rng::with_seed(number).usize(least..least + SPREAD)];
    blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// The number of a file in a key. No file has the largest.
fn number(key: &str) -> u64 {
    key.split_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or(u64::MAX)
}

/// The hashes between the groups of some bytes and the hash of all: a pair for each node of the tree, in post-order.
fn outboard(bytes: &[u8]) -> Vec<u8> {
    let mut outboard = Vec::new();
    if bytes.len() > GROUP_LEN {
        pair(bytes, 0, &mut outboard);
    }
    outboard
}

/// Adds the pairs of the node above these bytes, which are more than a group, and returns the node's own.
fn pair(bytes: &[u8], at: usize, outboard: &mut Vec<u8>) -> (ChainingValue, ChainingValue) {
    let half = left_subtree_len(bytes.len() as u64) as usize;
    let (left, right) = bytes.split_at(half);
    let left = subtree(left, at, outboard);
    let right = subtree(right, at + half, outboard);
    outboard.extend(left);
    outboard.extend(right);
    (left, right)
}

fn subtree(bytes: &[u8], at: usize, outboard: &mut Vec<u8>) -> ChainingValue {
    if bytes.len() <= GROUP_LEN {
        return blake3::Hasher::new().set_input_offset(at as u64).update(bytes).finalize_non_root();
    }
    let (left, right) = pair(bytes, at, outboard);
    merge_subtrees_non_root(&left, &right, Mode::Hash)
}

impl Peer {
    /// Obtains a file that nobody asked for yet.
    fn obtain_next(&self, client: &mut Client<'_>) -> io::Result<()> {
        match self.begun.fetch_add(1, Relaxed) {
            number if number < FILES => obtain(client, &format!("{}-{number}", client.number)),
            _ => self.put(client),
        }
    }

    /// Obtains a file again that is certainly not there.
    fn obtain_missing(&self, client: &mut Client<'_>) -> io::Result<()> {
        let own = format!("{}-", client.number);
        let mut entries = client.ledger.entries().into_iter();
        let missing = entries.find(|(key, right)| {
            key.starts_with(&own) && number(key) < OWN && matches!(right.as_slice(), [None])
        });
        match missing {
            Some((key, _)) => obtain(client, &key),
            None => self.obtain_next(client),
        }
    }

    fn unshare(&self, client: &mut Client<'_>) -> io::Result<()> {
        let own = client.ledger.any(&format!("{}-", client.number), &mut client.random);
        let Some((key, _)) = own.filter(|(_, value)| value == SHARED) else {
            return self.obtain_next(client);
        };
        client.ledger.attempt(&key, Some(UNSHARED.into()));
        let answer = client.ask(&format!("DELETE /files/{key}"), "", b"")?;
        match answer.status {
            204 => client.ledger.acknowledge(&key, Some(UNSHARED.into())),
            // The peer has not hashed it yet.
            404 => client.ledger.compare(&key, Some(SHARED.into())),
            _ => {}
        }
        Ok(())
    }

    /// Puts a file into the folder, as other programs do, durably.
    fn put(&self, client: &mut Client<'_>) -> io::Result<()> {
        let Some(data) = self.data.get() else { return Ok(()) };
        let number = OWN + self.put.fetch_add(1, Relaxed);
        let key = format!("{}-{number}", client.number);
        client.ledger.attempt(&key, Some(SHARED.into()));
        let aside = data.join(format!(".{key}"));
        let mut file = File::create(&aside)?;
        file.write_all(&bytes(number))?;
        file.sync_all()?;
        fs::rename(&aside, data.join(&key))?;
        File::open(data)?.sync_all()?;
        // It is there because the disk says so: that is no promise of the peer, and not counted as one.
        client.ledger.compare(&key, Some(SHARED.into()));
        Ok(())
    }
}

/// Obtains a file, and sometimes changes its mind: what came until then is kept.
fn obtain(client: &mut Client<'_>, key: &str) -> io::Result<()> {
    let hash = blake3::hash(&bytes(number(key))).to_string();
    client.ledger.attempt(key, Some(SHARED.into()));
    client.send("POST /obtain", "", &json!({ "hash": hash, "name": key }))?;
    if client.random.u8(..4) == 0 {
        client.ask(&format!("DELETE /obtain/{hash}?for=all"), "", b"")?;
    }
    let answer = client.ask(&format!("GET /obtain/{hash}?wait=30"), "", b"")?;
    let progress: Json = serde_json::from_slice(&answer.bytes).unwrap_or_default();
    match (progress["state"].as_str(), progress["path"].as_str()) {
        (Some("done"), Some(path)) if path == key => {
            client.ledger.acknowledge(key, Some(SHARED.into()));
        }
        (Some("done"), path) => client.ledger.fault(format!("{key}: it was obtained as {path:?}")),
        _ => {}
    }
    Ok(())
}

/// Starts a server that nothing happens to.
fn start(program: &Path, words: &[OsString], log: &Path) -> io::Result<(Server, SocketAddr)> {
    let mut server = Server::start(program, words, log, None)?;
    let at = server.listening().ok_or_else(|| io::Error::other("a server beside the peer does not start"))?;
    Ok((server, at))
}

/// Waits until a peer has told the index of all files to obtain.
fn wait_until_registered(source: SocketAddr) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let answer = ask(source, "POST /register", "", b"{}")?;
        let told: Json = serde_json::from_slice(&answer.bytes).unwrap_or_default();
        if told["registered"].as_u64() == Some(FILES) {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
    Err(io::Error::other("the peer that has the files to obtain does not share them"))
}

/// The files that a peer shares, with their hashes.
fn listed(to: SocketAddr) -> io::Result<BTreeMap<String, String>> {
    let mut listed: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let after = listed.keys().next_back().cloned().unwrap_or_default();
        let answer = ask(to, &format!("GET /files?after={after}"), "", b"")?.json();
        let text = |file: &Json, field: &str| file[field].as_str().map(str::to_owned);
        let files = answer["files"].as_array().into_iter().flatten();
        listed.extend(files.filter_map(|file| Some((text(file, "path")?, text(file, "hash")?))));
        if answer["truncated"].as_bool() != Some(true) {
            return Ok(listed);
        }
    }
}

/// Waits until a peer shares all of these, as it hashes some of them first, and returns what it shares then.
fn wait_until_listed(to: SocketAddr, wanted: &[&String]) -> io::Result<BTreeMap<String, String>> {
    let end = Instant::now() + PATIENCE;
    loop {
        let listed = listed(to)?;
        if wanted.iter().all(|key| listed.contains_key(*key)) || Instant::now() > end {
            return Ok(listed);
        }
        thread::sleep(LOOK);
    }
}

/// The files that a peer's journal says were taken out of sharing. What a cut left of half a line says nothing.
fn removed(journal: &Path) -> io::Result<Vec<String>> {
    let text = match fs::read(journal) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => String::from_utf8_lossy(&other?).into_owned(),
    };
    let mut removed: Vec<String> = Vec::new();
    for line in text.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok()) {
        let path = |kind: &str| line[kind]["path"].as_str().map(str::to_owned);
        removed.extend(path("removed"));
        if let Some(gone) = path("gone") {
            removed.retain(|path| *path != gone);
        }
    }
    Ok(removed)
}

/// Compares what a peer sends of a file, and the hashes with which others verify it piece by piece.
fn compare_content(to: SocketAddr, ledger: &Ledger, key: &str) -> io::Result<()> {
    let bytes = bytes(number(key));
    let path = format!("/content/{}", blake3::hash(&bytes));
    for (path, right) in [(path.clone(), &bytes), (format!("{path}/outboard"), &outboard(&bytes))] {
        let answer = ask(to, &format!("GET {path}"), "", b"")?;
        if answer.status != 200 || answer.bytes != *right {
            let (status, len) = (answer.status, answer.bytes.len());
            ledger.fault(format!("{key}: {path} is answered with {status} and {len} other bytes"));
        }
    }
    Ok(())
}

impl System for Peer {
    fn prepare(&self, program: &Path, aside: &Path) -> io::Result<()> {
        let (folder, log) = (aside.join("source"), aside.join("others.log"));
        fs::create_dir(&folder)?;
        for number in 0..FILES {
            fs::write(folder.join(number.to_string()), bytes(number))?;
        }
        let index = words("index", aside, &["--database", "/index.db", "--life", "1h"]);
        let (index, index_at) = start(program, &index, &log)?;
        let source = words("peer", aside, &["--share", "/source", "--index", &index_at.to_string()]);
        let (source, source_at) = start(program, &source, &log)?;
        wait_until_registered(source_at)?;
        let _ = self.others.set(Others { _source: source, _index: index, index_at });
        Ok(())
    }

    fn words(&self, data: &Path) -> Vec<OsString> {
        let data = self.data.get_or_init(|| data.to_owned());
        let index = self.others.get().map(|others| others.index_at.to_string()).unwrap_or_default();
        words("peer", data, &["--share", "/", "--index", &index])
    }

    fn act(&self, client: &mut Client<'_>) -> io::Result<()> {
        match client.random.u8(..8) {
            0 => self.put(client),
            1 | 2 => self.unshare(client),
            3 => self.obtain_missing(client),
            _ => self.obtain_next(client),
        }
    }

    fn look_at_files(&self, data: &Path, ledger: &Ledger) -> Result<(), String> {
        let unreadable = |error: io::Error| format!("the files cannot be read: {error}");
        let removed = removed(&data.join(".nstar/memory")).map_err(unreadable)?;
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(data).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let key = entry.file_name().into_string().unwrap_or_default();
            if !key.starts_with('.') {
                found.insert(key, fs::read(entry.path()).map_err(unreadable)?);
            }
        }
        for (key, _) in ledger.entries() {
            let value = found.remove(&key).map(|found| match found == bytes(number(&key)) {
                true if removed.contains(&key) => UNSHARED.to_owned(),
                true => SHARED.to_owned(),
                false => format!("{} other bytes", found.len()),
            });
            ledger.compare(&key, value);
        }
        found.into_keys().for_each(|name| ledger.fault(format!("nobody asked for {name}")));
        Ok(())
    }

    fn look_at_server(&self, to: SocketAddr, ledger: &Ledger, random: &mut fastrand::Rng) -> io::Result<()> {
        let entries = ledger.entries();
        let are = |value: &'static str| {
            let are = entries
                .iter()
                .filter(move |(_, right)| matches!(right.as_slice(), [Some(certain)] if certain == value));
            are.map(|(key, _)| key).collect::<Vec<_>>()
        };
        let mut shared = are(SHARED);
        let listed = wait_until_listed(to, &shared)?;
        for key in are(UNSHARED).into_iter().filter(|key| listed.contains_key(*key)) {
            ledger.fault(format!("{key}: it is shared again"));
        }
        for key in &shared {
            let hash = blake3::hash(&bytes(number(key))).to_string();
            if listed.get(*key) != Some(&hash) {
                ledger.fault(format!("{key}: it is listed as {:?}, not {hash}", listed.get(*key)));
            }
        }
        random.shuffle(&mut shared);
        shared.into_iter().take(ASKED).try_for_each(|key| compare_content(to, ledger, key))
    }
}

#[cfg(test)]
mod tests {
    use blake3::hazmat::merge_subtrees_root;

    use super::*;

    #[test]
    fn the_pairs_of_hashes_lead_to_the_hash_of_all_bytes() {
        for len in [GROUP_LEN + 1, 3 * GROUP_LEN, 100_000] {
            let bytes = vec![7; len];
            let outboard = outboard(&bytes);
            assert_eq!(outboard.len(), (len.div_ceil(GROUP_LEN) - 1) * 64);
            let (left, right) = pair(&bytes, 0, &mut Vec::new());
            assert_eq!(merge_subtrees_root(&left, &right, Mode::Hash), blake3::hash(&bytes));
            assert_eq!(outboard[outboard.len() - 64..], [left, right].concat());
        }
        assert!(outboard(&[7; GROUP_LEN]).is_empty());
    }

    #[test]
    fn a_file_taken_out_of_sharing_is_read_from_a_journal_with_half_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("memory");
        let lines = r#"{"removed":{"path":"a"}}
{"removed":{"path":"b"}}
{"gone":{"path":"a"}}
{"removed":{"pa"#;
        fs::write(&journal, lines).unwrap();
        assert_eq!(removed(&journal).unwrap(), ["b"]);
        assert!(removed(&folder.path().join("none")).unwrap().is_empty());
    }
}
