//! Files as the index lists them, and searches for them.

mod content;
mod name;

use std::{cmp::Reverse, net::SocketAddr};

use http_io::FieldsError;
use serde::{Deserialize, Serialize};

pub use self::{
    content::{Content, InvalidContent},
    name::{InvalidName, NAME_LEN_MAX, NAME_WORDS_MAX, Name},
};

/// Most words in one search.
pub(crate) const WORDS_MAX: usize = 4;

/// A file that a peer shares.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub name: Name,
    /// Hash of its bytes.
    #[serde(rename = "hash")]
    pub content: Content,
    /// Length, bytes.
    pub size: u64,
}

impl Entry {
    /// Longest file that peers accept from each other, bytes: 64 GiB.
    pub const SIZE_MAX: u64 = 64 * 1024 * 1024 * 1024;

    /// Whether such a file can exist: it is not too long, and is empty only if its hash is that of no bytes. Entries from
    /// other peers may contain anything.
    pub fn is_obtainable(&self) -> bool {
        self.size <= Self::SIZE_MAX && (self.size > 0 || self.content == Content::of(b""))
    }
}

/// A file that a search found, and the peers that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The file.
    #[serde(flatten)]
    pub entry: Entry,
    /// Addresses of the peers that have it, in no particular order.
    pub peers: Vec<SocketAddr>,
}

/// What to search for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Query {
    /// Files with exactly this name.
    Name(Name),
    /// Files whose name contains all of these words, in lower case.
    Words(Vec<String>),
    /// Files with this content, whatever their name.
    Content(Content),
}

impl Query {
    /// Searches for names that contain all words of a text.
    ///
    /// # Errors
    /// When the text has no words, or more than 4.
    pub fn words(text: &str) -> Result<Self, FieldsError> {
        words(text).map(Self::Words)
    }
}

/// The words to search for, the longest first because it is likely the rarest.
fn words(text: &str) -> Result<Vec<String>, FieldsError> {
    let mut words: Vec<_> = name::words(text).take(WORDS_MAX + 1).collect();
    words.sort_by_key(|word| Reverse(word.len()));
    words.dedup();
    match words.len() {
        1..=WORDS_MAX => Ok(words),
        0 => Err(FieldsError::field("words", "must hold a letter or a digit")),
        _ => Err(FieldsError::field("words", format!("must be {WORDS_MAX} at most"))),
    }
}
