//! Searches the records stored here, and those of other peers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use libp2p_identity::PeerId;
use share::entry::{Entry, Query, SearchResult};

use super::{Node, now};
use crate::{
    key::{self, Key},
    message::{FOUND_MAX, Request, Response, is_somewhere},
    metrics::Answered,
    network::{Routing, Transport},
    placement::QueryStrategy,
};

/// How long to wait for a peer before another one is asked too.
const SOON: Duration = Duration::from_millis(500);

impl<R: Routing, T: Transport> Node<R, T> {
    /// Searches without asking other peers. `None` if others have to be asked.
    pub(crate) fn search_here(&self, query: &Query) -> Option<Vec<SearchResult>> {
        let found = match self.routing.everyone() {
            Some(everyone) => self.find_as_all(query, &everyone),
            None => self.find_as_first(query),
        }?;
        self.metrics.searched(Answered::Here);
        Some(found)
    }

    /// The result here if every peer holds every key, once all have announced their files.
    fn find_as_all(&self, query: &Query, everyone: &[PeerId]) -> Option<Vec<SearchResult>> {
        let kept = self.kept();
        kept.complete.contains_all(everyone).then(|| kept.find(query, now()))
    }

    /// The result here if this peer is the first holder to ask, unless it is empty.
    fn find_as_first(&self, query: &Query) -> Option<Vec<SearchResult>> {
        let (QueryStrategy::Sequential, Some(key)) = (self.routing.query_strategy(), Key::of_query(query))
        else {
            return None;
        };
        let first = self.routing.known(&key)?.first().copied();
        let found = (first == Some(self.routing.me())).then(|| self.kept().find(query, now()))?;
        (!found.is_empty()).then_some(found)
    }

    /// Searches here and at the holders of the key.
    pub(crate) async fn search(&self, query: &Query) -> Vec<SearchResult> {
        if let Some(found) = self.search_here(query) {
            return found;
        }
        let Some(key) = Key::of_query(query) else { return Vec::new() };
        let own = self.kept().find(query, now());
        let (holders, how) = match self.routing.known(&key) {
            Some(holders) => (holders, Answered::Asked),
            None => (self.routing.look_up(&key).await, Answered::LookedUp),
        };
        self.metrics.searched(how);
        let others = self.ask_holders(&holders, query).await.into_iter().flatten();
        merged(own.into_iter().chain(others))
    }

    /// The results of the key's holders, or of as many as have to be asked.
    async fn ask_holders(&self, holders: &[PeerId], query: &Query) -> Vec<Vec<SearchResult>> {
        let me = self.routing.me();
        let others = holders.iter().copied().filter(|peer| *peer != me);
        match self.routing.query_strategy() {
            QueryStrategy::Parallel(count) => self.ask_in_parallel(others, count, query).await,
            // Some peers have not announced everything yet: each knows at least its own files.
            QueryStrategy::Sequential if self.routing.everyone().is_some() => {
                self.ask_in_parallel(others, holders.len(), query).await
            }
            QueryStrategy::Sequential => self.ask_sequentially(holders, query).await.into_iter().collect(),
        }
    }

    /// The first result that is not empty. If a holder does not respond soon, the next is asked too (hedged requests: Dean and
    /// Barroso, The tail at scale, 2013). Once one has found nothing, the search does not wait for slow ones.
    async fn ask_sequentially(&self, holders: &[PeerId], query: &Query) -> Option<Vec<SearchResult>> {
        let me = self.routing.me();
        // If this peer is a holder, it has found nothing.
        let mut nothing = holders.contains(&me);
        let mut others = holders.iter().copied().filter(|peer| *peer != me);
        let ask = |peer| self.ask_one(peer, query);
        let mut asked: FuturesUnordered<_> = others.by_ref().take(1).map(ask).collect();
        while !asked.is_empty() {
            let answer = tokio::time::timeout(SOON, asked.next()).await;
            let next = others.next();
            match answer {
                Ok(Some(Some(found))) if !found.is_empty() => return Some(found),
                Ok(answer) => nothing |= answer.flatten().is_some(),
                Err(_) if nothing && next.is_none() => return None,
                Err(_) => {}
            }
            asked.extend(next.map(ask));
        }
        None
    }

    /// The results of `count` holders. Asks further ones in place of those that fail or find nothing, because a peer that has
    /// just joined may not have been told everything, and beside those that do not respond soon. Once something was found and
    /// no further holder is left, it does not wait for slow ones.
    async fn ask_in_parallel(
        &self,
        mut others: impl Iterator<Item = PeerId>,
        count: usize,
        query: &Query,
    ) -> Vec<Vec<SearchResult>> {
        let ask = |peer| self.ask_one(peer, query);
        let mut asked: FuturesUnordered<_> = others.by_ref().take(count).map(ask).collect();
        let mut answers: Vec<Vec<SearchResult>> = Vec::new();
        while answers.len() < count && !asked.is_empty() {
            match tokio::time::timeout(SOON, asked.next()).await {
                Ok(Some(Some(found))) if !found.is_empty() => answers.push(found),
                Ok(_) => asked.extend(others.next().map(ask)),
                Err(_) => {
                    let late = asked.len();
                    asked.extend(others.by_ref().take(late).map(ask));
                    if asked.len() == late && !answers.is_empty() {
                        break;
                    }
                }
            }
        }
        answers
    }

    /// One peer's result, as far as it matches the query.
    async fn ask_one(&self, peer: PeerId, query: &Query) -> Option<Vec<SearchResult>> {
        let request = Request::Find { query: query.clone() };
        self.metrics.sent(&request);
        match self.transport.ask(peer, request).await {
            Ok(Response::Found { found }) => Some(valid_results(query, found)),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%peer, %error, "a peer did not answer a search");
                None
            }
        }
    }
}

/// The results of another peer that match the query and can be fetched from somewhere.
pub(super) fn valid_results(query: &Query, mut found: Vec<SearchResult>) -> Vec<SearchResult> {
    found.truncate(FOUND_MAX);
    found.iter_mut().for_each(|found| found.peers.retain(|at| is_somewhere(*at)));
    let can_be_had = |found: &SearchResult| found.entry.is_obtainable() && !found.peers.is_empty();
    found.retain(|found| key::fits(query, &found.entry) && can_be_had(found));
    found
}

/// Merges results, so that each file appears once with all its peers. Earlier results take precedence: what others make up
/// cannot displace what is known here.
pub(super) fn merged(all: impl Iterator<Item = SearchResult>) -> Vec<SearchResult> {
    let mut files: BTreeMap<Entry, BTreeSet<_>> = BTreeMap::new();
    for found in all {
        if files.len() < FOUND_MAX || files.contains_key(&found.entry) {
            files.entry(found.entry).or_default().extend(found.peers);
        }
    }
    files
        .into_iter()
        .map(|(entry, peers)| SearchResult { entry, peers: peers.into_iter().collect() })
        .collect()
}
