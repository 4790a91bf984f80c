//! Searches: each is one statement, whose answer is in order, so that files of several peers come together.

use std::net::SocketAddr;

use store::{Row, Statement, StoreError};

use super::{BY_CONTENT, BY_NAME, BY_WORD, Known, Tables, now_ms};
use crate::{
    content::Content,
    name::Name,
    query::WORDS_MAX,
    seam::{Entry, Found, Query},
};

/// Most rows that one search reads: a file has one for each of its peers.
const ROWS_MAX: i64 = 10_000;

/// A search; each word more is a condition more.
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

/// A name holds a word or not, whoever has the file.
macro_rules! also {
    ($more:ident) => {
        "AND EXISTS (SELECT 1 FROM terms w WHERE w.kind = 1 AND w.term = ? AND w.name = t.name) "
    };
}

impl Tables {
    /// At most `limit` files that the query fits, each with the peers that have it; and whether there may be more.
    pub(crate) async fn search(&self, query: &Query, limit: usize) -> Result<(Vec<Found>, bool), StoreError> {
        let rows = self.store.query(statement(query)).await?;
        let cut = rows.len() as i64 >= ROWS_MAX;
        let mut found: Vec<Found> = Vec::new();
        for row in &rows {
            let (entry, peer) = (entry(row)?, peer(row)?);
            if let Some(same) = found.last_mut().filter(|last| last.entry == entry) {
                same.peers.push(peer);
                continue;
            }
            if found.len() == limit {
                return Ok((found, true));
            }
            found.push(Found { entry, peers: vec![peer] });
        }
        Ok((found, cut))
    }

    /// At most `limit` files of one peer, by name.
    pub(crate) async fn files(&self, peer: SocketAddr, limit: i64) -> Result<Vec<Entry>, StoreError> {
        let Some(Known { number, .. }) = self.known(peer).await? else { return Ok(Vec::new()) };
        let select =
            "SELECT name, hash, size FROM terms WHERE peer = ? AND kind = ? ORDER BY name, hash LIMIT ?";
        let rows = self.store.query(Statement::new(select).with(number).with(BY_NAME).with(limit)).await?;
        rows.iter().map(entry).collect()
    }
}

fn statement(query: &Query) -> Statement {
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
    let select = Statement::new(sql).with(kind).with(term).with(now_ms());
    let others = others.iter().take(WORDS_MAX - 1);
    others.fold(select, |select, word| select.with(word.as_str())).with(ROWS_MAX)
}

/// The columns name, hash and size.
fn entry(row: &Row) -> Result<Entry, StoreError> {
    let name: Name = row.text(0)?.parse().map_err(|_| StoreError::Failed)?;
    let content = Content::try_from(row.bytes(1)?).map_err(|_| StoreError::Failed)?;
    Ok(Entry { name, content, size: u64::try_from(row.int(2)?).map_err(|_| StoreError::Failed)? })
}

fn peer(row: &Row) -> Result<SocketAddr, StoreError> {
    row.text(3)?.parse().map_err(|_| StoreError::Failed)
}
