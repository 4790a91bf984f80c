//! Searches: here where this peer answers for the key itself, or of those that do.

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
    placement::Asks,
};

/// How long one that is asked is waited for before another is asked too.
const SOON: Duration = Duration::from_millis(500);

impl<R: Routing, T: Transport> Node<R, T> {
    /// Finds files, by asking nobody; none where others must be asked.
    pub(crate) fn search_here(&self, query: &Query) -> Option<Vec<SearchResult>> {
        let found = match self.routing.everyone() {
            Some(everyone) => self.find_as_all(query, &everyone),
            None => self.find_as_first(query),
        }?;
        self.metrics.searched(Answered::Here);
        Some(found)
    }

    /// Where peers are so few that each answers for every key, this one does, as soon as all have told it what they have.
    fn find_as_all(&self, query: &Query, everyone: &[PeerId]) -> Option<Vec<SearchResult>> {
        let kept = self.kept();
        kept.told.all(everyone).then(|| kept.find(query, now()))
    }

    /// Where those that answer for the key are asked one by one, and this peer is the first of them, it does if it knows
    /// any such file.
    fn find_as_first(&self, query: &Query) -> Option<Vec<SearchResult>> {
        let (Asks::OneByOne, Some(key)) = (self.routing.asks(), Key::of_query(query)) else { return None };
        let first = self.routing.known(&key)?.first().copied();
        let found = (first == Some(self.routing.me())).then(|| self.kept().find(query, now()))?;
        (!found.is_empty()).then_some(found)
    }

    /// Finds files, with those that answer for the key, and what is known here.
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

    /// The answers of those that answer for the key, or of as many of them as need be asked.
    async fn ask_holders(&self, holders: &[PeerId], query: &Query) -> Vec<Vec<SearchResult>> {
        let me = self.routing.me();
        let others = holders.iter().copied().filter(|peer| *peer != me);
        match self.routing.asks() {
            Asks::Several(count) => self.ask_several(others, count, query).await,
            // Nobody has told all of the others yet: each knows a part, its own at least.
            Asks::OneByOne if self.routing.everyone().is_some() => {
                self.ask_several(others, holders.len(), query).await
            }
            Asks::OneByOne => self.ask_one_by_one(holders, query).await.into_iter().collect(),
        }
    }

    /// The first answer in which there is something. Who does not answer soon is not waited for before the next is asked
    /// too (hedged requests: Dean and Barroso, The tail at scale, 2013), nor longer where another knows of nothing.
    async fn ask_one_by_one(&self, holders: &[PeerId], query: &Query) -> Option<Vec<SearchResult>> {
        let me = self.routing.me();
        // Where this peer is one of them it would have answered if it knew.
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

    /// What so many of them have found, or others where some do not answer or know of nothing: who came just now may not
    /// have been told yet. For those that do not answer soon others are asked too, and where there are none they are not
    /// waited for once something was found.
    async fn ask_several(
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

    /// One peer's answer, as far as it fits what was asked.
    async fn ask_one(&self, peer: PeerId, query: &Query) -> Option<Vec<SearchResult>> {
        let request = Request::Find { query: query.clone() };
        self.metrics.sent(&request);
        match self.transport.ask(peer, request).await {
            Ok(Response::Found { found }) => Some(believable(query, found)),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%peer, %error, "a peer did not answer a search");
                None
            }
        }
    }
}

/// Of what another says to have found, what fits the question and can be had at all, and somewhere.
pub(super) fn believable(query: &Query, mut found: Vec<SearchResult>) -> Vec<SearchResult> {
    found.truncate(FOUND_MAX);
    found.iter_mut().for_each(|found| found.peers.retain(|at| is_somewhere(*at)));
    let can_be_had = |found: &SearchResult| found.entry.is_obtainable() && !found.peers.is_empty();
    found.retain(|found| key::fits(query, &found.entry) && can_be_had(found));
    found
}

/// Each file once, with all the peers that were named. Those that come first have their place: what others make up cannot
/// take it from what is known here.
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
