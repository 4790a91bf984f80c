//! Publishes this peer's files to the holders of their keys, keeps those leases alive, and moves records when other peers
//! come to hold the keys.

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

/// Lease of a peer's own files at itself.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);
/// Most lookups at once.
const LOOKUPS: usize = 16;
/// Most keys whose holders are remembered.
const REMEMBERED_MAX: usize = 100_000;

/// The files that one holder is to store, with their keys.
type Offered = HashMap<Arc<Entry>, KeySet>;

/// This peer's files, and what each holder was told.
#[derive(Debug, Default)]
pub(super) struct Publishing {
    files: HashSet<Arc<Entry>>,
    holders: HashMap<PeerId, Holder>,
    /// Holders of keys that had to be looked up, and when.
    looked_up: HashMap<Key, (Instant, Vec<PeerId>)>,
}

/// A peer that stores files of this one.
#[derive(Debug, Default)]
struct Holder {
    offered: Offered,
    /// Files that it need not store any more, and since when.
    surplus: HashMap<Arc<Entry>, Instant>,
    /// What it said that it stores.
    kept: Stored,
    /// Whether it was told everything. Before that it may still store files from an earlier run of this peer, or from before
    /// a message was lost.
    all: bool,
}

/// What a holder says that it stores of this peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Stored {
    files: usize,
    /// Differs whenever what is stored does: a message that was given up may still arrive, even after later ones, where
    /// the network was cut or the holder was slow.
    revision: u64,
}

/// Position of a message among those that tell a holder everything.
#[derive(Debug, Clone, Copy)]
struct Part {
    first: bool,
    last: bool,
}

impl Holder {
    /// Marks a file to be announced again. The holder still has it, and may have to forget it.
    fn disclaim(&mut self, entry: &Entry) {
        if let Some(keys) = self.offered.get_mut(entry) {
            *keys = KeySet::default();
        }
    }

    /// Removes and returns the files that it has not had to store for `grace`. While peers come and go a lookup may once find
    /// the wrong holders; the right ones still have the files then.
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
    /// Publishes files. Returns once the holders of their keys have been told.
    pub(crate) async fn register(&self, entries: &[Entry]) {
        let mut publishing = self.publishing.lock().await;
        let new: Vec<_> = entries.iter().map(|entry| Arc::new(entry.clone())).collect();
        if let Some(at) = self.at.get() {
            let all = |entry: &Entry| (0..key::keys(entry).len()).fold(KeySet::default(), KeySet::with);
            let files = entries.iter().map(|entry| (entry, all(entry)));
            self.kept().own.keep(self.routing.me(), Lease::new(*at, now(), FOREVER), files);
        }
        publishing.files.extend(new.iter().cloned());
        // A file that is registered again is announced again.
        for holder in publishing.holders.values_mut() {
            entries.iter().for_each(|entry| holder.disclaim(entry));
        }
        self.tell(&mut publishing, new, false).await;
    }

    /// Withdraws files.
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

    /// Withdraws all files, when the peer leaves or starts again.
    pub(crate) async fn leave(&self) {
        let mut publishing = self.publishing.lock().await;
        self.kept().own.leave(self.routing.me());
        publishing.files.clear();
        let leave = publishing.holders.drain().map(|(peer, _)| self.send(peer, Request::Leave));
        join_all(leave).await;
    }

    /// Renews this peer's leases, and announces everything again to holders that have forgotten it.
    pub(crate) async fn renew(&self) {
        let Some(terms) = self.terms() else { return };
        let mut publishing = self.publishing.lock().await;
        let renewals = publishing.holders.iter().map(|(peer, holder)| async {
            let answer = self.send(*peer, Request::Renew { lease: terms }).await;
            let holds = matches!(answer, Ok((kept, _)) if kept == holder.kept && kept.files > 0);
            (!holds).then_some(*peer)
        });
        let forgot: Vec<_> = join_all(renewals).await.into_iter().flatten().collect();
        forgot.iter().for_each(|peer| drop(publishing.holders.remove(peer)));
        self.tell_all(&mut publishing).await;
    }

    /// Announces files to peers that have come to hold their keys, and after a while withdraws them from those that no longer
    /// do.
    pub(crate) async fn rearrange(&self) {
        let mut publishing = self.publishing.lock().await;
        self.tell_all(&mut publishing).await;
    }

    async fn tell_all(&self, publishing: &mut Publishing) {
        let files = publishing.files.iter().cloned().collect();
        self.tell(publishing, files, true).await;
    }

    /// Announces these files, which are either all or only the new ones.
    async fn tell(&self, publishing: &mut Publishing, files: Vec<Arc<Entry>>, all: bool) {
        if self.at.get().is_none() {
            return;
        }
        let mut wanted = self.arrange(publishing, files).await;
        for peer in self.routing.everyone().into_iter().flatten() {
            // Peers that are to know everything also have to learn that there is nothing.
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

    /// Decides which holder is to store what.
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

    /// Looks up the holders of keys where they are unknown, or known for too long, or outdated.
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

    /// Brings one holder up to date. `None` if it does not respond.
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
                tracing::debug!(%peer, %error, "a peer could not be told about files");
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
                // The holder starts from nothing, so repeat what it need not store for much longer too.
                for (entry, keys) in holder.offered.drain() {
                    offer.entry(entry).or_insert(keys);
                }
            } else {
                self.forget(peer, holder, gone).await?;
            }
        }
        let had = |entry: &Entry| holder.offered.get(entry).copied().unwrap_or_default();
        // With the keys that it was told before: it may have forgotten them.
        let new: Vec<_> = offer
            .iter()
            .filter(|(entry, keys)| !keys.without(had(entry)).is_empty())
            .map(|(entry, keys)| (Arc::clone(entry), keys.and(had(entry))))
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
        let before = if part.first { 0 } else { holder.kept.files };
        let added = batch.iter().filter(|(entry, _)| !holder.offered.contains_key(entry)).count();
        let (kept, refused) = self.send(peer, keep).await?;
        if refused > 0 {
            tracing::debug!(%peer, refused, "a peer has no room for more under some keys");
        }
        // This peer's lease there had ended, so the holder has this batch alone, and no later answer would show it.
        if kept.files < before + if refused == 0 { added } else { 0 } {
            return Err(Unanswered("it has forgotten what it was told before".into()));
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

    /// Sends a request. Returns what the holder stores then, and under how many keys it had no room.
    async fn send(&self, peer: PeerId, request: Request) -> Result<(Stored, usize), Unanswered> {
        self.metrics.sent(&request);
        match self.transport.ask(peer, request).await? {
            Response::Kept { files, refused, revision } => Ok((Stored { files, revision }, refused)),
            Response::Refused { reason } => {
                if self.is_news(&reason) {
                    tracing::warn!(%peer, "a peer refuses to keep what this one tells: {reason}");
                }
                Err(Unanswered(reason))
            }
            Response::Found { .. } => Err(Unanswered("it answered something else".into())),
        }
    }

    /// Whether this is another reason than the last one. Announcements repeat, and so would the warning.
    fn is_news(&self, reason: &str) -> bool {
        let mut last = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let news = *last != reason;
        if news {
            reason.clone_into(&mut last);
        }
        news
    }
}
