//! Searches. Each is one statement whose rows are sorted so that the peers with the same file are adjacent.

use std::net::SocketAddr;

use store::{Row, Statement, Store, StoreError};

use crate::entry::{Content, Entry, Name, Query, SearchResult, WORDS_MAX};

/// Kinds of terms that files are found by.
pub(super) const BY_NAME: i64 = 0;
pub(super) const BY_WORD: i64 = 1;
pub(super) const BY_CONTENT: i64 = 2;

/// Most rows that one search reads: a file has one row for each of its peers.
const ROWS_MAX: i64 = 10_000;

/// The statement of a search, with one more condition for each further word.
macro_rules! select {
    ($($more:ident)*) => {
        concat!(
            "SELECT t.name, t.hash, t.size, p.address FROM terms t JOIN peers p ON p.id = t.peer ",
            "WHERE t.kind = ? AND t.term = ? AND p.expires_at_ms > ? AND p.address IS NOT NULL ",
            $(also!($more),)*
            "ORDER BY t.name, t.hash, t.peer LIMIT ?"
        )
    };
}

/// A name contains a word or not, regardless of the peer.
macro_rules! also {
    ($more:ident) => {
        "AND EXISTS (SELECT 1 FROM terms w WHERE w.kind = 1 AND w.term = ? AND w.name = t.name) "
    };
}

/// Searches for files. Returns up to `limit` files, each with the peers that have it, and whether there may be more.
pub(super) async fn search(
    store: &Store,
    query: &Query,
    now_ms: i64,
    limit: usize,
) -> Result<(Vec<SearchResult>, bool), StoreError> {
    let rows = store.query(statement(query, now_ms)).await?;
    let cut = rows.len() as i64 >= ROWS_MAX;
    let mut found: Vec<SearchResult> = Vec::new();
    for row in &rows {
        let (entry, peer) = (entry(row)?, peer(row)?);
        if let Some(same) = found.last_mut().filter(|last| last.entry == entry) {
            same.peers.push(peer);
            continue;
        }
        if found.len() == limit {
            return Ok((found, true));
        }
        found.push(SearchResult { entry, peers: vec![peer] });
    }
    Ok((found, cut))
}

/// Lists up to `limit` files of the peer with this id, by name.
pub(super) async fn files(store: &Store, peer_id: i64, limit: i64) -> Result<Vec<Entry>, StoreError> {
    let select = "SELECT name, hash, size FROM terms WHERE peer = ? AND kind = ? ORDER BY name, hash LIMIT ?";
    let rows = store.query(Statement::new(select).with(peer_id).with(BY_NAME).with(limit)).await?;
    rows.iter().map(entry).collect()
}

fn statement(query: &Query, now_ms: i64) -> Statement {
    let (kind, term, others) = match query {
        Query::Name(name) => (BY_NAME, name.to_string(), &[][..]),
        Query::Content(content) => (BY_CONTENT, content.to_string(), &[][..]),
        Query::Words(words) => match &words[..] {
            [first, others @ ..] => (BY_WORD, first.clone(), others),
            [] => (BY_WORD, String::new(), &[][..]),
        },
    };
    let sql = match others.len() {
        0 => select!(),
        1 => select!(second),
        2 => select!(second third),
        _ => select!(second third fourth),
    };
    let select = Statement::new(sql).with(kind).with(term).with(now_ms);
    let others = others.iter().take(WORDS_MAX - 1);
    others.fold(select, |select, word| select.with(word.as_str())).with(ROWS_MAX)
}

/// Reads the columns `name`, `hash` and `size`.
fn entry(row: &Row) -> Result<Entry, StoreError> {
    let name: Name = row.text(0)?.parse().map_err(|_| StoreError::Failed)?;
    let content = Content::try_from(row.bytes(1)?).map_err(|_| StoreError::Failed)?;
    Ok(Entry { name, content, size: u64::try_from(row.int(2)?).map_err(|_| StoreError::Failed)? })
}

fn peer(row: &Row) -> Result<SocketAddr, StoreError> {
    row.text(3)?.parse().map_err(|_| StoreError::Failed)
}
