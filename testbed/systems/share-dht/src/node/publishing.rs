//! Tells those that answer for the keys of this peer's files what it has, keeps them believing it, and tells others when
//! others come to answer for them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt, future::join_all, stream};
use libp2p_identity::PeerId;
use share::entry::Entry;

use super::{Node, now};
use crate::{
    key::{self, Key, KeySet},
    message::{FILES_MAX, Placed, Request, Response},
    network::{Routing, Transport, Unanswered},
    records::Lease,
};

/// For so long this peer believes itself.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);
/// Keys that are looked up at once.
const LOOKUPS: usize = 16;
/// Most keys whose holders are remembered.
const REMEMBERED_MAX: usize = 100_000;

/// What one holder was told to keep.
type Offered = HashMap<Arc<Entry>, KeySet>;

/// What this peer has, and who was told.
#[derive(Debug, Default)]
pub(super) struct Publishing {
    files: HashSet<Arc<Entry>>,
    holders: HashMap<PeerId, Holder>,
    /// Who answers for keys that had to be looked up, and since when that is known.
    looked_up: HashMap<Key, (Instant, Vec<PeerId>)>,
}

/// A peer that keeps files of this one.
#[derive(Debug, Default)]
struct Holder {
    offered: Offered,
    /// What it need not keep any more, and since when.
    surplus: HashMap<Arc<Entry>, Instant>,
    /// How many files it said that it keeps.
    kept: usize,
    /// Whether it was told that it knows all. Until then it may keep what this peer told it before it was started anew,
    /// or before a message was lost.
    all: bool,
}

/// Which part of all that a holder is to keep a message tells.
#[derive(Debug, Clone, Copy)]
struct Part {
    first: bool,
    last: bool,
}

impl Holder {
    /// What it was told of a file is to be told again. It has it all the same, and may have to forget it.
    fn disclaim(&mut self, entry: &Entry) {
        if let Some(keys) = self.offered.get_mut(entry) {
            *keys = KeySet::default();
        }
    }

    /// Takes out what it has not had to keep for so long. Who is nearest to a key may be found wrongly for once, when peers
    /// come and go: what is still kept in the right place then is found there.
    fn take_surplus(&mut self, offer: &Offered, now: Instant, grace: Duration) -> Vec<Entry> {
        let Self { offered, surplus, .. } = self;
        surplus.retain(|entry, _| offered.contains_key(entry) && !offer.contains_key(entry));
        for entry in offered.keys().filter(|entry| !offer.contains_key(*entry)) {
            surplus.entry(Arc::clone(entry)).or_insert(now);
        }
        let gone = surplus.extract_if(|_, since| now.saturating_duration_since(*since) >= grace);
        gone.filter_map(|(entry, _)| offered.remove(&entry).map(|_| (*entry).clone())).collect()
    }
}

impl<R: Routing, T: Transport> Node<R, T> {
    /// This peer has these files too. Returns once those who are to know were told.
    pub(crate) async fn register(&self, entries: &[Entry]) {
        let mut publishing = self.publishing.lock().await;
        let new: Vec<_> = entries.iter().map(|entry| Arc::new(entry.clone())).collect();
        if let Some(at) = self.at.get() {
            let all = |entry: &Entry| (0..key::keys(entry).len()).fold(KeySet::default(), KeySet::with);
            let files = entries.iter().map(|entry| (entry, all(entry)));
            self.kept().own.keep(self.routing.me(), Lease::new(*at, now(), FOREVER), files);
        }
        publishing.files.extend(new.iter().cloned());
        // Whoever tells something again wants it to be heard again.
        for holder in publishing.holders.values_mut() {
            entries.iter().for_each(|entry| holder.disclaim(entry));
        }
        self.tell(&mut publishing, new, false).await;
    }

    /// This peer has these files no longer.
    pub(crate) async fn deregister(&self, entries: &[Entry]) {
        let mut publishing = self.publishing.lock().await;
        self.kept().own.forget(self.routing.me(), entries);
        for entry in entries {
            publishing.files.remove(entry);
        }
        let told = publishing.holders.iter_mut().filter_map(|(peer, holder)| {
            let gone: Vec<_> =
                entries.iter().filter(|entry| holder.offered.remove(*entry).is_some()).cloned().collect();
            (!gone.is_empty()).then_some((*peer, holder, gone))
        });
        let outcomes = told.map(|(peer, holder, gone)| async move {
            self.forget(peer, holder, gone).await.is_err().then_some(peer)
        });
        let failed: Vec<_> = join_all(outcomes).await.into_iter().flatten().collect();
        failed.iter().for_each(|peer| drop(publishing.holders.remove(peer)));
    }

