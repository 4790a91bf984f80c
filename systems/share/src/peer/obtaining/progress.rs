//! How far obtaining some content has come, for whoever asks.

use std::{collections::BTreeMap, net::SocketAddr};

use serde::Serialize;

use crate::content::Content;

/// How it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Progress {
    pub(crate) hash: Content,
    pub(crate) state: State,
    /// Its length, bytes; 0 while that is not known.
    pub(crate) size: u64,
    /// Of those, how many are here and right.
    pub(crate) bytes: u64,
    /// Where it is in the shared folder, once it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// What each peer gave.
    pub(crate) sources: BTreeMap<SocketAddr, Source>,
}

/// How it stands, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Running,
    Done,
    Failed,
}

/// What a peer gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Source {
    /// Right bytes.
    pub(crate) bytes: u64,
    /// Whether it sent bytes that are not the content's. It is asked for nothing more.
    pub(crate) lied: bool,
    /// What was wrong with it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
}

impl Progress {
    pub(crate) fn new(hash: Content) -> Self {
        let (state, sources) = (State::Running, BTreeMap::new());
        Self { hash, state, size: 0, bytes: 0, path: None, error: None, sources }
    }

    /// What a peer gave, to be added to.
    pub(crate) fn source(&mut self, peer: SocketAddr) -> &mut Source {
        self.sources.entry(peer).or_default()
    }
}
