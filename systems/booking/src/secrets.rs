//! What only this server knows: the key that hides identity numbers, and the administrator's token.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{aadhaar::Aadhaar, error::BookingError};

/// Random bytes in a secret.
const SECRET_LEN: usize = 32;
/// Bytes of the proof in a booking's number: nobody guesses 80 bits over a network.
const PROOF_LEN: usize = 10;

/// The secrets of a server. `Debug` hides them.
pub(crate) struct Secrets {
    identity: [u8; 32],
    proof: [u8; 32],
    request: [u8; 32],
    check: [u8; 32],
    admin: [u8; 32],
}

impl Secrets {
    /// Reads the key at `path` and the administrator's token beside it, which ends in `.admin`; makes them at the first start.
    pub(crate) fn open(path: &Path) -> Result<Self, BookingError> {
        let key = read_or_make(path)?;
        let token = read_or_make(&path.with_extension("admin"))?;
        let derived = |purpose| blake3::derive_key(purpose, key.as_bytes());
        Ok(Self {
            identity: derived("nstar booking 2026 identity numbers"),
            proof: derived("nstar booking 2026 booking numbers"),
            request: derived("nstar booking 2026 idempotency keys"),
            check: derived("nstar booking 2026 key check"),
            admin: *blake3::hash(token.as_bytes()).as_bytes(),
        })
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
        blake3::hash(token) == blake3::Hash::from_bytes(self.admin)
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of the secret in a file that only its owner may read. Of two servers that make it at once, one's stays.
fn read_or_make(path: &Path) -> Result<String, BookingError> {
    let failed = |source| BookingError::Secret { path: path.to_owned(), source };
    if !path.try_exists().map_err(failed)? {
        make(path).map_err(failed)?;
    }
    let file = fs::File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(BookingError::SecretShared { path: path.to_owned(), mode: mode & 0o777 });
    }
    let mut text = String::new();
    file.take(1024).read_to_string(&mut text).map_err(failed)?;
    let text = text.trim();
    match URL_SAFE_NO_PAD.decode(text) {
        Ok(bytes) if bytes.len() == SECRET_LEN => Ok(text.to_owned()),
        _ => Err(BookingError::SecretUnreadable { path: path.to_owned() }),
    }
}

/// Written aside and then linked, so that nobody reads half of it and a file that is there stays.
fn make(path: &Path) -> io::Result<()> {
    let mut bytes = [0; SECRET_LEN];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let aside = aside(path);
    let written =
        write(&aside, &URL_SAFE_NO_PAD.encode(bytes)).and_then(|()| match fs::hard_link(&aside, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
    // Fails only where it was not made.
    let _ = fs::remove_file(&aside);
    written
}

fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{:x}", std::process::id(), fastrand::u64(..)));
    name.into()
}

fn write(path: &Path, secret: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aadhaar::Accepted;

    #[test]
    fn secrets_are_made_once_for_their_owner_only_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.key");
        let all: Vec<_> = std::thread::scope(|scope| {
            let opening: Vec<_> = (0..4).map(|_| scope.spawn(|| Secrets::open(&path).unwrap())).collect();
            opening.into_iter().map(|opened| opened.join().unwrap()).collect()
        });
        assert!(all.iter().all(|secrets| secrets.check == all[0].check && secrets.admin == all[0].admin));
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        for name in names {
            assert_eq!(fs::metadata(name).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let token = fs::read_to_string(folder.path().join("b.admin")).unwrap();
        assert!(all[0].is_admin(token.trim().as_bytes()) && !all[0].is_admin(b"") && !all[0].is_admin(b"x"));
        assert_eq!(format!("{:?}", all[0]), "Secrets(hidden)");
    }

    #[test]
    fn a_key_that_others_may_read_or_that_is_none_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.key");
        Secrets::open(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Secrets::open(&path).unwrap_err().to_string().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "hush").unwrap();
        let error = Secrets::open(&path).unwrap_err().to_string();
        assert!(error.contains("b.key") && !error.contains("hush"), "{error}");
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
