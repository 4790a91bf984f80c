//! A server's own key, in a file that only its owner may read.

use std::path::{Path, PathBuf};

use store::{Secret, SecretError};
use tls::{PublicKey, UnusableKey};

/// The file of a peer's key, in the peer's own folder.
pub const IDENTITY: &str = "identity";

/// By what a peer or an index is known. `Debug` hides the private half.
#[derive(Debug, Clone)]
pub struct Key {
    seed: Seed,
    pair: tls::Key,
}

#[derive(Clone)]
struct Seed([u8; 32]);

/// Why a key cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Its file cannot be read or made, or holds something else.
    #[error(transparent)]
    File(#[from] SecretError),
    /// There is no such file.
    #[error(
        "there is no key in {path}; a peer's is `identity` in its own folder, as a rule DIR/.nstar/identity"
    )]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// It cannot be used.
    #[error(transparent)]
    Unusable(#[from] UnusableKey),
}

impl Key {
    /// Reads the key in a file, and makes both if there is none.
    ///
    /// # Errors
    /// When the file cannot be read or made, holds something else, or may be read by others.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        let secret = Secret::open(path)?;
        let seed = blake3::derive_key("nstar share 1: identity of a peer", secret.as_bytes());
        Ok(Self { pair: tls::Key::from_seed(&seed)?, seed: Seed(seed) })
    }

    /// Reads the key in a file that is there.
    ///
    /// # Errors
    /// The same, and when there is none.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        if path.exists() { Self::open(path) } else { Err(KeyError::Missing { path: path.to_owned() }) }
    }

    /// The 32 bytes that Ed25519 makes the key of.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed.0
    }

    /// What others may know of it.
    pub fn public(&self) -> PublicKey {
        self.pair.public()
    }

    /// As TLS has it.
    pub fn pair(&self) -> &tls::Key {
        &self.pair
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hidden")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_shows_its_public_half_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(IDENTITY);
        let missing = Key::read(&path).unwrap_err().to_string();
        assert!(missing.contains(".nstar/identity"), "{missing}");
        let key = Key::open(&path).unwrap();
        assert_eq!(Key::read(&path).unwrap().public(), key.public());
        let shown = format!("{key:?}");
        assert!(shown.contains(&key.public().to_string()) && shown.contains("hidden"), "{shown}");
    }
}
