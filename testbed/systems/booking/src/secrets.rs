//! The server's secrets: the key that hides identity numbers, and the administrator's token.

use std::path::{Path, PathBuf};

use store::{Secret, SecretError};
use zeroize::Zeroizing;

use crate::values::guest::Aadhaar;

/// Length of the proof in a booking's id, bytes. 80 bits cannot be guessed over a network.
const PROOF_LEN: usize = 10;

/// The secrets of a server, wiped from memory when dropped. `Debug` hides them.
pub(crate) struct Secrets {
    identity: Zeroizing<[u8; 32]>,
    proof: Zeroizing<[u8; 32]>,
    request: Zeroizing<[u8; 32]>,
    check: [u8; 32],
    admin: Secret,
}

impl Secrets {
    /// Reads the key at `path` and the administrator's token beside it. Creates them at the first start.
    pub(crate) fn open(path: &Path) -> Result<Self, SecretError> {
        let key = Secret::open(path)?;
        let admin = Secret::open(&beside(path))?;
        let derived = |purpose| Zeroizing::new(blake3::derive_key(purpose, key.as_bytes()));
        Ok(Self {
            identity: derived("nstar booking 2026 identity numbers"),
            proof: derived("nstar booking 2026 booking numbers"),
            request: derived("nstar booking 2026 idempotency keys"),
            check: check(&key),
            admin,
        })
    }

    /// The check value of the key at `path`, or `None` if there is no such file. Creates nothing.
    pub(crate) fn check_of_file(path: &Path) -> Result<Option<[u8; 32]>, SecretError> {
        let exists =
            path.try_exists().map_err(|source| SecretError::File { path: path.to_owned(), source })?;
        exists.then(|| Secret::open(path).map(|key| check(&key))).transpose()
    }

    /// Those of the files that do not exist yet.
    pub(crate) fn missing(path: &Path) -> Vec<PathBuf> {
        let files = [path.to_owned(), beside(path)];
        files.into_iter().filter(|file| !file.exists()).collect()
    }

    /// Checks that the files can be read or created, without creating them.
    pub(crate) fn check_access(path: &Path) -> Result<(), SecretError> {
        Secret::check(path)?;
        Secret::check(&beside(path))
    }

    /// The hash that is stored instead of an identity number. It is keyed, as there are few enough numbers to try them all.
    pub(crate) fn identity_hash(&self, aadhaar: &Aadhaar) -> [u8; 32] {
        *blake3::keyed_hash(&self.identity, aadhaar.digits()).as_bytes()
    }

    /// The hash that is stored instead of a client's `Idempotency-Key`.
    pub(crate) fn request_hash(&self, key: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.request, key).as_bytes()
    }

    /// The value by which a database recognises the key.
    pub(crate) fn check(&self) -> &[u8; 32] {
        &self.check
    }

    /// The id of a booking: its number, and a proof that this server issued it. Whoever knows it may cancel the booking.
    pub(crate) fn booking_id(&self, number: i64) -> String {
        format!("{number}-{}", hex(&self.proof_of(number)))
    }

    /// The number of the booking with this id, if this server issued the id.
    pub(crate) fn booking_number(&self, id: &str) -> Option<i64> {
        let (number, proof) = id.split_once('-')?;
        let number: i64 = number.parse().ok()?;
        // Comparing hashes takes constant time.
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

/// The file of the administrator's token: the key's path with the extension `.admin`, but never the key's file itself.
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
    use crate::values::guest::IdPolicy;

    #[test]
    fn the_administrators_token_lies_beside_the_key_and_debug_hides_both() {
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
    fn only_the_complete_id_names_a_booking() {
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
        let number = Aadhaar::parse("2341 2341 2346", IdPolicy::IssuedOnly).unwrap();
        assert_ne!(one.identity_hash(&number), other.identity_hash(&number));
    }
}
