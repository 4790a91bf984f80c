//! The tables of the index, and the statements on them.

mod search;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use store::{Dialect, Migration, Row, Schema, Statement, Store, StoreError};
use tls::PublicKey;

use self::search::{BY_CONTENT, BY_NAME, BY_WORD};
use crate::entry::{Content, Entry, Name, Query, SearchResult};

/// Peers, and the terms that find their files. A file has one row for its name (kind 0), one for each word of the name (1)
/// and one for its content (2), each with everything that a response needs, so that a search reads a single index. The
/// expiry is stored once per peer, so that a renewal changes one row. An expired peer loses its address and never becomes
/// live again, so that its rows can be deleted at any time. `holder` is the key that registered the address, or empty;
/// migration V2 deletes the peers that were registered without keys, which then register again. On MySQL names are stored
/// as bytes, because its collations treat some different names as equal.
pub(crate) const SCHEMA: Schema = Schema {
    name: "share",
    // "nsts"
    application_id: 0x6e73_7473,
    migrations: &[
        Migration {
            name: "V1__share",
            sqlite: include_str!("tables/v1/sqlite.sql"),
            mysql: include_str!("tables/v1/mysql.sql"),
            postgres: include_str!("tables/v1/postgres.sql"),
        },
        Migration {
            name: "V2__holders",
            sqlite: include_str!("tables/v2/sqlite.sql"),
            mysql: include_str!("tables/v2/mysql.sql"),
            postgres: include_str!("tables/v2/postgres.sql"),
        },
    ],
};

/// Most peers to cache.
const LIVE_PEERS_MAX: usize = 10_000;
/// Shortest time between two sweeps of expired peers.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// A peer that asks to change the registrations of an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registrant {
    pub(crate) peer: SocketAddr,
    /// The member's key. `None` may change all registrations.
    pub(crate) key: Option<PublicKey>,
}

/// A live peer in the database.
#[derive(Debug, Clone, Copy)]
struct LivePeer {
    id: i64,
    /// The key that registered it. `None` if anyone may change it.
    holder: Option<PublicKey>,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    #[error("{peer} is registered by another member, {holder}")]
    Held { peer: SocketAddr, holder: PublicKey },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Registrant {
    /// The key as the database stores it.
    fn holder(&self) -> String {
        self.key.map(|key| key.to_string()).unwrap_or_default()
    }
}

impl LivePeer {
    /// Reads the columns `id` and `holder`.
    fn read(row: &Row) -> Result<Self, StoreError> {
        let holder = Some(row.text(1)?).filter(|text| !text.is_empty()).map(str::parse).transpose();
        Ok(Self { id: row.int(0)?, holder: holder.map_err(|_| StoreError::Failed)? })
    }

    /// The peer's id, if the registrant may change its files.
    fn id_for(&self, registrant: &Registrant) -> Result<i64, ChangeError> {
        match (self.holder, registrant.key) {
            (Some(holder), Some(key)) if holder != key => {
                Err(ChangeError::Held { peer: registrant.peer, holder })
            }
            _ => Ok(self.id),
        }
    }
}

/// A peer in a list of peers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Peer {
    pub(crate) address: String,
    /// Number of files that it shares.
    pub(crate) files: i64,
    /// Seconds until it expires unless it renews.
    pub(crate) expires_in_s: i64,
}

/// The tables of the index.
#[derive(Debug)]
pub(crate) struct Tables {
    store: Store,
    insert: &'static str,
    life: Duration,
    /// Peers as they were last read; every statement checks in the database whether they are still valid.
    live_peers: Mutex<HashMap<SocketAddr, LivePeer>>,
    swept_at_ms: Mutex<i64>,
}

