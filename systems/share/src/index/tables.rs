//! The tables of the index, and everything that is asked of them.

mod schema;
mod search;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use store::{Kind, Row, Statement, Store, StoreError};

pub(crate) use self::schema::SCHEMA;
use crate::{content::Content, name::Name, seam::Entry};

/// What a file is found by, as [`SCHEMA`] has it.
const BY_NAME: i64 = 0;
const BY_WORD: i64 = 1;
const BY_CONTENT: i64 = 2;

/// Most peers whose number is remembered.
const NUMBERS_MAX: usize = 10_000;
/// How often what expired is swept away, at most.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// A peer as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Peer {
    pub(crate) address: String,
    /// How many files it shares.
    pub(crate) files: i64,
    /// When it expires unless it renews.
    pub(crate) expires_in_s: i64,
}

/// The index's tables.
#[derive(Debug)]
pub(crate) struct Tables {
    store: Store,
    insert: &'static str,
    life: Duration,
    /// The numbers of peers, as they were last seen; the database says whether they still hold.
    numbers: Mutex<HashMap<SocketAddr, i64>>,
    swept_at_ms: Mutex<i64>,
}

impl Tables {
    /// On a database that is a server's of this kind, or a file.
    pub(crate) fn new(store: Store, kind: Option<Kind>, life: Duration) -> Self {
        let insert = match kind {
            Some(Kind::Mysql) => {
                "INSERT IGNORE INTO terms (kind, term, name, hash, peer, size) VALUES (?, ?, ?, ?, ?, ?)"
            }
            _ => {
                "INSERT INTO terms (kind, term, name, hash, peer, size) VALUES (?, ?, ?, ?, ?, ?) \
                 ON CONFLICT (kind, term, name, hash, peer) DO NOTHING"
            }
        };
        Self { store, insert, life, numbers: Mutex::default(), swept_at_ms: Mutex::default() }
    }

    /// Tells that a peer has these files, and renews it.
    pub(crate) async fn register(&self, peer: SocketAddr, entries: &[Entry]) -> Result<(), StoreError> {
        loop {
            let number = self.number(peer).await?;
            let insert = |(entry, kind, term): (&Entry, i64, String)| {
                Statement::new(self.insert)
                    .with(kind)
                    .with(term)
                    .with(entry.name.as_str())
                    .with(&entry.content.as_bytes()[..])
                    .with(number)
                    .with(i64::try_from(entry.size).unwrap_or(i64::MAX))
            };
            let rows = entries.iter().flat_map(terms).map(insert);
            if self.store.execute(rows.fold(self.renewal(peer, number), Statement::then)).await? > 0 {
                return Ok(());
            }
            // It expired since its number was seen.
            self.numbers().remove(&peer);
        }
    }

    /// Tells that a peer no longer has these files.
    pub(crate) async fn deregister(
        &self,
        peer: SocketAddr,
        files: &[(Name, Content)],
    ) -> Result<(), StoreError> {
        let Some(number) = self.known_number(peer).await? else { return Ok(()) };
        let delete = |(name, content): &(Name, Content)| {
            let sql = "DELETE FROM terms WHERE kind = ? AND term = ? AND name = ? AND hash = ? AND peer = ?";
            let (name, content) = (name.clone(), *content);
            let rows: Vec<_> = terms_of(&name, content)
                .map(|(kind, term)| {
                    let delete = Statement::new(sql).with(kind).with(term).with(name.as_str());
                    delete.with(&content.as_bytes()[..]).with(number)
                })
                .collect();
            rows
        };
        let rows = files.iter().flat_map(delete);
        self.store.execute(rows.fold(self.renewal(peer, number), Statement::then)).await.map(drop)
    }

    /// Gives a peer its time again; `false` when it is not known, or was too late.
    pub(crate) async fn renew(&self, peer: SocketAddr) -> Result<bool, StoreError> {
        let Some(number) = self.known_number(peer).await? else { return Ok(false) };
        Ok(self.store.execute(self.renewal(peer, number)).await? > 0)
    }

    /// Forgets a peer and what it had.
    pub(crate) async fn leave(&self, peer: SocketAddr) -> Result<(), StoreError> {
        self.numbers().remove(&peer);
        let update = "UPDATE peers SET address = NULL, expires_at_ms = 0 WHERE address = ?";
        self.store.execute(Statement::new(update).with(peer.to_string()).repeatable(true)).await.map(drop)
    }

