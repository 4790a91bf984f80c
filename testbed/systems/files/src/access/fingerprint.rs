//! Keyed hashes of credentials, from which the credentials cannot be recovered.

use accounts::{NAME_LEN_MAX, PASSWORD_LEN_MAX};
use http_io::Credentials;
use zeroize::{Zeroize, Zeroizing};

use crate::error::FilesError;

/// A keyed hash of a credential.
pub(crate) type Fingerprint = [u8; 32];

/// Maximum length of a token, bytes. Ours have 43.
const TOKEN_LEN_MAX: usize = 128;
/// Maximum length of a message: a kind, two lengths of two bytes, a name and a password.
const MESSAGE_LEN: usize = 1 + 2 + NAME_LEN_MAX + 2 + PASSWORD_LEN_MAX;

/// The key of the hash. Random for each start, kept in memory only and wiped from there when dropped.
pub(crate) struct Key(Zeroizing<[u8; 32]>);

impl Key {
    pub(crate) fn random() -> Result<Self, FilesError> {
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(&mut key[..]).map_err(|error| FilesError::Randomness(error.to_string()))?;
        Ok(Self(key))
    }

    /// The hash of a credential. `None` if it is too long to be valid.
    pub(crate) fn fingerprint(&self, credentials: &Credentials<'_>) -> Option<Fingerprint> {
        let mut message = Message { bytes: [0; MESSAGE_LEN], length: 1 };
        match credentials {
            Credentials::Basic(basic) => {
                message.append(basic.name(), NAME_LEN_MAX)?;
                message.append(basic.password(), PASSWORD_LEN_MAX)?;
            }
            Credentials::Bearer(token) => {
                *message.bytes.first_mut()? = 1;
                message.append(token, TOKEN_LEN_MAX)?;
            }
        }
        Some(*blake3::keyed_hash(&self.0, message.bytes.get(..message.length)?).as_bytes())
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(hidden)")
    }
}

/// Parts with their lengths in front, so that no two credentials give the same bytes. On the stack, and wiped there when
/// dropped.
struct Message {
    bytes: [u8; MESSAGE_LEN],
    length: usize,
}

impl Drop for Message {
    fn drop(&mut self) {
        if let Some(used) = self.bytes.get_mut(..self.length) {
            used.zeroize();
        }
    }
}

impl Message {
    fn append(&mut self, part: &[u8], length_max: usize) -> Option<()> {
        let prefix = u16::try_from(part.len()).ok().filter(|_| part.len() <= length_max)?;
        self.copy(&prefix.to_le_bytes())?;
        self.copy(part)
    }

    fn copy(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.length + bytes.len();
        self.bytes.get_mut(self.length..end)?.copy_from_slice(bytes);
        self.length = end;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use proptest::prelude::*;

    use super::*;

    fn print(key: &Key, name: &str, password: &str) -> Option<Fingerprint> {
        let header = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
        key.fingerprint(&Credentials::parse(header.as_bytes()).unwrap())
    }

    #[test]
    fn the_end_of_the_name_matters() {
        let key = Key([7; 32].into());
        assert_ne!(print(&key, "ab", "c"), print(&key, "a", "bc"));
        assert_ne!(print(&key, "a", ""), print(&key, "", "a"));
        assert_eq!(print(&key, "ab", "c"), print(&key, "ab", "c"));
        assert_ne!(print(&key, "ab", "c"), print(&Key([8; 32].into()), "ab", "c"));
    }

    #[test]
    fn a_token_is_not_a_name() {
        let key = Key([7; 32].into());
        let token = key.fingerprint(&Credentials::Bearer(b"abc"));
        assert!(token.is_some() && token != print(&key, "abc", ""));
    }

    #[test]
    fn credentials_that_are_too_long_have_no_fingerprint() {
        let key = Key([7; 32].into());
        assert!(print(&key, &"n".repeat(64), &"p".repeat(256)).is_some());
        assert_eq!(print(&key, &"n".repeat(65), "p"), None);
        assert_eq!(print(&key, "n", &"p".repeat(257)), None);
        assert_eq!(key.fingerprint(&Credentials::Bearer(&[b'a'; 129])), None);
    }

    proptest! {
        #[test]
        fn different_pairs_have_different_fingerprints(
            one in ("[ab]{0,4}", "[ab]{0,4}"), other in ("[ab]{0,4}", "[ab]{0,4}")
        ) {
            let key = Key([7; 32].into());
            let same = print(&key, &one.0, &one.1) == print(&key, &other.0, &other.1);
            prop_assert_eq!(same, one == other);
        }
    }
}
