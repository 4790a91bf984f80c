//! Argon2id hashes of passwords, as PHC strings.
//!
//! The parameters are those that OWASP recommends for Argon2id with little memory (Password Storage Cheat Sheet): 19 MiB,
//! two passes, one lane. Each stored hash contains its parameters, so that they can be raised later.

use std::{cell::RefCell, fs, thread};

use argon2::{
    Algorithm, Argon2, Block, Params, PasswordVerifier, RECOMMENDED_SALT_LEN, Version,
    password_hash::{
        self,
        phc::{Output, ParamsString, PasswordHash, Salt},
    },
};

use crate::credentials::Password;

/// Memory of one hash, KiB.
pub(crate) const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

thread_local! {
    /// The working memory of a hash, kept by each thread that hashes: mapped and zeroed anew for each hash, its pages cost
    /// a sixth of the time of a registration.
    static MEMORY: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

/// Hashes passwords and checks them.
#[derive(Debug)]
pub(crate) struct Passwords {
    argon2: Argon2<'static>,
    /// The parameters of `argon2`, as they stand in each stored hash.
    stated: ParamsString,
    /// The hash of a password that nobody knows. Unknown names are checked against it, so that the response takes as long as
    /// for known ones.
    dummy: PasswordHash,
}

impl Passwords {
    /// Takes the time of one hash.
    pub(crate) fn new() -> Result<Self, HashError> {
        let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|e| HashError(e.to_string()))?;
        let stated = ParamsString::try_from(&params).map_err(|e| HashError(e.to_string()))?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let dummy = hash_with(&argon2, &stated, &random::<32>()?)?;
        Ok(Self { argon2, stated, dummy })
    }

    /// The PHC string to store, with a fresh random salt.
    pub(crate) fn hash(&self, password: &Password) -> Result<String, HashError> {
        hash_with(&self.argon2, &self.stated, password.as_bytes()).map(|hash| hash.to_string())
    }

    /// Whether the password matches the stored hash. Without a stored hash, for an unknown name, the result is false after
    /// the same work.
    pub(crate) fn verify(&self, password: &Password, stored: Option<&str>) -> Result<bool, HashError> {
        let parsed = match stored {
            Some(stored) => PasswordHash::new(stored).map_err(|e| HashError(e.to_string()))?,
            None => self.dummy.clone(),
        };
        let matches = match (parsed.salt, parsed.hash) {
            (Some(salt), Some(expected)) if self.wrote(&parsed) => {
                output_of(&self.argon2, password.as_bytes(), &salt)? == expected
            }
            _ => self.verify_foreign(password, &parsed)?,
        };
        Ok(matches && stored.is_some())
    }

    /// Whether the hash has the algorithm, version and parameters of this server.
    fn wrote(&self, hash: &PasswordHash) -> bool {
        hash.algorithm == Algorithm::Argon2id.ident()
            && hash.version == Some(Version::V0x13.into())
            && hash.params == self.stated
            && hash.hash.is_some_and(|output| output.len() == Params::DEFAULT_OUTPUT_LEN)
    }

    /// Checks a hash with other parameters, whose memory may be of any size and is not kept.
    fn verify_foreign(&self, password: &Password, hash: &PasswordHash) -> Result<bool, HashError> {
        match self.argon2.verify_password(password.as_bytes(), hash) {
            Ok(()) => Ok(true),
            Err(password_hash::Error::PasswordInvalid) => Ok(false),
            Err(error) => Err(HashError(error.to_string())),
        }
    }
}

fn hash_with(argon2: &Argon2<'_>, stated: &ParamsString, password: &[u8]) -> Result<PasswordHash, HashError> {
    let salt = Salt::new(&random::<RECOMMENDED_SALT_LEN>()?).map_err(|e| HashError(e.to_string()))?;
    Ok(PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: stated.clone(),
        salt: Some(salt),
        hash: Some(output_of(argon2, password, &salt)?),
    })
}

fn output_of(argon2: &Argon2<'_>, password: &[u8], salt: &[u8]) -> Result<Output, HashError> {
    let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
    MEMORY
        .with_borrow_mut(|memory| {
            memory.resize(argon2.params().block_count(), Block::new());
            argon2.hash_password_into_with_memory(password, salt, &mut output, memory)
        })
        .map_err(|e| HashError(e.to_string()))?;
    Output::new(&output).map_err(|e| HashError(e.to_string()))
}

