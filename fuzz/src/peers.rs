//! What peers that share files, and their index, tell each other.

use std::{
    fmt::Debug,
    path::{Component, Path},
};

use serde::{Serialize, de::DeserializeOwned};
use share::{
    Name,
    entry::{Entry, Query, SearchResult},
    parse_results,
};

pub(crate) fn messages(bytes: &[u8]) {
    same_when_written::<Entry>(bytes);
    same_when_written::<Query>(bytes);
    same_when_written::<SearchResult>(bytes);
    for found in parse_results(bytes).unwrap_or_default() {
        assert!(found.entry.is_obtainable(), "{found:?}");
        is_one_step(&found.entry.name);
    }
}

fn same_when_written<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    let Ok(read) = serde_json::from_slice::<T>(bytes) else { return };
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    assert_eq!(serde_json::from_slice::<T>(&written).ok(), Some(read));
}

/// Whether a name leads into a folder and no further.
fn is_one_step(name: &Name) {
    let mut parts = Path::new(name.as_str()).components();
    let first = parts.next();
    assert!(matches!(first, Some(Component::Normal(part)) if part == name.as_str()), "{name:?}");
    assert_eq!(parts.next(), None, "{name:?}");
}