    /// This peer goes, or begins anew.
    pub(crate) async fn leave(&self) {
        let mut publishing = self.publishing.lock().await;
        self.kept().own.leave(self.routing.me());
        publishing.files.clear();
        let leave = publishing.holders.drain().map(|(peer, _)| self.send(peer, Request::Leave));
        join_all(leave).await;
    }

    /// Tells all who keep files of this peer that it lives, and those who forgot them everything again.
    pub(crate) async fn renew(&self) {
        let Some(terms) = self.terms() else { return };
        let mut publishing = self.publishing.lock().await;
        let renewals = publishing.holders.iter().map(|(peer, holder)| async {
            let answer = self.send(*peer, Request::Renew { lease: terms }).await;
            let holds = matches!(answer, Ok((files, _)) if files == holder.kept && files > 0);
            (!holds).then_some(*peer)
        });
        let forgot: Vec<_> = join_all(renewals).await.into_iter().flatten().collect();
        forgot.iter().for_each(|peer| drop(publishing.holders.remove(peer)));
        self.tell_all(&mut publishing).await;
    }

    /// Tells those who came to answer for keys of this peer's files, and lets those who no longer do forget them after a
    /// while.
    pub(crate) async fn rearrange(&self) {
        let mut publishing = self.publishing.lock().await;
        self.tell_all(&mut publishing).await;
    }

    async fn tell_all(&self, publishing: &mut Publishing) {
        let files = publishing.files.iter().cloned().collect();
        self.tell(publishing, files, true).await;
    }

    /// Tells of these files, which are all that there are or only the new ones.
    async fn tell(&self, publishing: &mut Publishing, files: Vec<Arc<Entry>>, all: bool) {
        if self.at.get().is_none() {
            return;
        }
        let mut wanted = self.arrange(publishing, files).await;
        for peer in self.routing.everyone().into_iter().flatten() {
            // Those who are to know everything are to know it also when that is nothing.
            wanted.entry(peer).or_default();
        }
        if all {
            for peer in publishing.holders.keys() {
                wanted.entry(*peer).or_default();
            }
        }
        let bring = wanted.into_iter().map(|(peer, offer)| {
            let holder = publishing.holders.remove(&peer).unwrap_or_default();
            self.bring(peer, holder, offer, all)
        });
        let bring: Vec<_> = bring.collect();
        publishing.holders.extend(join_all(bring).await.into_iter().flatten());
    }

    /// Who is to keep what.
    async fn arrange(&self, publishing: &mut Publishing, files: Vec<Arc<Entry>>) -> HashMap<PeerId, Offered> {
        let keys: Vec<_> = files.iter().map(|entry| key::keys(entry)).collect();
        self.look_up(publishing, keys.iter().flatten()).await;
        let mut wanted: HashMap<PeerId, Offered> = HashMap::new();
        for (entry, keys) in files.iter().zip(&keys) {
            for (number, key) in keys.iter().enumerate() {
                let known = self.routing.known(key);
                let remembered = publishing.looked_up.get(key).map(|(_, holders)| holders.clone());
                for peer in known.or(remembered).unwrap_or_default() {
                    let offer = wanted.entry(peer).or_default().entry(Arc::clone(entry)).or_default();
                    *offer = offer.with(number);
                }
            }
        }
        wanted.remove(&self.routing.me());
        wanted
    }

    /// Looks up who answers for keys, where that is not known, not lately, or others came since that are known to.
    async fn look_up(&self, publishing: &mut Publishing, keys: impl Iterator<Item = &Key>) {
        let (now, life) = (now(), self.life);
        let holds = |key: &Key, since: Instant, holders: &[PeerId]| {
            now.saturating_duration_since(since) < life && !self.routing.outdated(key, holders)
        };
        publishing.looked_up.retain(|key, (since, holders)| holds(key, *since, holders));
        if publishing.looked_up.len() > REMEMBERED_MAX {
            publishing.looked_up.clear();
        }
        let unknown: HashSet<_> = keys
            .filter(|key| !publishing.looked_up.contains_key(key) && self.routing.known(key).is_none())
            .copied()
            .collect();
        let lookups = stream::iter(unknown).map(|key| async move { (key, self.routing.look_up(&key).await) });
        let found: Vec<_> = lookups.buffer_unordered(LOOKUPS).collect().await;
        publishing.looked_up.extend(found.into_iter().map(|(key, holders)| (key, (now, holders))));
    }

