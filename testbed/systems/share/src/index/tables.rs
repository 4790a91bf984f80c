//! The tables of the index, and everything that is asked of them.

mod holder;
mod schema;
mod search;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use store::{Dialect, Row, Statement, Store, StoreError};

use self::holder::Known;
pub(crate) use self::{
    holder::{ChangeError, Registrant},
    schema::SCHEMA,
};
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
    numbers: Mutex<HashMap<SocketAddr, Known>>,
    swept_at_ms: Mutex<i64>,
}

impl Tables {
    /// On a database that is a server's of this kind, or a file.
    pub(crate) fn new(store: Store, dialect: Option<Dialect>, life: Duration) -> Self {
        let insert = match dialect {
            Some(Dialect::Mysql) => {
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
    pub(crate) async fn register(&self, who: &Registrant, entries: &[Entry]) -> Result<(), ChangeError> {
        let insert = |number, (entry, kind, term): (&Entry, i64, String)| {
            Statement::new(self.insert)
                .with(kind)
                .with(term)
                .with(entry.name.as_str())
                .with(&entry.content.as_bytes()[..])
                .with(number)
                .with(i64::try_from(entry.size).unwrap_or(i64::MAX))
        };
        let rows = |number| entries.iter().flat_map(terms).map(|term| insert(number, term)).collect();
        while !self.change(who, rows).await? {
            self.enter(who).await?;
        }
        Ok(())
    }

    /// Tells that a peer no longer has these files.
    pub(crate) async fn deregister(
        &self,
        who: &Registrant,
        files: &[(Name, Content)],
    ) -> Result<(), ChangeError> {
        let delete = |number, (name, content): &(Name, Content)| {
            let sql = "DELETE FROM terms WHERE kind = ? AND term = ? AND name = ? AND hash = ? AND peer = ?";
            let (name, content) = (name.clone(), *content);
            terms_of(&name.clone(), content).map(move |(kind, term)| {
                let delete = Statement::new(sql).with(kind).with(term).with(name.as_str());
                delete.with(&content.as_bytes()[..]).with(number)
            })
        };
        let rows = |number| files.iter().flat_map(|file| delete(number, file)).collect();
        self.change(who, rows).await.map(drop)
    }

    /// Gives a peer its time again; `false` when it is not known, or was too late.
    pub(crate) async fn renew(&self, who: &Registrant) -> Result<bool, ChangeError> {
        self.change(who, |_| Vec::new()).await
    }

    /// Forgets a peer and what it had.
    pub(crate) async fn leave(&self, who: &Registrant) -> Result<(), ChangeError> {
        self.numbers().remove(&who.peer);
        let Some(number) = self.number_for(who).await? else { return Ok(()) };
        self.numbers().remove(&who.peer);
        let update = "UPDATE peers SET address = NULL, expires_at_ms = 0 WHERE id = ?";
        self.store.execute(Statement::new(update).with(number).repeatable(true)).await?;
        Ok(())
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

    /// Renews a peer and changes its rows by these statements, of its number; `false` when it is not known, or was too
    /// late.
    async fn change(
        &self,
        who: &Registrant,
        rows: impl Fn(i64) -> Vec<Statement>,
    ) -> Result<bool, ChangeError> {
        while let Some(number) = self.number_for(who).await? {
            let all = rows(number).into_iter().fold(self.renewal(who.peer, number), Statement::then);
            if self.store.execute(all).await? > 0 {
                return Ok(true);
            }
            // It expired since its number was seen, or has another by now.
            self.numbers().remove(&who.peer);
        }
        Ok(false)
    }

    /// Makes a peer, where none lives at its address.
    async fn enter(&self, who: &Registrant) -> Result<(), StoreError> {
        // One that expired gives its address free.
        let free = "UPDATE peers SET address = NULL WHERE address = ? AND expires_at_ms <= ?";
        let free = Statement::new(free).with(who.peer.to_string()).with(now_ms());
        self.store.execute(free.repeatable(true)).await?;
        let insert = "INSERT INTO peers (address, expires_at_ms, holder) VALUES (?, ?, ?)";
        let insert = Statement::new(insert).with(who.peer.to_string()).with(self.expiry()).with(who.holder());
        self.store.insert(insert.repeatable(true)).await.map(drop)
    }

    /// The number of a peer that lives, for who may change what it has.
    async fn number_for(&self, who: &Registrant) -> Result<Option<i64>, ChangeError> {
        let seen = self.numbers().get(&who.peer).copied();
        // Who is refused may be so by one that is gone since it was seen.
        if let Some(Ok(number)) = seen.map(|known| known.number_for(who)) {
            return Ok(Some(number));
        }
        self.known(who.peer).await?.map(|known| known.number_for(who)).transpose()
    }

    /// What the database has of a peer that lives.
    async fn known(&self, peer: SocketAddr) -> Result<Option<Known>, StoreError> {
        let select = "SELECT id, holder FROM peers WHERE address = ? AND expires_at_ms > ?";
        let rows = self.store.query(Statement::new(select).with(peer.to_string()).with(now_ms())).await?;
        let Some(known) = rows.first().map(Known::read).transpose()? else { return Ok(None) };
        let mut numbers = self.numbers();
        if numbers.len() >= NUMBERS_MAX {
            numbers.clear();
        }
        numbers.insert(peer, known);
        Ok(Some(known))
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

    fn numbers(&self) -> MutexGuard<'_, HashMap<SocketAddr, Known>> {
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
