//! The keys that a file is found under: its name, its content, and each word of its name.

use share::{
    Content,
    entry::{Entry, Query},
};

/// Most keys of one file: its name, its content and its words.
pub(crate) const KEYS_MAX: usize = 2 + share::NAME_WORDS_MAX;

/// A key of the index: the BLAKE3 hash of a search term and its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The key of files with this name.
    fn name(name: &str) -> Self {
        Self::of(b'n', name.as_bytes())
    }

    /// The key of files with this content.
    fn content(content: &Content) -> Self {
        Self::of(b'c', content.as_bytes())
    }

    /// The key of files with this word in their name.
    fn word(word: &str) -> Self {
        Self::of(b'w', word.as_bytes())
    }

    fn of(kind: u8, what: &[u8]) -> Self {
        Self(blake3::Hasher::new().update(&[kind]).update(what).finalize().into())
    }

    /// The bytes of the hash.
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The single key under which a query is answered. Its holders filter by the other words.
    pub(crate) fn of_query(query: &Query) -> Option<Self> {
        match query {
            Query::Name(name) => Some(Self::name(name.as_str())),
            Query::Content(content) => Some(Self::content(content)),
            // The first word is the longest, and so probably the rarest.
            Query::Words(words) => words.first().map(|word| Self::word(word)),
        }
    }
}

/// All keys of a file, in the same order at every peer, so that a key can be referred to by its number.
pub(crate) fn keys(entry: &Entry) -> Vec<Key> {
    let words = entry.name.words();
    let whole = [Key::name(entry.name.as_str()), Key::content(&entry.content)];
    whole.into_iter().chain(words.iter().map(|word| Key::word(word))).collect()
}

/// A set of keys of one file, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct KeySet(u32);

const _: () = assert!(KEYS_MAX <= u32::BITS as usize);

impl KeySet {
    pub(crate) fn with(self, number: usize) -> Self {
        Self(self.0 | 1 << number)
    }

    pub(crate) fn has(self, number: usize) -> bool {
        self.0 & 1 << number != 0
    }

    /// The keys in this set that are not in `others`.
    pub(crate) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub(crate) fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }
}

/// Whether a file matches a query.
pub(crate) fn fits(query: &Query, entry: &Entry) -> bool {
    match query {
        Query::Name(name) => *name == entry.name,
        Query::Content(content) => *content == entry.content,
        Query::Words(wanted) => {
            let words = entry.name.words();
            wanted.iter().all(|word| words.contains(word))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::entry;

    #[test]
    fn a_name_is_not_found_under_the_word_that_it_is() {
        let file = entry("report", "x");
        let keys = keys(&file);
        assert_eq!(keys.len(), 3);
        assert_ne!(keys[0], keys[2]);
        assert_eq!(Key::of_query(&Query::Name(file.name.clone())), Some(keys[0]));
        assert_eq!(Key::of_query(&Query::Content(file.content)), Some(keys[1]));
        assert_eq!(Key::of_query(&Query::words("REPORT").unwrap()), Some(keys[2]));
    }

    proptest! {
        #[test]
        fn a_file_is_found_under_all_that_it_is_asked_by(words in prop::collection::vec("[a-z]{1,9}", 1..8)) {
            let file = entry(&words.join(" "), "x");
            let keys = keys(&file);
            prop_assert!(keys.len() <= KEYS_MAX);
            for word in &words {
                let query = Query::words(word).unwrap();
                prop_assert!(fits(&query, &file));
                prop_assert!(keys.contains(&Key::of_query(&query).unwrap()));
            }
            prop_assert!(!fits(&Query::words("zzzzzzzzzzzzz").unwrap(), &file));
        }

        #[test]
        fn sets_of_keys_are_sets(one in any::<u32>(), other in any::<u32>(), number in 0..KEYS_MAX) {
            let (one, other) = (KeySet(one), KeySet(other));
            prop_assert_eq!(one.with(number).len(), one.len() + usize::from(!one.has(number)));
            prop_assert!(other.without(one.and(other)).is_empty());
            prop_assert_eq!(one.without(other).and(other), one.and(other));
        }
    }
}
