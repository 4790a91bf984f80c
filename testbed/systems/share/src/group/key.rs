//! A server's key pair, in a file that only its owner may read.

use std::path::{Path, PathBuf};

use store::{Secret, SecretError};
use tls::{PublicKey, UnusableKey};
use zeroize::Zeroizing;

/// Name of the key file in a peer's state folder.
pub const IDENTITY: &str = "identity";

/// The key pair that identifies a peer or an index. `Debug` hides the private half.
#[derive(Debug, Clone)]
pub struct Key {
    seed: Seed,
    pair: tls::Key,
}

/// Wiped from memory when dropped.
#[derive(Clone)]
struct Seed(Zeroizing<[u8; 32]>);

/// Why there is no usable key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read or created, or contains something else.
    #[error(transparent)]
    File(#[from] SecretError),
    /// The file does not exist.
    #[error(
        "there is no key in {path}; a peer's is `identity` in its own folder, as a rule DIR/.nstar/identity"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// TLS cannot use the key.
    #[error(transparent)]
    Unusable(#[from] UnusableKey),
}

impl Key {
    /// Reads the key from a file, and creates both if the file does not exist.
    ///
    /// # Errors
    /// When the file cannot be read or created, contains something else, or may be read by others.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        let secret = Secret::open(path)?;
        let seed = Zeroizing::new(blake3::derive_key("nstar share 1: identity of a peer", secret.as_bytes()));
        Ok(Self { pair: tls::Key::from_seed(&seed)?, seed: Seed(seed) })
    }

    /// Reads the key from an existing file.
    ///
    /// # Errors
    /// As [`Self::open`], and when the file does not exist.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        if path.exists() { Self::open(path) } else { Err(KeyError::Missing { path: path.to_owned() }) }
    }

    /// The 32 bytes that the Ed25519 key is derived from.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed.0
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        self.pair.public()
    }

    /// The key pair for TLS.
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