impl Tables {
    /// Tables in a database server of this kind, or in a file if `kind` is `None`.
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
        Self { store, insert, life, live_peers: Mutex::default(), swept_at_ms: Mutex::default() }
    }

    /// Adds files of a peer, and renews the peer.
    pub(crate) async fn register(
        &self,
        registrant: &Registrant,
        entries: &[Entry],
    ) -> Result<(), ChangeError> {
        let insert = |id, (entry, kind, term): (&Entry, i64, String)| {
            Statement::new(self.insert)
                .with(kind)
                .with(term)
                .with(entry.name.as_str())
                .with(&entry.content.as_bytes()[..])
                .with(id)
                .with(i64::try_from(entry.size).unwrap_or(i64::MAX))
        };
        let rows = |id| entries.iter().flat_map(terms).map(|term| insert(id, term)).collect();
        while !self.change(registrant, rows).await? {
            self.enter(registrant).await?;
        }
        Ok(())
    }

    /// Removes files of a peer, and renews the peer.
    pub(crate) async fn deregister(
        &self,
        registrant: &Registrant,
        files: &[(Name, Content)],
    ) -> Result<(), ChangeError> {
        let delete = |id, (name, content): &(Name, Content)| {
            let sql = "DELETE FROM terms WHERE kind = ? AND term = ? AND name = ? AND hash = ? AND peer = ?";
            let (name, content) = (name.clone(), *content);
            terms_of(&name.clone(), content).map(move |(kind, term)| {
                let delete = Statement::new(sql).with(kind).with(term).with(name.as_str());
                delete.with(&content.as_bytes()[..]).with(id)
            })
        };
        let rows = |id| files.iter().flat_map(|file| delete(id, file)).collect();
        self.change(registrant, rows).await.map(drop)
    }

    /// Renews a peer. Returns `false` if it is unknown or has expired.
    pub(crate) async fn renew(&self, registrant: &Registrant) -> Result<bool, ChangeError> {
        self.change(registrant, |_| Vec::new()).await
    }

    /// Removes a peer and its files.
    pub(crate) async fn leave(&self, registrant: &Registrant) -> Result<(), ChangeError> {
        self.live_peers().remove(&registrant.peer);
        let Some(id) = self.id_for(registrant).await? else { return Ok(()) };
        self.live_peers().remove(&registrant.peer);
        let update = "UPDATE peers SET address = NULL, expires_at_ms = 0 WHERE id = ?";
        self.store.execute(Statement::new(update).with(id).repeatable(true)).await?;
        Ok(())
    }

    /// Deletes the rows of expired peers, unless that was done recently.
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

    /// Lists up to `limit` peers that have not expired.
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

    /// Searches for files. Returns up to `limit` files, each with the peers that have it, and whether there may be more.
    pub(crate) async fn search(
        &self,
        query: &Query,
        limit: usize,
    ) -> Result<(Vec<SearchResult>, bool), StoreError> {
        search::search(&self.store, query, now_ms(), limit).await
    }

    /// Lists up to `limit` files of one peer, by name.
    pub(crate) async fn files(&self, peer: SocketAddr, limit: i64) -> Result<Vec<Entry>, StoreError> {
        let Some(live) = self.live_peer(peer).await? else { return Ok(Vec::new()) };
        search::files(&self.store, live.id, limit).await
    }

    /// Renews a peer and executes these statements for its id. Returns `false` if the peer is unknown or has expired.
    async fn change(
        &self,
        registrant: &Registrant,
        rows: impl Fn(i64) -> Vec<Statement>,
    ) -> Result<bool, ChangeError> {
        while let Some(id) = self.id_for(registrant).await? {
            let all = rows(id).into_iter().fold(self.renewal(registrant.peer, id), Statement::then);
            if self.store.execute(all).await? > 0 {
                return Ok(true);
            }
            // The peer expired after its id was read, or has another id by now.
            self.live_peers().remove(&registrant.peer);
        }
        Ok(false)
    }

    /// Inserts a peer, if no live one has its address.
    async fn enter(&self, registrant: &Registrant) -> Result<(), StoreError> {
        // An expired peer gives up its address.
        let free = "UPDATE peers SET address = NULL WHERE address = ? AND expires_at_ms <= ?";
        let free = Statement::new(free).with(registrant.peer.to_string()).with(now_ms());
        self.store.execute(free.repeatable(true)).await?;
        let insert = "INSERT INTO peers (address, expires_at_ms, holder) VALUES (?, ?, ?)";
        let insert = Statement::new(insert)
            .with(registrant.peer.to_string())
            .with(self.expiry())
            .with(registrant.holder());
        self.store.insert(insert.repeatable(true)).await.map(drop)
    }

    /// The id of a live peer, if the registrant may change its files.
    async fn id_for(&self, registrant: &Registrant) -> Result<Option<i64>, ChangeError> {
        let seen = self.live_peers().get(&registrant.peer).copied();
        // A refusal may be due to a cached peer that has expired: ask the database.
        if let Some(Ok(id)) = seen.map(|live| live.id_for(registrant)) {
            return Ok(Some(id));
        }
        self.live_peer(registrant.peer).await?.map(|live| live.id_for(registrant)).transpose()
    }

    /// Reads a live peer from the database.
    async fn live_peer(&self, peer: SocketAddr) -> Result<Option<LivePeer>, StoreError> {
        let select = "SELECT id, holder FROM peers WHERE address = ? AND expires_at_ms > ?";
        let rows = self.store.query(Statement::new(select).with(peer.to_string()).with(now_ms())).await?;
        let Some(live) = rows.first().map(LivePeer::read).transpose()? else { return Ok(None) };
        let mut live_peers = self.live_peers();
        if live_peers.len() >= LIVE_PEERS_MAX {
            live_peers.clear();
        }
        live_peers.insert(peer, live);
        Ok(Some(live))
    }

    /// A statement that renews a peer; it matches no row if the peer has expired.
    fn renewal(&self, peer: SocketAddr, id: i64) -> Statement {
        let update = "UPDATE peers SET expires_at_ms = ? WHERE id = ? AND address = ? AND expires_at_ms > ?";
        Statement::new(update)
            .with(self.expiry())
            .with(id)
            .with(peer.to_string())
            .with(now_ms())
            .repeatable(true)
    }

    fn expiry(&self) -> i64 {
        now_ms().saturating_add(millis(self.life))
    }

    fn live_peers(&self) -> MutexGuard<'_, HashMap<SocketAddr, LivePeer>> {
        // No code panics while holding the lock.
        self.live_peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn terms(entry: &Entry) -> impl Iterator<Item = (&Entry, i64, String)> {
    terms_of(&entry.name, entry.content).map(move |(kind, term)| (entry, kind, term))
}

/// The terms that a file is found by.
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
