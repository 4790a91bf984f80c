//! The members of a group that is closed by keys.

use std::{
    collections::HashSet,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
};

use engine::shared::Atomics;
use http_io::client::{Trust, TrustError};
use tls::{Keys, PublicKey};

use super::key::Key;

/// Most rejected keys that are logged.
const LOGGED_MAX: usize = 20;
/// Longest key list, bytes.
const LIST_LEN_MAX: u64 = 8 << 20;

/// A server's own key, and the public keys of the other members. Clones are cheap and share the log of rejected keys.
#[derive(Debug, Clone)]
pub struct Members(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    own: Key,
    others: Keys,
    logged: Mutex<HashSet<PublicKey>>,
    /// One counter: how many rejections were logged, by all processes.
    log_count: Atomics,
}

/// What a client's key says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It has this server's own key.
    Owner,
    Member(PublicKey),
    /// It proved a key that is not on the list.
    Unlisted(PublicKey),
    /// It proved no key.
    Anonymous,
}

/// Why a list of keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The file cannot be read.
    #[error("the list of keys {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A line is not a key.
    #[error("{path}:{line}: a line {source}, as `nstar share key` prints it, or a comment after #")]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What the line should be.
        source: tls::InvalidKey,
    },
    /// The file contains no key.
    #[error("there is no key in {path}: nobody could be reached")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl Members {
    /// A group of this server and `others`.
    pub fn new(own: Key, others: impl IntoIterator<Item = PublicKey>) -> Self {
        let others = others.into_iter().collect();
        Self(Arc::new(Inner { own, others, logged: Mutex::default(), log_count: Atomics::new(1) }))
    }

    /// Reads the keys from a file, one per line; # starts a comment.
    ///
    /// # Errors
    /// When the file cannot be read, a line is not a key, or there is none.
    pub fn read_list(path: &Path) -> Result<Vec<PublicKey>, ListError> {
        let keys = parse(&read(path)?).map_err(|(line, source)| ListError::Line {
            path: path.to_owned(),
            line,
            source,
        })?;
        if keys.is_empty() { Err(ListError::Empty { path: path.to_owned() }) } else { Ok(keys) }
    }

    /// This server's own key.
    pub fn own(&self) -> &Key {
        &self.0.own
    }

    /// TLS settings that accept connections with the other members only.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn trust(&self) -> Result<Trust, TrustError> {
        Trust::of_keys(self.0.own.pair(), self.0.others.clone())
    }

    /// Whether this is the key of another member.
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.0.others.contains(key)
    }

    pub(crate) fn role(&self, proven: Option<&[u8]>) -> Role {
        match proven.and_then(|bytes| PublicKey::try_from(bytes).ok()) {
            None => Role::Anonymous,
            Some(key) if key == self.0.own.public() => Role::Owner,
            Some(key) if self.contains(&key) => Role::Member(key),
            Some(key) => Role::Unlisted(key),
        }
    }

    /// Logs a rejected key: each once, and only the first few.
    pub fn log_rejected(&self, key: PublicKey, from: SocketAddr) {
        let mut logged = self.0.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= LOGGED_MAX || !logged.insert(key) {
            return;
        }
        match self.0.log_count[0].fetch_add(1, Relaxed) + 1 {
            before if before < LOGGED_MAX as u64 => tracing::warn!(
                "turned away {key}, from {}: it is not on the list; `--allow {key}` lets it in",
                from.ip()
            ),
            last if last == LOGGED_MAX as u64 => tracing::warn!(
                "turned away {key}, from {}, and many before it; from now on only /metrics tells",
                from.ip()
            ),
            _ => {}
        }
    }
}

fn read(path: &Path) -> Result<String, ListError> {
    let unreadable = |source| ListError::Unreadable { path: path.to_owned(), source };
    if fs::metadata(path).map_err(unreadable)?.len() > LIST_LEN_MAX {
        return Err(unreadable(io::Error::other(format!("it has more than {LIST_LEN_MAX} bytes"))));
    }
    fs::read_to_string(path).map_err(unreadable)
}

/// The keys in a text, or the number of the first invalid line, from 1.
fn parse(text: &str) -> Result<Vec<PublicKey>, (usize, tls::InvalidKey)> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let keys = lines.enumerate().filter(|(_, line)| !line.is_empty());
    keys.map(|(number, line)| line.parse().map_err(|error| (number + 1, error))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(folder: &Path, name: &str) -> Key {
        Key::open(&folder.join(name)).unwrap()
    }

    #[test]
    fn a_list_has_a_key_a_line_and_what_is_none_is_told_by_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let [ann, bob] = ["ann", "bob"].map(|name| key(folder.path(), name).public());
        let path = folder.path().join("list");
        fs::write(&path, format!("# ours\n{ann}\n\n  {bob}  # of the other house\r\n")).unwrap();
        assert_eq!(Members::read_list(&path).unwrap(), [ann, bob]);
        for (text, said) in [("\nx\n", "list:2: a line must be a public key"), ("# none\n", "no key in")] {
            fs::write(&path, text).unwrap();
            let error = Members::read_list(&path).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let nowhere = Members::read_list(&folder.path().join("none")).unwrap_err().to_string();
        assert!(nowhere.contains("cannot be read"), "{nowhere}");
    }

    #[test]
    fn the_owner_members_and_strangers_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let [own, ann, eve] = ["own", "ann", "eve"].map(|name| key(folder.path(), name));
        let members = Members::new(own.clone(), [ann.public()]);
        let role = |key: &Key| members.role(Some(key.public().as_bytes()));
        assert_eq!(role(&own), Role::Owner);
        assert_eq!(role(&ann), Role::Member(ann.public()));
        assert_eq!(role(&eve), Role::Unlisted(eve.public()));
        assert_eq!(members.role(None), Role::Anonymous);
        assert!(!members.contains(&own.public()), "it is no other");
    }

    proptest! {
        #[test]
        fn any_list_is_read_or_refused(text in "\\PC{0,60}|(ed25519:[A-Za-z0-9_-]{42,44}[# \n]?){0,3}") {
            let _read_or_not = parse(&text);
        }
    }
}