    /// Takes away what expired, unless that was done lately.
    pub(crate) async fn sweep(&self) -> Result<(), StoreError> {
        let now_ms = now_ms();
        {
            let mut swept_at_ms = self.swept_at_ms.lock().unwrap_or_else(PoisonError::into_inner);
            if now_ms.saturating_sub(*swept_at_ms) < millis(SWEEP_EVERY) {
                return Ok(());
            }
            *swept_at_ms = now_ms;
        }
        let terms = "DELETE FROM terms WHERE peer IN (SELECT id FROM peers WHERE expires_at_ms <= ?)";
        self.store.execute(Statement::new(terms).with(now_ms).repeatable(true)).await?;
        let peers = "DELETE FROM peers WHERE expires_at_ms <= ?";
        self.store.execute(Statement::new(peers).with(now_ms).repeatable(true)).await.map(drop)
    }

    /// The peers that live, at most `limit`.
    pub(crate) async fn peers(&self, limit: i64) -> Result<Vec<Peer>, StoreError> {
        let now_ms = now_ms();
        let select = "SELECT p.address, p.expires_at_ms, \
                      (SELECT COUNT(*) FROM terms t WHERE t.peer = p.id AND t.kind = 0) FROM peers p \
                      WHERE p.expires_at_ms > ? AND p.address IS NOT NULL ORDER BY p.id LIMIT ?";
        let rows = self.store.query(Statement::new(select).with(now_ms).with(limit)).await?;
        let peer = |row: &Row| {
            let expires_in_s = (row.int(1)?.saturating_sub(now_ms)).div_euclid(1000);
            Ok(Peer { address: row.text(0)?.to_owned(), files: row.int(2)?, expires_in_s })
        };
        rows.iter().map(peer).collect()
    }

    /// The number of a peer that lives; made if there is none.
    async fn number(&self, peer: SocketAddr) -> Result<i64, StoreError> {
        loop {
            if let Some(number) = self.known_number(peer).await? {
                return Ok(number);
            }
            // One that expired gives its address free.
            let free = "UPDATE peers SET address = NULL WHERE address = ? AND expires_at_ms <= ?";
            self.store
                .execute(Statement::new(free).with(peer.to_string()).with(now_ms()).repeatable(true))
                .await?;
            let insert = "INSERT INTO peers (address, expires_at_ms) VALUES (?, ?)";
            let insert = Statement::new(insert).with(peer.to_string()).with(self.expiry());
            self.store.insert(insert.repeatable(true)).await?;
        }
    }

    async fn known_number(&self, peer: SocketAddr) -> Result<Option<i64>, StoreError> {
        if let Some(number) = self.numbers().get(&peer) {
            return Ok(Some(*number));
        }
        let select = "SELECT id FROM peers WHERE address = ? AND expires_at_ms > ?";
        let rows = self.store.query(Statement::new(select).with(peer.to_string()).with(now_ms())).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let number = row.int(0)?;
        let mut numbers = self.numbers();
        if numbers.len() >= NUMBERS_MAX {
            numbers.clear();
        }
        numbers.insert(peer, number);
        Ok(Some(number))
    }

    /// Finds nothing to change when the peer has expired.
    fn renewal(&self, peer: SocketAddr, number: i64) -> Statement {
        let update = "UPDATE peers SET expires_at_ms = ? WHERE id = ? AND address = ? AND expires_at_ms > ?";
        Statement::new(update)
            .with(self.expiry())
            .with(number)
            .with(peer.to_string())
            .with(now_ms())
            .repeatable(true)
    }

    fn expiry(&self) -> i64 {
        now_ms().saturating_add(millis(self.life))
    }

    fn numbers(&self) -> MutexGuard<'_, HashMap<SocketAddr, i64>> {
        // Nothing panics while it is held.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn terms(entry: &Entry) -> impl Iterator<Item = (&Entry, i64, String)> {
    terms_of(&entry.name, entry.content).map(move |(kind, term)| (entry, kind, term))
}

/// What a file is found by.
fn terms_of(name: &Name, content: Content) -> impl Iterator<Item = (i64, String)> + use<> {
    let words = name.words().into_iter().map(|word| (BY_WORD, word));
    [(BY_NAME, name.to_string()), (BY_CONTENT, content.to_string())].into_iter().chain(words)
}

fn now_ms() -> i64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
