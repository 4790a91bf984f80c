//! How much one peer keeps for others.

use share::entry::Entry;

use crate::key::KeySet;

/// What a file costs beside its name, and each place under a key, bytes: about what they take in memory.
const FILE_COST: usize = 256;
const PLACE_COST: usize = 48;

/// The bounds of [`super::Records`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Files under one key. A word that more files have finds these only: the others are found by rarer words, by their
    /// names and by what is in them.
    pub(crate) places: usize,
    /// What one publisher may have kept, bytes as [`cost`] counts them.
    pub(crate) publisher_bytes: usize,
    /// What all together may have kept, bytes.
    pub(crate) bytes: usize,
    /// Publishers.
    pub(crate) publishers: usize,
}

impl Limits {
    /// For what comes from nobody else.
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

/// What it costs to keep a file under some of its keys, bytes.
pub(super) fn cost(entry: &Entry, keys: KeySet) -> usize {
    if keys.is_empty() { 0 } else { FILE_COST + 2 * entry.name.as_str().len() + keys.len() * PLACE_COST }
}