fn random<const N: usize>() -> Result<[u8; N], HashError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| HashError(e.to_string()))?;
    Ok(bytes)
}

/// A password could not be hashed, or a stored hash is damaged. Contains no secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HashError(pub(crate) String);

/// The fraction of the free memory that hashing may take: one in this many.
const MEMORY_SHARE: u64 = 4;

/// One per core, as far as they fit in a quarter of the free memory; at least one.
pub(crate) fn concurrent_hashes() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let memory = [free_in_machine(), free_in_cgroup()].into_iter().flatten().min();
    hashes_for(cores, memory)
}

fn hashes_for(cores: usize, memory_free_kib: Option<u64>) -> usize {
    let fitting = memory_free_kib.map_or(u64::MAX, |kib| kib / MEMORY_SHARE / u64::from(MEMORY_KIB));
    cores.min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1)
}

fn free_in_machine() -> Option<u64> {
    memory_available_kib(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// In a container, the root of the cgroup file system shows the limit (cgroup v2).
fn free_in_cgroup() -> Option<u64> {
    let read = |name| fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok();
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    Some(limit.saturating_sub(used) / 1024)
}

fn memory_available_kib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use argon2::PasswordHasher;

    use super::*;

    fn password(text: &str) -> Password {
        Password::new(text).unwrap()
    }

    #[test]
    fn a_hash_is_a_phc_string_with_the_stated_parameters() {
        let hash = Passwords::new().unwrap().hash(&password("correct horse")).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
    }

    #[test]
    fn only_the_right_password_passes_and_salts_differ() {
        let passwords = Passwords::new().unwrap();
        let stored = passwords.hash(&password("correct horse")).unwrap();
        assert_ne!(stored, passwords.hash(&password("correct horse")).unwrap());
        assert!(passwords.verify(&password("correct horse"), Some(&stored)).unwrap());
        assert!(!passwords.verify(&password("Correct horse"), Some(&stored)).unwrap());
    }

    #[test]
    fn an_unknown_name_is_refused_and_a_damaged_hash_is_an_error() {
        let passwords = Passwords::new().unwrap();
        assert!(!passwords.verify(&password("correct horse"), None).unwrap());
        assert!(passwords.verify(&password("correct horse"), Some("$argon2id$garbage")).is_err());
    }

    /// The test vector of the reference implementation (phc-winner-argon2, src/test.c: "password",
    /// "somesalt", t=2, m=2^16, p=1, version 19), so that our hashes are compatible.
    #[test]
    fn a_hash_from_the_reference_implementation_is_accepted() {
        let reference =
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert!(Passwords::new().unwrap().verify(&password("password"), Some(reference)).unwrap());
    }

    #[test]
    fn our_hashes_are_those_of_the_library_and_each_accepts_the_other() {
        let passwords = Passwords::new().unwrap();
        let ours = passwords.hash(&password("correct horse")).unwrap();
        assert!(
            passwords.verify_foreign(&password("correct horse"), &PasswordHash::new(&ours).unwrap()).unwrap()
        );

        let theirs = passwords.argon2.hash_password(b"correct horse").unwrap();
        assert!(passwords.wrote(&theirs));
        assert!(passwords.verify(&password("correct horse"), Some(&theirs.to_string())).unwrap());
        assert!(!passwords.verify(&password("battery staple"), Some(&theirs.to_string())).unwrap());
    }

    #[test]
    fn cores_cap_where_memory_is_plenty_and_memory_where_it_is_not() {
        let gib = 1024 * 1024;
        assert_eq!(hashes_for(8, Some(64 * gib)), 8);
        assert_eq!(hashes_for(8, Some(256 * 1024)), 3, "a quarter of 256 MiB holds three of 19 MiB");
        assert_eq!(hashes_for(8, Some(0)), 1);
        assert_eq!(hashes_for(2, None), 2);
    }

    #[test]
    fn meminfo_is_read() {
        let text = "MemTotal:       24736748 kB\nMemFree: 1 kB\nMemAvailable:   24040120 kB\n";
        assert_eq!(memory_available_kib(text), Some(24_040_120));
        assert_eq!(memory_available_kib("MemAvailable: lots\n"), None);
        assert_eq!(memory_available_kib(""), None);
    }
}
