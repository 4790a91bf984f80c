//! The files of one publisher.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use share::entry::Entry;

use crate::key::KeySet;

/// Approximate memory of a file, besides its name, and of each of its records, bytes.
const FILE_COST: usize = 256;
const PLACE_COST: usize = 48;

/// Where a publisher's files can be fetched, and until when it is believed to be alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) at: SocketAddr,
    pub(crate) until: Instant,
}

impl Lease {
    /// A lease from `now` on.
    pub(crate) fn new(at: SocketAddr, now: Instant, life: Duration) -> Self {
        Self { at, until: now + life }
    }
}

/// The files of one publisher.
#[derive(Debug)]
pub(super) struct Publisher {
    lease: Lease,
    numbers: HashMap<Arc<Entry>, u32>,
    files: HashMap<u32, (Arc<Entry>, KeySet)>,
    next: u32,
    bytes: usize,
    /// How often its files or their keys have changed.
    changes: u32,
}

impl Publisher {
    pub(super) fn new(lease: Lease) -> Self {
        Self { lease, numbers: HashMap::new(), files: HashMap::new(), next: 0, bytes: 0, changes: 0 }
    }

    pub(super) fn renew(&mut self, lease: Lease) {
        self.lease = lease;
    }

    pub(super) fn is_dead(&self, now: Instant) -> bool {
        self.lease.until <= now
    }

    pub(super) fn at(&self) -> SocketAddr {
        self.lease.at
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn changes(&self) -> u32 {
        self.changes
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn file(&self, number: u32) -> Option<&Entry> {
        self.files.get(&number).map(|(entry, _)| &**entry)
    }

    /// The keys under which a file is stored.
    pub(super) fn keys(&self, entry: &Entry) -> KeySet {
        let file = self.numbers.get(entry).and_then(|number| self.files.get(number));
        file.map_or_else(KeySet::default, |(_, keys)| *keys)
    }

    /// Stores a file under these keys. Returns its number, or `None` if there are no keys or no numbers left.
    pub(super) fn put(&mut self, entry: &Entry, keys: KeySet) -> Option<u32> {
        if keys.is_empty() {
            return None;
        }
        if let Some((_, had)) = self.numbers.get(entry).and_then(|number| self.files.get_mut(number)) {
            self.bytes += cost(entry, keys) - cost(entry, *had);
            self.changes = self.changes.wrapping_add(u32::from(*had != keys));
            *had = keys;
            return self.numbers.get(entry).copied();
        }
        let number = self.next;
        self.next = self.next.checked_add(1)?;
        self.changes = self.changes.wrapping_add(1);
        let entry = Arc::new(entry.clone());
        self.bytes += cost(&entry, keys);
        self.numbers.insert(Arc::clone(&entry), number);
        self.files.insert(number, (entry, keys));
        Some(number)
    }

    /// Removes a file. Returns its number and keys.
    pub(super) fn remove(&mut self, entry: &Entry) -> Option<(u32, KeySet)> {
        let number = self.numbers.remove(entry)?;
        let (_, keys) = self.files.remove(&number)?;
        self.bytes = self.bytes.saturating_sub(cost(entry, keys));
        self.changes = self.changes.wrapping_add(1);
        Some((number, keys))
    }

    pub(super) fn into_files(self) -> impl Iterator<Item = (u32, Arc<Entry>, KeySet)> {
        self.files.into_iter().map(|(number, (entry, keys))| (number, entry, keys))
    }
}

/// Approximate memory of a file under some of its keys, bytes.
pub(super) fn cost(entry: &Entry, keys: KeySet) -> usize {
    if keys.is_empty() { 0 } else { FILE_COST + 2 * entry.name.as_str().len() + keys.len() * PLACE_COST }
}
