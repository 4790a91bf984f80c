//! The records that a peer stores: which publishers have which files, under the keys that this peer holds.
//!
//! Everything of one publisher shares one lease: one message renews it all, and without renewal it all expires. This module
//! has no clock.

mod publisher;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::SocketAddr,
    time::Instant,
};

use libp2p_identity::PeerId;
use share::entry::{Entry, Query, SearchResult};

pub(crate) use self::publisher::Lease;
use self::publisher::{Publisher, cost};
use crate::key::{self, Key, KeySet};

/// A record: the number of a publisher, and the number of one of its files.
type RecordId = (u32, u32);

/// The limits of [`Records`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Records under one key. Of a word in more files, only these are found; the others are found by rarer words, by name
    /// and by content.
    pub(crate) places: usize,
    /// Memory for one publisher, in bytes as `cost` counts them.
    pub(crate) publisher_bytes: usize,
    /// Memory for all publishers, bytes.
    pub(crate) bytes: usize,
    /// Number of publishers.
    pub(crate) publishers: usize,
}

impl Limits {
    /// No limits, for a peer's own files.
    pub(crate) const NONE: Self =
        Self { places: usize::MAX, publisher_bytes: usize::MAX, bytes: usize::MAX, publishers: usize::MAX };
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            places: 10_000,
            publisher_bytes: 256 * 1024 * 1024,
            bytes: 1024 * 1024 * 1024,
            publishers: 10_000,
        }
    }
}

/// The records, bounded by [`Limits`].
#[derive(Debug)]
pub(crate) struct Records {
    limits: Limits,
    numbers: HashMap<PeerId, u32>,
    publishers: BTreeMap<u32, Publisher>,
    under: HashMap<Key, BTreeSet<RecordId>>,
    /// Number of the next publisher.
    next: u32,
    bytes: usize,
}

/// The result of storing files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StoreOutcome {
    /// Number of the publisher's files stored now.
    pub(crate) files: usize,
    /// Number of keys under which there was no room.
    pub(crate) refused: usize,
}

