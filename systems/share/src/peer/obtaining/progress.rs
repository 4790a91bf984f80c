//! How far obtaining some content has come, for whoever asks.

use std::{collections::BTreeMap, net::SocketAddr};

use serde::{Deserialize, Serialize};

use crate::content::Content;

/// How it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What it is named.
    pub hash: Content,
    /// How it stands.
    pub state: State,
    /// Its length, bytes; 0 while that is not known.
    pub size: u64,
    /// Of those, how many are here and right.
    pub bytes: u64,
    /// Where it is in the shared folder, once it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What each peer gave.
    pub sources: BTreeMap<SocketAddr, Source>,
}

/// How it stands, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is coming, or peers that have it are looked for.
    Running,
    /// It is here, and all of it is right.
    Done,
    /// It was given up; what came is kept.
    Failed,
}

/// What a peer gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Right bytes.
    pub bytes: u64,
    /// Whether it sent bytes that are not the content's. It is asked for nothing more.
    pub lied: bool,
    /// What was wrong with it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
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
