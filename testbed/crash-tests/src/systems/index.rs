//! Index entries.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use serde_json::{Value as Json, json};
use test_support::http::ask;

use super::{Client, System, database, rows, words};
use crate::ledger::{Ledger, Value};

/// How many entries to ask the server for after a crash.
const ASKED: usize = 20;

/// The index of file sharing. A key is a peer's address and a file's name, its value the hash.
#[derive(Debug, Default)]
pub(super) struct Index {
    count: AtomicU64,
}

impl Index {
    fn register(&self, client: &mut Client<'_>, peer: &str) -> io::Result<()> {
        let names: Vec<String> = (0..client.random.usize(1..20))
            .map(|_| format!("file {}.txt", self.count.fetch_add(1, Relaxed)))
            .collect();
        let hash = |name: &String| blake3::hash(name.as_bytes()).to_hex().to_string();
        let files: Vec<Json> =
            names.iter().map(|name| json!({ "name": name, "hash": hash(name), "size": 9 })).collect();
        let key = |name: &String| format!("{peer} {name}");
        names.iter().for_each(|name| client.ledger.attempt(&key(name), Some(hash(name))));
        let answer = client.send("POST /register", "", &json!({ "peer": peer, "files": files }))?;
        if answer.status == 200 {
            names.iter().for_each(|name| client.ledger.acknowledge(&key(name), Some(hash(name))));
        }
        Ok(())
    }

    fn deregister(&self, client: &mut Client<'_>, peer: &str) -> io::Result<()> {
        let chosen = client.ledger.any(peer, &mut client.random);
        let Some((key, hash)) = chosen else { return self.register(client, peer) };
        let name = key.split_once(' ').map_or("", |(_, name)| name);
        client.ledger.attempt(&key, None);
        let body = json!({ "peer": peer, "files": [{ "name": name, "hash": hash }] });
        let answer = client.send("POST /deregister", "", &body)?;
        if answer.status == 204 {
            client.ledger.acknowledge(&key, None);
        }
        Ok(())
    }
}

impl System for Index {
    fn words(&self, data: &Path) -> Vec<OsString> {
        words("index", data, &["--database", "/index.db", "--life", "1h"])
    }

    fn act(&self, client: &mut Client<'_>) -> io::Result<()> {
        let peer = format!("127.0.0.1:{}", 20_000 + client.number);
        if client.random.u8(..4) == 0 { self.deregister(client, &peer) } else { self.register(client, &peer) }
    }

    fn look_at_files(&self, data: &Path, ledger: &Ledger) -> Result<(), String> {
        let sql = "SELECT p.address || ' ' || t.name, lower(hex(t.hash)) FROM terms t JOIN peers p ON p.id = t.peer \
                   WHERE t.kind = 0 AND p.address IS NOT NULL";
        let found = database(&data.join("index.db"))?.map(|database| rows(&database, sql)).transpose()?;
        let mut found: BTreeMap<String, String> = found.unwrap_or_default().into_iter().collect();
        for (key, _) in ledger.entries() {
            ledger.compare(&key, found.remove(&key));
        }
        found.into_iter().for_each(|(key, hash)| ledger.compare(&key, Some(hash)));
        Ok(())
    }

    fn look_at_server(&self, to: SocketAddr, ledger: &Ledger, random: &mut fastrand::Rng) -> io::Result<()> {
        let mut entries = ledger.entries();
        random.shuffle(&mut entries);
        for (key, _) in entries.into_iter().take(ASKED) {
            let Some((peer, name)) = key.split_once(' ') else { continue };
            let found = ask(to, &format!("GET /search?name={}", name.replace(' ', "%20")), "", b"")?.json();
            let has_peer = |found: &&Json| {
                found["peers"]
                    .as_array()
                    .is_some_and(|peers| peers.iter().any(|held| held.as_str() == Some(peer)))
            };
            let found = found["found"].as_array().and_then(|found| found.iter().find(has_peer));
            let found: Value = found.and_then(|found| Some(found["hash"].as_str()?.to_owned()));
            ledger.compare(&key, found);
        }
        Ok(())
    }
}