impl Records {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            numbers: HashMap::new(),
            publishers: BTreeMap::new(),
            under: HashMap::new(),
            next: 0,
            bytes: 0,
        }
    }

    /// Stores files of a publisher under some of their keys, and renews it. Skips files that cannot exist.
    pub(crate) fn keep<'f>(
        &mut self,
        publisher: PeerId,
        lease: Lease,
        files: impl IntoIterator<Item = (&'f Entry, KeySet)>,
    ) -> StoreOutcome {
        let files = files.into_iter().filter(|(entry, _)| entry.is_obtainable());
        let Some(number) = self.number(publisher, lease) else {
            return StoreOutcome { files: 0, refused: files.map(|(_, keys)| keys.len()).sum() };
        };
        let refused = files.map(|(entry, keys)| self.keep_one(number, entry, keys)).sum();
        StoreOutcome { files: self.files(publisher), refused }
    }

    /// Renews a publisher, and returns how many of its files are stored here.
    pub(crate) fn renew(&mut self, publisher: PeerId, lease: Lease) -> usize {
        if self.numbers.contains_key(&publisher) {
            self.number(publisher, lease);
        }
        self.files(publisher)
    }

    /// Removes files of a publisher.
    pub(crate) fn forget<'f>(&mut self, publisher: PeerId, files: impl IntoIterator<Item = &'f Entry>) {
        let Some(&number) = self.numbers.get(&publisher) else { return };
        for entry in files {
            self.forget_one(number, entry);
        }
    }

    /// Removes a publisher and all its files.
    pub(crate) fn leave(&mut self, publisher: PeerId) {
        let Some(number) = self.numbers.remove(&publisher) else { return };
        let Some(gone) = self.publishers.remove(&number) else { return };
        self.bytes = self.bytes.saturating_sub(gone.bytes());
        for (file, entry, keys) in gone.into_files() {
            self.unlink((number, file), &entry, keys);
        }
    }

    /// Removes all publishers that did not renew in time.
    pub(crate) fn expire(&mut self, now: Instant) {
        let dead = |number: &u32| self.publishers.get(number).is_none_or(|publisher| publisher.is_dead(now));
        let gone: Vec<_> =
            self.numbers.iter().filter(|(_, number)| dead(number)).map(|(peer, _)| *peer).collect();
        gone.into_iter().for_each(|peer| self.leave(peer));
    }

    /// Up to `limit` files that match, each with the peers that have it.
    pub(crate) fn find(&self, query: &Query, now: Instant, limit: usize) -> Vec<SearchResult> {
        let places = Key::of_query(query).and_then(|key| self.under.get(&key));
        let mut found: BTreeMap<&Entry, Vec<SocketAddr>> = BTreeMap::new();
        for (number, file) in places.into_iter().flatten() {
            let Some(publisher) = self.publishers.get(number).filter(|publisher| !publisher.is_dead(now))
            else {
                continue;
            };
            let Some(entry) = publisher.file(*file).filter(|entry| key::fits(query, entry)) else { continue };
            if found.len() < limit || found.contains_key(entry) {
                found.entry(entry).or_default().push(publisher.at());
            }
        }
        found.into_iter().map(|(entry, peers)| SearchResult { entry: entry.clone(), peers }).collect()
    }

    /// Number of files stored for a publisher.
    pub(crate) fn files(&self, publisher: PeerId) -> usize {
        let number = self.numbers.get(&publisher);
        number.and_then(|number| self.publishers.get(number)).map_or(0, Publisher::len)
    }

    /// A number that differs whenever the publisher's files here, or their keys, do.
    pub(crate) fn revision(&self, publisher: PeerId) -> u64 {
        let Some(&number) = self.numbers.get(&publisher) else { return 0 };
        let changes = self.publishers.get(&number).map_or(0, Publisher::changes);
        u64::from(number) << 32 | u64::from(changes)
    }

    /// Whether the publisher has a lease here.
    pub(crate) fn knows(&self, publisher: &PeerId) -> bool {
        self.numbers.contains_key(publisher)
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.under.values().map(BTreeSet::len).sum()
    }

    /// The number of a publisher, after renewing it. `None` if there are too many publishers.
    fn number(&mut self, peer: PeerId, lease: Lease) -> Option<u32> {
        if let Some(&number) = self.numbers.get(&peer) {
            self.publishers.get_mut(&number)?.renew(lease);
            return Some(number);
        }
        if self.numbers.len() >= self.limits.publishers {
            return None;
        }
        let number = self.next;
        self.next = self.next.checked_add(1)?;
        self.numbers.insert(peer, number);
        self.publishers.insert(number, Publisher::new(lease));
        Some(number)
    }

    /// Stores one file under some of its keys. Returns under how many there was no room.
    fn keep_one(&mut self, number: u32, entry: &Entry, wanted: KeySet) -> usize {
        let Self { limits, publishers, under, bytes, .. } = self;
        let Some(publisher) = publishers.get_mut(&number) else { return wanted.len() };
        let had = publisher.keys(entry);
        let room = |key: &Key| under.get(key).is_none_or(|places| places.len() < limits.places);
        let all: Vec<_> = key::keys(entry).into_iter().enumerate().collect();
        let new: Vec<_> = all.iter().filter(|(at, _)| wanted.without(had).has(*at)).collect();
        let fit =
            new.iter().filter(|(_, key)| room(key)).fold(KeySet::default(), |fit, (at, _)| fit.with(*at));
        let refused = new.len() - fit.len();
        let more = cost(entry, had.and(fit)) - cost(entry, had);
        if publisher.bytes() + more > limits.publisher_bytes || *bytes + more > limits.bytes {
            return new.len();
        }
        let Some(file) = publisher.put(entry, had.and(fit)) else { return refused };
        *bytes += more;
        for (_, key) in new.into_iter().filter(|(at, _)| fit.has(*at)) {
            under.entry(*key).or_default().insert((number, file));
        }
        refused
    }

    fn forget_one(&mut self, number: u32, entry: &Entry) {
        let Some((file, keys)) =
            self.publishers.get_mut(&number).and_then(|publisher| publisher.remove(entry))
        else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(cost(entry, keys));
        self.unlink((number, file), entry, keys);
    }

    fn unlink(&mut self, place: RecordId, entry: &Entry, keys: KeySet) {
        let all = key::keys(entry).into_iter().enumerate();
        for (_, key) in all.filter(|(at, _)| keys.has(*at)) {
            if let Some(places) = self.under.get_mut(&key) {
                places.remove(&place);
                if places.is_empty() {
                    self.under.remove(&key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