    /// Brings one holder to know what it is to know; none when it does not answer.
    async fn bring(
        &self,
        peer: PeerId,
        mut holder: Holder,
        offer: Offered,
        all: bool,
    ) -> Option<(PeerId, Holder)> {
        let told = match self.bring_up(peer, &mut holder, offer, all).await {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(%peer, %error, "a peer was not told of files");
                false
            }
        };
        told.then_some((peer, holder))
    }

    async fn bring_up(
        &self,
        peer: PeerId,
        holder: &mut Holder,
        mut offer: Offered,
        all: bool,
    ) -> Result<(), Unanswered> {
        let completes = all && !holder.all;
        if all {
            let gone = holder.take_surplus(&offer, now(), self.life);
            if completes {
                // It begins anew, also with what it need not keep much longer.
                for (entry, keys) in holder.offered.drain() {
                    offer.entry(entry).or_insert(keys);
                }
            } else {
                self.forget(peer, holder, gone).await?;
            }
        }
        let had = |entry| holder.offered.get(entry).copied().unwrap_or_default();
        let new: Vec<_> = offer
            .iter()
            .map(|(entry, keys)| (Arc::clone(entry), keys.without(had(entry))))
            .filter(|(_, keys)| !keys.is_empty())
            .collect();
        let mut batches: Vec<_> = new.chunks(FILES_MAX).collect();
        if batches.is_empty() && completes {
            batches.push(&[]);
        }
        for (number, batch) in batches.iter().enumerate() {
            let part =
                Part { first: completes && number == 0, last: completes && number + 1 == batches.len() };
            self.keep(peer, holder, batch, part).await?;
        }
        holder.all |= completes;
        Ok(())
    }

    async fn keep(
        &self,
        peer: PeerId,
        holder: &mut Holder,
        batch: &[(Arc<Entry>, KeySet)],
        part: Part,
    ) -> Result<(), Unanswered> {
        let Some(lease) = self.terms() else { return Ok(()) };
        let files = batch.iter().map(|(file, keys)| Placed { file: (**file).clone(), keys: *keys }).collect();
        let keep = Request::Keep { lease, files, anew: part.first, all: part.last };
        let (kept, refused) = self.send(peer, keep).await?;
        if refused > 0 {
            tracing::debug!(%peer, refused, "a peer has no room for more under some keys");
        }
        for (entry, keys) in batch {
            let offered = holder.offered.entry(Arc::clone(entry)).or_default();
            *offered = offered.and(*keys);
        }
        holder.kept = kept;
        Ok(())
    }

    async fn forget(&self, peer: PeerId, holder: &mut Holder, files: Vec<Entry>) -> Result<(), Unanswered> {
        for batch in files.chunks(FILES_MAX) {
            (holder.kept, _) = self.send(peer, Request::Forget { files: batch.to_vec() }).await?;
        }
        Ok(())
    }

    /// Tells a peer something; how many files it keeps then, and under how many keys it had no room.
    async fn send(&self, peer: PeerId, request: Request) -> Result<(usize, usize), Unanswered> {
        self.metrics.sent(&request);
        match self.transport.ask(peer, request).await? {
            Response::Kept { files, refused } => Ok((files, refused)),
            Response::Refused { reason } => {
                if self.is_news(&reason) {
                    tracing::warn!(%peer, "a peer refuses to keep what this one tells: {reason}");
                }
                Err(Unanswered(reason))
            }
            Response::Found { .. } => Err(Unanswered("it answered something else".into())),
        }
    }

    /// Whether nobody refused for this reason just before: it is told again and again otherwise, as often as files are.
    fn is_news(&self, reason: &str) -> bool {
        let mut last = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let news = *last != reason;
        if news {
            reason.clone_into(&mut last);
        }
        news
    }
}
