//! What only this server knows: the key that hides identity numbers, and the administrator's token.

use std::path::{Path, PathBuf};

use store::{Secret, SecretError};

use crate::aadhaar::Aadhaar;

/// Bytes of the proof in a booking's number: nobody guesses 80 bits over a network.
const PROOF_LEN: usize = 10;

/// The secrets of a server. `Debug` hides them.
pub(crate) struct Secrets {
    identity: [u8; 32],
    proof: [u8; 32],
    request: [u8; 32],
    check: [u8; 32],
    admin: Secret,
}

impl Secrets {
    /// Reads the key at `path` and the administrator's token beside it; makes them at the first start.
    pub(crate) fn open(path: &Path) -> Result<Self, SecretError> {
        let key = Secret::open(path)?;
        let admin = Secret::open(&beside(path))?;
        let derived = |purpose| blake3::derive_key(purpose, key.as_bytes());
        Ok(Self {
            identity: derived("nstar booking 2026 identity numbers"),
            proof: derived("nstar booking 2026 booking numbers"),
            request: derived("nstar booking 2026 idempotency keys"),
            check: check(&key),
            admin,
        })
    }

    /// What a database remembers of the key at `path`, where there is a file; makes nothing.
    pub(crate) fn check_of_file(path: &Path) -> Result<Option<[u8; 32]>, SecretError> {
        let there =
            path.try_exists().map_err(|source| SecretError::File { path: path.to_owned(), source })?;
        there.then(|| Secret::open(path).map(|key| check(&key))).transpose()
    }

    /// Whether they can be had, before anything is made.
    pub(crate) fn can_be_had(path: &Path) -> Result<(), SecretError> {
        Secret::check(path)?;
        Secret::check(&beside(path))
    }

    /// What is stored of an identity number. There are few enough numbers to try them all, so the hash is keyed.
    pub(crate) fn identity_hash(&self, aadhaar: &Aadhaar) -> [u8; 32] {
        *blake3::keyed_hash(&self.identity, aadhaar.digits()).as_bytes()
    }

    /// What is stored of a client's `Idempotency-Key`.
    pub(crate) fn request_hash(&self, key: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.request, key).as_bytes()
    }

    /// What a database remembers, to recognise the key by.
    pub(crate) fn check(&self) -> &[u8; 32] {
        &self.check
    }

    /// The name of a booking: its number, and a proof that the server gave it. Who knows it may cancel.
    pub(crate) fn booking_id(&self, number: i64) -> String {
        format!("{number}-{}", hex(&self.proof_of(number)))
    }

    /// The number of a booking, if this server gave it that name.
    pub(crate) fn booking_number(&self, id: &str) -> Option<i64> {
        let (number, proof) = id.split_once('-')?;
        let number: i64 = number.parse().ok()?;
        // Hashes compare in constant time.
        let same = blake3::hash(proof.as_bytes()) == blake3::hash(hex(&self.proof_of(number)).as_bytes());
        (same && self.booking_id(number) == id).then_some(number)
    }

    /// Whether this is the administrator's token.
    pub(crate) fn is_admin(&self, token: &[u8]) -> bool {
        self.admin.is(token)
    }

    fn proof_of(&self, number: i64) -> [u8; PROOF_LEN] {
        let hash = blake3::keyed_hash(&self.proof, &number.to_le_bytes());
        std::array::from_fn(|place| hash.as_bytes()[place])
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(hidden)")
    }
}

fn check(key: &Secret) -> [u8; 32] {
    blake3::derive_key("nstar booking 2026 key check", key.as_bytes())
}

/// The file of the administrator's token: that of the key with the ending `.admin`, and never that of the key itself.
fn beside(key: &Path) -> PathBuf {
    let token = key.with_extension("admin");
    if token == key { key.with_extension("admin.admin") } else { token }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aadhaar::Accepted;

    #[test]
    fn the_administrators_token_lies_beside_the_key_and_none_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::open(&folder.path().join("b.key")).unwrap();
        let token = std::fs::read_to_string(folder.path().join("b.admin")).unwrap();
        assert!(secrets.is_admin(token.trim().as_bytes()) && !secrets.is_admin(b""));
        let again = Secrets::open(&folder.path().join("b.key")).unwrap();
        assert!(again.check == secrets.check && again.is_admin(token.trim().as_bytes()));
        assert_eq!(format!("{secrets:?}"), "Secrets(hidden)");
    }

    #[test]
    fn the_key_is_never_the_administrators_token() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("same.admin");
        let secrets = Secrets::open(&key).unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert!(!secrets.is_admin(read(&key).trim().as_bytes()));
        assert!(secrets.is_admin(read(&folder.path().join("same.admin.admin")).trim().as_bytes()));
    }

    #[test]
    fn a_booking_is_known_by_its_whole_name_only() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("1.key"), folder.path().join("2.key"));
        let (one, other) = (Secrets::open(&one).unwrap(), Secrets::open(&other).unwrap());
        let id = one.booking_id(42);
        assert_eq!(one.booking_number(&id), Some(42));
        assert_eq!(other.booking_number(&id), None);
        let proof = id.split_once('-').unwrap().1;
        for bad in [
            "",
            "42",
            "42-",
            "-",
            &format!("43-{proof}"),
            &format!("+42-{proof}"),
            &format!("042-{proof}"),
            &id[..id.len() - 1],
        ] {
            assert_eq!(one.booking_number(bad), None, "{bad}");
        }
        let number = Aadhaar::read("2341 2341 2346", Accepted::Issued).unwrap();
        assert_ne!(one.identity_hash(&number), other.identity_hash(&number));
    }
}
